"""Fixtures: the packages that `make dist` built, the unpacked tarball, a bare Debian system."""

from __future__ import annotations

from pathlib import Path

import pytest

import debian_root
from support import DIST, FOLDER, TARBALL, VERSION, run


@pytest.fixture(autouse=True)
def _packages(request: pytest.FixtureRequest) -> None:
    if not request.node.get_closest_marker("image") and not TARBALL.exists():
        pytest.exit(f"{TARBALL.name} is not in .build/dist; run make dist first", returncode=2)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in the tarball."""
    folder = tmp_path_factory.mktemp("tarball")
    run("tar", "--extract", "--gzip", "--file", TARBALL, "--directory", folder)
    return folder / FOLDER


@pytest.fixture(scope="session")
def program(unpacked: Path) -> Path:
    """The static program."""
    return unpacked / "bin/apns-mock"


@pytest.fixture(scope="session")
def deb() -> Path:
    """The Debian package."""
    packages = list(DIST.glob(f"apns-mock_{VERSION}_*.deb"))
    assert len(packages) == 1, packages
    return packages[0]


@pytest.fixture(scope="session")
def debian() -> debian_root.DebianRoot:
    """A bare Debian 12 system; skips the test where it cannot be made or entered."""
    reason = debian_root.unavailable()
    if reason:
        pytest.skip(f"not run: {reason}")
    return debian_root.DebianRoot.cached()
