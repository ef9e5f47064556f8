"""The systemd unit, checked by systemd's own tools, which need no running systemd."""

from __future__ import annotations

import configparser
import shutil
from pathlib import Path

import pytest

from support import ROOT, run

UNIT = ROOT / "Distribution/debian/apns-mock.service"
# Tenths of what `systemd-analyze security` calls exposure; a service without restrictions has 9.6.
EXPOSURE_LIMIT = 30

pytestmark = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="not run: systemd-analyze is missing; run: apt-get install systemd")


def options() -> dict[str, str]:
    """The options of the section `Service`; of one that occurs twice, the last."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return dict(parser["Service"])


def test_unit_is_valid(tmp_path: Path) -> None:
    """With a program of the right name, because the real one is not installed here."""
    program = tmp_path / "apns-mock"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "apns-mock.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/apns-mock", str(program)))
    output = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
    assert output == ""


def test_exposure_is_low() -> None:
    run("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_LIMIT}", UNIT)


@pytest.mark.parametrize(("name", "value"), [
    ("DynamicUser", "yes"), ("ProtectSystem", "strict"), ("NoNewPrivileges", "yes"), ("MemoryDenyWriteExecute", "yes"),
    ("StateDirectory", "apns-mock"), ("UMask", "0077")])
def test_unit_restricts_the_server(name: str, value: str) -> None:
    assert options()[name] == value


def test_server_starts_after_the_network() -> None:
    lines = UNIT.read_text().splitlines()
    assert "Wants=network-online.target" in lines
    assert any(line.startswith("After=network-online.target") for line in lines)
