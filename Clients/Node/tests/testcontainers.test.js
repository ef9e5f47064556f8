'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const os = require('node:os');
const path = require('node:path');
const tls = require('node:tls');
const { after, test } = require('node:test');

const { fixture, packageFolder, send } = require('./support.js');

// The package is installed beside a stand-in for Testcontainers, whose engine runs the program. No container is run.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apns-mock-testcontainers-'));
const installed = path.join(folder, 'node_modules', 'apns-mock');
for (const part of ['lib', 'package.json']) {
  fs.cpSync(path.join(packageFolder, part), path.join(installed, part), { recursive: true });
}
fs.cpSync(fixture('testcontainers-stub'), path.join(folder, 'node_modules', 'testcontainers'), { recursive: true });
const { ApnsMockContainer } = createRequire(path.join(folder, 'suite.js'))('apns-mock/testcontainers');
after(() => fs.rmSync(folder, { recursive: true }));

// Whether the server has a certificate for its address, whatever it is.
function verifies({ host, port, ca }, servername) {
  return new Promise((resolve) => {
    const socket = tls.connect({ host, port, servername, ca: fs.readFileSync(ca), ALPNProtocols: ['h2'] });
    socket.once('secureConnect', () => resolve(true)).once('error', resolve).once('close', () => resolve(false));
    socket.once('secureConnect', () => socket.destroy());
  });
}

test('a container is started, used and removed', async () => {
  const started = await new ApnsMockContainer().withArguments('--rules', 'strict', '--seed', '7', '--allow-host=mock.test')
    .withEnvironment({ APNS_MOCK_SAN: 'push.test' }).start();
  const apns = await started.getClient();
  const isVerified = [await verifies(apns.settings), await verifies(apns.settings, 'push.test')];
  assert.deepEqual(await send(apns.settings, [apns.deviceToken()]), [200]);
  assert.equal((await apns.wait({ count: 1 })).length, 1);
  assert.equal((await apns.status()).seed, 7);
  await started.stop();
  assert.equal(fs.existsSync(apns.settings.ca), false);
  await assert.rejects(apns.status());
  assert.deepEqual(isVerified, [true, true]);
});

test('a container that exits is an error', async () => {
  await assert.rejects(new ApnsMockContainer().withArguments('--profile', 'flaky-504').start(), /exited with 2/);
});

test('the module is the same for import', async () => {
  const { ApnsMockContainer: imported } = await import(path.join(installed, 'lib', 'testcontainers.mjs'));
  assert.equal(imported, ApnsMockContainer);
});

test('the client needs no Testcontainers', () => {
  const { dependencies, peerDependenciesMeta } = require('../package.json');
  assert.equal(dependencies, undefined);
  assert.equal(peerDependenciesMeta.testcontainers.optional, true);
  assert.throws(() => require('../lib/testcontainers.js'), { code: 'MODULE_NOT_FOUND' });
});
