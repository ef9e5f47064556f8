"""The tarball: a program that needs no Swift on the machine, and the files beside it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from support import ROOT, SEND_ONE_PUSH, TARBALL, VERSION, needed_libraries, run

FILES = {
    "bin/apns-mock",
    "share/bash-completion/completions/apns-mock",
    "share/doc/apns-mock/LICENSE",
    "share/doc/apns-mock/NOTICES",
    "share/doc/apns-mock/README.md",
    "share/doc/apns-mock/examples/apns-mock.service",
    "share/doc/apns-mock/examples/apns-mock.yaml",
    "share/fish/vendor_completions.d/apns-mock.fish",
    "share/man/man1/apns-mock.1",
    "share/zsh/site-functions/_apns-mock",
}


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_contains_the_documented_files(unpacked: Path) -> None:
    assert files_in(unpacked) == FILES


def test_packed_size() -> None:
    assert TARBALL.stat().st_size <= 40_000_000


def test_needs_neither_swift_nor_nghttp2_nor_openssl(program: Path) -> None:
    assert needed_libraries(program) == {"libc", "libm", "libgcc_s", "libstdc++"}


def test_has_no_search_path_of_the_build_machine(program: Path) -> None:
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "--dynamic", program))
    assert all(path == "$ORIGIN" for path in paths), paths


def test_needs_glibc_2_35_at_most(program: Path) -> None:
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", program))
    assert max((int(major), int(minor)) for major, minor in versions) <= (2, 35)


def test_runs_without_an_environment(program: Path) -> None:
    assert run("env", "-i", program, "version") == f"apns-mock {VERSION}\n"


def test_sends_and_records_a_push_without_an_environment(program: Path, tmp_path: Path) -> None:
    # The only variable is PATH, for sh and wc.
    output = run("env", "-i", "PATH=/usr/bin:/bin", "sh", "-euc", SEND_ONE_PUSH, program, cwd=tmp_path)
    assert "1 push: 1 accepted" in output


def test_manual_page_describes_the_commands(unpacked: Path) -> None:
    page = (unpacked / "share/man/man1/apns-mock.1").read_text()
    assert ".It Em serve\n" in page and ".It Fl -port-file Ar file\n" in page


def test_completions_are_valid(unpacked: Path) -> None:
    script = unpacked / "share/bash-completion/completions/apns-mock"
    output = run("bash", "-c", f'. "{script}" && complete -p apns-mock')
    assert "apns-mock" in output


def test_packing_again_gives_the_same_file(tmp_path: Path) -> None:
    if not (ROOT / ".build/dist-parts/static").exists():
        pytest.skip("not run: the packages were built on another machine")
    again = tmp_path / "again.tar.gz"
    run(ROOT / "Distribution/build-tarball", again)
    assert digest(again) == digest(TARBALL)
