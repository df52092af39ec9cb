"""stub_libraries.py FOLDER makes stubs of the libraries of CUDA that the libraries in the folder are linked with, in the same folder.

With them, a PyTorch that was built for CUDA is imported and computes on the CPU, without gigabytes of packages of NVIDIA. Every function
of a stub does nothing but return 100, which is CUDA's error for "no device"; those that describe an error return a text. Needs a C
compiler. For 64-bit ELF libraries.
"""

from __future__ import annotations

import collections
import mmap
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

#: Libraries that a computer without a GPU lacks, names of functions that return a text, and names of functions of the libraries that
#: give their symbols no versions.
LIBRARIES = re.compile(r"lib(cu|nccl|nv)")
TEXTS = re.compile(r"Get(Last)?Error(String|Name)$")
UNVERSIONED = re.compile(r"(cu[A-Z]|cu[a-z]+[A-Z]|nccl|nvshmem|nvml|nvtx|nvrtc)")


class Library:
    """The parts of a library that the dynamic linker reads: the libraries it needs, its own symbols, and those it lacks, with (library, version)
    or None."""

    def __init__(self, path: pathlib.Path) -> None:
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit ELF library")
        (start,) = struct.unpack_from("<Q", self._data, 0x28)
        size, count = struct.unpack_from("<HH", self._data, 0x3A)
        # Type, offset, bytes, linked section, number of entries.
        headers = [struct.unpack_from("<IIQQQQIIQQ", self._data, start + i * size) for i in range(count)]
        sections = {header[1]: header for header in headers}
        texts = headers[sections[11][6]][4] if 11 in sections else 0  # The strings of SHT_DYNSYM.
        self._texts = texts
        self.needed = self._needed(sections.get(6))
        versions = self._versions(sections.get(0x6FFFFFFE))
        self.defined: set[str] = set()
        self.lacking: dict[str, tuple[str, str] | None] = {}
        self._symbols(sections.get(11), sections.get(0x6FFFFFFF), versions)
        self._data.close()

    def _text(self, offset: int) -> str:
        start = self._texts + offset
        return self._data[start : self._data.find(b"\0", start)].decode()

    def _needed(self, section: tuple[int, ...] | None) -> list[str]:
        if section is None:
            return []
        entries = struct.iter_unpack("<QQ", self._data[section[4] : section[4] + section[5]])
        return [self._text(value) for tag, value in entries if tag == 1]

    def _versions(self, section: tuple[int, ...] | None) -> dict[int, tuple[str, str]]:
        """(Library, version) by number, of SHT_GNU_verneed."""
        found: dict[int, tuple[str, str]] = {}
        at = section[4] if section else 0
        for _ in range(section[7] if section else 0):
            _, count, file, first, following = struct.unpack_from("<HHIII", self._data, at)
            entry = at + first
            for _ in range(count):
                _, _, number, name, step = struct.unpack_from("<IHHII", self._data, entry)
                found[number] = self._text(file), self._text(name)
                entry += step
            at += following
        return found

    def _symbols(self, table: tuple[int, ...] | None, numbers: tuple[int, ...] | None, versions: dict[int, tuple[str, str]]) -> None:
        if table is None:
            return
        symbols = struct.iter_unpack("<IBBHQQ", self._data[table[4] : table[4] + table[5]])
        for i, (name, _, _, section, _, _) in enumerate(symbols):
            if section:
                self.defined.add(self._text(name))
            elif name:
                number = struct.unpack_from("<H", self._data, numbers[4] + 2 * i)[0] if numbers else 0
                self.lacking[self._text(name)] = versions.get(number)


def stubs(folder: pathlib.Path) -> dict[str, dict[str | None, set[str]]]:
    """The symbols of each stub by version, None for those without."""
    libraries = [Library(path) for path in sorted(folder.glob("*.so*"))]
    there = {path.name for path in folder.iterdir()}
    made: dict[str, dict[str | None, set[str]]] = {
        name: collections.defaultdict(set)
        for library in libraries
        for name in library.needed
        if LIBRARIES.match(name) and name not in there
    }
    defined = set().union(*(library.defined for library in libraries))
    for library in libraries:
        for symbol, version in library.lacking.items():
            if version is not None and version[0] in made:
                made[version[0]][version[1]].add(symbol)
            elif version is None and made and symbol not in defined and UNVERSIONED.match(symbol):
                # Whichever library has it: it is looked up in all.
                made[min(made)][None].add(symbol)
    return made


def function(symbol: str) -> str:
    """The C function that stands in for a symbol."""
    if TEXTS.search(symbol):
        return f'const char *{symbol}(void) {{ return "no device"; }}\n'
    return f"int {symbol}(void) {{ return 100; }}\n"


def build(folder: pathlib.Path, name: str, symbols: dict[str | None, set[str]]) -> None:
    """Compiles a stub."""
    with tempfile.TemporaryDirectory() as temporary:
        script = pathlib.Path(temporary, "versions")
        versions = {version: names for version, names in symbols.items() if version is not None}
        script.write_text("".join(f"{v} {{ global: {'; '.join(sorted(names))}; }};\n" for v, names in versions.items()))
        source = "".join(map(function, sorted(set().union(*symbols.values()))))
        words = ["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name), f"-Wl,-soname,{name}"]
        if versions:
            words.append(f"-Wl,--version-script={script}")
        subprocess.run(words, input=source, text=True, check=True)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for name, symbols in stubs(folder).items():
        build(folder, name, symbols)
        print(f"{name}: {sum(map(len, symbols.values()))} functions")


if __name__ == "__main__":
    main()
