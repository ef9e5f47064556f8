// A small provider: queues notifications, keeps its provider token, retries what may be retried, and forgets devices
// that APNs reports as gone.

import { createPrivateKey, randomUUID, sign } from 'node:crypto';
import http2 from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';

const tokenLifetime = 50 * 60 * 1000; // milliseconds; APNs accepts a provider token for an hour
const responseTimeout = 10_000; // milliseconds
const retriedStatuses = new Set([429, 500, 503]);

export class Provider {
  #options;
  #key;
  #token;
  #session;
  #settings;
  #queue = [];
  #running = 0;

  /** Device tokens that APNs no longer accepts, with the time since which it does not if APNs reported one. */
  removedDevices = new Map();

  /**
   * @param {object} options
   * @param {string} options.url The APNs server, such as `https://api.push.apple.com`.
   * @param {string | Buffer} options.key The content of the provider key, a `.p8` file.
   * @param {string} options.keyId
   * @param {string} options.teamId
   * @param {string} options.topic
   * @param {string | Buffer} [options.ca] A CA to trust instead of the system's.
   * @param {number} [options.attempts] The maximum number of attempts per notification.
   * @param {number} [options.firstPause] The pause in milliseconds before the first retry; it doubles each time.
   * @param {number} [options.concurrency] The maximum number of notifications in flight.
   * @param {() => number} [options.now] The current time in milliseconds.
   */
  constructor(options) {
    this.#options = { attempts: 6, firstPause: 1000, concurrency: 20, now: Date.now, ...options };
    this.#key = createPrivateKey(options.key);
  }

  /**
   * Queues a notification. The promise is fulfilled with the last response, `{ status, reason, timestamp, apnsId }`.
   *
   * @throws {Error} If no attempt got a response.
   */
  enqueue(deviceToken, payload) {
    return new Promise((resolve, reject) => {
      this.#queue.push({ deviceToken, payload, apnsId: randomUUID(), resolve, reject });
      this.#startNext();
    });
  }

  /** Closes the connection. */
  close() {
    this.#session?.close();
  }

  #startNext() {
    while (this.#running < this.#options.concurrency && this.#queue.length > 0) {
      const { resolve, reject, ...notification } = this.#queue.shift();
      this.#running += 1;
      this.#deliver(notification)
        .then(resolve, reject)
        .finally(() => {
          this.#running -= 1;
          this.#startNext();
        });
    }
  }

  /** Sends a notification until it gets a final response. Every attempt has the same `apns-id`. */
  async #deliver(notification) {
    const { attempts, firstPause } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const token = this.#providerToken();
      const result = await this.#post(notification, token).catch((error) => ({ error }));
      if (attempt === attempts || !this.#mayRetry(result, token)) {
        if (result.error) throw result.error;
        this.#removeDevice(notification.deviceToken, result);
        return result;
      }
      await delay(firstPause * 2 ** (attempt - 1) * (1 + Math.random() / 5));
    }
  }

  /** Returns whether another attempt may succeed. After an expired provider token it needs a new connection. */
  #mayRetry({ error, status, reason }, token) {
    if (error !== undefined || retriedStatuses.has(status)) return true;
    if (reason !== 'ExpiredProviderToken') return false;
    if (this.#token?.text === token) {
      this.#token = undefined;
      this.#session?.close();
      this.#session = undefined;
    }
    return true;
  }

  #removeDevice(deviceToken, { status, reason, timestamp }) {
    if (status === 410 || reason === 'BadDeviceToken') {
      this.removedDevices.set(deviceToken, timestamp === undefined ? undefined : new Date(timestamp));
    }
  }

  /** Returns the current provider token, signed again shortly before it expires. */
  #providerToken() {
    const { keyId, teamId, now } = this.#options;
    const time = now();
    if (this.#token === undefined || time - this.#token.signedAt > tokenLifetime) {
      const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const claims = { iss: teamId, iat: Math.floor(time / 1000) };
      const content = `${encode({ alg: 'ES256', kid: keyId })}.${encode(claims)}`;
      const signature = sign('sha256', Buffer.from(content), { key: this.#key, dsaEncoding: 'ieee-p1363' });
      this.#token = { text: `${content}.${signature.toString('base64url')}`, signedAt: time };
    }
    return this.#token.text;
  }

  /** Returns a connection that has received the server's SETTINGS. Concurrent notifications share it. */
  async #connection() {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = http2.connect(this.#options.url, { ca: this.#options.ca });
      this.#settings = firstEvent(this.#session, 'remoteSettings');
    }
    const session = this.#session;
    await this.#settings;
    return session;
  }

  async #post({ deviceToken, payload, apnsId }, token) {
    const session = await this.#connection();
    const stream = session.request({
      ':method': 'POST',
      ':path': `/3/device/${deviceToken}`,
      authorization: `bearer ${token}`,
      'apns-id': apnsId,
      'apns-topic': this.#options.topic,
      'apns-push-type': 'alert',
    });
    stream.setTimeout(responseTimeout, () => stream.close(http2.constants.NGHTTP2_CANCEL));
    stream.end(JSON.stringify(payload));
    const headers = await firstEvent(stream, 'response');
    let body = '';
    for await (const chunk of stream.setEncoding('utf8')) body += chunk;
    const { reason, timestamp } = body === '' ? {} : JSON.parse(body);
    return { status: headers[':status'], reason, timestamp, apnsId: headers['apns-id'] };
  }
}

/** Returns the value of an event. Fails if a stream or connection ends before it: not every end is an `error` event. */
function firstEvent(emitter, name) {
  return new Promise((resolve, reject) => {
    emitter.once(name, resolve);
    emitter.on('error', reject);
    emitter.once('close', () => reject(new Error(`closed before ${name}`)));
  });
}
