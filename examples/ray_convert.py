"""Converts all archives of a folder or bucket on a Ray cluster, one task for each.

python examples/ray_convert.py ARCHIVES OUT [--address auto] [--option target=ort-cpu ...]

ARCHIVES and OUT are folders, or addresses that fsspec knows (``s3://bucket/archives``). An archive
whose content, options and version of pt2onnx are those of a former run is skipped, so that a run
that was killed is resumed by the same command. OUT/report.json lists all archives; the exit code is
4 if some failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import posixpath
import sys
import tempfile
import time
import warnings
from typing import Any

import fsspec
import pt2onnx
import ray

#: The ends of the names of archives.
SUFFIXES = (".pt2", ".pt")


def convert(archives: str, name: str, out: str, options: dict[str, Any]) -> dict[str, Any]:
    """Converts one archive, unless its record says that it was done.

    Args:
        archives: The folder of archives.
        name: The archive's path in it.
        out: The folder of models.
        options: Those of ``pt2onnx.convert``.

    Returns:
        Its row of the report.
    """
    source, root = fsspec.core.url_to_fs(archives)
    target, place = fsspec.core.url_to_fs(out)
    model = posixpath.join(place, posixpath.splitext(name)[0] + ".onnx")
    record = model + ".json"
    row: dict[str, Any] = {"archive": name, "model": model, "state": "converted"}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder, posixpath.basename(name))
        source.get_file(posixpath.join(root, name), str(archive))
        with open(archive, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(json.dumps([options, pt2onnx.__version__], sort_keys=True).encode())
        row["key"] = digest.hexdigest()
        if target.exists(record) and json.loads(target.cat_file(record)).get("key") == row["key"]:
            return {**row, "state": "skipped"}
        made = pathlib.Path(folder, "made", posixpath.basename(model))
        made.parent.mkdir()
        try:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                pt2onnx.convert(str(archive), str(made), **options)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace(str(archive), name)
            return {**row, "state": "failed", "error": text}
        row["warnings"] = [str(one.message) for one in seen]
        # The model comes after its weights, the record last: what is there is complete.
        for file in sorted(made.parent.iterdir(), key=lambda file: file == made):
            put(target, file, posixpath.join(posixpath.dirname(model), file.name))
        row["seconds"] = round(time.monotonic() - start, 3)
        note = pathlib.Path(folder, "record.json")
        note.write_text(json.dumps(row), encoding="utf-8")
        put(target, note, record)
    return row


def put(target: Any, file: pathlib.Path, path: str) -> None:
    """Copies a file to its place. Objects in buckets appear when they are complete; in folders,
    another name is replaced at the end."""
    target.makedirs(posixpath.dirname(path), exist_ok=True)
    partial = f"{path}.part"
    target.put_file(str(file), partial)
    target.mv(partial, path)


def main() -> int:
    """Runs the command line. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", help="a folder or bucket with archives")
    parser.add_argument("out", help="a folder or bucket for models")
    parser.add_argument("--address", help="the cluster; by default one on this machine")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    options = {key: plain(value) for key, _, value in (one.partition("=") for one in given.option)}
    source, root = fsspec.core.url_to_fs(given.archives)
    names = [posixpath.relpath(path, root) for path in sorted(source.find(root))]
    names = [name for name in names if name.endswith(SUFFIXES)]
    models = [posixpath.splitext(name)[0] for name in names]
    if twice := sorted(name for name in set(models) if models.count(name) > 1):
        parser.error(f"two archives would become one model: {', '.join(twice)}")
    ray.init(address=given.address, log_to_driver=False, logging_level="warning")
    # A task whose node is lost runs again elsewhere.
    task = ray.remote(num_cpus=1, max_retries=3)(convert)
    waiting = [task.remote(given.archives, name, given.out, options) for name in names]
    rows: list[dict[str, Any]] = []
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=min(16, len(waiting)), timeout=5)
        rows += ray.get(done)
        print(f"\r{len(rows)} of {len(names)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return report(given.out, sorted(rows, key=lambda row: row["archive"]))


def plain(text: str) -> object:
    """A value as JSON if it is some, else as a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def report(out: str, rows: list[dict[str, Any]]) -> int:
    """Writes the report, and prints how many archives have which state."""
    target, place = fsspec.core.url_to_fs(out)
    target.makedirs(place, exist_ok=True)
    target.pipe_file(posixpath.join(place, "report.json"), json.dumps(rows, indent=1).encode())
    failed = [row for row in rows if row["state"] == "failed"]
    for state in ("converted", "skipped", "failed"):
        print(f"{state}: {sum(row['state'] == state for row in rows)}")
    for row in failed:
        print(f"  {row['archive']}: {row['error'].splitlines()[0]}")
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
