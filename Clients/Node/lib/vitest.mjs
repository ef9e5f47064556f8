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
    context.onTestFailed(() => session.printReport(console.error));
    context.onTestFinished(() => {
      const { state, errors } = context.task.result;
      return session.endTest(state === 'fail' ? 'failed' : 'passed', errors?.[0], context.task);
    });
    await session.prepare(nameOf(context.task), context.task);
  });
  afterEach(() => session.check());
  afterAll(() => session.stop());
  return session.apns;
}

/** The name of a test with those of the suites around it. */
function nameOf(task) {
  return task === undefined ? undefined : [nameOf(task.suite), task.name].filter(Boolean).join(' > ');
}
