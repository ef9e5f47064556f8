"""The errors of the scripts: one sentence that says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

from support import ROOT, VERSION, run


def test_dist_names_a_missing_tool(tmp_path: Path) -> None:
    for tool in ("bash", "cat", "dirname", "uname"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    output = run("env", "-i", f"PATH={tmp_path}", ROOT / "Distribution/dist", status=1)
    assert output.startswith("error: swift is missing; install it") and output.count("\n") == 1


def test_notices_need_a_build(tmp_path: Path) -> None:
    copy = tmp_path / "Distribution"
    copy.mkdir()
    for name in ("notices", "components.py"):
        shutil.copy(ROOT / "Distribution" / name, copy)
    (tmp_path / "Package.resolved").write_text('{"pins": []}')
    output = run("python3", copy / "notices", "static", status=1)
    assert output == "error: .build/dist-static has no release build of apns-mock; run: make dist\n"


def test_a_release_tag_must_be_the_version() -> None:
    run(ROOT / "Distribution/check-tag", f"v{VERSION}")
    for tag in (VERSION, f"v{VERSION}1", "v"):
        assert f"tag as v{VERSION}" in run(ROOT / "Distribution/check-tag", tag, status=1)
