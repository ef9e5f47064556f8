'use strict';

const { afterAll, afterEach, beforeAll, beforeEach } = require('@jest/globals');

const { TestSession } = require('./test-session.js');

/**
 * Registers hooks of Jest that run one server for this test file and reset it before each test.
 *
 * A failed test prints the inbox, the seed, the active profile and the findings.
 *
 * @param {import('./test-session.js').TestOptions} [options]
 */
function useApnsMock(options) {
  const session = new TestSession(options);
  // Not console.error, to which Jest adds a stack trace.
  const print = (text) => process.stderr.write(`${text}\n`);
  beforeAll(() => session.start());
  beforeEach(() => session.prepare());
  afterEach(() => session.finish(hasTestFailed(), print));
  afterAll(() => session.stop());
  return session.apns;
}

/**
 * Returns whether the running test has failed.
 *
 * Jest does not offer this to hooks. Its runner, jest-circus, keeps its state in a global with this symbol.
 */
function hasTestFailed() {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((key) => key.description === 'JEST_STATE_SYMBOL');
  const test = symbol === undefined ? undefined : globalThis[symbol].currentlyRunningTest;
  return (test?.errors.length ?? 0) > 0;
}

module.exports = { useApnsMock };
