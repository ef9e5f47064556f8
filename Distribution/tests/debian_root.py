"""A bare Debian 12 system in a folder, made by debootstrap: no Swift, no compilers, unless a test mounts a toolchain."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support import DIST, ROOT, run

CACHE = ROOT / ".build/debootstrap"

# Mounts a writable layer over the cached system, so that every script begins with a bare one. The mounts and all
# processes end with the namespaces. A Swift program needs /proc: without it, it does not see its arguments.
ENTER = """
system=$1 layer=$2 script=$3
shift 3
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay overlay -o "lowerdir=$system,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
cd "$layer/root"
while [ $# -gt 0 ]; do
  mkdir -p ".$1"
  mount --bind "$2" ".$1"
  [ "$3" = rw ] || mount -o remount,bind,ro ".$1"
  shift 3
done
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

    def run(
        self, script: str, *, packages: Path | None = DIST, folders: Mapping[str, Path] | None = None,
        output: Path | None = None, timeout: float = 200,
    ) -> str:
        """Runs a Bash script as root and returns what it prints.

        It finds the packages in /dist, the scripts of this project in /source, and `folders` at their paths, none of which it
        can change. What it writes to /output is left in `output`.
        """
        mounted = {"/source": ROOT / "Distribution", **({"/dist": packages} if packages else {}), **(folders or {})}
        mounts = [argument for path, folder in mounted.items() for argument in (path, folder, "ro")]
        if output:
            mounts += ["/output", output, "rw"]
        with tempfile.TemporaryDirectory() as layer:
            return run(
                "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ENTER, "sh", self.system, layer,
                script, *mounts, timeout=timeout)
