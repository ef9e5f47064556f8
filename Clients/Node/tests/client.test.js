'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, beforeEach, test } = require('node:test');

const { ApnsMockError, ApnsMockExpectationError, connect, start } = require('..');
const { run, send, temporaryFolder } = require('./support.js');

let apns;
before(async () => {
  apns = await start();
});
beforeEach(() => apns.reset());
after(() => apns?.stop());

test('settings name the server and its credentials', () => {
  const { settings } = apns;
  assert.equal(settings.url, `https://${settings.host}:${settings.port}`);
  assert.match(fs.readFileSync(settings.ca, 'utf8'), /BEGIN CERTIFICATE/);
  assert.match(fs.readFileSync(settings.key, 'utf8'), /BEGIN PRIVATE KEY/);
  assert.deepEqual([settings.keyId, settings.teamId, settings.topic], ['MOCKKEY001', 'MOCKTEAM01', 'com.example.app']);
});

test('a push is listed by query, by fields and by a list of values', async () => {
  const token = apns.deviceToken();
  assert.match(token, /^[0-9a-f]{64}$/);
  assert.deepEqual(await send(apns.settings, [token], { aps: { alert: 'Welcome' } }), [200]);
  for (const filter of [
    `token:${token} payload./aps/alert:Welcome`,
    { device_token: token, 'payload./aps/alert': 'Welcome' },
    { status: [200, 410], since: new Date(Date.now() - 60_000) },
  ]) {
    const [push, ...others] = await apns.pushes(filter);
    assert.deepEqual(others, []);
    assert.equal(push.request.device_token, token);
    assert.equal(push.accepted, true);
  }
  assert.deepEqual(await apns.pushes({ status: 410 }), []);
});

test('pushes reads all pages', async () => {
  // More than one page of 1000 records.
  for (let round = 0; round < 11; round += 1) {
    await send(apns.settings, Array.from({ length: 100 }, () => apns.deviceToken()));
  }
  const ascending = (await apns.pushes()).map(({ seq }) => seq);
  assert.equal(new Set(ascending).size, 1100);
  assert.deepEqual((await apns.pushes({ order: 'desc' })).map(({ seq }) => seq).reverse(), ascending);
  assert.equal((await apns.pushes({ limit: 3 })).length, 3);
});

test('an unknown filter is an error that names the known ones', async () => {
  const expected = { name: 'ApnsMockError', status: 400, message: /device_token/ };
  await assert.rejects(apns.pushes({ devicetoken: 'ab12' }), expected);
  await assert.rejects(apns.wait({ devicetoken: 'ab12' }), expected);
  await assert.rejects(apns.findings('devicetoken:ab12'), expected);
});

test('wait returns pushes that arrive later', async () => {
  const token = apns.deviceToken();
  const [[push]] = await Promise.all([apns.wait({ token, accepted: true }), send(apns.settings, [token])]);
  assert.equal(push.request.device_token, token);
  assert.equal((await apns.wait({ query: `token:${token}`, count: '==1', settle: 20 })).length, 1);
  assert.deepEqual(await apns.wait({ status: 410, count: 0, settle: '20ms' }), []);
});

test('a wait that times out names the nearest push', async () => {
  const token = apns.deviceToken();
  await send(apns.settings, [token]);
  await assert.rejects(apns.wait({ token, status: 410, timeout: 20 }), (error) => {
    assert(error instanceof ApnsMockExpectationError);
    assert.match(error.message, /wanted at least 1/);
    assert.match(error.message, /nearest: push \d+, met token, missed status/);
    assert.equal(error.report.satisfied, false);
    return true;
  });
});

test('verify passes, or fails with the report of the server', async () => {
  await send(apns.settings, [apns.deviceToken()]);
  const expectation = { name: 'welcome', match: { topic: 'com.example.app' }, count: { exactly: 1 } };
  assert.equal((await apns.verify([expectation])).passed, true);
  assert.equal((await apns.verify({ expect: [expectation], no_others: true, settle: 10, timeout: 1000 })).passed, true);
  await assert.rejects(apns.verify([{ ...expectation, count: 2 }]), (error) => {
    assert(error instanceof ApnsMockExpectationError);
    assert.match(error.message, /welcome: expected exactly 2, found 1/);
    return true;
  });
  await assert.rejects(apns.verify([{ matches: {} }]), { name: 'ApnsMockError', status: 400 });
});

test('device states determine the response', async () => {
  const token = apns.deviceToken();
  const since = new Date('2026-01-02T03:04:05.678Z');
  await apns.device(token).unregistered({ since });
  assert.deepEqual(await send(apns.settings, [token]), [410]);
  await apns.device(token).expired();
  assert.deepEqual(await send(apns.settings, [token]), [410]);
  await apns.device(token).online();
  assert.deepEqual(await send(apns.settings, [token]), [200]);
  assert.deepEqual(
    (await apns.pushes()).map(({ served }) => served.reason),
    ['Unregistered', 'ExpiredToken', null],
  );
  await assert.rejects(apns.device('no token').online(), { name: 'ApnsMockError', status: 400 });
});

test('the clock freezes, advances and runs again', async () => {
  const now = new Date('2030-01-01T12:00:00Z');
  assert.deepEqual(await apns.clock.freeze(now), { mode: 'frozen', now: '2030-01-01T12:00:00.000Z' });
  assert.equal((await apns.clock.advance('61m')).now, '2030-01-01T13:01:00.000Z');
  assert.equal((await apns.clock.advance(1500)).now, '2030-01-01T13:01:01.500Z');
  assert.equal((await apns.clock.real()).mode, 'real');
  assert.equal((await apns.clock.now()).mode, 'real');
});

test('a profile and its seed determine the faults', async () => {
  const active = await apns.profile('flaky-503?rate=1', { seed: 7, ttl: '5m' });
  assert.deepEqual([active.reference, active.seed], ['flaky-503?rate=1', 7]);
  assert.deepEqual(await send(apns.settings, [apns.deviceToken()]), [503]);
  await apns.reset({ keep: ['profile'] });
  assert.equal((await apns.activeProfile()).name, 'flaky-503');
  assert.deepEqual(await apns.pushes(), []);
  await assert.rejects(apns.profile('flaky-504'), /Did you mean flaky-503/i);
});

test('a rule determines the response until its time to live expires', async () => {
  const rule = await apns.rule({ name: 'down', do: { respond: { status: 500 } } }, { ttl: 60_000 });
  assert.equal(rule.name, 'down');
  assert.match(rule.ends_in, /^(1m|59s|60s)$/);
  assert.deepEqual(await send(apns.settings, [apns.deviceToken()]), [500]);
});

test('a lost push and findings are reported', async () => {
  await apns.assertNothingLost();
  await apns.rule({ name: 'down', do: { respond: { status: 503 } } });
  const token = apns.deviceToken();
  await send(apns.settings, [token]);
  await send(apns.settings, [token]);
  await assert.rejects(apns.assertNothingLost(), /nothing_lost/);
  const [finding] = await apns.findings();
  assert.equal(finding.finding, 'hot-retry');
  assert.equal(finding.count, 1);

  const report = await apns.report();
  assert.match(report, /^apns-mock: profile healthy, seed \d+$/m);
  assert.match(report, new RegExp(`${token.slice(0, 6)}….*attempt 2  503 ServiceUnavailable  rule down`));
  assert.match(report, /hot-retry ×1: /);
});

test('export writes a line per record', async () => {
  await send(apns.settings, [apns.deviceToken(), apns.deviceToken()]);
  const records = (await apns.export()).trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(records.length, 2);
  assert.equal(await apns.export('status:410'), '');
});

test('an exported inbox is imported', async (context) => {
  const token = apns.deviceToken();
  await send(apns.settings, [token]);
  const file = path.join(temporaryFolder(context), 'run.ndjson');
  fs.writeFileSync(file, await apns.export());
  await apns.reset();
  await apns.import(file);
  const [push] = await apns.pushes();
  assert.equal(push.request.device_token, token);
});

test('a scoped client neither changes nor counts other pushes', async () => {
  const tokens = [apns.deviceToken(), apns.deviceToken()];
  const [one, two] = tokens.map((token) => apns.scoped(`token:${token}`));
  await send(apns.settings, tokens);
  assert.equal((await one.pushes()).length, 1);
  await one.verify([{ count: 1 }]);
  await assert.rejects(one.wait({ count: 2, timeout: 20 }), ApnsMockExpectationError);
  await one.reset();
  assert.deepEqual(await one.pushes(), []);
  assert.equal((await two.wait()).length, 1);
  assert.deepEqual(await two.findings(), []);
  assert.equal((await two.export()).trimEnd().split('\n').length, 1);
});

test('connect uses a port file, or an address', async () => {
  const portFile = path.join(path.dirname(apns.settings.ca), 'ports.json');
  const other = await connect({ portFile });
  assert.deepEqual(other.settings, apns.settings);
  await other.stop();
  assert.deepEqual(await apns.pushes(), [], 'stop does not end a server that was running before');

  const { adminUrl, host, port, ca } = apns.settings;
  const remote = await connect({ admin: adminUrl, apns: `${host}:${port}`, ca });
  assert.equal(remote.settings.url, apns.settings.url);
  assert.equal(remote.settings.key, undefined);
});

test('connect uses the environment of apns-mock exec', async () => {
  const script = `require(${JSON.stringify(path.join(__dirname, '..'))}).connect()
    .then(async (apns) => console.log(JSON.stringify([apns.settings, (await apns.pushes()).length])))`;
  const { code, stdout, stderr } = await run(process.env.APNS_MOCK_BINARY, [
    ...['exec', '--admin-token', 'secret', '--', process.execPath, '-e', script],
  ]);
  assert.equal(code, 0, stderr);
  const [settings, count] = JSON.parse(stdout);
  assert.equal(count, 0);
  assert.match(settings.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(settings.keyId, 'MOCKKEY001');
});
