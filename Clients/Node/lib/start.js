'use strict';

const fs = require('node:fs');

const { AdminAPI } = require('./admin-api.js');
const { ApnsMock } = require('./apns-mock.js');
const { ApnsMockError } = require('./errors.js');
const { ServerProcess } = require('./server-process.js');

const { version: clientVersion } = require('../package.json');

const defaultTopic = 'com.example.app';

/**
 * Starts a server on free ports.
 *
 * @param {{ args?: string[], binary?: string, timeout?: number }} [options]
 */
async function start(options) {
  return new ApnsMock(await startServer(options));
}

/**
 * Connects to a running server, by default the one that `apns-mock exec` started for this process.
 *
 * @param {{ portFile?: string, apns?: string, admin?: string, adminToken?: string, ca?: string, key?: string,
 *   keyId?: string, teamId?: string }} [options]
 */
async function connect(options) {
  return new ApnsMock(await connectToServer(options));
}

/** Starts a server and returns it for an `ApnsMock`. */
async function startServer(options) {
  const child = await ServerProcess.start(options);
  const server = {
    api: new AdminAPI(authority(child.ports.admin), child.ports.admin_token),
    settings: settings(portFileValues(child.ports)),
    connectionError: (cause) => child.connectionError(cause),
    stop: () => child.stop(),
  };
  try {
    await checkVersionOf(server);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return server;
}

/** Connects to a running server and returns it for an `ApnsMock`. */
async function connectToServer(options = {}) {
  const values = { ...addresses(options), ...defined(options) };
  if (!values.admin) {
    throw new ApnsMockError(
      'the address of the apns-mock server is unknown: run the tests with `apns-mock exec -- COMMAND`, set ' +
        'APNS_MOCK_ADMIN or APNS_MOCK_PORT_FILE, or pass `admin` or `portFile`',
    );
  }
  const api = new AdminAPI(values.admin, values.adminToken);
  const server = {
    api,
    settings: settings({ ...values, admin: api.url }),
    connectionError: async (cause) =>
      new ApnsMockError(
        `the apns-mock server at ${api.url} cannot be reached (${cause.code ?? cause.message}): start it, or correct ` +
          'its address',
        { cause },
      ),
    stop: async () => {},
  };
  await checkVersionOf(server);
  return server;
}

/** Returns the values of a port file, or those of the environment if the options do not name a server. */
function addresses({ portFile, admin }) {
  if (portFile !== undefined) return readPortFile(portFile);
  if (admin !== undefined) return {};
  const { APNS_MOCK_PORT_FILE: file } = process.env;
  return { ...(file ? readPortFile(file) : {}), ...environmentValues() };
}

function readPortFile(file) {
  try {
    return portFileValues(JSON.parse(fs.readFileSync(file, 'utf8')));
  } catch (cause) {
    throw new ApnsMockError(
      `the port file ${file} cannot be read (${cause.code ?? cause.message}): start the server with --port-file, or ` +
        'correct the path',
      { cause },
    );
  }
}

function portFileValues(ports) {
  return {
    apns: authority(ports.apns[0]),
    admin: `http://${authority(ports.admin)}`,
    adminToken: ports.admin_token,
    ca: ports.ca,
    key: ports.key,
    keyId: ports.key_id,
    teamId: ports.team_id,
  };
}

function environmentValues() {
  const { env } = process;
  return defined({
    apns: env.APNS_MOCK_APNS?.split(',')[0],
    admin: env.APNS_MOCK_ADMIN,
    adminToken: env.APNS_MOCK_ADMIN_TOKEN,
    ca: env.APNS_MOCK_CA,
    key: env.APNS_MOCK_KEY,
    keyId: env.APNS_MOCK_KEY_ID,
    teamId: env.APNS_MOCK_TEAM_ID,
  });
}

function settings({ apns, admin, ca, key, keyId, teamId }) {
  const url = apns === undefined ? undefined : new URL(`https://${apns}`);
  return Object.freeze({
    host: url?.hostname.replace(/^\[|\]$/g, ''),
    port: url === undefined ? undefined : Number(url.port || 443),
    url: url?.origin,
    adminUrl: admin,
    ca,
    key,
    keyId,
    teamId,
    topic: defaultTopic,
  });
}

function authority({ host, port }) {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function defined(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Throws if the server's version and that of this client are incompatible. */
async function checkVersionOf(server) {
  checkVersion((await new ApnsMock(server).status()).version, clientVersion);
}

/** Compares two versions: equal major versions are compatible, and before 1.0 equal minor versions. */
function checkVersion(server, client) {
  const significant = (version) => version.split('.', version.startsWith('0.') ? 2 : 1).join('.');
  if (significant(server) === significant(client)) return;
  throw new ApnsMockError(
    `the apns-mock server has version ${server} and this client version ${client}: install the npm package apns-mock ` +
      `${significant(server)}, or set APNS_MOCK_BINARY to an apns-mock program of version ${significant(client)}`,
  );
}

module.exports = { connect, connectToServer, start, startServer };
