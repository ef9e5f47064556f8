'use strict';

const { ApnsMock } = require('./apns-mock.js');
const { ApnsMockError } = require('./errors.js');
const { Run } = require('./run.js');
const { connectToServer, startServer } = require('./start.js');

const optionNames = ['profile', 'seed', 'failOnFindings', 'failOnRejected', 'connect', 'args', 'scope'];

/** The servers of this test process by their arguments, each with the number of sessions that use it. */
const sharedServers = new Map();

/** What the hooks of every test runner do: run one server per test process and reset it before each test. */
class TestSession {
  #options;
  #server;
  #run;

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
      this.#run = await Run.start(this.#server.api, true);
      return;
    }
    const key = JSON.stringify(args);
    const shared = sharedServers.get(key) ?? { started: startServer({ args }), users: 0 };
    sharedServers.set(key, shared);
    shared.users += 1;
    this.#server = await shared.started;
    shared.run ??= Run.start(this.#server.api, false);
    this.#run = await shared.run;
  }

  /**
   * Records the beginning of a test, resets the server and activates the profile.
   *
   * @param {string} [name]
   * @param {object} [key] identifies the test at its end, for runners that run several at a time or in each other
   * @param {number} [attempt] 1 for the first one
   */
  async prepare(name, key = this, attempt = 1) {
    const { profile = 'healthy', seed, scope } = this.#options;
    await this.#run.startTest(key, (name || 'test') + (attempt > 1 ? ` #${attempt}` : ''), scope);
    await this.apns.reset();
    if (this.#options.profile !== undefined || seed !== undefined) await this.apns.profile(profile, { seed });
  }

  /** Fails a test that caused findings, if the options say so. */
  async check() {
    const { failOnFindings, failOnRejected } = this.#options;
    await this.apns.check({ failOnFindings, failOnRejected });
  }

  /** Records the end of a test as `passed`, `failed` or `skipped`. */
  async endTest(outcome, error, key = this) {
    await this.#run?.endTest(key, outcome, error === undefined ? undefined : text(error));
  }

  /** Records the end of a failed test; one that the runner repeats as skipped, because only its last attempt counts. */
  async endFailedTest(error, key, isRepeated) {
    if (!isRepeated) await this.endTest('failed', error, key);
    else await this.endTest('skipped', `repeated, because it has failed: ${text(error ?? '')}`, key);
  }

  /** Records a skipped test, unless that has been done: the runner calls no hooks after it, and maybe none before. */
  async endSkippedTest(name, reason, key) {
    if (this.#run === undefined || this.#run.hasEnded(key)) return;
    await this.#run.startTest(key, name, this.#options.scope);
    await this.endTest('skipped', reason, key);
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
  async finish(hasFailed, print, failure, key, isRepeatedIfFailed = false) {
    if (hasFailed) {
      await this.printReport(print);
      await this.endFailedTest(failure, key, isRepeatedIfFailed);
      return;
    }
    try {
      await this.check();
    } catch (error) {
      await this.printReport(print);
      await this.endFailedTest(error, key, isRepeatedIfFailed);
      throw error;
    }
    await this.endTest('passed', undefined, key);
  }

  /** Stops the server after the last test of its last user. */
  async stop() {
    const { connect, args } = this.#options;
    const server = this.#server;
    this.#server = undefined;
    if (connect) {
      await this.#run?.end();
      return;
    }
    const key = JSON.stringify(args);
    const shared = sharedServers.get(key);
    shared.users -= 1;
    if (shared.users > 0) return;
    sharedServers.delete(key);
    await this.#run?.end();
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

/** Returns the text of an error, without colors. */
function text(error) {
  const message = typeof error === 'string' ? error : error?.message ?? String(error);
  return message.replace(/\u001b\[[0-9;]*m/g, '');
}

module.exports = { TestSession };
