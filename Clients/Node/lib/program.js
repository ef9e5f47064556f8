'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { ApnsMockError } = require('./errors.js');

const packageFolder = path.join(__dirname, '..');
const packagedProgram = path.join(packageFolder, 'program', 'apns-mock');
const launcher = path.join(packageFolder, 'bin', 'apns-mock.js');

/** The `package.json` of this package. A package with a program names its platform in `os` and `cpu`. */
const manifest = require('../package.json');

/**
 * Returns the path of the apns-mock program: the value of `APNS_MOCK_BINARY`, else the program in this package, else
 * `apns-mock` in `PATH`.
 *
 * @param {{ environment?: NodeJS.ProcessEnv, searchPath?: boolean }} [options]
 * @returns {string}
 * @throws {ApnsMockError} If there is none, or if the one in this package is for another platform.
 */
function findProgram({ environment = process.env, searchPath = true } = {}) {
  const configured = environment.APNS_MOCK_BINARY;
  if (configured) {
    if (isExecutable(configured)) return configured;
    throw new ApnsMockError(
      `APNS_MOCK_BINARY is "${configured}", which is not an executable file: ` +
        'set it to the path of an apns-mock program, or unset it',
    );
  }
  if (isExecutable(packagedProgram)) {
    checkPlatform();
    return packagedProgram;
  }
  const found = searchPath ? findInPath(environment.PATH) : undefined;
  if (found !== undefined) return found;
  throw new ApnsMockError(
    'no apns-mock program was found: APNS_MOCK_BINARY is not set, the npm package apns-mock contains no program' +
      `${searchPath ? ', and PATH has no apns-mock' : ''}; ` +
      'install an apns-mock package with a program, or set APNS_MOCK_BINARY to the path of one',
  );
}

function checkPlatform() {
  const { os = [process.platform], cpu = [process.arch] } = manifest;
  if (os.includes(process.platform) && cpu.includes(process.arch)) return;
  throw new ApnsMockError(
    `the installed npm package apns-mock has a program for ${os.join('/')} ${cpu.join('/')}, and this is ` +
      `${process.platform} ${process.arch}: install the package for this platform, or set APNS_MOCK_BINARY to the ` +
      'path of an apns-mock program for it',
  );
}

/** Returns the first `apns-mock` in `searchPath` that is not the launcher of this package. */
function findInPath(searchPath = '') {
  return searchPath
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
 * Returns the error for a program that the operating system does not execute.
 *
 * @param {string} program
 * @param {NodeJS.ErrnoException} cause
 */
function notExecutable(program, cause) {
  return new ApnsMockError(
    `${program} cannot be executed on ${process.platform} ${process.arch} (${cause.code ?? cause.message}): ` +
      'it is probably for another system or architecture; set APNS_MOCK_BINARY to the path of an apns-mock program ' +
      'for this platform',
    { cause },
  );
}

module.exports = { findProgram, manifest, notExecutable };
