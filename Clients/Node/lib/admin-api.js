'use strict';

const http = require('node:http');

const { ApnsMockError } = require('./errors.js');

/** Requests to the admin API of one server. */
class AdminAPI {
  /**
   * @param {string} address A URL, or `host:port`.
   * @param {string | null} [token] The admin token, if the server has one.
   */
  constructor(address, token) {
    this.url = adminURL(address);
    this.token = token ?? null;
  }

  /**
   * Sends a request and returns the status and the body of the response.
   *
   * @param {string} method
   * @param {string} path The path below `/api/v1`, with its query.
   * @param {{ body?: string, contentType?: string }} [options]
   * @returns {Promise<{ status: number, text: string }>}
   */
  send(method, path, { body, contentType = 'application/json' } = {}) {
    const headers = { accept: 'application/json' };
    if (this.token !== null) headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) {
      headers['content-type'] = contentType;
      headers['content-length'] = Buffer.byteLength(body);
    }
    return new Promise((resolve, reject) => {
      const request = http.request(`${this.url}/api/v1${path}`, { method, headers, agent: false });
      request.on('error', reject);
      request.on('response', (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      request.end(body);
    });
  }
}

/** Returns the URL of an admin listener without a trailing slash. */
function adminURL(address) {
  const text = /^https?:\/\//.test(address) ? address : `http://${address}`;
  try {
    return new URL(text).origin;
  } catch (cause) {
    throw new ApnsMockError(
      `"${address}" is not the address of an admin listener: specify a URL or HOST:PORT such as 127.0.0.1:8197`,
      { cause },
    );
  }
}

module.exports = { AdminAPI };
