'use strict';

const fs = require('node:fs/promises');
const path = require('node:path');

/** For each label of a run the variables of the usual CI systems. */
const ciVariables = {
  commit: ['GITHUB_SHA', 'CI_COMMIT_SHA', 'GIT_COMMIT', 'BUILDKITE_COMMIT', 'CIRCLE_SHA1', 'BUILD_SOURCEVERSION'],
  branch: ['GITHUB_REF_NAME', 'CI_COMMIT_REF_NAME', 'GIT_BRANCH', 'BUILDKITE_BRANCH', 'CIRCLE_BRANCH'],
  build: ['GITHUB_RUN_ID', 'CI_PIPELINE_ID', 'BUILD_NUMBER', 'BUILDKITE_BUILD_NUMBER', 'CIRCLE_BUILD_NUM'],
  job: ['GITHUB_JOB', 'CI_JOB_NAME', 'JOB_NAME', 'CIRCLE_JOB'],
};

/**
 * Records the tests of a process on a server: which pushes belong to which test, and how it ended. Under
 * `apns-mock exec` it is the run that `exec` has started and ends. A failure to record never fails a test.
 */
class Run {
  #api;
  #id;
  #isOwn;
  #tests = new WeakMap(); // the number and the outcome of each test by its key

  constructor(api, id, isOwn) {
    this.#api = api;
    this.#id = id;
    this.#isOwn = isOwn;
  }

  /** Starts a run on a server, or joins that of `apns-mock exec`. */
  static async start(api, isConnected) {
    const { APNS_MOCK_RUN: joined } = process.env;
    if (isConnected && joined) return new Run(api, joined, false);
    const labels = {};
    for (const [label, names] of Object.entries(ciVariables)) {
      const value = names.map((name) => process.env[name]).find(Boolean);
      if (value !== undefined) labels[label] = value;
    }
    const words = ['node', ...process.execArgv, ...process.argv.slice(1).map((word) => path.relative('', word) || word)];
    const run = new Run(api, null, true);
    // On a server that others use too, the seed is not that of these tests.
    const command = isConnected ? undefined : await repetition(api, words);
    run.#id = (await run.#send('POST', '/runs', { name: words.join(' '), labels, command }))?.id ?? null;
    return run;
  }

  /** Whether a test with this key has ended. */
  hasEnded(key) {
    return this.#tests.get(key)?.outcome !== undefined;
  }

  /**
   * Starts a test, unless another session of this process has started it.
   *
   * @param {object} key identifies the test, because several can run at a time and have the same name
   */
  async startTest(key, name, scope) {
    if (this.#tests.has(key) && !this.hasEnded(key)) return;
    const test = { number: undefined, outcome: undefined };
    this.#tests.set(key, test);
    test.number = (await this.#send('POST', `/runs/${this.#id}/tests`, { name, scope }))?.number;
  }

  /** Ends a test as `passed`, `failed` or `skipped`. If several sessions end it, it has failed if one says so. */
  async endTest(key, outcome, message) {
    const test = this.#tests.get(key);
    if (test?.number === undefined || test.outcome === 'failed') return;
    test.outcome = outcome;
    await this.#send('PATCH', `/runs/${this.#id}/tests/${test.number}`, { outcome, message });
  }

  /** Ends the run, unless `exec` will do it, and writes its report to the folder that APNS_MOCK_REPORTS names. */
  async end() {
    if (!this.#isOwn || this.#id === null) return;
    await this.#send('PATCH', `/runs/${this.#id}`, { ended: true });
    const { APNS_MOCK_REPORTS: folder } = process.env;
    if (!folder) return;
    try {
      const { status, text } = await this.#api.send('GET', `/runs/${this.#id}/report`);
      await fs.mkdir(folder, { recursive: true });
      const file = path.join(folder, `node-${process.pid}-${Date.now()}.html`);
      if (status === 200) await fs.writeFile(file, text, { mode: 0o600 });
    } catch (error) {
      process.stderr.write(`apns-mock: the report could not be written: ${error.message}\n`);
    }
  }

  async #send(method, target, value) {
    if (this.#id === null && target !== '/runs') return undefined;
    try {
      const { status, text } = await this.#api.send(method, target, { body: JSON.stringify(value) });
      return status < 300 ? JSON.parse(text) : undefined;
    } catch {
      return undefined; // The test itself fails if the server has exited.
    }
  }
}

/** Returns the command that repeats the tests of this process with the server's seed; undefined without an answer. */
async function repetition(api, words) {
  const { text } = await api.send('GET', '/status').catch(() => ({ text: '' }));
  const seed = /"seed":\s*(\d+)/.exec(text)?.[1]; // It can exceed the integers of JavaScript.
  const quoted = words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  return seed && ['APNS_MOCK_SEED=' + seed, ...quoted].join(' ');
}

module.exports = { Run };
