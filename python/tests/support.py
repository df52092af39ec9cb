"""Shared by the tests without PyTorch: cases of testdata/, and how to run Python anew.

``cargo xtask test`` unpacks the bundles of cases to the folder in PT2ONNX_CASES, by default
target/testdata.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTDATA = ROOT / "testdata"
CASES = pathlib.Path(os.environ.get("PT2ONNX_CASES", ROOT / "target/testdata"))
PACKAGE = ROOT / "python"

#: The multilayer perceptron of testdata/models: three inputs with one dynamic dimension, ten
#: weights.
MLP = TESTDATA / "models/mlp.pt2"


@dataclasses.dataclass
class Case:
    """An archive, and inputs with PyTorch's outputs for them: one sample, or two of different
    sizes."""

    name: str
    archive: pathlib.Path
    samples: list[tuple[list[Any], list[Any]]]
    values: bool


def case(name: str) -> Case:
    """A case by bundle and name: ``custom/mylib_mix``."""
    import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 from then on.)
    import safetensors.numpy

    folder = CASES / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: `cargo xtask test` unpacks the cases")
    stored = safetensors.numpy.load_file(folder / "io.safetensors")

    def numbered(prefix: str) -> list[Any]:
        return [stored[f"{prefix}.{i}"] for i in range(len(stored)) if f"{prefix}.{i}" in stored]

    samples = [(numbered(f"{label}input"), numbered(f"{label}output")) for label in ("", "alt.")]
    about = json.loads((folder / "case.json").read_text())
    return Case(
        name, folder / "model.pt2", [s for s in samples if s[1]], about.get("compare") != "shape"
    )


def cases(bundle: str) -> list[Case]:
    """All cases of a bundle."""
    folders = sorted(path.parent for path in (CASES / bundle).rglob("case.json"))
    return [case(folder.relative_to(CASES).as_posix()) for folder in folders]


class Test(unittest.TestCase):
    """A test with its own folder, which is removed afterwards."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assertEqualNumbers(self, found: Any, expected: Any, about: str = "") -> None:
        """Types, shapes and numbers of lists of arrays."""
        import numpy as np

        self.assertEqual(len(found), len(expected), about)
        for one, other in zip(found, expected, strict=False):
            self.assertEqual((str(one.dtype), one.shape), (str(other.dtype), other.shape), about)
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=about)

    def assertRuns(self, program: Any, case: Case) -> None:
        """Checks that a model gives PyTorch's outputs for all samples of a case."""
        for inputs, outputs in case.samples:
            found = program(*inputs)
            if case.values:
                self.assertEqualNumbers(found, outputs, case.name)
            else:
                self.assertEqual([o.shape for o in found], [o.shape for o in outputs], case.name)

    def raised(self, kind: type[BaseException], call: Callable[[], Any]) -> Any:
        """The exception that a call raises, which must be of this class."""
        with self.assertRaises(kind) as caught:
            call()
        return caught.exception

    def files(self) -> list[str]:
        """Names of what is in the folder."""
        return sorted(path.name for path in self.folder.iterdir())


def python(*words: str, without: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the interpreter with this package, without a variable of the environment."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    environment.pop(without, None)
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        **options,
    )
