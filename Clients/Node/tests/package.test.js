'use strict';

// The package as users install it: built, installed without a registry, imported both ways, checked by TypeScript.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');

const { findCommand, fixture, packageFolder, run, temporaryFolder } = require('./support.js');

const builder = path.join(packageFolder, 'build-package');
const { version } = require('../package.json');

let folder;
let archive;
let project;

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apns-mock-tests-'));
  const notices = path.join(folder, 'notices.txt');
  fs.writeFileSync(notices, 'Notices of others\n');
  const built = await run(builder, [
    ...['--binary', process.env.APNS_MOCK_BINARY, '--version', version],
    ...['--output', path.join(folder, 'out'), '--notices', notices],
  ]);
  assert.equal(built.code, 0, built.stderr);
  archive = built.stdout.trim();
  assert.equal(path.basename(archive), `apns-mock-${version}.tgz`);
  project = path.join(folder, 'project');
  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, 'package.json'), '{"private": true}');
  const installed = await npm('install', archive);
  assert.equal(installed.code, 0, installed.stderr);
});

after(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Runs npm in the project, without the program that the tests use otherwise. */
function npm(...args) {
  return inProject('npm', [...args, '--offline', '--no-audit', '--no-fund']);
}

function inProject(command, args, env = {}) {
  return run(command, args, { cwd: project, env, without: ['APNS_MOCK_BINARY'] });
}

test('the package contains only what it needs, and names its platform', () => {
  const installed = path.join(project, 'node_modules', 'apns-mock');
  assert.deepEqual(fs.readdirSync(installed).sort(), [
    ...['LICENSE', 'NOTICES', 'README.md', 'bin', 'lib', 'package.json', 'program'],
  ]);
  const manifest = JSON.parse(fs.readFileSync(path.join(installed, 'package.json'), 'utf8'));
  assert.deepEqual([manifest.version, manifest.os, manifest.cpu], [version, [process.platform], [process.arch]]);
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.scripts, undefined);
});

test('the package names its author and its repository, and its README links to the files there', () => {
  const installed = path.join(project, 'node_modules', 'apns-mock');
  const repository = fs.readFileSync(path.join(packageFolder, '..', '..', 'Distribution', 'repository'), 'utf8').trim();
  const { author, license, homepage, bugs, repository: source } = require(path.join(installed, 'package.json'));
  assert.deepEqual([author, license], ['the apns-mock contributors', 'Apache-2.0']);
  assert.equal(homepage, `${repository}/tree/main/Clients/Node#readme`);
  assert.equal(bugs.url, `${repository}/issues`);
  assert.deepEqual(source, { type: 'git', url: `git+${repository}.git`, directory: 'Clients/Node' });
  const links = [...fs.readFileSync(path.join(installed, 'README.md'), 'utf8').matchAll(/\]\((\S+?)\)/g)].map((link) => link[1]);
  const before = [...fs.readFileSync(path.join(packageFolder, 'README.md'), 'utf8').matchAll(/\]\((\S+?)\)/g)];
  assert.ok(links.length > 5 && links.length === before.length);
  assert.deepEqual(links.filter((link) => !/^(https:|#)/.test(link)), []);
  assert.ok(links.includes(`${repository}/blob/v${version}/Examples/node/README.md`));
});

test('npx runs the program of the package', async () => {
  const { code, stdout, stderr } = await inProject('npx', ['--offline', 'apns-mock', 'version']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^apns-mock \d+\.\d+\.\d+\n$/);
});

test('import and require start the same program', async () => {
  const body = 'start().then(async (apns) => { console.log((await apns.pushes()).length); await apns.stop(); })';
  for (const args of [
    ['-e', `const { start } = require('apns-mock'); ${body}`],
    ['--input-type=module', '-e', `import { start } from 'apns-mock'; await ${body}`],
  ]) {
    const { code, stdout, stderr } = await inProject(process.execPath, args);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, '0\n');
  }
});

test('import and require share their classes', async () => {
  const script = `import * as esm from 'apns-mock'; import { createRequire } from 'node:module';
    const cjs = createRequire(process.cwd() + '/')('apns-mock');
    console.log(Object.keys(cjs).every((name) => cjs[name] === esm[name]), Object.keys(cjs).length)`;
  const { stdout, stderr } = await inProject(process.execPath, ['--input-type=module', '-e', script]);
  assert.equal(stdout, 'true 4\n', stderr);
});

test('a package for another architecture is an error that says so', async (context) => {
  const copy = path.join(temporaryFolder(context), 'apns-mock');
  fs.cpSync(path.join(project, 'node_modules', 'apns-mock'), copy, { recursive: true });
  const program = fs.openSync(path.join(copy, 'program', 'apns-mock'), 'r+');
  const other = process.arch === 'x64' ? { name: 'arm64', machine: 0xb7 } : { name: 'x64', machine: 0x3e };
  fs.writeSync(program, Buffer.from([other.machine, 0]), 0, 2, 18);
  fs.closeSync(program);
  const { code, stderr } = await run(path.join(copy, 'bin', 'apns-mock.js'), ['version'], {
    without: ['APNS_MOCK_BINARY'],
  });
  assert.equal(code, 126);
  assert.match(stderr, new RegExp(`is a program for linux ${other.name}, and this is .* ${process.arch}: install`));
});

const tsc = findCommand('tsc');
test('TypeScript accepts the types', { skip: tsc === undefined && 'tsc is not in PATH' }, async () => {
  fs.copyFileSync(fixture('types.ts'), path.join(project, 'types.ts'));
  fs.copyFileSync(fixture('types.ts'), path.join(project, 'module.mts'));
  const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022'];
  for (const resolution of ['nodenext', 'node']) {
    const mode = resolution === 'node' ? ['--module', 'commonjs'] : ['--module', resolution];
    const { code, stdout } = await inProject(tsc, [
      ...[...options, ...mode, '--moduleResolution', resolution, 'types.ts'],
      ...(resolution === 'node' ? [] : ['module.mts']),
    ]);
    assert.equal(code, 0, stdout);
  }
});

test('build-package rejects wrong arguments in one sentence', async (context) => {
  const output = temporaryFolder(context);
  const script = path.join(output, 'script');
  fs.writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 });
  const complete = { binary: process.env.APNS_MOCK_BINARY, version: '1.2.3', output };
  for (const [wrong, expected] of [
    [{ binary: undefined }, /--binary is missing\nusage: build-package/],
    [{ binary: '/no/such/program' }, /--binary is \/no\/such\/program, which does not exist: specify/],
    [{ binary: script }, /is not an executable for Linux or macOS/],
    [{ version: 'v1' }, /--version is "v1": specify a semantic version/],
    [{ unknown: 'x' }, /Unknown option '--unknown'/],
  ]) {
    const options = Object.entries({ ...complete, ...wrong }).filter(([, value]) => value !== undefined);
    const { code, stderr } = await run(builder, options.flatMap(([name, value]) => [`--${name}`, value]));
    assert.equal(code, 2);
    assert.match(stderr, expected);
  }
  assert.deepEqual(fs.readdirSync(output), ['script']);
});
