"""The Debian package and the container image, in a bare Debian 12 system."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from debian_root import DebianRoot
from support import DIST, ROOT, SEND_ONE_PUSH, VERSION, run

IMAGE_LIMIT = 80_000_000  # bytes, compressed
# What the base image debian:12-slim leaves out of a minimal Debian system.
NOT_IN_SLIM = ["./usr/share/doc", "./usr/share/info", "./usr/share/lintian", "./usr/share/locale", "./usr/share/man"]


@dataclass(frozen=True)
class Image:
    """The instructions of a Dockerfile's last stage that determine how a container runs."""

    settings: list[str]
    user: str
    group: str
    start: list[str]
    healthcheck: list[str]

    @classmethod
    def parse(cls, path: Path) -> Image:
        text = path.read_text().replace("\\\n", " ").rpartition("\nFROM ")[2]

        def instruction(pattern: str) -> str:
            match = re.search(f"^{pattern}$", text, re.MULTILINE)
            assert match, f"{path.name} has no instruction {pattern}"
            return match[1]

        user, group = instruction("USER (.*)").split(":")
        return cls(
            settings=instruction("ENV (.*)").split(), user=user, group=group,
            start=json.loads(instruction("ENTRYPOINT (.*)")) + json.loads(instruction("CMD (.*)")),
            healthcheck=json.loads(instruction("HEALTHCHECK .* CMD (.*)")))

    def command(self, arguments: list[str]) -> str:
        """Returns the shell command that runs a program as in a container of the image."""
        identity = [f"--reuid={self.user}", f"--regid={self.group}", "--clear-groups", "--no-new-privs"]
        return shlex.join(["env", "-i", "PATH=/usr/bin:/bin", *self.settings, "setpriv", *identity, *arguments])


def test_package_installs_runs_and_purges(debian: DebianRoot) -> None:
    output = debian.run(f"""
        ! command -v swift && ! command -v cc
        apt-get -qq update && apt-get -qq install --yes --no-install-recommends /dist/apns-mock_*.deb >/dev/null
        test "$(apns-mock version)" = "apns-mock {VERSION}"
        sh -euc {shlex.quote(SEND_ONE_PUSH)} apns-mock
        apns-mock serve --config /usr/share/doc/apns-mock/examples/apns-mock.yaml --apns 127.0.0.1:0 \\
          --admin 127.0.0.1:0 --port-file /tmp/ports.json --certs /tmp/certs &
        apns-mock healthcheck --wait --timeout 20s --port-file /tmp/ports.json
        kill -TERM $! && wait $!
        apt-get -qq purge --yes apns-mock >/dev/null
        ! test -e /usr/bin/apns-mock && ! test -e /usr/share/doc/apns-mock
        ! test -e /usr/lib/systemd/system/apns-mock.service
        echo purged
        """)
    assert "1 push: 1 accepted" in output
    assert output.endswith("purged\n")


def test_package_depends_on_the_libraries_it_uses(deb: Path) -> None:
    depends = run("dpkg-deb", "--field", deb, "Depends")
    assert set(re.findall(r"([a-z0-9+-]+) \(>= ", depends)) >= {"libc6", "libnghttp2-14", "libssl3", "libsqlite3-0"}
    assert not re.search("@[A-Z]+@", run("dpkg-deb", "--field", deb))


def test_package_installs_the_unit_without_enabling_it(deb: Path, tmp_path: Path) -> None:
    run("dpkg-deb", "--extract", deb, tmp_path)
    unit = tmp_path / "usr/lib/systemd/system/apns-mock.service"
    assert unit.read_text() == (ROOT / "Distribution/debian/apns-mock.service").read_text()
    assert list(tmp_path.rglob("*apns-mock.service*")) == [unit]
    run("dpkg-deb", "--control", deb, tmp_path / "control")
    scripts = {path.name for path in (tmp_path / "control").iterdir() if path.stat().st_mode & 0o111 and path.is_file()}
    assert scripts == {"postinst", "prerm", "postrm"}
    assert not any("enable" in (tmp_path / "control" / name).read_text() for name in scripts)


def test_package_is_accepted_by_lintian(deb: Path) -> None:
    if not shutil.which("lintian"):
        pytest.skip("not run: lintian is missing; run: apt-get install lintian")
    output = run("lintian", "--allow-root", "--fail-on", "error,warning", deb, timeout=120)
    assert not re.search("^[EW]:", output, re.MULTILINE), output


def test_image_runs_as_its_dockerfile_says(debian: DebianRoot) -> None:
    run_image(debian, DIST)


def run_image(debian: DebianRoot, packages: Path) -> None:
    """Does what a container engine would with the second stage: runs the script of RUN, then the command with the settings
    and the user."""
    image = Image.parse(ROOT / "Dockerfile")
    send = ["sh", "-euc", 'apns-mock send "$(apns-mock token device)" --topic com.example.app']
    container = f"""
        ip link set lo up
        cd /certs
        {image.command(image.start)} &
        server=$!
        for attempt in $(seq 100); do
          if {image.command(image.healthcheck)}; then break; fi
          sleep 0.1
        done
        {image.command(image.healthcheck)}
        test "$(stat --format %u /proc/$server)" = {image.user}
        test "$(stat --format %u /certs/ca-key.pem)" = {image.user}
        {image.command(send)}
        echo "listening: $(awk '$4 == "0A" {{print $2}}' /proc/net/tcp | sort | tr '\\n' ' ')"
        kill -TERM $server
        wait $server
        """
    excluded = shlex.join(f"--exclude={folder}" for folder in NOT_IN_SLIM)
    output = debian.run(f"""
        /source/image-setup /dist >/dev/null
        echo "compressed size: $(tar --create --one-file-system {excluded} --directory / . | gzip | wc --bytes)"
        # A network of its own, as a container has, so that the ports are free. Only making it needs iproute2.
        apt-get -qq update && apt-get -qq install --yes --no-install-recommends iproute2 >/dev/null
        unshare --net bash -euo pipefail -c {shlex.quote(container)}
        """, packages=packages)
    size = int(re.search(r"compressed size: (\d+)", output)[1])
    print(f"compressed size of the image: {size / 1e6:.1f} MB")
    assert size <= IMAGE_LIMIT
    assert re.search("^200", output, re.MULTILINE), output
    assert f"listening: 00000000:{2197:04X} 00000000:{8197:04X} " in output


def test_image_setup_names_a_missing_package(debian: DebianRoot) -> None:
    output = debian.run("mkdir /empty; ! /source/image-setup /empty")
    assert "build it with Distribution/image-build on a machine of this architecture" in output
