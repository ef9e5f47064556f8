"""The Go module: `go get` with the tag that the release workflow pushes. The repository's address leads to a local clone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support import ROOT, VERSION, run

REPOSITORY = (ROOT / "Distribution/repository").read_text().strip()
MODULE = REPOSITORY.removeprefix("https://") + "/Clients/Go"
PROGRAM = f"""package main

import apnsmock "{MODULE}"

func main() {{ println(apnsmock.Version) }}
"""


def test_go_get_finds_the_module_by_its_tag(tmp_path: Path) -> None:
    if not shutil.which("go"):
        pytest.skip("not run: go is missing; install Go 1.19 or newer")
    published = tmp_path / "published"
    run("git", "clone", "--quiet", "--bare", ROOT, published)
    run("git", "-C", published, "tag", f"Clients/Go/v{VERSION}")
    (tmp_path / "main.go").write_text(PROGRAM)
    (tmp_path / "go.mod").write_text("module user\n\ngo 1.19\n")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "GOPROXY": "direct", "GONOSUMDB": "*", "GOFLAGS": "-modcacherw",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{published}.insteadOf", "GIT_CONFIG_VALUE_0": REPOSITORY,
    }
    run("go", "get", f"{MODULE}@v{VERSION}", cwd=tmp_path, env=environment)
    output = run("go", "run", ".", cwd=tmp_path, env=environment)
    assert output == f"{VERSION}\n"
