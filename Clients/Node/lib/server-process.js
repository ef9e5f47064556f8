'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');

const { ApnsMockError } = require('./errors.js');
const { findProgram, launch } = require('./program.js');

const pollInterval = 10; // milliseconds
const stopTimeout = 10_000; // milliseconds; the server's own shutdown timeout is 5 s
const exitGrace = 2_000; // milliseconds between a lost connection and the report that the process exited
const keptLines = 20;

/** What the exit codes of `apns-mock serve` mean. */
const exitReasons = new Map([
  [2, 'invalid configuration'],
  [6, 'port in use'],
]);

/** Folders of running servers, removed when this process exits without stopping them. */
const folders = new Set();

function removeFolders() {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
}

/** A server in a child process, on free ports, with certificates and keys in a temporary folder. */
class ServerProcess {
  #child;
  #folder;
  #errorLines;
  #exit;

  constructor(child, folder) {
    this.#child = child;
    this.#folder = folder;
    this.#errorLines = collectLines(child.stderr);
    // `close` comes after `exit`, when standard error has been read to its end.
    this.#exit = once(child, 'close').catch(() => {});
  }

  /**
   * Starts the server and waits until it is ready.
   *
   * The server shuts down when its standard input closes, so it ends with this process even if this process is killed.
   *
   * @param {{ args?: string[], binary?: string, timeout?: number }} [options] `timeout` is in milliseconds.
   */
  static async start({ args = [], binary, timeout = 30_000 } = {}) {
    const program = findProgram({ binary });
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apns-mock-'));
    if (folders.size === 0) process.once('exit', removeFolders);
    folders.add(folder);
    const portFile = path.join(folder, 'ports.json');
    const flags = ['--apns', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--certs', folder, '--port-file', portFile];
    let server;
    try {
      const { APNS_MOCK_BINARY: _, ...env } = process.env; // A variable of this client, unknown to the server.
      const child = await launch(program, ['serve', ...flags, '--exit-on-stdin-close', ...args], {
        env,
        stdio: ['pipe', 'ignore', 'pipe'],
      });
      child.stdin.on('error', () => {}); // The server may exit before its standard input is closed.
      server = new ServerProcess(child, folder);
      server.ports = await server.#ready(portFile, timeout);
    } catch (error) {
      await server?.stop();
      removeFolder(folder);
      throw error;
    }
    // A test process that never calls `stop` can still end, which closes the server's standard input.
    server.#setReferenced(false);
    return server;
  }

  /** The process id. */
  get pid() {
    return this.#child.pid;
  }

  /** Waits for the port file, which the server renames into place when it is ready, and returns its content. */
  async #ready(portFile, timeout) {
    const deadline = Date.now() + timeout;
    while (Date.now() < deadline) {
      try {
        return JSON.parse(fs.readFileSync(portFile, 'utf8'));
      } catch (error) {
        if (error.code !== 'ENOENT') throw error;
      }
      if (this.#hasExited) {
        await this.#exit;
        const reason = exitReasons.get(this.#child.exitCode);
        throw new ApnsMockError(
          `${this.#exitText}${reason === undefined ? '' : ` (${reason})`} before it was ready${this.#errorText}`,
        );
      }
      await delay(pollInterval);
    }
    throw new ApnsMockError(
      `the apns-mock server (pid ${this.pid}) was not ready after ${timeout / 1000} s: see its messages, or set a ` +
        `longer timeout${this.#errorText}`,
    );
  }

  get #hasExited() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get #exitText() {
    const { pid, exitCode, signalCode } = this.#child;
    return `the apns-mock server (pid ${pid}) exited with ${
      signalCode === null ? `status ${exitCode}` : `signal ${signalCode}`
    }`;
  }

  get #errorText() {
    return this.#errorLines.length === 0 ? '' : `; its last messages:\n  ${this.#errorLines.join('\n  ')}`;
  }

  /**
   * Returns the error for a failed connection to the server.
   *
   * @param {Error} cause
   */
  async connectionError(cause) {
    this.#setReferenced(true);
    await Promise.race([this.#exit, delay(exitGrace, undefined, { ref: false })]);
    this.#setReferenced(false);
    const text = this.#hasExited
      ? `${this.#exitText}: start another one for further tests${this.#errorText}`
      : `the apns-mock server (pid ${this.pid}) did not complete a request (${cause.code ?? cause.message}): see ` +
        `its messages${this.#errorText}`;
    return new ApnsMockError(text, { cause });
  }

  /** Stops the server and removes its folder. Does nothing if it is stopped already. */
  async stop() {
    this.#setReferenced(true);
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeout);
    await this.#exit;
    clearTimeout(timer);
    removeFolder(this.#folder);
  }

  /** Sets whether the running server keeps this process from ending. */
  #setReferenced(isReferenced) {
    const { stdin, stderr } = this.#child;
    for (const handle of [this.#child, stdin, stderr]) isReferenced ? handle.ref() : handle.unref();
  }
}

function removeFolder(folder) {
  fs.rmSync(folder, { recursive: true, force: true });
  folders.delete(folder);
  if (folders.size === 0) process.removeListener('exit', removeFolders);
}

/** Returns an array that is kept up to date with the last lines of `stream`. */
function collectLines(stream) {
  const lines = [];
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop();
    lines.push(...parts);
    lines.splice(0, lines.length - keptLines);
  });
  stream.on('end', () => {
    if (rest !== '') lines.push(rest);
  });
  return lines;
}

module.exports = { ServerProcess };
