"""Reads from an ELF file which libraries and which versions of their symbols a program needs."""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64"}
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
# Libraries that a manylinux wheel may expect on every system (PEP 600 and the policies of auditwheel), as far as the
# program could need them.
MANYLINUX_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libutil|libnsl|libresolv|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so\.\d+")
# For each family of symbols of GCC's libraries: the newest version that all systems with a version of glibc have, as in
# the policies of auditwheel.
GLIBC_OF_GCC_SYMBOLS = {
    "GLIBCXX_": [((3, 4, 19), (2, 17)), ((3, 4, 22), (2, 24)), ((3, 4, 24), (2, 27)), ((3, 4, 28), (2, 31)),
                 ((3, 4, 29), (2, 34)), ((3, 4, 30), (2, 35)), ((3, 4, 33), (2, 39))],
    "CXXABI_": [((1, 3, 7), (2, 17)), ((1, 3, 10), (2, 24)), ((1, 3, 11), (2, 27)), ((1, 3, 12), (2, 31)),
                ((1, 3, 13), (2, 34)), ((1, 3, 15), (2, 39))],
    "GCC_": [((4, 8), (2, 17)), ((7,), (2, 27)), ((12,), (2, 35)), ((14,), (2, 39))],
}
# The marker of compressed relocations, which glibc supports since 2.36.
COMPRESSED_RELOCATIONS = "GLIBC_ABI_DT_RELR"


class ELFError(Exception):
    """The file is not a Linux program that can be read."""


@dataclass(frozen=True)
class Program:
    """What a program needs from the system."""

    machine: str
    libraries: list
    #: Such as `GLIBC_2.35`.
    symbol_versions: list

    def libraries_outside_manylinux(self):
        return [name for name in self.libraries if not MANYLINUX_LIBRARIES.fullmatch(name)]

    def glibc(self):
        """Returns the oldest version of glibc with which the program runs, such as (2, 35)."""
        needed = [version[:2] for version in self._versions("GLIBC_")]
        if COMPRESSED_RELOCATIONS in self.symbol_versions:
            needed.append((2, 36))
        for family, known in GLIBC_OF_GCC_SYMBOLS.items():
            for version in self._versions(family):
                glibc = next((glibc for newest, glibc in known if version[:len(newest)] <= newest), None)
                if glibc is None:
                    name = family + ".".join(map(str, version))
                    raise ELFError(f"the program needs {name}, which is newer than this script knows: pass "
                                   "--platform-tag")
                needed.append(glibc)
        if not needed:
            raise ELFError("the program needs no version of glibc: pass --platform-tag")
        return max(needed)

    def _versions(self, prefix):
        numbers = (name[len(prefix):] for name in self.symbol_versions if name.startswith(prefix))
        return [tuple(map(int, number.split("."))) for number in numbers if re.fullmatch(r"[\d.]+", number)]


def read(path):
    """Returns what the program at `path` needs. Raises ELFError if it is no 64-bit, little-endian Linux program."""
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ELFError(f"{path} is not a 64-bit Linux program: build apns-mock on Linux, or pass --platform-tag")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine not in MACHINES:
        raise ELFError(f"{path} is a program for an unknown architecture ({machine}): pass --platform-tag")
    segments = _segments(data)
    dynamic = _dynamic(data, segments)
    strings = _offset(segments, dynamic[DT_STRTAB][0]) if DT_STRTAB in dynamic else 0
    libraries = [_string(data, strings + offset) for offset in dynamic.get(DT_NEEDED, [])]
    versions = []
    if DT_VERNEED in dynamic:
        offsets = _symbol_versions(data, _offset(segments, dynamic[DT_VERNEED][0]), dynamic[DT_VERNEEDNUM][0])
        versions = [_string(data, strings + offset) for offset in offsets]
    return Program(MACHINES[machine], libraries, versions)


def _segments(data):
    """Returns (type, file offset, address, size) of each program header."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = (struct.unpack_from("<IIQQQQ", data, start + index * size) for index in range(count))
    return [(kind, offset, address, length) for kind, _, offset, address, _, length in headers]


def _dynamic(data, segments):
    """Returns the values of the dynamic section by their tag."""
    values = {}
    for kind, offset, _, length in segments:
        if kind == PT_DYNAMIC:
            for position in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<qQ", data, position)
                if tag == 0:
                    break
                values.setdefault(tag, []).append(value)
    return values


def _offset(segments, address):
    """Returns the position in the file of an address in memory."""
    for kind, offset, start, length in segments:
        if kind == PT_LOAD and start <= address < start + length:
            return offset + address - start
    raise ELFError("the program's dynamic section is damaged")


def _symbol_versions(data, position, count):
    """Returns the positions in the string table of the names of all needed symbol versions."""
    offsets = []
    for _ in range(count):
        _, entries, _, first, following = struct.unpack_from("<HHIII", data, position)
        entry = position + first
        for _ in range(entries):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
            offsets.append(name)
            entry += step
        position += following
    return offsets


def _string(data, position):
    return data[position:data.index(b"\0", position)].decode()
