'use strict';

const fs = require('node:fs/promises');
const os = require('node:os');
const path = require('node:path');

const { AbstractStartedContainer, GenericContainer, getContainerRuntimeClient, Wait } = require('testcontainers');

const { connect } = require('./start.js');
const { ApnsMockError } = require('./errors.js');

const apnsPort = 2197;
const adminPort = 8197;
const keyId = 'MOCKKEY001';

class ApnsMockContainer extends GenericContainer {
  #arguments = [];
  #environment = {};

  constructor(image = 'apns-mock') {
    super(image);
    this.withExposedPorts(apnsPort, adminPort).withWaitStrategy(Wait.forHttp('/readyz', adminPort));
  }

  withArguments(...args) {
    this.#arguments = args;
    return this.withCommand(['serve', ...args]);
  }

  withEnvironment(environment) {
    Object.assign(this.#environment, environment);
    return this;
  }

  async start() {
    this.#addHost((await getContainerRuntimeClient()).info.containerRuntime.host);
    const started = await super.start();
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'apns-mock-'));
    try {
      for (const name of ['ca.pem', `AuthKey_${keyId}.p8`]) {
        const { exitCode, output } = await started.exec(['cat', `/certs/${name}`]);
        if (exitCode !== 0) throw new ApnsMockError(`The container has no /certs/${name}: ${output}`);
        await fs.writeFile(path.join(folder, name), output, { mode: 0o600 });
      }
    } catch (error) {
      await started.stop();
      await fs.rm(folder, { recursive: true });
      throw error;
    }
    return new StartedApnsMockContainer(started, folder);
  }

  /** Adds the name by which this machine reaches the engine to those in the certificate, and those that the admin API allows. */
  #addHost(host) {
    for (const [flag, variable] of [['--allow-host', 'APNS_MOCK_ALLOW_HOST'], ['--san', 'APNS_MOCK_SAN']]) {
      // A flag overrides the variable.
      if (this.#arguments.some((argument) => argument.split('=')[0] === flag)) {
        this.withArguments(...this.#arguments, flag, host);
      } else {
        const given = this.#environment[variable];
        this.#environment[variable] = given ? `${given},${host}` : host;
      }
    }
    super.withEnvironment(this.#environment);
  }
}

class StartedApnsMockContainer extends AbstractStartedContainer {
  #folder;

  constructor(started, folder) {
    super(started);
    this.#folder = folder;
  }

  getClient() {
    return connect({
      admin: this.#address(adminPort),
      apns: this.#address(apnsPort),
      ca: path.join(this.#folder, 'ca.pem'),
      key: path.join(this.#folder, `AuthKey_${keyId}.p8`),
      keyId,
      teamId: 'MOCKTEAM01',
    });
  }

  async stop(options) {
    const stopped = await super.stop(options);
    await fs.rm(this.#folder, { recursive: true, force: true });
    return stopped;
  }

  #address(port) {
    return `${this.getHost()}:${this.getMappedPort(port)}`;
  }
}

module.exports = { ApnsMockContainer, StartedApnsMockContainer };
