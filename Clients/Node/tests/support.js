'use strict';

const { spawn } = require('node:child_process');
const { createPrivateKey, sign } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const http2 = require('node:http2');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');

const commandTimeout = 180_000; // milliseconds; packing and TypeScript are slow on a busy machine
const packageFolder = path.join(__dirname, '..');

/** Returns the path of a file in `tests/fixtures`. */
function fixture(name) {
  return path.join(__dirname, 'fixtures', name);
}

/** Sends one push per device token over one connection and returns the statuses. */
async function send(settings, deviceTokens, payload = { aps: { alert: 'Hello' } }) {
  const session = http2.connect(settings.url, { ca: fs.readFileSync(settings.ca), servername: 'localhost' });
  try {
    await once(session, 'remoteSettings');
    const token = providerToken(settings);
    return await Promise.all(deviceTokens.map((deviceToken) => post(session, token, settings, deviceToken, payload)));
  } finally {
    session.close();
  }
}

async function post(session, token, { topic }, deviceToken, payload) {
  const stream = session.request({
    ':method': 'POST',
    ':path': `/3/device/${deviceToken}`,
    authorization: `bearer ${token}`,
    'apns-topic': topic,
    'apns-push-type': 'alert',
  });
  stream.end(JSON.stringify(payload));
  const [headers] = await once(stream, 'response');
  stream.resume();
  await once(stream, 'close');
  return headers[':status'];
}

function providerToken({ key, keyId, teamId }) {
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: teamId, iat: Math.floor(Date.now() / 1000) };
  const content = `${encode({ alg: 'ES256', kid: keyId })}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(content), {
    key: createPrivateKey(fs.readFileSync(key)),
    dsaEncoding: 'ieee-p1363',
  });
  return `${content}.${signature.toString('base64url')}`;
}

/** Runs a command and returns its exit code and output. A command that hangs is killed. */
async function run(command, args, { env = {}, without = [], cwd } = {}) {
  const environment = { ...process.env, ...env };
  // A test runner in a child process would report to this one.
  for (const name of ['NODE_TEST_CONTEXT', ...without]) delete environment[name];
  const child = spawn(command, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), commandTimeout);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  return { code, signal, stdout, stderr };
}

/** Returns a new temporary folder that is removed after the test or suite. */
function temporaryFolder(context) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apns-mock-tests-'));
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Waits until `condition` returns true. */
async function until(condition, description) {
  const deadline = Date.now() + 15_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`after 15 s still not true: ${description}`);
    await delay(10);
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the path of a command in `PATH`, or undefined. */
function findCommand(name) {
  return process.env.PATH.split(path.delimiter)
    .map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
}

module.exports = { findCommand, fixture, isRunning, packageFolder, run, send, temporaryFolder, until };
