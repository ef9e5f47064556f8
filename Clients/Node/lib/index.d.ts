/** A duration: a number of milliseconds, or a text such as `61m` or `1.5s`. */
export type Duration = number | string;

/** A time: a `Date`, or a text in the format of RFC 3339. */
export type Time = Date | string;

export interface StartOptions {
  /** Further arguments of `apns-mock serve`, such as `['--rules', 'strict']`. */
  args?: string[];
  /** The path of the program. By default `APNS_MOCK_BINARY`, else the program in this package, else one in `PATH`. */
  binary?: string;
  /** The time in milliseconds to wait until the server is ready. Default: 30 000. */
  timeout?: number;
}

/** A running server. Without `admin` and `portFile`, the environment variables of `apns-mock exec` name it. */
export interface ConnectOptions {
  /** The path of the server's port file, which has all other values. */
  portFile?: string;
  /** The admin listener: a URL, or `host:port`. */
  admin?: string;
  /** The listener for pushes, `host:port`. */
  apns?: string;
  adminToken?: string;
  /** The path of the CA. */
  ca?: string;
  /** The path of the provider key. */
  key?: string;
  keyId?: string;
  teamId?: string;
}

/** What a provider needs to connect. A server without a port file has only the values that `connect` was given. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  /** The listener for pushes, such as `https://127.0.0.1:40123`. */
  readonly url: string;
  /** The admin listener, such as `http://127.0.0.1:40124`. */
  readonly adminUrl: string;
  /** The path of the CA that a provider has to trust. */
  readonly ca: string;
  /** The path of the provider key, a `.p8` file. */
  readonly key: string;
  readonly keyId: string;
  readonly teamId: string;
  /** A topic that the key and the provider certificate allow: `com.example.app`. */
  readonly topic: string;
}

export type FieldValue = string | number | boolean | Date;

/**
 * Conditions on fields of the inbox, such as `{ topic: 'com.acme.*', status: [410, 429] }`, with the names of the
 * server, such as `device_token` and `payload./aps/badge`. The server rejects unknown names.
 */
export interface Fields {
  [field: string]: FieldValue | FieldValue[] | undefined;
}

/** A query such as `status:410 topic:com.acme.*`, or conditions on fields. */
export type Filter = string | Fields;

export interface WaitOptions extends Fields {
  /** The number of pushes: `3` for three or more, `'==3'` for exactly three, `0` with `settle` for none. Default: 1. */
  count?: number | string;
  /** Default: 10 s. */
  timeout?: Duration;
  /** The time for which nothing may change. */
  settle?: Duration;
  /** A query such as `status:410 topic:com.acme.*`. */
  query?: string;
}

export interface Served {
  status: number | null;
  reason: string | null;
  /** The HTTP/2 error code of a reset stream. */
  reset: string | null;
  goaway: { code: string; last_stream: number; debug: string } | null;
  closed: 'fin' | 'reset' | null;
  latency_ms: number | null;
}

/** One attempt of a push. */
export interface Push {
  /** The key of the record, in the order of arrival. */
  seq: number;
  /** The run of a test suite and the name of the test to which the push belongs. */
  run: string | null;
  test: string | null;
  /** Whether APNs accepted the push, regardless of the response. */
  accepted: boolean;
  /** What APNs did with the push, and how the attempt ended for the client; `outcome` follows from both. */
  decision: 'accepted' | 'rejected' | 'not_processed' | 'pending' | 'unknown';
  ending: 'response' | 'refused' | 'malformed' | 'reset' | 'cancelled' | 'incomplete' | 'disconnected' | 'pending' | 'unknown';
  outcome:
    | 'accepted' | 'rejected' | 'response_lost' | 'unanswered' | 'unprocessed' | 'incomplete' | 'malformed' | 'pending' | 'unknown';
  /** How a malformed request violates HTTP/2. */
  violation: string | null;
  /** The last state of the delivery to a registered device. */
  delivery: string | null;
  listener: number;
  kind: 'push' | 'broadcast' | 'channel';
  environment: 'sandbox' | 'production';
  received_at: string;
  finished_at: string | null;
  /** The same for all attempts of a push. */
  push_key: string;
  attempt: number;
  connection: {
    id: string;
    stream: number;
    client: string;
    sni: string | null;
    tls: string | null;
    http: 'h2' | 'http/1.1';
  };
  request: {
    method: string | null;
    path: string | null;
    device_token: string | null;
    headers: [name: string, value: string][];
    payload: any;
    payload_error: string | null;
    size: { bytes: number; limit: number };
    complete: boolean;
  };
  apns: {
    id: string | null;
    id_origin: 'client' | 'server' | null;
    topic: string | null;
    push_type: string | null;
    priority: number | null;
    expiration: string | null;
    collapse_id: string | null;
  };
  auth: {
    kind: 'none' | 'token' | 'certificate';
    team_id: string | null;
    key_id: string | null;
    issued_at: string | null;
    age_ms: number | null;
    signature: string | null;
    certificate?: { subject_uid?: string | null; common_name?: string | null; fingerprint?: string; topics?: string[] };
  };
  /** The response that APNs would give; null if the request is incomplete. */
  verdict: {
    status: number;
    reason: string | null;
    checks: { check: string; ok: boolean; detail?: string | null }[];
  } | null;
  /** The rule that affected the push or ended its connection. */
  fault: {
    profile: string | null;
    rule: string;
    action: string;
    draw: number | null;
    p: number | null;
    ordinal: number | null;
    /** The `seq` of the push for which the rule fired, if it is another one. */
    by: number | string | null;
    also?: { rule: string; action: string }[];
  } | null;
  /** The response that was sent. */
  served: Served;
  /** What the service of `--upstream` did with the push; absent if the push was not forwarded. */
  upstream?: {
    status: number | null;
    reason: string | null;
    apns_id: string | null;
    problem: string | null;
    latency_ms: number | null;
    connection: number | null;
    deviating: boolean;
  };
  /** The names of the findings about the provider. */
  findings: string[];
}

/** A mistake of the provider, with the pushes that prove it. */
export interface Finding {
  finding: string;
  count: number;
  summary: string;
  advice: string;
  records: { seq: number; evidence: number[]; explanation: string }[];
  more: number;
}

export interface Expectation {
  name?: string;
  /** The pushes to which the expectation applies: a query, or conditions. */
  match?: string | { [condition: string]: unknown };
  outcome?: string | string[];
  accepted?: boolean;
  status?: number | string | (number | string)[];
  reason?: string | string[];
  count?: number | { exactly?: number; at_least?: number; at_most?: number };
  retries?: {
    min?: number;
    max?: number;
    min_first_delay?: string;
    max_first_delay?: string;
    growing?: boolean;
    finally?: string | string[];
  };
  allow_none?: boolean;
}

export interface Verification {
  expect?: Expectation[];
  order?: string[];
  no_others?: boolean;
  nothing_lost?: boolean;
  /** Findings that must not occur, or `true` for none at all. */
  no_findings?: boolean | string[];
  timeout?: Duration;
  settle?: Duration;
  after?: number;
  /** A query; only the pushes that match it are verified. */
  scope?: string;
}

export interface VerificationReport {
  passed: boolean;
  inconclusive: boolean;
  /** The report as printed by `apns-mock verify`. */
  text: string;
  [member: string]: unknown;
}

export interface ActiveProfile {
  name: string;
  /** The name with its parameters, such as `flaky-503?rate=0.3`. */
  reference: string;
  seed: number;
  params: { [name: string]: unknown };
  [member: string]: unknown;
}

export interface ClockState {
  mode: string;
  now: string;
}

export interface Status {
  version: string;
  seed: number;
  profile: string;
  [member: string]: unknown;
}

export type ResetPart = 'inbox' | 'rules' | 'profile' | 'counters' | 'clock' | 'devices' | 'channels';

/**
 * Reads and controls one server.
 *
 * Every method rejects with `ApnsMockError` if the server cannot be reached or rejects the request.
 */
export interface ApnsMock {
  readonly settings: Settings;
  readonly clock: {
    now(): Promise<ClockState>;
    /** Stops the clock, at the present by default. */
    freeze(now?: Time): Promise<ClockState>;
    advance(by: Duration): Promise<ClockState>;
    /** Returns to the machine's time. */
    real(): Promise<ClockState>;
  };

  /** Stops a server that `start` started; does nothing to one that was running before. */
  stop(): Promise<void>;
  /** Returns the same client, restricted to the pushes that match `query`, such as `topic:com.acme.w3`. */
  scoped(query: string): ApnsMock;
  /** Returns a new random device token. */
  deviceToken(): string;
  /** Restores the state after the start, except for the parts in `keep`, or removes the pushes in the scope. */
  reset(options?: { keep?: ResetPart[]; scope?: string }): Promise<void>;
  /** Activates a fault profile, such as `flaky-503?rate=0.3`. */
  profile(reference: string, options?: { seed?: number; ttl?: Duration }): Promise<ActiveProfile>;
  activeProfile(): Promise<ActiveProfile>;
  /** Adds a rule, such as `{ name: 'down', do: { respond: { status: 503 } } }`, and returns it. */
  rule(rule: { [member: string]: unknown }, options?: { ttl?: Duration }): Promise<{ [member: string]: unknown }>;
  /** Returns functions that set the state of a device. */
  device(token: string): {
    online(): Promise<unknown>;
    /** Pushes to the device are answered with 410 `Unregistered`. */
    unregistered(options?: { since?: Time }): Promise<unknown>;
    /** Pushes to the device are answered with 410 `ExpiredToken`. */
    expired(options?: { since?: Time }): Promise<unknown>;
  };
  /** Returns all matching records in the order of their arrival; with `limit`, at most that many. */
  pushes(filter?: Filter): Promise<Push[]>;
  /** Waits until enough pushes match and returns them. Rejects with `ApnsMockExpectationError` after `timeout`. */
  wait(options?: WaitOptions): Promise<Push[]>;
  /** Rejects with `ApnsMockExpectationError` if the expectations are not met. */
  verify(expectations: Expectation[] | Verification): Promise<VerificationReport>;
  /** Verifies that the last attempt of every push was accepted or permanently rejected. */
  assertNothingLost(options?: { timeout?: Duration; settle?: Duration }): Promise<void>;
  /**
   * Checks the provider at the end of a test, when no further attempt of a push can follow: every push that could still
   * be retried counts as `abandoned`. Rejects with `ApnsMockExpectationError`.
   */
  check(options: { failOnFindings?: boolean | string[]; failOnRejected?: boolean }): Promise<void>;
  findings(filter?: Filter): Promise<Finding[]>;
  /** Returns the matching records, one JSON object per line. */
  export(filter?: Filter): Promise<string>;
  /** Adds the records of an exported file to the inbox. */
  import(file: string): Promise<{ [member: string]: unknown }>;
  status(): Promise<Status>;
  /** Returns the seed, the active profile, the pushes, those that were not accepted first, and the findings as text. */
  report(): Promise<string>;
}

/** Starts a server on free ports, with certificates and keys in a temporary folder. */
export function start(options?: StartOptions): Promise<ApnsMock>;

/** Connects to a running server, by default the one that `apns-mock exec` started for this process. */
export function connect(options?: ConnectOptions): Promise<ApnsMock>;

/** The server did not start, ended, cannot be reached, or rejected a request. */
export class ApnsMockError extends Error {
  /** The HTTP status of a rejected request. */
  readonly status?: number;
  /** The problem document (RFC 9457) of a rejected request. */
  readonly problem?: { detail: string; hint?: string; [member: string]: unknown };
}

/** The pushes in the inbox do not meet an expectation. */
export class ApnsMockExpectationError extends Error {
  /** The server's response, with the nearest pushes. */
  readonly report: { [member: string]: unknown };
}
