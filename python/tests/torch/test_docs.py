"""The examples of the README and of pages run, and the table of docs/from-torch-onnx.md has all
parameters."""

from __future__ import annotations

import inspect
import pathlib
import re

import pt2onnx
import pytest
from helpers import TORCH, since

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs/from-torch-onnx.md").read_text(encoding="utf-8")


# PyTorch 2.6 captures no size that is 0 or 1 in the example as dynamic.
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/first-steps.md",
        "docs/from-torch-onnx.md",
        "docs/python.md",
        pytest.param("docs/exporting.md", marks=since(2, 8)),
    ],
)
def test_the_examples_run(page, tmp_path, monkeypatch):
    for module in ("transformers", "onnxscript", "onnxruntime", "onnx_ir"):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    # The sessions of docs/first-steps.md, which other tests run, write this one.
    pt2onnx.convert(ROOT / "testdata/models/mlp.pt2", "model.onnx")
    names = {"__name__": "docs"}
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        # The exporter of transformers needs PyTorch 2.11.
        if "DynamoExporter" in block and TORCH < (2, 11):
            continue
        exec(compile(block, page, "exec"), names)


def test_all_parameters_are_in_the_table():
    table = PAGE.split("| parameter | what it does here |")[1].split("\n\n")[0]
    parameters = set(inspect.signature(pt2onnx.export).parameters) - {"positional", "options"}
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == parameters


def test_the_program_has_what_that_of_torch_has():
    torch = pytest.importorskip("torch")
    theirs = {name for name in dir(torch.onnx.ONNXProgram) if not name.startswith("_")}
    assert theirs <= set(dir(pt2onnx.ONNXProgram))
