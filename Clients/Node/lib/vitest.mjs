import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

import testSession from './test-session.js';

const { TestSession } = testSession;

/**
 * Registers hooks of Vitest that run one server for this test file and reset it before each test.
 *
 * A failed test prints the inbox, the seed, the active profile and the findings.
 *
 * @param {import('./test-session.js').TestOptions} [options]
 */
export function useApnsMock(options) {
  const session = new TestSession(options);
  beforeAll(() => session.start());
  beforeEach(async (context) => {
    const { task } = context;
    const { retryCount = 0, errors = [] } = task.result;
    const former = errors.length; // those of former attempts
    context.onTestFailed(() => session.printReport(console.error));
    context.onTestFinished(() => endTest(session, task, former));
    await session.prepare(nameOf(task), task, retryCount + 1);
  });
  afterEach(() => session.check());
  afterAll(() => session.stop());
  return session.apns;
}

/** Records the end of an attempt, after which Vitest can repeat a failed test or turn its result around. */
async function endTest(session, task, former) {
  const { state, note, errors, retryCount = 0 } = task.result;
  const error = errors?.[former];
  const hasFailed = state === 'fail';
  if (state === 'skip') {
    await session.endTest('skipped', note, task);
  } else if (hasFailed && retryCount < (task.retry?.count ?? task.retry ?? 0)) {
    await session.endFailedTest(error, task, true);
  } else if (task.fails) {
    const unexpected = 'the test has passed, although it is expected to fail';
    await session.endTest(hasFailed ? 'passed' : 'failed', hasFailed ? undefined : unexpected, task);
  } else {
    await session.endTest(hasFailed ? 'failed' : 'passed', error, task);
  }
}

/** The name of a test with those of the suites around it. */
function nameOf(task) {
  return task === undefined ? undefined : [nameOf(task.suite), task.name].filter(Boolean).join(' > ');
}
