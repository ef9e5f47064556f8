#!/usr/bin/env node
'use strict';

// Runs the apns-mock program of this package. Passes on arguments, standard streams, signals and the exit code.

const os = require('node:os');
const tty = require('node:tty');

const { ApnsMockError } = require('../lib/errors.js');
const { findProgram, launch } = require('../lib/program.js');

async function main() {
  const child = await launch(findProgram({ searchPath: false }), process.argv.slice(2), { stdio: 'inherit' });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal sends these to the whole process group, so that forwarding would deliver them twice.
  const hasTerminal = [0, 1, 2].some((descriptor) => tty.isatty(descriptor));
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => hasTerminal || child.kill(signal));
}

main().catch((error) => {
  if (!(error instanceof ApnsMockError)) throw error;
  process.stderr.write(`apns-mock: ${error.message}\n`);
  process.exitCode = 126;
});
