"""The first stage of the Dockerfile, which builds the Debian package of the image, and the files that it reads."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

from debian_root import DebianRoot
from support import ROOT, VERSION, run
from test_debian import run_image

DOCKERFILE = (ROOT / "Dockerfile").read_text()
# What the image of the Swift toolchain adds to Debian 12, and this project does not install itself.
TOOLCHAIN_PACKAGES = "binutils gcc libcurl4-openssl-dev libedit-dev libncurses-dev libstdc++-12-dev libxml2-dev tzdata uuid-dev"


def build_context() -> list[str]:
    """Returns the files of a fresh clone that the first stage receives: of the rules in .dockerignore the last match decides."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]

    def is_ignored(name: str) -> bool:
        ignored = False
        for rule in rules:
            pattern = rule.removeprefix("!")
            path = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            if re.fullmatch(f"{path}(/.*)?", name):
                ignored = not rule.startswith("!")
        return ignored

    names = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return [name for name in names if not is_ignored(name) and (ROOT / name).is_file()]


def git_settings() -> tuple[list[str], dict[str, Path]]:
    """Returns commands for the git settings that replace addresses here, and the local folders that they name."""
    commands, folders = [], {}
    for replacement, address in re.findall(r"^url\.(.*)\.insteadof=(.*)$", run("git", "config", "--list"), re.MULTILINE):
        commands.append(shlex.join(["git", "config", "--system", "--add", f"url.{replacement}.insteadOf", address]))
        if replacement.startswith("/"):
            folders[replacement.rstrip("/")] = Path(replacement)
    return commands, folders


def test_dockerfile_runs_the_tested_scripts() -> None:
    text = DOCKERFILE.replace("\\\n", " ")
    commands = [re.sub(r"--mount=\S+|\s+", " ", command).split() for command in re.findall("^RUN (.*)$", text, re.MULTILINE)]
    assert commands == [["Distribution/image-build", "/package"], ["/image-setup", "/dist"]]


def test_images_are_pinned_to_digests() -> None:
    compose = (ROOT / "compose.yaml").read_text()
    names = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) + re.findall(r"^ +image: (\S+)", compose, re.MULTILINE)
    foreign = [name for name in names if name != "apns-mock"]
    assert [name for name in foreign if not re.fullmatch(r"[a-z]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}", name)] == []
    assert len(foreign) == 5
    workflow = (ROOT / ".github/workflows/packages.yml").read_text()
    assert re.findall(r"^ +container: (\S+)", workflow, re.MULTILINE) == foreign[:1]


def compose_section(name: str) -> str:
    return (ROOT / "compose.yaml").read_text().partition(f"\n  {name}:\n")[2].partition("\n\n")[0]


def test_the_database_has_a_random_password(tmp_path: Path) -> None:
    """Runs the commands of the service that makes it, in a folder in place of the volume and without changing owners."""
    database = compose_section("database")
    assert "trust" not in database and "POSTGRES_PASSWORD_FILE: /password/password" in database and "ports:" not in database
    script = textwrap.dedent(re.search(r"command:\n +- \|\n((?: {8}.*\n)+)", compose_section("password"))[1])
    script = script.replace("$$", "$").replace("/password", str(tmp_path)).replace("chown ", ": ")
    passwords = []
    for _ in range(2):
        run("sh", "-euc", script)
        passwords.append((tmp_path / "password").read_text())
        assert (tmp_path / "pgpass").read_text() == f"database:5432:*:postgres:{passwords[-1]}\n"
    assert re.fullmatch("[0-9a-f]{64}", passwords[0]) and passwords[0] == passwords[1]
    # libpq ignores a file that others can read.
    assert {name.name: name.stat().st_mode & 0o777 for name in tmp_path.iterdir()} == {"password": 0o600, "pgpass": 0o600}


def test_only_sources_are_sent_to_the_engine() -> None:
    context = build_context()
    assert {name.partition("/")[0] for name in context} == {
        ".ci", "Distribution", "Documentation", "FaultProfiles", "Fuzz", "LICENSE", "Package.swift", "Page", "Sources", "Tests",
        "VERSION"}
    assert not [name for name in context if name.startswith("Tests/Clients/") or name.endswith(".pyc")]


def test_the_engine_gets_every_target() -> None:
    """SwiftPM refuses a package if a target that it declares has no folder, even one that is not built."""
    if not shutil.which("swift"):
        pytest.skip("not run: swift is missing; install a Swift toolchain")
    context = build_context()
    for target in json.loads(run("swift", "package", "--package-path", ROOT, "dump-package"))["targets"]:
        path = target.get("path") or ("Tests/" if target["type"] == "test" else "Sources/") + target["name"]
        assert any(name.startswith(f"{path}/") for name in context), f".dockerignore leaves out the target {target['name']}"


@pytest.mark.image
@pytest.mark.timeout(3600)
def test_both_stages_from_a_fresh_clone(debian: DebianRoot, tmp_path: Path) -> None:
    """Builds the package from the files of a clone, with the toolchain of this machine, and runs the image with it."""
    swift = shutil.which("swift")
    if not swift:
        pytest.skip("not run: swift is missing; install a Swift toolchain")
    clone, package = tmp_path / "clone", tmp_path / "package"
    for name in build_context():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    package.mkdir()
    commands, folders = git_settings()
    settings = "\n".join(commands)
    output = debian.run(f"""
        apt-get -qq update
        apt-get -qq install --yes --no-install-recommends {TOOLCHAIN_PACKAGES} git >/dev/null
        {settings}
        export PATH=/toolchain/bin:$PATH
        cp -R /clone /work
        cd /work
        Distribution/image-build /output 2>&1
        """, folders={"/toolchain": Path(os.path.realpath(swift)).parent.parent, "/clone": clone, **folders},
        packages=None, output=package, timeout=3000)
    print(output)
    assert [path.name for path in package.iterdir()] == [f"apns-mock_{VERSION}_{run('dpkg', '--print-architecture').strip()}.deb"]
    run_image(debian, package)
