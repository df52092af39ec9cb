"""Mistakes of newcomers: each gives one sentence that says what to give instead."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pt2onnx
import pytest
import torch

MODULE, X = torch.nn.Linear(4, 3).eval(), torch.randn(2, 4)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("model.pt2", "pt2onnx.convert('model.pt2') makes a model of an archive"),
        (pathlib.Path("model.pt"), "pt2onnx.convert('model.pt') makes a model of an archive"),
        (torch.nn.Linear, "the model is the class Linear: give a module of it, Linear(...)"),
        (MODULE.state_dict(), "give the module, after module.load_state_dict"),
        (None, "a model is a module, a function or an ExportedProgram, not NoneType"),
    ],
)
def test_models_that_are_none(model: Any, text: str) -> None:
    with pytest.raises(TypeError) as error:
        pt2onnx.export(model, (X,))
    assert text in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"quantise": "int8"}, "did you mean 'quantize'?"),
        ({"dynamic_shape": {}}, "did you mean 'dynamic_shapes'?"),
        ({"input_name": ["x"]}, "did you mean 'input_names'?"),
    ],
)
def test_misspelt_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as error:
        pt2onnx.export(MODULE, (X,), **options)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"target": "ortcpu"}, "`ort-cpu`"),
        ({"sizes": "merg"}, "merge, warn, error, split"),
        ({"training": "evall"}, "`eval`"),
    ],
)
def test_wrong_values(options: dict[str, Any], text: str) -> None:
    """The right ones are listed."""
    with pytest.raises(ValueError) as error:
        pt2onnx.export(MODULE, (X,), **options)
    assert text in str(error.value)


def test_what_is_no_file() -> None:
    number: Any = 3
    with pytest.raises(TypeError, match="f is a path, or an object to write bytes to, not int"):
        pt2onnx.export(MODULE, (X,), number)


def test_modules_where_models_are_wanted() -> None:
    module: Any = MODULE
    with pytest.raises(TypeError, match=r"not Linear: pt2onnx\.export makes a model of a module"):
        pt2onnx.convert(module, "m.onnx")
    program: Any = torch.export.export(MODULE, (X,))
    with pytest.raises(TypeError, match=r"not ExportedProgram: pt2onnx\.export makes"):
        pt2onnx.convert(program)
    with pytest.raises(TypeError, match=r"not Linear: pt2onnx\.export makes one of it"):
        pt2onnx.optimize(module)
    with pytest.raises(TypeError, match="verify takes an ONNXProgram and the module"):
        pt2onnx.verify(module, (X,))


def test_reports_say_where(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pt2onnx.export(MODULE, (X,), report=True, dump_exported_program=True, artifacts_dir=tmp_path)
    printed = capsys.readouterr().out
    for path in tmp_path.iterdir():
        assert str(path) in printed
    pt2onnx.export(MODULE, (X,), report=True, artifacts_dir=tmp_path, verbose=False)
    assert not capsys.readouterr().out


def test_the_command_runs_in_the_runtime_of_its_interpreter(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime")
    pt2onnx.export(MODULE, (X,), tmp_path / "m.onnx")
    env = {name: value for name, value in os.environ.items() if name != "ORT_DYLIB_PATH"}
    # No other python3 has one.
    env["PATH"] = str(tmp_path)
    command = [sys.executable, "-m", "pt2onnx", "run", str(tmp_path / "m.onnx")]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
