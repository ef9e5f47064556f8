// Tests of `provider.mjs` against apns-mock: one server for this file, reset before each test.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';

import { useApnsMock } from 'apns-mock/node-test';

import { Provider } from './provider.mjs';

const welcome = { aps: { alert: { title: 'Welcome' } } };
const firstPause = 150; // milliseconds
const apns = useApnsMock({ seed: 7, failOnFindings: true });

let providers = [];
afterEach(() => {
  for (const provider of providers) provider.close();
  providers = [];
});

function makeProvider(options) {
  const { url, key, keyId, teamId, topic, ca } = apns.settings;
  const credentials = { url, keyId, teamId, topic, key: readFileSync(key), ca: readFileSync(ca) };
  const provider = new Provider({ ...credentials, firstPause, ...options });
  providers.push(provider);
  return provider;
}

/** Sends a welcome notification to each device and returns the responses. */
function sendAll(provider, devices) {
  return Promise.all(devices.map((device) => provider.enqueue(device, welcome)));
}

function makeDevices(count) {
  return Array.from({ length: count }, () => apns.deviceToken());
}

test('healthy: every push is accepted at the first attempt, with one provider token', async () => {
  const devices = makeDevices(50);
  const responses = await sendAll(makeProvider(), devices);

  assert(responses.every(({ status }) => status === 200));
  const accepted = { match: { 'payload./aps/alert/title': 'Welcome' }, outcome: 'accepted', count: { exactly: 50 } };
  await apns.verify({ expect: [accepted], no_others: true, nothing_lost: true });
  const signedAt = (await apns.pushes()).map(({ auth }) => auth.issued_at);
  assert.equal(new Set(signedAt).size, 1);
});

test('flaky-503: pushes are retried with growing pauses until they are accepted', async () => {
  await apns.profile('flaky-503?rate=0.3&streak=2', { seed: 7 });
  const responses = await sendAll(makeProvider(), makeDevices(30));

  assert(responses.every(({ status }) => status === 200));
  const retries = { min: 2, max: 2, min_first_delay: `${firstPause}ms`, growing: true, finally: 'accepted' };
  await apns.verify([{ name: 'retry policy', match: { rule: 'flaky' }, retries }]);
  await apns.assertNothingLost();
});

test('unregistered-410: a device is removed with the time since which it is unregistered', async () => {
  await apns.profile('unregistered-410?rate=0.5&gone_for=2h', { seed: 7 });
  const provider = makeProvider();
  const devices = makeDevices(20);
  const responses = await sendAll(provider, devices);

  const gone = devices.filter((_, index) => responses[index].status === 410);
  assert(gone.length > 0 && gone.length < devices.length);
  assert.deepEqual([...provider.removedDevices.keys()].sort(), gone.sort());
  const age = Date.now() - provider.removedDevices.get(gone[0]);
  assert(Math.abs(age - 2 * 3600 * 1000) < 60_000);
  await apns.verify([{ name: 'no retries', match: { status: 410 }, count: gone.length, retries: { max: 0 } }]);
});

test('expired-jwt-403: one new provider token is signed, and the push is sent again', async () => {
  await apns.profile('expired-jwt-403?max_age=30s', { seed: 7 });
  let time = Date.now();
  const provider = makeProvider({ now: () => time });
  const [first] = await sendAll(provider, makeDevices(1));
  time += 40_000;
  await apns.clock.advance('40s');
  const responses = await sendAll(provider, makeDevices(10));

  assert.equal(first.status, 200);
  assert(responses.every(({ status }) => status === 200));
  await apns.verify([{ match: { reason: 'ExpiredProviderToken' }, retries: { max: 1, finally: 'accepted' } }]);
  await apns.assertNothingLost();
  const signedAt = (await apns.pushes()).map(({ auth }) => auth.issued_at);
  assert.equal(new Set(signedAt).size, 2);
});

test('goaway-storm: pushes that were not processed are sent on a new connection', async () => {
  await apns.profile('goaway-storm?streams=10&grace=100ms', { seed: 7 });
  const responses = await sendAll(makeProvider(), makeDevices(30));

  assert(responses.every(({ status }) => status === 200));
  await apns.verify([{ outcome: 'accepted', count: { exactly: 30 } }]);
  await apns.assertNothingLost();
  const connections = (await apns.pushes()).map(({ connection }) => connection.id);
  assert(new Set(connections).size > 1);
});

test('a device with a bad token is removed, without a time', async () => {
  await apns.rule({ name: 'bad-token', do: { respond: { status: 400, reason: 'BadDeviceToken' } } });
  const provider = makeProvider();
  const [device] = makeDevices(1);
  const [{ status, reason }] = await sendAll(provider, [device]);

  assert.deepEqual([status, reason], [400, 'BadDeviceToken']);
  assert.deepEqual([...provider.removedDevices], [[device, undefined]]);
  assert.equal((await apns.pushes()).length, 1);
});
