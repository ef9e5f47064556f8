#!/usr/bin/env node
'use strict';

// Runs the apns-mock program of this package with the arguments, standard streams, signals and exit code of this process.

const { spawn } = require('node:child_process');
const os = require('node:os');

const { ApnsMockError } = require('../lib/errors.js');
const { findProgram, notExecutable } = require('../lib/program.js');

function main() {
  const program = findProgram({ searchPath: false });
  let child;
  try {
    child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
  } catch (error) {
    throw notExecutable(program, error);
  }
  child.on('error', (error) => fail(notExecutable(program, error)));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal sends these to the whole process group, so that forwarding would deliver them twice.
  const hasTerminal = [0, 1, 2].some((descriptor) => require('node:tty').isatty(descriptor));
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => hasTerminal || child.kill(signal));
}

function fail(error) {
  if (!(error instanceof ApnsMockError)) throw error;
  process.stderr.write(`apns-mock: ${error.message}\n`);
  process.exitCode = 126;
}

try {
  main();
} catch (error) {
  fail(error);
}
