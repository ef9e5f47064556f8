'use strict';

const { ApnsMock } = require('./apns-mock.js');
const { ApnsMockError } = require('./errors.js');
const { connectToServer, startServer } = require('./start.js');

const optionNames = ['profile', 'seed', 'failOnFindings', 'failOnRejected', 'connect', 'args', 'scope'];

/** The servers of this test process by their arguments, each with the number of sessions that use it. */
const sharedServers = new Map();

/** What the hooks of every test runner do: run one server per test process and reset it before each test. */
class TestSession {
  #options;
  #server;

  /** @param {import('./test-session.js').TestOptions} [options] */
  constructor(options = {}) {
    const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
    if (unknown !== undefined) {
      throw new ApnsMockError(`unknown option "${unknown}" of useApnsMock: the options are ${optionNames.join(', ')}`);
    }
    this.#options = options;
    this.apns = new ApnsMock(this.#handle(), options.scope);
  }

  /** Starts the server, or connects to it, before the first test. */
  async start() {
    const { connect, args } = this.#options;
    if (connect) {
      this.#server = await connectToServer(connect === true ? {} : connect);
      return;
    }
    const key = JSON.stringify(args);
    const shared = sharedServers.get(key) ?? { started: startServer({ args }), users: 0 };
    sharedServers.set(key, shared);
    shared.users += 1;
    this.#server = await shared.started;
  }

  /** Resets the server and activates the profile before a test. */
  async prepare() {
    const { profile = 'healthy', seed } = this.#options;
    await this.apns.reset();
    if (this.#options.profile !== undefined || seed !== undefined) await this.apns.profile(profile, { seed });
  }

  /** Fails a test that caused findings, if the options say so. */
  async check() {
    const { failOnFindings, failOnRejected } = this.#options;
    await this.apns.check({ failOnFindings, failOnRejected });
  }

  /** Prints the report of a failed test. It never throws, so that it cannot hide the failure. */
  async printReport(print) {
    if (this.#server === undefined) return;
    try {
      print(`\n${await this.apns.report()}\n`);
    } catch (error) {
      print(`\napns-mock: no report: ${error.message}\n`);
    }
  }

  /** Checks a test that has passed so far, and prints the report if it fails or has failed already. */
  async finish(hasFailed, print) {
    if (hasFailed) {
      await this.printReport(print);
      return;
    }
    try {
      await this.check();
    } catch (error) {
      await this.printReport(print);
      throw error;
    }
  }

  /** Stops the server after the last test of its last user. */
  async stop() {
    const { connect, args } = this.#options;
    const server = this.#server;
    this.#server = undefined;
    if (connect) return;
    const key = JSON.stringify(args);
    const shared = sharedServers.get(key);
    shared.users -= 1;
    if (shared.users > 0) return;
    sharedServers.delete(key);
    await server?.stop();
  }

  /** Returns a server whose members are available between `start` and `stop`. */
  #handle() {
    const running = () => {
      if (this.#server !== undefined) return this.#server;
      throw new ApnsMockError('the apns-mock server is not running: use it in tests and hooks only');
    };
    return {
      get api() {
        return running().api;
      },
      get settings() {
        return running().settings;
      },
      connectionError: (cause) => running().connectionError(cause),
      stop: async () => {
        throw new ApnsMockError('useApnsMock stops the apns-mock server after the last test: remove the call of stop');
      },
    };
  }
}

module.exports = { TestSession };
