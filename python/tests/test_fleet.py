"""The examples for many archives: on Ray, in a Slurm array, in an indexed job of Kubernetes. The
first is skipped without Ray, the others where there is no shell."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import unittest

import pt2onnx
import support

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"

#: Archives; two have one name in different folders.
NAMES = [*(f"m{number}" for number in range(12)), "nested/m0"]

#: Runs the example on a cluster, and kills it after some records.
CLUSTER = pathlib.Path(__file__).with_name("ray_cluster.py")


class Fleet(support.Test):
    def setUp(self) -> None:
        super().setUp()
        self.archives, self.out = self.folder / "archives", self.folder / "out"
        self.archives.mkdir()
        (self.archives / "nested").mkdir()
        for name in NAMES:
            shutil.copy(support.MLP, self.archives / f"{name}.pt2")
        (self.archives / "broken.pt2").write_bytes(b"PK\x03\x04")
        self.expected = pt2onnx.convert(support.MLP).to_bytes()
        bin = self.folder / "bin"
        bin.mkdir()
        launcher = bin / "pt2onnx"
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pt2onnx "$@"\n')
        launcher.chmod(0o755)
        self.path = f"{bin}{os.pathsep}{os.environ['PATH']}"

    def models(self) -> dict[str, bytes]:
        paths = self.out.rglob("*.onnx")
        return {path.relative_to(self.out).as_posix(): path.read_bytes() for path in paths}

    def assert_all_are_there(self) -> None:
        found = self.models()
        self.assertEqual(set(found), {f"{name}.onnx" for name in NAMES})
        self.assertTrue(all(model == self.expected for model in found.values()))

    @unittest.skipUnless(importlib.util.find_spec("ray"), "Ray is not installed")
    def test_ray_resumes(self) -> None:
        def run(until: int) -> int:
            words = [sys.executable, CLUSTER, self.archives, self.out, until]
            return subprocess.run(list(map(str, words)), check=False).returncode

        self.assertNotEqual(run(3), 0)
        self.assertFalse((self.out / "report.json").exists())
        done = {path: path.stat().st_mtime_ns for path in self.out.rglob("*.onnx.json")}
        self.assertEqual(run(1000), 4)
        self.assert_all_are_there()
        self.assertEqual({path: path.stat().st_mtime_ns for path in done}, done)
        report = json.loads((self.out / "report.json").read_text(encoding="utf-8"))
        states = {row["archive"]: row["state"] for row in report}
        self.assertEqual(states.pop("broken.pt2"), "failed")
        skipped = [state for state in states.values() if state == "skipped"]
        self.assertGreaterEqual(len(skipped), len(done))
        self.assertEqual(len(states), len(NAMES))

    @unittest.skipUnless(shutil.which("sh"), "there is no shell")
    def test_slurm(self) -> None:
        codes = []
        for index in ("0", "1", "2"):
            tasks = {"SLURM_ARRAY_TASK_ID": index, "SLURM_ARRAY_TASK_COUNT": "3"}
            words = ["sh", EXAMPLES / "slurm_convert.sh", self.archives, self.out]
            codes.append(self.run_shell(words, tasks))
        self.assertEqual(sorted(codes), [0, 0, 4])
        self.assert_all_are_there()
        failures = [path.name for path in (self.out / "failures").rglob("*.txt")]
        self.assertEqual(failures, ["broken.txt"])

    @unittest.skipUnless(shutil.which("sh"), "there is no shell")
    def test_kubernetes(self) -> None:
        text = (EXAMPLES / "kubernetes_job.yaml").read_text(encoding="utf-8")
        script = textwrap.dedent(text.split("- |\n")[1].split("          resources:")[0])
        for _ in range(2):
            for index in ("0", "1"):
                pod = {"JOB_COMPLETION_INDEX": index, "COUNT": "2"}
                folders = {"ARCHIVES": str(self.archives), "OUT": str(self.out)}
                self.assertEqual(self.run_shell(["sh", "-euc", script], {**pod, **folders}), 0)
        self.assert_all_are_there()

    def run_shell(self, words: list[object], variables: dict[str, str]) -> int:
        env = {**os.environ, "PATH": self.path, **variables}
        return subprocess.run(list(map(str, words)), env=env, check=False).returncode
