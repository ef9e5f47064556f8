"""`make install` and `make uninstall`, run in a copy of the scripts with programs that are built already."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from support import ROOT, VERSION, run
from test_tarball import FILES, files_in

# The plain form has no manual page and no notices, because making them needs a build.
PLAIN_FILES = FILES - {"share/man/man1/apns-mock.1", "share/doc/apns-mock/NOTICES"}
UNIT = "Distribution/debian/apns-mock.service"
# A library of the toolchain for `ldd`, which starts no program of its own.
RUNTIME_LIBRARY = "libswiftCore.so"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The scripts and files that an installation reads, without a program."""
    folder = tmp_path / "copy"
    (folder / "Distribution").mkdir(parents=True)
    for name in ("common.sh", "install", "stage", "repository", "README.packages.md"):
        shutil.copy(ROOT / "Distribution" / name, folder / "Distribution")
    (folder / "Distribution/debian").mkdir()
    shutil.copy(ROOT / UNIT, folder / "Distribution/debian")
    for name in ("Makefile", "VERSION", "LICENSE", "Package.swift"):
        shutil.copy(ROOT / name, folder)
    (folder / "Sources").mkdir()
    return folder


def install(copy: Path, *variables: str, status: int = 0, target: str = "install", **environment: str) -> str:
    variables_of_sudo = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    return run("make", "-s", "-C", copy, target, *variables, env={**variables_of_sudo, **environment}, status=status)


def put_program(copy: Path, program: Path) -> None:
    """Puts a program where `make build` leaves it."""
    (copy / ".build/release").mkdir(parents=True)
    shutil.copy(program, copy / ".build/release/apns-mock")


def put_release(copy: Path) -> Path:
    """Copies what `make dist` built, newer than the sources, and returns the program."""
    parts = copy / ".build/dist-parts"
    (parts / "static").mkdir(parents=True)
    for name in ("apns-mock.1", "static/NOTICES", "static/apns-mock"):
        source = ROOT / ".build/dist-parts" / name
        if not source.exists():
            pytest.skip("not run: the packages were built on another machine")
        shutil.copy(source, parts / name)
    return parts / "static/apns-mock"


def test_installs_what_is_built_and_removes_it(copy: Path, program: Path, tmp_path: Path) -> None:
    put_program(copy, program)
    before = files_in(copy)
    place = (f"DESTDIR={tmp_path}", "PREFIX=/opt/apns mock")
    # There is no toolchain in PATH: nothing can be built.
    assert install(copy, *place, PATH="/usr/bin:/bin") == f"installed apns-mock {VERSION} in {tmp_path}/opt/apns mock\n"
    assert files_in(tmp_path / "opt/apns mock") == PLAIN_FILES
    assert run(tmp_path / "opt/apns mock/bin/apns-mock", "version") == f"apns-mock {VERSION}\n"
    assert files_in(copy) == before
    install(copy, *place, target="uninstall")
    assert files_in(tmp_path / "opt") == set()


def test_installs_a_unit_that_starts_the_installed_program(copy: Path, program: Path, tmp_path: Path) -> None:
    put_program(copy, program)
    place = (f"DESTDIR={tmp_path}", "PREFIX=/usr/local")
    install(copy, *place)
    unit = tmp_path / "usr/local/lib/systemd/system/apns-mock.service"
    assert unit.read_text() == (ROOT / UNIT).read_text().replace("=/usr/bin/apns-mock ", "=/usr/local/bin/apns-mock ")
    assert not (tmp_path / "usr/local/share/doc/apns-mock/examples/apns-mock.service").exists()
    install(copy, *place, target="uninstall")
    assert files_in(tmp_path / "usr") == set()


def test_replaces_a_program_that_runs(copy: Path, program: Path, tmp_path: Path) -> None:
    put_program(copy, program)
    install(copy, f"PREFIX={tmp_path}/prefix")
    installed = tmp_path / "prefix/bin/apns-mock"
    output = run(installed, "exec", "--", "make", "-s", "-C", copy, "install", f"PREFIX={tmp_path}/prefix")
    assert "installed apns-mock" in output
    assert run(installed, "version") == f"apns-mock {VERSION}\n"


def test_keeps_the_permissions_of_existing_folders(copy: Path, program: Path, tmp_path: Path) -> None:
    put_program(copy, program)
    folder = tmp_path / "prefix/bin"
    folder.mkdir(parents=True)
    folder.chmod(0o775)
    install(copy, f"PREFIX={tmp_path}/prefix")
    assert folder.stat().st_mode & 0o777 == 0o775


def test_names_the_folder_of_a_runtime_that_is_not_in_the_program(copy: Path, program: Path, tmp_path: Path) -> None:
    """`ldd` is replaced, because the only program that a packager has contains the runtime."""
    put_program(copy, program)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ldd").write_text(f"#!/bin/sh\necho '\t{RUNTIME_LIBRARY} => /opt/a toolchain/lib/{RUNTIME_LIBRARY} (0x7f00)'\n")
    (tools / "ldd").chmod(0o755)
    output = install(copy, f"PREFIX={tmp_path}/prefix", PATH=f"{tools}:/usr/bin:/bin")
    note = output.splitlines()[-1]
    assert "loads the Swift runtime from /opt/a toolchain/lib and stops working if the toolchain is moved" in note
    assert "make install RELEASE=1" in note


def test_names_the_runtime_of_the_program_of_make_build(copy: Path, tmp_path: Path) -> None:
    built = ROOT / ".build/release/apns-mock"
    if not built.exists():
        pytest.skip("not run: there is no program of make build")
    put_program(copy, built)
    output = install(copy, f"PREFIX={tmp_path}/prefix")
    folder = re.search(r"the Swift runtime from (/\S+) and stops working", output)
    assert folder and (Path(folder[1]) / RUNTIME_LIBRARY).exists()


def test_says_that_nothing_is_built(copy: Path, tmp_path: Path) -> None:
    output = install(copy, f"PREFIX={tmp_path}/prefix", status=2)
    assert output.startswith("error: there is no program to install: .build/release/apns-mock does not exist; run make build first")
    assert not (tmp_path / "prefix").exists()


def test_rejects_a_relative_prefix(copy: Path) -> None:
    output = install(copy, "PREFIX=usr", status=2)
    assert "error: PREFIX must be an absolute path such as /usr/local, not 'usr'" in output


def test_says_that_the_prefix_cannot_be_written(copy: Path, program: Path, tmp_path: Path) -> None:
    put_program(copy, program)
    (tmp_path / "file").touch()
    output = install(copy, f"PREFIX={tmp_path}/file", status=2)
    assert output.startswith(f"error: cannot write to {tmp_path}/file/bin; run this command with sudo, or choose a folder of")


def test_sudo_installs_the_release_that_is_built_but_builds_nothing(copy: Path, tmp_path: Path) -> None:
    variables = (f"PREFIX={tmp_path}/prefix", "RELEASE=1")
    sudo = {"SUDO_UID": "1000", "PATH": "/usr/bin:/bin"}
    assert "run make install RELEASE=1 without sudo first" in install(copy, *variables, status=2, **sudo)
    program = put_release(copy)
    before = files_in(copy)
    install(copy, *variables, **sudo)
    assert files_in(tmp_path / "prefix") == FILES
    assert files_in(copy) == before
    os.utime(copy / "Package.swift", (program.stat().st_mtime + 10,) * 2)
    assert "the sources are newer than .build/dist-parts/static/apns-mock" in install(copy, *variables, status=2, **sudo)


@pytest.mark.timeout(1800)
def test_release_is_the_program_of_the_tarball(tmp_path: Path) -> None:
    """The build has nothing to compile after `make dist`."""
    if not (ROOT / ".build/dist-static").exists() or not shutil.which("swift"):
        pytest.skip("not run: the packages were built on another machine")
    output = run("make", "-s", "-C", ROOT, "install", "RELEASE=1", f"PREFIX={tmp_path}", timeout=1500)
    assert "Swift runtime" not in output
    assert files_in(tmp_path) == FILES
    assert (tmp_path / "bin/apns-mock").read_bytes() == (ROOT / ".build/dist-parts/static/apns-mock").read_bytes()
