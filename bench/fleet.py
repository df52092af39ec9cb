"""Many archives on a Ray cluster of two nodes on this machine, which is killed once and resumed, beside the command.

    PYTHONPATH=python python bench/fleet.py FOLDER [--count 200]

FOLDER has archives, in folders or not, which are taken in turns. Needs ray and fsspec. Each archive has to be converted once, and
each model to be the command's, byte by byte. Printed are the seconds of Ray, which are those of its start for the most part, and
of the command with two jobs.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

CLUSTER = pathlib.Path(__file__).parents[1] / "python/tests/ray_cluster.py"


def seconds(*words):
    """How long a command takes, and its exit code."""
    start = time.perf_counter()
    code = subprocess.run([sys.executable, *map(str, words)], stdout=subprocess.DEVNULL).returncode
    return time.perf_counter() - start, code


def records(folder):
    """When each model of a folder was recorded."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.onnx.json")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        archives, by_ray, by_command = (pathlib.Path(scratch, name) for name in ("archives", "ray", "command"))
        archives.mkdir()
        by_command.mkdir()
        found = itertools.cycle(sorted(given.folder.rglob("*.pt2")))
        for number, path in enumerate(itertools.islice(found, given.count)):
            (archives / f"{number}-{path.parent.name}.pt2").symlink_to(path.resolve())
        first, killed = seconds(CLUSTER, archives, by_ray, given.count // 3)
        before = records(by_ray)
        second, code = seconds(CLUSTER, archives, by_ray, given.count + 1)
        assert killed and before and not code, (killed, len(before), code)
        assert len(records(by_ray)) == given.count and records(by_ray).items() >= before.items(), "converted twice"
        states = [row["state"] for row in json.loads((by_ray / "report.json").read_text())]
        own, code = seconds("-m", "pt2onnx", *archives.iterdir(), "-o", by_command, "--jobs", "2")
        assert not code, code
        models = [path.name for path in by_command.iterdir()]
        assert len(models) == given.count, len(models)
        assert all((by_ray / name).read_bytes() == (by_command / name).read_bytes() for name in models), "other bytes"
    print("| archives | before the kill | converted after it | Ray, s | the command, s |\n| ---: | ---: | ---: | ---: | ---: |")
    print(f"| {given.count} | {len(before)} | {states.count('converted')} | {first:.1f} + {second:.1f} | {own:.1f} |")


if __name__ == "__main__":
    main()
