'use strict';

const { randomBytes } = require('node:crypto');
const fs = require('node:fs/promises');

const { ApnsMockError, ApnsMockExpectationError } = require('./errors.js');
const { failureReport } = require('./failure-report.js');

const pageSize = 1000; // records per request, the server's maximum

/** Reads and controls one server. */
class ApnsMock {
  #server;
  #scope;

  /**
   * @param {{ settings: object, api: object, connectionError: Function, stop: Function }} server
   * @param {string} [scope] A query that restricts every call to the pushes that match it.
   */
  constructor(server, scope) {
    this.#server = server;
    this.#scope = scope;
    /** Controls the server's clock, which determines the age of provider tokens. */
    this.clock = {
      now: () => this.#json('GET', '/clock'),
      freeze: (now) => this.#json('PUT', '/clock', { mode: 'frozen', now: timestamp(now) }),
      advance: (by) => this.#json('POST', '/clock/advance', { by: duration(by) }),
      real: () => this.#json('PUT', '/clock', { mode: 'real' }),
    };
  }

  /** What a provider needs to connect to the server. */
  get settings() {
    return this.#server.settings;
  }

  /** Stops a server that `start` started; does nothing to one that was running before. */
  async stop() {
    await this.#server.stop();
  }

  /** Returns the same client, restricted to the pushes that match `query`. */
  scoped(query) {
    return new ApnsMock(this.#server, query);
  }

  /** Returns a new random device token. */
  deviceToken() {
    return randomBytes(32).toString('hex');
  }

  /** Restores the state after the start of the server, or removes the pushes in the scope. */
  async reset({ keep, scope = this.#scope } = {}) {
    await this.#json('POST', '/reset', { keep, scope });
  }

  /** Activates a fault profile, such as `flaky-503?rate=0.3`. */
  profile(reference, { seed, ttl } = {}) {
    return this.#json('PUT', '/profile', { name: reference, seed, ttl: duration(ttl) });
  }

  /** Returns the active profile with its parameters and its seed. */
  activeProfile() {
    return this.#json('GET', '/profile');
  }

  /** Adds a rule, which is evaluated before the rules of the profile. */
  rule(rule, { ttl } = {}) {
    return this.#json('POST', '/rules', { ...rule, ...(ttl === undefined ? {} : { ttl: duration(ttl) }) });
  }

  /** Returns functions that set the state of a device. */
  device(token) {
    const put = (state, since) =>
      this.#json('PUT', `/devices/${encodeURIComponent(token)}`, { state, since: timestamp(since) });
    return {
      online: () => put('online'),
      unregistered: ({ since } = {}) => put('unregistered', since),
      expired: ({ since } = {}) => put('expired', since),
    };
  }

  /** Returns the records that match `filter`, in the order of their arrival. */
  async pushes(filter = {}) {
    const parameters = this.#filter(filter);
    if (parameters.has('limit')) return (await this.#json('GET', `/pushes?${parameters}`)).items;
    parameters.set('limit', String(pageSize));
    const cursor = parameters.get('order') === 'desc' ? 'before' : 'after';
    const records = [];
    for (;;) {
      const page = await this.#json('GET', `/pushes?${parameters}`);
      records.push(...page.items);
      if (page.next === null || page.next === undefined) return records;
      parameters.set(cursor, String(page.next));
    }
  }

  /** Waits until enough pushes match and returns them. */
  async wait({ count = 1, timeout, settle, query, ...fields } = {}) {
    const parameters = this.#filter(query === undefined ? fields : { q: query, ...fields });
    parameters.set('count', String(count).replace('==', '=')); // The second = is part of `count==3`.
    if (timeout !== undefined) parameters.set('timeout', duration(timeout));
    if (settle !== undefined) parameters.set('settle', duration(settle));
    const result = await this.#json('GET', `/pushes/wait?${parameters}`);
    if (result.satisfied) return result.items;
    const nearest = result.nearest.map(
      ({ seq, met, missed }) => `\n  nearest: push ${seq}, met ${list(met)}, missed ${list(missed)}`,
    );
    throw new ApnsMockExpectationError(result.message + nearest.join(''), result);
  }

  /** Verifies a list of expectations, or a document with them, and returns the report. */
  async verify(expectations) {
    const document = Array.isArray(expectations) ? { expect: expectations } : expectations;
    const { timeout, settle } = document;
    const response = await this.#send('POST', '/verify', {
      body: JSON.stringify({
        ...document,
        timeout: duration(timeout),
        settle: duration(settle),
        scope: document.scope ?? this.#scope,
      }),
    });
    if (response.status !== 200 && response.status !== 412) throw rejected(response);
    const report = JSON.parse(response.text);
    if (!report.passed) throw new ApnsMockExpectationError(report.text.trimEnd(), report);
    return report;
  }

  /** Verifies that the last attempt of every push was accepted or permanently rejected. */
  async assertNothingLost({ timeout, settle } = {}) {
    await this.verify({ nothing_lost: true, timeout, settle });
  }

  /** Returns the findings about the provider. */
  async findings(filter = {}) {
    return (await this.#json('GET', `/findings?${this.#filter(filter)}`)).items;
  }

  /** Exports the matching records, one JSON object per line. */
  async export(filter = {}) {
    const response = await this.#send('GET', `/export?${this.#filter(filter)}`);
    if (response.status !== 200) throw rejected(response);
    return response.text;
  }

  /** Adds the records of an exported file to the inbox. */
  async import(file) {
    const response = await this.#send('POST', '/import', {
      body: await fs.readFile(file, 'utf8'),
      contentType: 'application/x-ndjson',
    });
    if (response.status >= 300) throw rejected(response);
    return JSON.parse(response.text);
  }

  /** Returns the server's version, seed, active profile, addresses and limits. */
  status() {
    return this.#json('GET', '/status');
  }

  /** Returns the inbox, the seed, the active profile and the findings as text. */
  report() {
    return failureReport(this);
  }

  /** Returns `filter`, a query or an object of fields, as query parameters with the scope. */
  #filter(filter) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(typeof filter === 'string' ? { q: filter } : filter)) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined) parameters.append(name, item instanceof Date ? item.toISOString() : String(item));
      }
    }
    if (this.#scope !== undefined && !parameters.has('scope')) parameters.set('scope', this.#scope);
    return parameters;
  }

  async #json(method, path, body) {
    const response = await this.#send(method, path, body === undefined ? {} : { body: JSON.stringify(body) });
    if (response.status >= 300) throw rejected(response);
    return JSON.parse(response.text);
  }

  async #send(method, path, options) {
    const server = this.#server;
    try {
      return await server.api.send(method, path, options);
    } catch (error) {
      throw error instanceof ApnsMockError ? error : await server.connectionError(error);
    }
  }
}

/** Returns the error for a response that rejects a request. */
function rejected({ status, text }) {
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { detail: text };
  }
  const hint = problem.hint ? ` ${problem.hint}` : '';
  return new ApnsMockError(`the apns-mock server rejected the request (${status}): ${problem.detail}.${hint}`, {
    status,
    problem,
  });
}

/** Returns a duration as the server reads it: a number is in milliseconds. */
function duration(value) {
  return typeof value === 'number' ? `${value}ms` : value;
}

function timestamp(value) {
  return value instanceof Date ? value.toISOString() : value;
}

function list(names) {
  return names.length === 0 ? 'no condition' : names.join(', ');
}

module.exports = { ApnsMock };
