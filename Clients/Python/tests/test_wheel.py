"""The script that builds the wheel, and the wheel in a new environment."""

from __future__ import annotations

import base64
import csv
import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import apns_mock

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "build_support"))
import elf  # noqa: E402

INSTALLED = Path(sysconfig.get_path("scripts")) / "apns-mock"


def build(
    output: Path, *arguments: object, binary: Path = INSTALLED, **variables: str,
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, HERE / "build-wheel", "--binary", binary, "--output", output, *arguments]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=120, env={**os.environ, **variables})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    notices = folder / "notices.txt"
    notices.write_text("licenses of libraries")
    result = build(folder, "--version", apns_mock.__version__, "--notices", notices, SOURCE_DATE_EPOCH="1700000000")
    assert result.returncode == 0, result.stderr
    return Path(result.stdout.strip())


def test_content_of_the_wheel(wheel: Path) -> None:
    version = apns_mock.__version__
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        (record_name,) = [name for name in names if name.endswith("/RECORD")]
        record = list(csv.reader(archive.read(record_name).decode().splitlines()))
        assert {row[0] for row in record} == names
        for name, digest, size in record:
            if name != record_name:
                content = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={expected}", str(len(content)))
        program = archive.getinfo(f"apns_mock-{version}.data/scripts/apns-mock")
        assert program.external_attr >> 16 & 0o111 and archive.read(program) == INSTALLED.read_bytes()
        assert {"apns_mock/py.typed", "apns_mock/pytest_plugin.py"} <= names
        info = f"apns_mock-{version}.dist-info"
        assert archive.read(f"{info}/licenses/NOTICES") == b"licenses of libraries"
        assert b"Apache License" in archive.read(f"{info}/licenses/LICENSE")
        tag = wheel.stem.split("-", 2)[2]
        assert f"Tag: {tag}\n" in archive.read(f"{info}/WHEEL").decode()
        assert archive.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)


def test_metadata_of_the_wheel(wheel: Path) -> None:
    version = apns_mock.__version__
    repository = (HERE.parents[1] / "Distribution/repository").read_text().strip()
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"apns_mock-{version}.dist-info/METADATA"))
    assert (metadata["Author"], metadata["License-Expression"]) == ("the apns-mock contributors", "Apache-2.0")
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith(repository) for url in urls.values())
    readme, source = metadata.get_payload(), (HERE / "README.md").read_text()
    links = re.findall(r"\]\((\S+?)\)", readme)
    assert len(links) == len(re.findall(r"\]\((\S+?)\)", source)) > 5
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"]({repository}/blob/v{version}/Examples/python/test_provider.py)" in readme


def test_same_input_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    notices = wheel.parent / "notices.txt"
    arguments = ("--version", apns_mock.__version__, "--notices", notices)
    again = build(tmp_path, *arguments, SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo")
    assert Path(again.stdout.strip()).read_bytes() == wheel.read_bytes()


def test_platform_tag_is_what_the_program_needs(wheel: Path) -> None:
    program = elf.read(INSTALLED)
    expected = "linux" if program.libraries_outside_manylinux() else "manylinux_{}_{}".format(*program.glibc())
    assert wheel.name == f"apns_mock-{apns_mock.__version__}-py3-none-{expected}_{program.machine}.whl"


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
@pytest.mark.parametrize("program", [INSTALLED, Path(sys.executable).resolve(), Path("/bin/sh").resolve()])
def test_needs_of_a_program_are_those_of_readelf(program: Path) -> None:
    output = subprocess.run(["readelf", "-W", "-V", "-d", program], capture_output=True, text=True, check=True).stdout
    found = elf.read(program)
    assert found.libraries == re.findall(r"\(NEEDED\).*\[(.*)\]", output)
    needs = output.partition("Version needs section")[2]
    assert sorted(found.symbol_versions) == sorted(re.findall(r"  Name: (\S+)", needs))


@pytest.mark.parametrize("symbols, glibc", [
    (["GLIBC_2.17", "GLIBC_2.4", "GLIBC_2.2.5", "GLIBC_PRIVATE", "GCC_3.0", "CXXABI_TM_1"], (2, 17)),
    (["GLIBC_2.17", "GLIBCXX_3.4.30", "GLIBCXX_3.4"], (2, 35)),
    (["GLIBC_2.17", "CXXABI_1.3.13"], (2, 34)),
    (["GLIBC_2.17", "GCC_12.0.0"], (2, 35)),
    (["GLIBC_2.38", "GLIBCXX_3.4.29"], (2, 38)),
    (["GLIBC_2.17", "GLIBC_ABI_DT_RELR"], (2, 36)),
])
def test_oldest_glibc_of_symbol_versions(symbols: list[str], glibc: tuple[int, int]) -> None:
    assert elf.Program("x86_64", [], symbols).glibc() == glibc


def test_unknown_symbol_version_is_an_error() -> None:
    with pytest.raises(elf.ELFError, match="needs GLIBCXX_3.4.99, which is newer than this script knows"):
        elf.Program("x86_64", [], ["GLIBC_2.17", "GLIBCXX_3.4.99"]).glibc()


def test_wheel_in_a_new_environment(wheel: Path) -> None:
    result = subprocess.run([HERE / "first-push", wheel], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "first accepted push" in result.stdout


def test_wheel_for_another_platform_is_refused_by_pip(wheel: Path, tmp_path: Path) -> None:
    other = shutil.copy(wheel, tmp_path / re.sub("(x86_64|aarch64)", "ppc64le", wheel.name))
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--target", tmp_path / "installed", other]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert result.returncode == 1 and "not a supported wheel on this platform" in result.stderr


def test_wrong_version(tmp_path: Path) -> None:
    mismatch = build(tmp_path, "--version", "9.9.9")
    assert mismatch.returncode == 1
    printed = f"apns-mock {apns_mock.__version__}"
    assert f"printed {printed!r} and not 'apns-mock 9.9.9': build the program" in mismatch.stderr
    malformed = build(tmp_path, "--version", "1.0", "--platform-tag", "any")
    assert "'1.0' is not a version such as 0.2.0" in malformed.stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_program(tmp_path: Path) -> None:
    script = tmp_path / "apns-mock"
    script.write_text("#!/bin/sh\necho apns-mock 0.2.0-beta.1\n")
    output = tmp_path / "output"
    refused = build(output, "--version", "0.2.0-beta.1", binary=script)
    assert "is not a 64-bit Linux program: build apns-mock on Linux, or pass --platform-tag" in refused.stderr
    tag = ("--platform-tag", "macosx_14_0_arm64", "--version", "0.2.0-beta.1")
    assert "is not executable: run `chmod +x" in build(output, *tag, binary=script).stderr
    assert "No such file" in build(output, *tag, binary=tmp_path / "none").stderr
    script.chmod(0o755)
    result = build(output, *tag, binary=script)
    assert Path(result.stdout.strip()).name == "apns_mock-0.2.0b1-py3-none-macosx_14_0_arm64.whl", result.stderr
    with zipfile.ZipFile(result.stdout.strip()) as archive:
        assert b'VERSION = "0.2.0-beta.1"' in archive.read("apns_mock/_version.py")
