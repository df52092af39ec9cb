#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets out of the repository's own archives.

    python3 fuzz/seeds.py [PT2ONNX]    # the command converts archives into the seeds of the targets `onnx` and `optimize`

If the package `onnx` is there, the models of its backend tests are seeds of `optimize`, with their inputs as constants.

Records of archives get no checksum (0), or no mutation of them would be parsed.
"""
from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = [*HERE.parent.glob("crates/pt2onnx-torchscript/tests/data/*.pt")]
ARCHIVES = [*HERE.parent.glob("testdata/archives/*.pt2"), *HERE.parent.glob("crates/pt2onnx-fx/tests/data/*.pt2")]


def seed(target, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def without_checksums(data):
    """Zeros the checksum of each entry of the zip's directory."""
    changed, at = bytearray(data), data.find(b"PK\x01\x02")
    while at >= 0:
        changed[at + 16:at + 20] = bytes(4)
        at = data.find(b"PK\x01\x02", at + 46)
    return bytes(changed)


def walk(data):
    """Seeds out of the records of a zip, and of the zips in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for entry in file.infolist():
            record = file.read(entry)
            if entry.filename.endswith("data.pkl"):
                seed("pickle", record)
            elif record.startswith(b"PK\x03\x04"):
                walk(record)
            elif record.startswith(b"{") and b"graph_module" in record:
                seed("program", record)
                for text in re.findall(rb'"expr_str": ?("(?:[^"\\]|\\.)*")', record):
                    seed("expression", json.loads(text).encode())


def walk_script(data):
    """Seeds out of the records of a TorchScript archive; the first byte tells the target which it is."""
    seed("torchscript_archive", without_checksums(data))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for entry in file.infolist():
            record = file.read(entry)
            if entry.filename.endswith(".py"):
                seed("torchscript_code", record)
            for kind, end in enumerate((".py", "data.pkl", "traced_inputs.pkl", ".debug_pkl")):
                if entry.filename.endswith(end):
                    seed("torchscript", bytes([kind]) + record)


def walk_backend():
    """Seeds out of the backend tests: the opset changes from one to the next."""
    sys.path.insert(0, str(HERE.parent / "xtask/python"))
    import backend

    forms = ("_of_constants", "_of_one_input")
    chosen = (case for case in backend.cases() if case[0].endswith(forms))
    for number, (_, model, *_) in enumerate(chosen):
        data = model.SerializeToString()
        if len(data) < 4096:
            seed("optimize", bytes([number % 21]) + data)


def main():
    for archive in SCRIPTS:
        walk_script(archive.read_bytes())
    for archive in ARCHIVES:
        data = archive.read_bytes()
        seed("archive", without_checksums(data))
        walk(data)
        for command in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                model = pathlib.Path(folder) / "model.onnx"
                done = subprocess.run([command, archive, "-o", model], capture_output=True)
                if done.returncode == 0:
                    seed("onnx", model.read_bytes())
                    seed("optimize", b"\0" + model.read_bytes())
    with contextlib.suppress(ImportError):
        walk_backend()
    for folder in sorted((HERE / "corpus").iterdir()):
        print(f"{folder.name}: {len(list(folder.iterdir()))} seeds")


if __name__ == "__main__":
    main()
