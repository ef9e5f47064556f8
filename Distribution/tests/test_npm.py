"""The npm package: `npm install FILE` without a registry, then the program and the client."""

from __future__ import annotations

import os
import shutil
import textwrap
from pathlib import Path

import pytest

from support import DIST, VERSION, run

# What a user writes. The push is sent by the program, so that no provider is needed.
SUITE = """
    import { execFileSync } from 'node:child_process';
    import { dirname } from 'node:path';
    import { start } from 'apns-mock';

    const apns = await start();
    try {
      const { host, port, ca, topic } = apns.settings;
      execFileSync('npx', ['--offline', 'apns-mock', 'send', apns.deviceToken(), '--topic', topic,
        '--apns', `${host}:${port}`, '--certs', dirname(ca)], { stdio: 'inherit' });
      await apns.wait({ count: 1, accepted: true });
    } finally {
      await apns.stop();
    }
    """


def test_installs_without_a_registry_and_receives_a_push(tmp_path: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("not run: npm is missing; install Node")
    package = DIST / f"apns-mock-{VERSION}.tgz"
    (tmp_path / "package.json").write_text('{"name": "suite", "version": "1.0.0", "private": true}')
    environment = {**os.environ, "HOME": str(tmp_path), "npm_config_cache": str(tmp_path / "cache")}
    run("npm", "install", "--offline", "--no-audit", "--no-fund", package, cwd=tmp_path, env=environment)
    output = run("npx", "--offline", "apns-mock", "version", cwd=tmp_path, env=environment)
    assert output == f"apns-mock {VERSION}\n"
    (tmp_path / "suite.mjs").write_text(textwrap.dedent(SUITE))
    assert "200" in run("node", "suite.mjs", cwd=tmp_path, env=environment)
