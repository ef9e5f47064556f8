'use strict';

const fs = require('node:fs');

const headerLength = 64 * 1024;

/**
 * Returns the platform of a native executable, read from its header, in the terms of `process.platform` and
 * `process.arch`. `cpu` is undefined for other processors than x86-64 and ARM64, and `libc` for a static executable.
 *
 * @param {string} file
 * @returns {{ os: string, cpu?: string, libc?: string } | undefined} Undefined for other files, such as scripts.
 */
function executablePlatform(file) {
  const header = readHeader(file);
  if (header.length < 20) return undefined;
  if (header.readUInt32BE(0) === 0x7f454c46) {
    // ELF. The path of the dynamic linker identifies the C library.
    const libc = header.includes('/ld-musl-') ? 'musl' : header.includes('/ld-linux') ? 'glibc' : undefined;
    return { os: 'linux', cpu: { 0x3e: 'x64', 0xb7: 'arm64' }[header.readUInt16LE(18)], libc };
  }
  if (header.readUInt32LE(0) === 0xfeedfacf) {
    // 64-bit Mach-O
    return { os: 'darwin', cpu: { 0x01000007: 'x64', 0x0100000c: 'arm64' }[header.readUInt32LE(4)] };
  }
  return undefined;
}

function readHeader(file) {
  const header = Buffer.alloc(headerLength);
  const descriptor = fs.openSync(file);
  try {
    return header.subarray(0, fs.readSync(descriptor, header, 0, header.length, 0));
  } finally {
    fs.closeSync(descriptor);
  }
}

module.exports = { executablePlatform };
