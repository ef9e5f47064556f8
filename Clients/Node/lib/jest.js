'use strict';

const { afterAll, afterEach, beforeAll, beforeEach, expect } = require('@jest/globals');

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
  beforeEach(() => {
    const test = runningTest();
    return session.prepare(expect.getState().currentTestName, test, test?.invocations);
  });
  afterEach(() => {
    const test = runningTest();
    const errors = test?.errors ?? [];
    // The number of times that jest.retryTimes repeats a failed test.
    const isRepeatedIfFailed = test?.invocations <= globalThis[Symbol.for('RETRY_TIMES')];
    return session.finish(errors.length > 0, print, [errors[0]].flat()[0], test, isRepeatedIfFailed);
  });
  afterAll(() => session.stop());
  return session.apns;
}

/**
 * Returns the running test, whose errors say whether it has failed.
 *
 * Jest does not offer this to hooks. Its runner, jest-circus, keeps its state in a global with this symbol.
 */
function runningTest() {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((key) => key.description === 'JEST_STATE_SYMBOL');
  return symbol === undefined ? undefined : globalThis[symbol].currentlyRunningTest;
}

module.exports = { useApnsMock };
