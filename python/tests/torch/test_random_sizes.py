"""Random modules that look at sizes: the models are right at all sizes, or an export says where
not.

``PT2ONNX_RANDOM_SIZES=1000:300`` runs 300 seeds from 1,000 on.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import same, since
from pt2onnx._capture import _trace_check
from random_sizes import EXAMPLE, Source

pytestmark = since(2, 8)

START, COUNT = map(int, os.environ.get("PT2ONNX_RANDOM_SIZES", "0:6").split(":"))

#: Modules whose models were wrong, or whose warnings named no size.
KNOWN = (
    700006,
    700016,
    700036,
    9100045,
    9100069,
    9100225,
    9200005,
    9200060,
    9201035,
    9950084,
    9950912,
    9952071,
    9952165,
    9953587,
    9960115,
    9970040,
    9970076,
    9980304,
    9980421,
    9980491,
)

#: Modules whose models were wrong where comparing had little time.
HURRIED = (9900002, 9900036, 9900044)

#: The names of the sizes, in what an export says.
_NAMED = re.compile(r"(?<![\w'.])[bt](?![\w'.])")

WAYS: dict[str, dict[str, Any]] = {
    "names": {"dynamic_shapes": {"x": {0: "b", 1: "t"}}},
    "dynamo=False": {
        "dynamo": False,
        "input_names": ["x"],
        "dynamic_axes": {"x": {0: "b", 1: "t"}},
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_random_sizes(way: str, tmp_path: pathlib.Path) -> None:
    seeds = (*KNOWN, *range(START, START + COUNT))
    verdicts = [run(seed, way, tmp_path) for seed in seeds]
    silent = [text for verdict, text in verdicts if verdict == "silent"]
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize("seed", HURRIED)
def test_small_modules_are_compared_on_busy_machines(
    seed: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SECONDS", "_LOOKING", "_LOOKING_PART"):
        monkeypatch.setattr(_trace_check, name, 0.0)
    verdict, text = run(seed, "dynamo=False", tmp_path)
    assert verdict == "right", text


def run(seed: int, way: str, folder: pathlib.Path) -> tuple[str, str]:
    """The verdict on the model of a seed, with the warnings, or the sizes where it is wrong.

    ``right`` at all sizes; ``named`` if a warning or error names a size or the line; ``silent`` if
    the model is wrong somewhere without that, or does not fail where it has to; ``skipped`` if
    PyTorch raises for the example.
    """
    torch._dynamo.reset()
    source = Source(seed)
    module = _module(source, folder / f"drawn_{seed}.py")
    x = _argument(EXAMPLE)
    if _eager(module, x) is None:
        return "skipped", ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program = pt2onnx.export(module, (x,), **WAYS[way])
        except (pt2onnx.TorchExportError, pt2onnx.ConversionError) as error:
            return "named", str(error)
    texts = [str(one.message) for one in caught]
    named = any(f"drawn_{seed}.py" in text or _NAMED.search(text) for text in texts)
    refuses = any(text.startswith("The model fails at sizes") for text in texts)
    if named and not refuses:
        return "named", "\n".join(texts)
    for point in source.points():
        x = _argument(point)
        expected = _eager(module, x)
        if expected is None:
            continue
        try:
            same(program(x), expected)
        except Exception as error:
            if refuses and "the model has no branch for these sizes" in str(error):
                continue
            reason = str(error).strip().splitlines()[0][:200]
            return "silent", f"seed {seed}, {way}, {point}: {reason}; {texts}\n{source.text}"
    return ("named" if refuses else "right"), "\n".join(texts)


def _module(source: Source, path: pathlib.Path) -> torch.nn.Module:
    path.write_text(source.text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    module: torch.nn.Module = made.Drawn().eval()
    return module


def _argument(sizes: dict[str, int]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sizes["b"] * 100 + sizes["t"])
    return torch.randn(sizes["b"], sizes["t"], 4, generator=generator)


def _eager(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor | None:
    """The result; None if PyTorch raises."""
    try:
        with torch.no_grad():
            result: torch.Tensor = module(x)
    except Exception:
        return None
    return result
