'use strict';

// The helpers of the test runners, run on `fixtures/suite.js` by the runner itself. Jest is skipped if it is not in
// PATH; a stub replaces Vitest.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');

const { findCommand, fixture, isRunning, packageFolder, run, temporaryFolder } = require('./support.js');

/** The hooks of node:test know since these versions whether a test failed. */
const [major, minor] = process.versions.node.split('.').map(Number);
const hooksKnowResult = major > 20 || (major === 20 && minor >= 12);

/** Returns a project folder in which `apns-mock` and the suites can be imported. */
function project(context) {
  const folder = temporaryFolder(context);
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(packageFolder, path.join(folder, 'node_modules', 'apns-mock'));
  fs.cpSync(path.join(__dirname, 'fixtures'), path.join(folder, 'tests'), { recursive: true });
  fs.copyFileSync(path.join(__dirname, 'support.js'), path.join(folder, 'support.js'));
  return folder;
}

function environment(folder) {
  return { COPY_OF_PORT_FILE: path.join(folder, 'copy.json'), NO_COLOR: '1', FORCE_COLOR: '0' };
}

/** Checks the output of `fixtures/suite.js`. */
function checkOutput(output, folder, { reportsFailure = true } = {}) {
  const reports = output.split('apns-mock: seed').slice(1);
  const finding = reports.pop();
  assert.match(finding, /^ 7, profile flaky-503\?rate=1, 2 pushes$/m);
  assert.match(finding, /efef…ef  com\.example\.app  attempt 1  503 ServiceUnavailable  rule flaky/);
  assert.match(finding, /hot-retry, push \d+:/);
  assert.match(output, /finding hot-retry, push \d+: /);
  assert.equal(reports.length, reportsFailure ? 1 : 0);
  if (reportsFailure) {
    assert.match(reports[0], /cdcd…cd  com\.example\.app  attempt 1  503/);
    assert.match(reports[0], /abandoned, push \d+:/);
  }
  const { pid } = JSON.parse(fs.readFileSync(path.join(folder, 'copy.json'), 'utf8'));
  assert.equal(isRunning(pid), false, 'the server has ended');
}

test('node:test: each test starts with a reset server, and a failed test prints the inbox', async (context) => {
  const folder = project(context);
  const { code, stdout, stderr } = await run(
    process.execPath,
    ['--test', '--test-reporter=tap', path.join(folder, 'tests', 'node-test.suite.js')],
    { env: environment(folder) },
  );
  const output = stdout + stderr;
  assert.equal(code, 1, output);
  assert.match(output, /# pass 2$/m);
  assert.match(output, /# fail 2$/m);
  checkOutput(output.replace(/^ *#? ?/gm, ' '), folder, { reportsFailure: hooksKnowResult });
});

/** Returns the report that a test process has written to a folder. */
function reportIn(folder) {
  const [name] = fs.readdirSync(folder);
  return JSON.parse(/id="summary">(.*?)<\/script>/s.exec(fs.readFileSync(path.join(folder, name), 'utf8'))[1]);
}

/** Checks the tests of `fixtures/suite.js` in a report. */
function checkReport(report, { knowsResult = true } = {}) {
  const outcomes = Object.fromEntries(report.tests.map(({ name, outcome }) => [name.split(' > ').at(-1), outcome]));
  assert.deepEqual(outcomes, {
    'the profile is active': 'passed',
    'the inbox is empty again': 'passed',
    'this test fails': knowsResult ? 'failed' : 'passed',
    'this test causes a finding': 'failed',
  });
  const failure = report.failures.find(({ name }) => name.includes('causes a finding'));
  assert.match(failure.message, /hot-retry/);
  assert.equal(failure.nearest[0].response, '503 ServiceUnavailable');
}

test('node:test: the tests are in the report of the process', async (context) => {
  const folder = project(context);
  const reports = path.join(folder, 'reports');
  const suite = path.join(folder, 'tests', 'node-test.suite.js');
  await run(process.execPath, ['--test', suite], { env: { ...environment(folder), APNS_MOCK_REPORTS: reports } });
  const report = reportIn(reports);
  checkReport(report, { knowsResult: hooksKnowResult });
  assert.match(report.command, /^APNS_MOCK_SEED=\d+ node .*node-test\.suite\.js$/);
});

test('node:test: the tests and pushes of the own server are in the report of apns-mock exec', async (context) => {
  const folder = project(context);
  const report = path.join(folder, 'report.html');
  const suite = path.join(folder, 'tests', 'node-test.suite.js');
  const tests = [process.execPath, '--test', suite];
  await run(process.env.APNS_MOCK_BINARY, ['exec', '--report', report, '--', ...tests], { env: environment(folder) });
  const [, text] = /id="summary">(.*?)<\/script>/s.exec(fs.readFileSync(report, 'utf8'));
  checkReport(JSON.parse(text), { knowsResult: hooksKnowResult });
  assert.match(JSON.parse(text).command, /^apns-mock exec /);
});

test('node:test: todo, skipped and nested tests are recorded as node:test reports them', async (context) => {
  const folder = project(context);
  const reports = path.join(folder, 'reports');
  const suite = path.join(folder, 'tests', 'outcomes.suite.js');
  const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', suite], {
    env: { ...environment(folder), APNS_MOCK_REPORTS: reports },
  });
  assert.match(stdout, /# pass 4\n# fail 2\n# cancelled 0\n# skipped 4\n# todo 3\n/);
  const { tests } = reportIn(reports);
  assert.equal(tests.length, 13);
  const found = Object.fromEntries(tests.map(({ name, outcome, pushes }) => [name.split(' > ').at(-1), [outcome, pushes]]));
  assert.deepEqual(found, {
    welcome: ['passed', 1],
    'to do': ['skipped', 0],
    'to do in its body': ['skipped', 0],
    'skipped in its body': ['skipped', 0],
    outer: ['passed', 2],
    inner: ['passed', 2],
    'inner to do': ['skipped', 0],
    'outer that fails': [hooksKnowResult ? 'failed' : 'passed', 0],
    'inner that fails': [hooksKnowResult ? 'failed' : 'passed', 0],
    'skipped at the end': ['skipped', 0],
    skipped: ['skipped', 0],
    'is recorded once': ['passed', 1],
    'skipped in a suite': ['skipped', 0],
  });
});

test('node:test: sessions with equal arguments share a server', async (context) => {
  const suite = path.join(project(context), 'tests', 'nested.suite.js');
  const { code, stdout, stderr } = await run(process.execPath, ['--test', suite]);
  assert.equal(code, 0, stdout + stderr);
});

test('node:test: test files with different scopes share the server of apns-mock exec', async (context) => {
  const folder = path.join(project(context), 'tests');
  const suites = ['one.js', 'two.js'].map((name) => path.join(folder, name));
  for (const suite of suites) fs.copyFileSync(path.join(folder, 'scoped.suite.js'), suite);
  const tests = [process.execPath, '--test', ...suites];
  const { code, stdout, stderr } = await run(process.env.APNS_MOCK_BINARY, ['exec', '--', ...tests]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /pass 20$/m);
});

test('node:test: an unknown name in failOnFindings fails the test', async (context) => {
  const folder = project(context);
  const suite = path.join(folder, 'tests', 'unknown.suite.js');
  fs.writeFileSync(
    suite,
    `require('apns-mock/node-test').useApnsMock({ failOnFindings: ['hot-retries'] });
    require('node:test').test('nothing', () => {});`,
  );
  const { code, stdout } = await run(process.execPath, ['--test', suite]);
  assert.equal(code, 1);
  assert.match(stdout, /hot-retry/);
});

/** Returns a project folder in which a stub of Vitest can be imported too. */
function vitestProject(context) {
  const folder = project(context);
  // Not a link to the package: the stub would not be found from its real path.
  const installed = path.join(folder, 'node_modules', 'apns-mock');
  fs.rmSync(installed);
  for (const part of ['lib', 'package.json']) {
    fs.cpSync(path.join(packageFolder, part), path.join(installed, part), { recursive: true });
  }
  fs.cpSync(fixture('vitest-stub'), path.join(folder, 'node_modules', 'vitest'), { recursive: true });
  return folder;
}

test('Vitest: each test starts with a reset server, and a failed test prints the inbox', async (context) => {
  const folder = vitestProject(context);
  const reports = path.join(folder, 'reports');
  const { code, stdout, stderr } = await run(process.execPath, [path.join(folder, 'tests', 'vitest.suite.mjs')], {
    env: { ...environment(folder), APNS_MOCK_REPORTS: reports },
  });
  assert.equal(code, 0, stderr);
  assert.deepEqual(stdout.match(/^(pass|fail): .*$/gm), [
    'pass: the profile is active',
    'pass: the inbox is empty again',
    'fail: this test fails',
    'fail: this test causes a finding',
  ]);
  checkOutput(stderr + stdout, folder);
  checkReport(reportIn(reports));
});

test('Vitest: repeated, skipped and expectedly failing tests are recorded as Vitest reports them', async (context) => {
  const folder = vitestProject(context);
  const reports = path.join(folder, 'reports');
  const suite = path.join(folder, 'tests', 'vitest-outcomes.suite.mjs');
  const { code, stdout, stderr } = await run(process.execPath, [suite], { env: { APNS_MOCK_REPORTS: reports } });
  assert.equal(code, 0, stderr);
  assert.deepEqual(stdout.match(/^(pass|fail|skip): .*$/gm), [
    'pass: passes later',
    'fail: never passes',
    'pass: is expected to fail',
    'fail: passes against expectation',
    'skip: skipped in its body',
  ]);
  const { tests, failures } = reportIn(reports);
  assert.deepEqual(
    tests.map(({ name, outcome, pushes }) => `${name}: ${outcome}, ${pushes} pushes`),
    [
      'passes later: skipped, 1 pushes',
      'passes later #2: skipped, 1 pushes',
      'passes later #3: passed, 1 pushes',
      'never passes: skipped, 0 pushes',
      'never passes #2: failed, 0 pushes',
      'is expected to fail: passed, 0 pushes',
      'passes against expectation: failed, 0 pushes',
      'skipped in its body: skipped, 0 pushes',
    ],
  );
  assert.deepEqual(
    failures.map(({ message }) => message),
    ['broken', 'the test has passed, although it is expected to fail'],
  );
});

const jest = findCommand('jest');
test(
  'Jest: each test starts with a reset server, and a failed test prints the inbox',
  { skip: jest === undefined && 'jest is not in PATH' },
  async (context) => {
    const folder = project(context);
    const configuration = { rootDir: folder, testMatch: ['**/jest.suite.js'], testEnvironment: 'node', transform: {} };
    const { code, stdout, stderr } = await run(jest, ['--ci', '--config', JSON.stringify(configuration)], {
      cwd: folder,
      env: environment(folder),
    });
    const output = stdout + stderr;
    assert.equal(code, 1, output);
    assert.match(output, /Tests: +2 failed, 2 passed, 4 total/);
    assert.doesNotMatch(output, /did not exit|open handle/);
    checkOutput(output, folder);
  },
);

test('an unknown option is an error that lists the options', async () => {
  const { TestSession } = require('../lib/test-session.js');
  assert.throws(() => new TestSession({ profiles: 'flaky-503' }), /unknown option "profiles".*profile, seed/);
});
