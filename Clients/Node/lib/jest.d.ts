import type { ApnsMock, TestOptions } from './test-session.js';

export type { ApnsMock, TestOptions };

/**
 * Registers hooks of Jest that run one server for this test file and reset it before each test.
 *
 * A failed test prints the inbox, the seed, the active profile and the findings.
 */
export function useApnsMock(options?: TestOptions): ApnsMock;
