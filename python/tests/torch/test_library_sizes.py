"""Functions of torch that branch on sizes: the models are right at all sizes, or an export says
where not."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, same, since
from library_sizes import FUNCTIONS, MODULES
from torch import nn

pytestmark = since(2, 8)

WAYS: dict[str, dict[str, Any]] = {
    "names": {"dynamic_shapes": ({0: "b", 1: "t"},)},
    "dynamo=False": {
        "dynamo": False,
        "input_names": ["x"],
        "dynamic_axes": {"x": {0: "b", 1: "t"}},
    },
}

#: The names of the sizes, and the line of the code, in what an export says.
_NAMED = re.compile(r"(?<![\w'.])[bt](?![\w'.])|library_sizes\.py")

POINTS = [(2, t) for t in (*range(1, 14), 31, 100)] + [(b, t) for b in (1, 3) for t in (1, 2, 9)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*FUNCTIONS, *MODULES], ids=lambda kind: kind.__name__)
def test_no_size_is_wrong_in_silence(kind: Any, way: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module: nn.Module = (kind() if isinstance(kind, type) else _OfTensor(kind)).eval()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program = pt2onnx.export(module, (_argument(2, 6),), **WAYS[way])
        except pt2onnx.TorchExportError as error:
            assert _NAMED.search(str(error)), error
            return
    texts = [str(one.message) for one in caught]
    if any(map(_NAMED.search, texts)):
        return
    for sizes in POINTS:
        x = _argument(*sizes)
        try:
            with torch.no_grad():
                expected = module(x)
        except Exception:
            # PyTorch takes no such sizes.
            continue
        try:
            same(program(x), expected)
        except Exception as error:
            raise AssertionError(f"wrong at {sizes}: {texts}") from error


class _OfTensor(Call):
    """A function of one tensor."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def _argument(b: int, t: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(b * 100 + t)
    return torch.randn(b, t, 4, generator=generator)
