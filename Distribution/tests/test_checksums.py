"""The checksums and the bill of materials."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from support import BILL_OF_MATERIALS, DIST, VERSION, run


def test_checksums_are_right_and_complete() -> None:
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    listed = {line.split("  ")[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in DIST.iterdir()} - {"SHA256SUMS"}


def test_bill_of_materials_is_valid() -> None:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(BILL_OF_MATERIALS.read_text())
    assert error is None, error


def test_bill_of_materials_describes_the_program(program: Path) -> None:
    subject = json.loads(BILL_OF_MATERIALS.read_text())["metadata"]["component"]
    assert (subject["name"], subject["version"]) == ("apns-mock", VERSION)
    assert subject["hashes"][0]["content"] == hashlib.sha256(program.read_bytes()).hexdigest()


def test_bill_of_materials_and_notices_name_the_same_components(unpacked: Path) -> None:
    components = json.loads(BILL_OF_MATERIALS.read_text())["components"]
    named = {(component["name"], component["version"]) for component in components}
    notices = (unpacked / "share/doc/apns-mock/NOTICES").read_text()
    assert named == set(re.findall(r"^- (\S+) (\S+) \(", notices, re.MULTILINE))
    assert {"swift", "swift-nio", "hummingbird", "Yams", "nghttp2", "openssl", "sqlite3", "GRDB.swift"} <= {name for name, _ in named}
    # Hummingbird's tests need these; they are resolved but not linked.
    assert not {"async-http-client", "swift-nio-ssl"} & {name for name, _ in named}
