'use strict';

const { randomBytes } = require('node:crypto');
const fs = require('node:fs/promises');

const { ApnsMockError, ApnsMockExpectationError } = require('./errors.js');

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
      freeze: (now) => this.#json('PUT', '/clock', { value: { mode: 'frozen', now: timestamp(now) } }),
      advance: (by) => this.#json('POST', '/clock/advance', { value: { by: duration(by) } }),
      real: () => this.#json('PUT', '/clock', { value: { mode: 'real' } }),
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
    await this.#json('POST', '/reset', { value: { keep, scope } });
  }

  /** Activates a fault profile, such as `flaky-503?rate=0.3`. */
  profile(reference, { seed, ttl } = {}) {
    return this.#json('PUT', '/profile', { value: { name: reference, seed, ttl: duration(ttl) } });
  }

  /** Returns the active profile with its parameters and its seed. */
  activeProfile() {
    return this.#json('GET', '/profile');
  }

  /** Adds a rule, which is evaluated before the rules of the profile. */
  rule(rule, { ttl } = {}) {
    return this.#json('POST', '/rules', { value: { ...rule, ...(ttl === undefined ? {} : { ttl: duration(ttl) }) } });
  }

  /** Returns functions that set the state of a device. */
  device(token) {
    const put = (state, since) =>
      this.#json('PUT', `/devices/${encodeURIComponent(token)}`, { value: { state, since: timestamp(since) } });
    return {
      online: () => put('online'),
      unregistered: ({ since } = {}) => put('unregistered', since),
      expired: ({ since } = {}) => put('expired', since),
    };
  }

  /** Returns the records that match `filter`, in the order of their arrival. */
  async pushes(filter = {}) {
    const parameters = this.#filter(filter);
    if (parameters.has('limit')) return (await this.#json('GET', '/pushes', { parameters })).items;
    parameters.set('limit', String(pageSize));
    const cursor = parameters.get('order') === 'desc' ? 'before' : 'after';
    const records = [];
    for (;;) {
      const page = await this.#json('GET', '/pushes', { parameters });
      if (!page.complete) {
        throw new ApnsMockError(
          `${page.evicted} pushes are missing because the inbox is full: start the server with a larger --max-records ` +
            'or --max-bytes.',
        );
      }
      records.push(...page.items);
      if (page.next === null || page.next === undefined) return records;
      parameters.set(cursor, String(page.next));
    }
  }

  /** Waits until enough pushes match and returns them. */
  async wait({ count = 1, timeout, settle, query, ...fields } = {}) {
    const filter = query === undefined ? fields : { q: query, ...fields };
    const parameters = this.#filter(filter);
    parameters.set('count', String(count).replace('==', '=')); // The second = is part of `count==3`.
    if (timeout !== undefined) parameters.set('timeout', duration(timeout));
    if (settle !== undefined) parameters.set('settle', duration(settle));
    const result = await this.#json('GET', '/pushes/wait', { parameters });
    if (!result.satisfied) throw new ApnsMockExpectationError(result.text, result);
    return result.items.length < result.matched ? this.pushes(filter) : result.items;
  }

  /** Verifies a list of expectations, or a document with them, and returns the report. */
  async verify(expectations) {
    const document = Array.isArray(expectations) ? { expect: expectations } : expectations;
    const { timeout, settle, scope = this.#scope } = document;
    return this.#expect('/verify', { ...document, timeout: duration(timeout), settle: duration(settle), scope });
  }

  /** Checks the provider at the end of a test, when no further attempt of a push can follow. */
  async check({ failOnFindings = false, failOnRejected = false } = {}) {
    if (!failOnFindings && !failOnRejected) return;
    await this.#expect('/check', {
      fail_on_findings: failOnFindings || undefined,
      fail_on_rejected: failOnRejected || undefined,
      scope: this.#scope,
    });
  }

  /** Verifies that the last attempt of every push was accepted or permanently rejected. */
  async assertNothingLost({ timeout, settle } = {}) {
    await this.verify({ nothing_lost: true, timeout, settle });
  }

  /** Returns the findings about the provider. */
  async findings(filter = {}) {
    return (await this.#json('GET', '/findings', { parameters: this.#filter(filter) })).items;
  }

  /** Exports the matching records, one JSON object per line. */
  async export(filter = {}) {
    return (await this.#send('GET', '/export', { parameters: this.#filter(filter) })).text;
  }

  /** Adds the records of an exported file to the inbox. */
  async import(file) {
    const response = await this.#send('POST', '/import', {
      body: await fs.readFile(file, 'utf8'),
      contentType: 'application/x-ndjson',
    });
    return JSON.parse(response.text);
  }

  /** Returns the server's version, seed, active profile, addresses and limits. */
  status() {
    return this.#json('GET', '/status');
  }

  /** Returns the seed, the active profile, the pushes, those that were not accepted first, and the findings as text. */
  async report() {
    return (await this.#json('GET', '/report', { parameters: this.#filter({}) })).text;
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

  /** Sends a request whose response has the member `passed`, and throws its text if that is false. */
  async #expect(path, body) {
    const report = await this.#json('POST', path, { value: body, accepted: [200, 412] });
    if (!report.passed) throw new ApnsMockExpectationError(report.text, report);
    return report;
  }

  async #json(method, path, { value, parameters, accepted } = {}) {
    const body = value === undefined ? undefined : JSON.stringify(value);
    return JSON.parse((await this.#send(method, path, { body, parameters, accepted })).text);
  }

  async #send(method, path, { parameters = '', accepted = [200, 201], ...options }) {
    const server = this.#server;
    const query = String(parameters);
    let response;
    try {
      response = await server.api.send(method, query === '' ? path : `${path}?${query}`, options);
    } catch (error) {
      throw error instanceof ApnsMockError ? error : await server.connectionError(error);
    }
    if (!accepted.includes(response.status)) throw rejected(method, path, response);
    return response;
  }
}

/** Returns the error for a response that rejects a request: a problem document (RFC 9457), or any other response. */
function rejected(method, path, { status, text }) {
  const sentence = (message, hint) => (hint ? `${message}. ${hint}` : message);
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = {};
  }
  const details = (problem.problems ?? []).map(({ message, hint }) => sentence(message, hint));
  const lines = [problem.detail ? sentence(problem.detail, problem.hint) : text.slice(0, 200) || 'no explanation'];
  if (details.length > 1) lines.push(...details);
  return new ApnsMockError(`apns-mock responded with ${status} to ${method} /api/v1${path}: ${lines.join('\n  ')}`, {
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

module.exports = { ApnsMock };
