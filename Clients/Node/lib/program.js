'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');

const { ApnsMockError } = require('./errors.js');
const { executablePlatform } = require('./executable.js');

const packageFolder = path.join(__dirname, '..');
const packagedProgram = path.join(packageFolder, 'program', 'apns-mock');
const launcher = path.join(packageFolder, 'bin', 'apns-mock.js');

const advice =
  'install the apns-mock package for this platform, or set APNS_MOCK_BINARY to the path of a program for it';

/**
 * Returns the path of the apns-mock program: `binary`, else the value of `APNS_MOCK_BINARY`, else the program in this
 * package, else `apns-mock` in `PATH`.
 *
 * @param {{ binary?: string, searchPath?: boolean }} [options]
 * @returns {string}
 * @throws {ApnsMockError} If there is none.
 */
function findProgram({ binary, searchPath = true } = {}) {
  const { APNS_MOCK_BINARY: configured, PATH: folders } = process.env;
  for (const [name, file] of [
    ['the option binary', binary],
    ['APNS_MOCK_BINARY', configured],
  ]) {
    if (!file) continue;
    if (isExecutable(file)) return file;
    throw new ApnsMockError(
      `${name} is "${file}", which is not an executable file: set it to the path of an apns-mock program, or omit it`,
    );
  }
  if (isExecutable(packagedProgram)) return packagedProgram;
  const found = searchPath ? findInPath(folders) : undefined;
  if (found !== undefined) return found;
  throw new ApnsMockError(
    'no apns-mock program was found: APNS_MOCK_BINARY is not set, the npm package apns-mock contains no program' +
      `${searchPath ? ', and PATH has no apns-mock' : ''}; ` +
      'install an apns-mock package with a program, or set APNS_MOCK_BINARY to the path of one',
  );
}

/** Returns the first `apns-mock` in `folders`, the value of `PATH`, that is not the launcher of this package. */
function findInPath(folders = '') {
  return folders
    .split(path.delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => path.join(folder, 'apns-mock'))
    .find((file) => isExecutable(file) && fs.realpathSync(file) !== fs.realpathSync(launcher));
}

function isExecutable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * Starts a program.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} options
 * @returns {Promise<import('node:child_process').ChildProcess>}
 * @throws {ApnsMockError} If it is for another platform, or if the operating system does not execute it.
 */
async function launch(program, args, options) {
  // Without this check a foreign executable would be run as a shell script.
  const { os, cpu } = executablePlatform(program) ?? { os: process.platform, cpu: process.arch };
  if (os !== process.platform || cpu !== process.arch) {
    throw new ApnsMockError(
      `${program} is a program for ${os} ${cpu ?? '(another processor)'}, and this is ${process.platform} ` +
        `${process.arch}: ${advice}`,
    );
  }
  try {
    const child = spawn(program, args, options);
    await once(child, 'spawn');
    return child;
  } catch (cause) {
    throw new ApnsMockError(
      `${program} cannot be executed on ${process.platform} ${process.arch} (${cause.code ?? cause.message}); it may ` +
        `need another C library: ${advice}`,
      { cause },
    );
  }
}

module.exports = { findProgram, launch };
