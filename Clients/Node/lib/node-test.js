'use strict';

const { executionAsyncResource } = require('node:async_hooks');
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
  let parent; // the test or suite in which the hooks are registered
  const open = new Set();
  before(async () => {
    parent = executionAsyncResource()?.parentTest;
    await session.start();
  });
  beforeEach(async (context) => {
    const test = testOf(context, parent);
    // node:test runs no hooks after a test that has called `skip`.
    for (const former of skippedOf(open)) {
      open.delete(former);
      await endSkippedTest(session, former);
    }
    if (test) open.add(test);
    await session.prepare(context.fullName ?? context.name, test ?? context);
  });
  afterEach(async (context) => {
    const test = testOf(context, parent);
    open.delete(test);
    if (test?.isTodo) {
      // Whether it has passed does not matter to node:test.
      await session.endTest('skipped', reason(test, 'todo'), test);
      return;
    }
    // node:test counts the failed tests in a test only after the hooks.
    const failed = test?.subtests?.filter((inner) => inner.finished && !inner.passed && !inner.isTodo).length ?? 0;
    const failure = context.error?.cause ?? context.error ?? (failed > 0 ? `${failed} of its tests failed` : undefined);
    await session.finish(context.passed === false || failed > 0, console.error, failure, test ?? context);
  });
  after(async () => {
    for (const test of skippedOf(parent?.subtests ?? [])) await endSkippedTest(session, test);
    await session.stop();
  });
  return session.apns;
}

/**
 * Returns the test of a context among those in a test or suite; undefined if it cannot be found.
 *
 * node:test does not offer this to hooks. They run as resources of `async_hooks` that name the test or suite in which
 * they are registered, and that has its tests.
 */
function testOf(context, parent) {
  const find = (test) => (test.signal === context.signal ? test : test.subtests?.map(find).find(Boolean));
  return parent && context.signal && find(parent);
}

/** Returns the tests that have been skipped, and those in tests and suites. */
function skippedOf(tests) {
  return [...tests].flatMap((test) => {
    const inner = skippedOf(test.subtests ?? []);
    return test.skipped && test.finished ? [test, ...inner] : inner;
  });
}

function endSkippedTest(session, test) {
  return session.endSkippedTest(nameOf(test), reason(test, 'skipped'), test);
}

/** The name of a test with those of the tests and suites around it. */
function nameOf(test) {
  return test.parent?.parent ? `${nameOf(test.parent)} > ${test.name}` : test.name;
}

/** Returns why a test is `todo` or skipped. */
function reason({ message }, kind) {
  return typeof message === 'string' && message !== '' ? `${kind}: ${message}` : undefined;
}

module.exports = { useApnsMock };
