"""A bare Debian 12 system in a folder, made by debootstrap: no Swift, no compilers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from support import DIST, ROOT, run

CACHE = ROOT / ".build/debootstrap"

# Mounts a writable layer over the cached system, so that every script begins with a bare one. The mounts and all
# processes end with the namespaces. A Swift program needs /proc: without it, it does not see its arguments.
ENTER = """
system=$1 layer=$2 dist=$3 root=$4 script=$5
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay overlay -o "lowerdir=$system,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
cd "$layer/root"
mkdir dist source
mount --bind "$dist" dist
mount --bind "$root/Distribution" source
mount -t proc proc proc
mount --rbind /dev dev
cat /etc/resolv.conf >etc/resolv.conf
exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
  bash -euo pipefail -c "$script"
"""


def unavailable() -> str | None:
    """Returns why no Debian system can be entered here; None if it can."""
    if os.geteuid() != 0:
        return "only root can enter a Debian root; run: sudo make test-dist"
    if not CACHE.exists() and not shutil.which("debootstrap"):
        return "debootstrap is missing; run: apt-get install debootstrap"
    try:
        run("unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
    except AssertionError:
        return "mounting is not permitted here, as in an unprivileged container"
    return None


class DebianRoot:
    """Runs scripts in the system; each begins with an unchanged copy."""

    def __init__(self, system: Path) -> None:
        self.system = system

    @classmethod
    def cached(cls) -> DebianRoot:
        """Returns the system in .build/debootstrap, made on first use: a minute, 200 MB."""
        if not CACHE.exists():
            partial = CACHE.with_name("debootstrap-partial")
            shutil.rmtree(partial, ignore_errors=True)
            run("debootstrap", "--variant=minbase", "bookworm", partial, timeout=280)
            shutil.rmtree(partial / "var/cache/apt/archives")
            (partial / "var/cache/apt/archives/partial").mkdir(parents=True)
            partial.rename(CACHE)
        return cls(CACHE)

    def run(self, script: str, *, timeout: float = 200) -> str:
        """Runs a Bash script as root with the packages in /dist, and returns its output."""
        with tempfile.TemporaryDirectory() as layer:
            return run(
                "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ENTER, "sh", self.system, layer,
                DIST, ROOT, script, timeout=timeout)
