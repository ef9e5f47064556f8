"""Finds the components that are linked into the program: their names, versions and licences.

Reads what the build left behind: the linker's list of object files, the checkouts of the Swift packages and their pins.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".build/dist-static"
LICENCE_TEXTS = ROOT / "Distribution/licences"

# Licences of code that a package contains without them.
ADDITIONAL_TEXTS = {"Yams": (LICENCE_TEXTS / "libyaml.txt",)}

# A sentence that only this licence has, and its SPDX expression. The first match decides.
LICENCES = [
    ("Runtime Library Exception to the Apache 2.0 License", "Apache-2.0 WITH Swift-exception"),
    ("UNICODE LICENSE V3", "Unicode-3.0"),
    ("Apache License", "Apache-2.0"),
    ("Permission is hereby granted, free of charge", "MIT"),
    ("License: public-domain", "blessing"),
]


class InventoryError(Exception):
    """The build folder does not contain what is expected of it; the message says what to do."""


@dataclass(frozen=True)
class Component:
    """A piece of software in the program."""

    name: str
    version: str
    purl: str  # the package URL, https://github.com/package-url/purl-spec
    licence: str  # an SPDX expression
    texts: tuple[Path, ...]  # the files with its licence and notices


def linked(*, system_libraries: bool) -> list[Component]:
    """Returns the components sorted by name; with or without the libraries of the operating system."""
    components = [*swift_packages(), *swift_runtime()]
    if system_libraries:
        components += [debian_package("libnghttp2-dev"), debian_package("libssl-dev"), debian_package("libsqlite3-dev")]
    return sorted(components, key=lambda component: component.name.lower())


def swift_packages() -> Iterator[Component]:
    """Yields the Swift packages with at least one module in the program. Others are resolved but not linked."""
    pins = {pin["identity"]: pin for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]}
    for name in linked_checkouts():
        pin, checkout = pins[name.lower()], SCRATCH / "checkouts" / name
        version, location = pin["state"]["version"], re.sub(r"^https://|\.git$", "", pin["location"])
        texts = texts_in(checkout)
        yield Component(
            name=name, version=version, purl=f"pkg:swift/{location}@{version}", licence=licence_of(texts[0]),
            texts=texts)


def linked_checkouts() -> set[str]:
    """Returns the names of the checkouts whose object files the linker was given."""
    build = next(SCRATCH.glob("*/release/apns-mock.product"), None)
    if not build:
        raise InventoryError(f"{SCRATCH.relative_to(ROOT)} has no release build of apns-mock; run: make dist")
    modules = set(re.findall(r"/release/([^/]+\.build)/", (build / "Objects.LinkFileList").read_text()))
    checkouts = set()
    for module in modules:
        # Swift's list of source files, or the dependencies of a C file.
        folder = build.parent / module
        origin = next((path for pattern in ("sources", "**/*.d") for path in sorted(folder.glob(pattern))), None)
        if not origin:
            raise InventoryError(f"{folder.relative_to(ROOT)} does not name its sources; run: make clean dist")
        checkouts.update(re.findall(r"/checkouts/([^/]+)/", origin.read_text()))
    if "swift-nio" not in checkouts:
        raise InventoryError(f"{build.relative_to(ROOT)} does not name the checkout of swift-nio; run: make clean dist")
    return checkouts


def swift_runtime() -> Iterator[Component]:
    """Yields the runtime libraries of the toolchain, and ICU, which Foundation contains."""
    target = json.loads(output("swift", "-print-target-info"))
    version = re.search(r"Swift version (\S+)", target["compilerVersion"])
    if not version:
        raise InventoryError(f"the compiler's version is not recognized: {target['compilerVersion']}")
    toolchain = Path(target["paths"]["runtimeResourcePath"]).parents[1]
    for name, text in [
        ("swift", toolchain / "share/swift/LICENSE.txt"),
        ("swift-foundation-icu", LICENCE_TEXTS / "ICU.txt"),
    ]:
        yield Component(
            name=name, version=version[1], purl=f"pkg:swift/github.com/swiftlang/{name}@{version[1]}",
            licence=licence_of(text), texts=(text,))


def debian_package(name: str) -> Component:
    """Returns the library whose development package is installed under this name."""
    source, version = output("dpkg-query", "--show", "--showformat", "${source:Package} ${source:Version}", name).split()
    text = Path("/usr/share/doc", name, "copyright")
    return Component(
        name=source, version=version, purl=f"pkg:deb/debian/{source}@{quote(version)}?arch=source",
        licence=licence_of(text), texts=(text,))


def texts_in(checkout: Path) -> tuple[Path, ...]:
    """Returns the package's licence, followed by its notices and the licences of code that it contains."""
    top = sorted(path for path in checkout.iterdir() if re.match(r"licen[sc]e|notice", path.name, re.IGNORECASE))
    inner = sorted((checkout / "Sources").rglob("LICENSE*"))
    if not top:
        raise InventoryError(f"{checkout.name} has no licence file; add its licence to {Path(__file__).name}")
    return (*top, *inner, *ADDITIONAL_TEXTS.get(checkout.name, ()))


def licence_of(text: Path) -> str:
    """Returns the SPDX expression for a licence text."""
    content = " ".join(text.read_text(errors="replace").split())
    for sentence, expression in LICENCES:
        if sentence in content:
            return expression
    raise InventoryError(f"the licence {text} is not recognized; add a sentence of it to {Path(__file__).name}")


def output(*command: str) -> str:
    """Runs a program and returns its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
