'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { after, test } = require('node:test');

const { ApnsMockError, connect, start } = require('..');
const { fixture, isRunning, packageFolder, run, send, temporaryFolder, until } = require('./support.js');

// Servers of the other test files, which run at the same time, have their folders elsewhere.
process.env.TMPDIR = temporaryFolder({ after });

const launcher = path.join(packageFolder, 'bin', 'apns-mock.js');

/** An expression for a script that starts a server. */
const startExpression = `require(${JSON.stringify(packageFolder)}).start()`;

/** A script that starts a server, prints its process id and folder, and never stops it. */
const starter = `${startExpression}.then((apns) => {
  const path = require('node:path');
  const folder = path.dirname(apns.settings.ca);
  console.log(JSON.stringify({ folder, pid: require(path.join(folder, 'ports.json')).pid }));
})`;

function serverFolder(apns) {
  return path.dirname(apns.settings.ca);
}

function serverPID(apns) {
  return JSON.parse(fs.readFileSync(path.join(serverFolder(apns), 'ports.json'), 'utf8')).pid;
}

/** Returns the folders of this file's servers that exist now. */
function serverFolders() {
  return fs.readdirSync(os.tmpdir()).filter((name) => /^apns-mock-[A-Za-z0-9]{6}$/.test(name));
}

/** Returns a file with the header of an executable for another processor. */
function foreignProgram(folder) {
  const header = Buffer.alloc(4096);
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(header); // 64-bit ELF
  header.writeUInt16LE(2, 16); // executable
  header.writeUInt16LE(243, 18); // RISC-V
  const file = path.join(folder, 'apns-mock');
  fs.writeFileSync(file, header, { mode: 0o755 });
  return file;
}

test('stop ends the server and removes its folder', async () => {
  const apns = await start({ args: ['--rules', 'strict'] });
  const pid = serverPID(apns);
  assert.equal((await apns.status()).rules, 'strict');
  await apns.stop();
  await apns.stop();
  assert.equal(isRunning(pid), false);
  assert.equal(fs.existsSync(serverFolder(apns)), false);
});

test('servers that run at the same time are independent', async () => {
  const servers = await Promise.all([start(), start()]);
  try {
    await send(servers[0].settings, [servers[0].deviceToken()]);
    assert.deepEqual(await Promise.all(servers.map(async (apns) => (await apns.pushes()).length)), [1, 0]);
  } finally {
    await Promise.all(servers.map((apns) => apns.stop()));
  }
});

test('a process that never stops its server ends, and the server with it', async () => {
  const { code, stdout, stderr } = await run(process.execPath, ['-e', starter]);
  assert.equal(code, 0, stderr);
  const { folder, pid } = JSON.parse(stdout);
  await until(() => !isRunning(pid), 'the server ended');
  assert.equal(fs.existsSync(folder), false);
});

test('a killed process leaves no server', async (context) => {
  const child = spawn(process.execPath, ['-e', `${starter}; setInterval(() => {}, 1000)`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await once(child.stdout, 'data');
  const { folder, pid } = JSON.parse(String(output));
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  child.kill('SIGKILL');
  await until(() => !isRunning(pid), 'the server ended');
});

test('a missing program is an error that says what to do', async () => {
  const script = `${startExpression}.catch((error) => console.log(error.name, error.message))`;
  for (const [env, expected] of [
    [{ APNS_MOCK_BINARY: '/no/such/program' }, /^ApnsMockError APNS_MOCK_BINARY is "\/no\/such\/program".*: set it to/],
    [{ APNS_MOCK_BINARY: '', PATH: '/no/such' }, /^ApnsMockError no apns-mock program was found:.*PATH has.*; install/],
  ]) {
    const { stdout } = await run(process.execPath, ['-e', script], { env });
    assert.match(stdout, expected);
    assert.equal(stdout.trimEnd().split('\n').length, 1);
  }
  await assert.rejects(start({ binary: '/no/such/program' }), /the option binary is "\/no\/such\/program"/);
});

test('the launcher in PATH is not mistaken for a program', async (context) => {
  const folder = temporaryFolder(context);
  fs.symlinkSync(launcher, path.join(folder, 'apns-mock'));
  const { stderr } = await run(process.execPath, ['-e', startExpression], {
    env: { APNS_MOCK_BINARY: '', PATH: folder },
  });
  assert.match(stderr, /no apns-mock program was found/);
});

test('a program in PATH is used', async (context) => {
  const folder = temporaryFolder(context);
  fs.symlinkSync(path.resolve(process.env.APNS_MOCK_BINARY), path.join(folder, 'apns-mock'));
  const { code, stderr } = await run(process.execPath, ['-e', starter], {
    env: { APNS_MOCK_BINARY: '', PATH: `${folder}${path.delimiter}${process.env.PATH}` },
  });
  assert.equal(code, 0, stderr);
});

test('a program for another architecture is an error that says so', async (context) => {
  const program = foreignProgram(temporaryFolder(context));
  const before = serverFolders();
  const expected = /is a program for linux \(another processor\), and this is .*: install the apns-mock package for/;
  await assert.rejects(start({ binary: program }), { name: 'ApnsMockError', message: expected });
  assert.deepEqual(serverFolders(), before);

  const { code, stderr } = await run(launcher, ['version'], { env: { APNS_MOCK_BINARY: program } });
  assert.equal(code, 126);
  assert.match(stderr, expected);
  assert.equal(stderr.trimEnd().split('\n').length, 1);
});

test('a server that does not start is an error with its messages', async (context) => {
  const blocker = net.createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  context.after(() => blocker.close());
  const before = serverFolders();
  await assert.rejects(start({ args: ['--apns', `127.0.0.1:${blocker.address().port}`] }), (error) => {
    assert(error instanceof ApnsMockError);
    assert.match(error.message, /exited with status 6 \(port in use\) before it was ready; its last messages:/);
    assert.match(error.message, new RegExp(`${blocker.address().port}`));
    return true;
  });
  await assert.rejects(start({ args: ['--profile', 'flaky-504'] }), /status 2 \(invalid configuration\)[^]*flaky-503/);
  assert.deepEqual(serverFolders(), before);
});

test('a server that never becomes ready is stopped', async (context) => {
  const program = path.join(temporaryFolder(context), 'apns-mock');
  fs.writeFileSync(program, '#!/bin/sh\necho waiting >&2\nexec cat\n', { mode: 0o755 });
  await assert.rejects(start({ binary: program, timeout: 300 }), /not ready after 0.3 s[^]*waiting/);
});

test('a server that is killed in the middle of a test is named in the error', async () => {
  const apns = await start();
  const pid = serverPID(apns);
  const waiting = assert.rejects(apns.wait({ timeout: '1m' }), /exited with (signal|status)/);
  process.kill(pid, 'SIGKILL');
  await waiting;
  await assert.rejects(apns.pushes(), {
    name: 'ApnsMockError',
    message: /^the apns-mock server \(pid \d+\) exited with (signal SIGKILL|status \d+): start another one/,
  });
  await apns.stop();
});

test('a server of an incompatible version is stopped', async () => {
  const before = serverFolders();
  await assert.rejects(start({ binary: fixture('incompatible-server.js') }), {
    name: 'ApnsMockError',
    message: /server has version 9\.1\.2 and this client version [\d.]+: install the npm package apns-mock 9, or/,
  });
  assert.deepEqual(serverFolders(), before);
});

test('connect without an address, or without a server, says what to do', async (context) => {
  const { APNS_MOCK_ADMIN: address, APNS_MOCK_PORT_FILE: file } = process.env;
  assert.deepEqual([address, file], [undefined, undefined], 'these tests start their own servers');
  await assert.rejects(connect(), /address of the apns-mock server is unknown: run the tests with `apns-mock exec/);
  await assert.rejects(connect({ portFile: '/no/such/file' }), /port file \/no\/such\/file cannot be read \(ENOENT\)/);
  await assert.rejects(connect({ admin: 'http://[' }), /is not the address of an admin listener/);

  const closed = net.createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address();
  closed.close();
  await once(closed, 'close');
  await assert.rejects(connect({ admin: `127.0.0.1:${port}` }), /cannot be reached \(ECONNREFUSED\): start it/);
});

test('the launcher passes on arguments, exit code and signals', { timeout: 60_000 }, async (context) => {
  const version = await run(launcher, ['version']);
  assert.match(version.stdout, /^apns-mock \d+\.\d+\.\d+\n$/);
  assert.equal(version.code, 0);
  assert.equal((await run(launcher, ['serve', '--no-such-flag'])).code, 2);

  const script = 'trap "exit 7" TERM; echo ready; while :; do sleep 0.1; done';
  const child = spawn(launcher, ['exec', '--', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  context.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 7);
});
