'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { after, before, beforeEach, test } = require('node:test');

const { connect, start } = require('..');
const { run, send } = require('./support.js');

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

test('wait returns pushes that arrive later', async () => {
  const token = apns.deviceToken();
  const [[push]] = await Promise.all([apns.wait({ token, accepted: true }), send(apns.settings, [token])]);
  assert.equal(push.request.device_token, token);
  assert.equal((await apns.wait({ query: `token:${token}`, count: '==1', settle: 20 })).length, 1);
  assert.deepEqual(await apns.wait({ status: 410, count: 0, settle: '20ms' }), []);
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
