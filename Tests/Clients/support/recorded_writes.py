"""A recording of what a server writes to its SQLite file and what it synchronizes, and the files that a disk may have
after a loss of power.

strace records the calls. What a completed `fsync` or `fdatasync` covers is on the disk; of the later writes nothing,
some sectors or all. The file `-shm` is left out: SQLite creates it again.
"""

import bisect
import collections
import dataclasses
import itertools
import random
import re
import shlex
import subprocess

import pytest

from support import drivers, stores
from support.server import Server, is_sanitized, privilege_drop, wait_until

SECTOR = 512  # bytes that a disk writes as a whole
# The calls that change files; a `?` is before those that not every architecture has.
CALLS = ("?open,openat,?creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,"
         "copy_file_range,sendfile,splice,mmap,?rename,renameat,renameat2,?link,linkat,?unlink,unlinkat")
STRACE = ["-D", "-ff", "-y", "-xx", "-s", "1000000", "--absolute-timestamps=unix,ns", "--syscall-times=ns",
          f"--trace={CALLS}"]
LINE = re.compile(
    r"(?P<start>\d+\.\d{9}) (?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>\d+)\S* <(?P<time>\d+\.\d{9})>\n")
HEX = re.compile(r"(?:\\x[0-9a-f]{2})+")


@dataclasses.dataclass
class Change:
    """A call that changed a file or its folder; times in nanoseconds since 1970."""

    start: int
    end: int
    kind: str  # "create", "unlink", "truncate" or "write"
    path: str
    container: str  # the file or folder that must be synchronized
    offset: int = 0  # of a write; of "truncate" the new size
    data: bytes = b""

    def pieces(self):
        """Returns the parts of a write: the sector, the offset and the bytes of each."""
        end = self.offset + len(self.data)
        for sector in range(self.offset // SECTOR, -(-end // SECTOR)):
            first, last = max(self.offset, sector * SECTOR), min(end, (sector + 1) * SECTOR)
            yield sector, first, self.data[first - self.offset:last - self.offset]

    def apply(self, files):
        if self.kind == "create":
            files.setdefault(self.path, bytearray())
        elif self.kind == "unlink":
            files.pop(self.path, None)
        elif self.path in files and self.kind == "truncate":
            del files[self.path][self.offset:]
        elif self.path in files:
            write(files[self.path], self.offset, self.data)


def write(file, offset, data):
    file.extend(bytes(max(0, offset - len(file))))
    file[offset:offset + len(data)] = data


class Recording:
    """What a server wrote to its files and what it synchronized, read from the traces of its threads."""

    def __init__(self, path, traces):
        self.path, self.log, self.folder = str(path), f"{path}-wal", str(path.parent)
        self.changes = []
        self.syncs = collections.defaultdict(list)  # the (end, start) of each, by file or folder
        for trace in traces:
            with trace.open() as lines:
                for line in lines:
                    if found := LINE.fullmatch(line):
                        self._add(found)
                    else:  # a call that failed, a signal, the end of a thread
                        assert re.search(r" = -1 E| --- | \+\+\+ | \?\?\?\( <unfinished", line), line[:500]
        self.changes.sort(key=lambda change: change.start)
        for syncs in self.syncs.values():
            syncs.sort()

    def _add(self, line):
        call, arguments = line["call"], line["arguments"]
        start = int(line["start"].replace(".", ""))
        end = start + int(line["time"].replace(".", ""))
        strings = [bytes.fromhex(one.replace("\\x", "")) for one in HEX.findall(arguments)]
        path, last = strings[0].decode(), arguments.split(", ")[-1]
        if call in ("fsync", "fdatasync"):
            self.syncs[path].append((end, start))
        elif call == "pwrite64":
            assert len(strings[1]) == int(line["result"]), "written only in part, or not recorded as a whole"
            self.changes.append(Change(start, end, "write", path, path, int(last), strings[1]))
        elif call == "ftruncate":
            self.changes.append(Change(start, end, "truncate", path, path, int(last)))
        elif call in ("unlink", "unlinkat"):
            self.changes.append(Change(start, end, "unlink", strings[-1].decode(), self.folder))
        else:
            assert call in ("open", "openat") and "O_TRUNC" not in arguments, f"an unexpected call: {line[0][:500]}"
            if "O_CREAT" in arguments:
                self.changes.append(Change(start, end, "create", strings[-1].decode(), self.folder))

    def writes(self, path, offset=None):
        return [change for change in self.changes
                if (change.kind, change.path) == ("write", path) and offset in (None, change.offset)]

    def checkpoints(self):
        """Returns when each checkpoint first wrote into the database and when the synchronization after it ended."""
        ends = [end for end, _ in self.syncs[self.path]]
        groups = itertools.groupby(self.writes(self.path), lambda change: bisect.bisect(ends, change.start))
        return [(next(group).start, ends[number]) for number, group in groups][1:]  # the first creates the database

    def files(self, moment, kept):
        """Returns the files, by path, that a disk may have if power is lost at this moment.

        `kept`: what it has of the changes that were not synchronized. With "some", each sector is as a random one of
        the writes to it left it, or as before them; each other change happened or not.
        """
        covered = {container: max((start for end, start in syncs if end <= moment), default=0)
                   for container, syncs in self.syncs.items()}
        begun = [change for change in self.changes if change.start <= moment]
        pending = [change for change in begun if change.end > covered.get(change.container, 0)]
        sectors = collections.Counter(
            (change.path, sector) for change in pending if change.kind == "write" for sector, *_ in change.pieces())
        numbers = random.Random(moment)
        left = {key: numbers.randint(0, count) for key, count in sectors.items()}
        files, unsure = {}, set(map(id, pending))
        for change in begun:
            if id(change) not in unsure or kept == "all":
                change.apply(files)
            elif kept == "some" and change.kind != "write" and numbers.random() < 0.5:
                change.apply(files)
            elif kept == "some" and change.kind == "write" and change.path in files:
                for sector, offset, data in change.pieces():
                    left[change.path, sector] -= 1
                    if left[change.path, sector] >= 0:
                        write(files[change.path], offset, data)
        return files


class TracedServer(Server):
    """A server in a folder of its own whose calls strace records. Skips the test where strace cannot do that."""

    def __init__(self, binary, certs, folder, durable):
        if is_sanitized(binary):
            pytest.skip("LeakSanitizer does not work in a program that strace observes")
        command = [drivers.tool("strace"), *STRACE]
        tried = subprocess.run(
            [*privilege_drop(), *command, "-o", folder / "tried", "true"], capture_output=True, text=True, timeout=30)
        if not any("exited with 0" in file.read_text() for file in folder.glob("tried.*")):
            pytest.skip(f"strace cannot record calls here: {tried.stderr.strip()}")
        self.folder, self.path = folder, folder / "store" / "inbox.db"
        self.path.parent.mkdir()
        for path in (self.path, f"{self.path}-wal", f"{self.path}-journal", self.path.parent):
            command += ["-P", str(path)]
        program = folder / "traced"
        program.write_text(f'#!/bin/sh\nexec {shlex.join([*command, "-o", str(folder / "trace"), str(binary)])} "$@"\n')
        program.chmod(0o755)
        super().__init__(program, certs, *stores.flags(self.path, "--durable", durable))

    def recording(self):
        """Stops the server and returns what it wrote from its start to its end."""
        assert self.stop() == 0
        main = self.folder / f"trace.{self.process.pid}"
        wait_until(lambda: " exited with " in main.read_text(), "strace ends")
        traces = list(self.folder.glob("trace.*"))
        recording = Recording(self.path, traces)
        for trace in traces:
            trace.unlink()  # more than 100 MB
        return recording
