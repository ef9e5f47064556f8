import type { ApnsMock, ConnectOptions } from './index.js';

/** The options of `useApnsMock`. */
export interface TestOptions {
  /** The fault profile of each test, such as `flaky-503?rate=0.3`. Default: no faults. */
  profile?: string;
  /** The seed of the fault profile. The same seed gives the same faults. */
  seed?: number;
  /** Fails a test that causes findings: all of them, or those with these names. Default: false. */
  failOnFindings?: boolean | string[];
  /** Fails a test in which APNs' rules rejected a push. Default: false. */
  failOnRejected?: boolean;
  /** Further arguments of `apns-mock serve`. */
  args?: string[];
  /** Uses a running server: `true` for that of `apns-mock exec`, or its addresses. */
  connect?: boolean | ConnectOptions;
  /** A query, such as `topic:com.acme.w3`, that restricts this suite to a part of a shared server. */
  scope?: string;
}

export type { ApnsMock };
