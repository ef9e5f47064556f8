'use strict';

/**
 * An error of the client: no program was found, the server did not start or ended, or it rejected a request.
 */
class ApnsMockError extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown, status?: number, problem?: object }} [details] `status` and `problem` are the HTTP
   *   status and the problem document (RFC 9457) of a rejected request.
   */
  constructor(message, { cause, status, problem } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ApnsMockError';
    // Not enumerable: a test runner prints enumerable properties, and the message has their content.
    Object.defineProperties(this, { status: { value: status }, problem: { value: problem } });
  }
}

/**
 * An expectation that the pushes in the inbox do not meet: a wait that timed out, or a failed verification.
 */
class ApnsMockExpectationError extends Error {
  /**
   * @param {string} message
   * @param {object} report The server's response, with the nearest pushes.
   */
  constructor(message, report) {
    super(message);
    this.name = 'ApnsMockExpectationError';
    Object.defineProperty(this, 'report', { value: report }); // Not enumerable, for the same reason.
  }
}

module.exports = { ApnsMockError, ApnsMockExpectationError };
