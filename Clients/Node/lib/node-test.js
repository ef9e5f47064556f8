'use strict';

const { after, afterEach, before, beforeEach } = require('node:test');

const { TestSession } = require('./test-session.js');

/**
 * Registers hooks of node:test that run one server for this test file and reset it before each test.
 *
 * A failed test prints the inbox, the seed, the active profile and the findings. In Node before
 * 20.12, a hook does not know whether the test failed; there, only failed checks of `failOnFindings` print it.
 *
 * @param {import('./test-session.js').TestOptions} [options]
 */
function useApnsMock(options) {
  const session = new TestSession(options);
  before(() => session.start());
  beforeEach((context) => session.prepare(context.fullName ?? context.name));
  afterEach((context) => session.finish(context.passed === false, console.error, context.error?.cause ?? context.error));
  after(() => session.stop());
  return session.apns;
}

module.exports = { useApnsMock };
