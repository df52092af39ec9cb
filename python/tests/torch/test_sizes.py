"""Modules whose code looks at sizes: the models are right at all sizes that are asked for, or an
export says where not."""

from __future__ import annotations

import io
import math
import pathlib
import re
import warnings
from typing import Any

import pt2onnx
import pytest
import torch
import torch.nn.functional as F
from helpers import dims, operators, same, since
from pt2onnx._capture import _source_names, _torch_export
from pt2onnx._conditions import Condition, holds, symbol, total
from pt2onnx._leaves import TensorLeaf
from pt2onnx._sizes import Sizes
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

sympy = pytest.importorskip("sympy")

pytestmark = since(2, 8)


class Limit(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] <= 8 else x * 3


class Rescale(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        base = 10.0
        if x.shape[1] > 16:
            base = base * (x.shape[1] / 16)
        angle = torch.arange(x.shape[1]).float()[:, None] / base ** torch.arange(4).div(4.0)
        return x * angle.cos()


class Pad(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] < 8:
            x = F.pad(x, (0, 0, 0, 8 - x.shape[1]))
        return x.cumsum(1)


class Pieces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([c.flip(1) for c in x.split(4, dim=1)], 1)


class Blocks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[:, i : i + 4].cumsum(1) for i in range(0, x.shape[1], 4)], 1)


class Steps(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x[:, 0] * 0
        for i in range(x.shape[1]):
            y = torch.tanh(y + x[:, i])
        return y


class Rounded(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = x.shape[1]
        return F.pad(x, (0, 0, 0, math.ceil(t / 4) * 4 - t)).unflatten(1, (-1, 4)).sum(2)


class Larger(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * max(x.shape[1] / 2, 3.5)


class Cut(nn.Module):
    """The example does not show that the code compares with 30."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 8:
            x = x[:, :30]
        return x.cumsum(1)


class Hidden(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 8:
            x = x + 1
            if x.shape[1] % 5 == 0:
                x = x * 3
            x = x - 1
        return x


class Sections(nn.Module):
    """The branches are those of torch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([piece.cumsum(1) for piece in x.tensor_split(3, 1)], 1)


MODULES = (Limit, Rescale, Pad, Pieces, Blocks, Steps, Rounded, Larger, Cut, Hidden, Sections)
WAYS = {
    "name": {"dynamic_shapes": ({1: "t"},)},
    "Dim": {"dynamic_shapes": ({1: Dim("t", min=1, max=64)},)},
    "dynamo=False": {"dynamo": False, "input_names": ["x"], "dynamic_axes": {"x": {1: "t"}}},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODULES)
def test_all_sizes(kind: type[nn.Module], way: str) -> None:
    module = kind().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt2onnx.OnnxExporterWarning)
        warnings.simplefilter("error", torch.onnx.errors.OnnxExporterWarning)
        options: Any = WAYS[way]
        program = pt2onnx.export(module, (torch.randn(2, 6, 4),), **options)
    assert dims(program)["x"] == [2, "t", 4]
    for size in (1, 2, 3, 6, 7, 8, 9, 12, 13, 15, 16, 17, 30, 31, 40):
        x = torch.randn(2, size, 4)
        same(program(x), module(x))


class Opaque(nn.Module):
    """TorchScript does not know its code."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = {True: 2, False: 3}[bool(x.shape[1] <= 8)]
        return x * eval("scale", {"scale": scale})


class OpaquePieces(nn.Module):
    """TorchScript does not know its code."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([*{at: c.flip(1) for at, c in enumerate(x.split(4, 1))}.values()], 1)


class OpaqueSteps(nn.Module):
    """TorchScript does not know its code, whose loop is shorter below 5 only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, -5:]
        y = x[:, 0] * 0
        for i in {0: range}[0](x.shape[1]):
            y = torch.tanh(y + x[:, i])
        return x + y[:, None]


class OpaqueTwo(nn.Module):
    """Branches on two dimensions, some with the same result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = {(True, True): 2, (True, False): 3, (False, True): 3, (False, False): 4}
        b, t = x.shape[0], x.shape[1]
        if {0: t}[0] % 4:
            x = F.pad(x, (0, 0, 0, -t % 4))
        return x * table[bool(b > 2), bool(t <= 8)]


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("kind", [Opaque, OpaqueSteps, OpaqueTwo])
def test_regions(kind: type[nn.Module], dynamo: bool) -> None:
    """Captures at several sizes are merged: the model is right at all of them."""
    module, x = kind().eval(), torch.randn(2, 6, 4)
    options: Any = {"dynamic_shapes": ({0: "b", 1: "t"},)}
    if not dynamo:
        axes = {"x": {0: "b", 1: "t"}}
        options = {"dynamo": False, "input_names": ["x"], "dynamic_axes": axes}
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.onnx.errors.OnnxExporterWarning)
        program = pt2onnx.export(module, (x,), output_names=["out"], **options)
    assert dims(program)["x"] == ["b", "t", 4] and program.output_names == ["out"]
    for rows in (1, 2, 3, 7):
        for size in (1, 2, 3, 4, 5, 6, 8, 9, 16, 31):
            x = torch.randn(rows, size, 4)
            same(program(x), module(x))
    assert "If" in operators(program)


def test_decisions() -> None:
    """A tree is learned from where captures are right: conditions that do not matter are not
    asked."""
    from pt2onnx._capture import _decisions
    from pt2onnx._capture._decisions import Leaf, Split

    # The numbers up to 15: the even ones, and those from 8 on.
    even, large, everything = 0x5555, 0xFF00, 0xFFFF
    found = _decisions.learned(everything, [even, large], [large, everything & ~large])
    assert found == Split(1, Leaf(large, 0), Leaf(everything & ~large, 1))
    assert _decisions.learned(everything, [even, large], [large, everything]) == Leaf(everything, 1)
    # No capture is right at odd numbers below 8, and 9 and 11 differ in no condition.
    found = _decisions.learned(everything, [even, large], [even, large & ~(1 << 9)])
    assert {(leaf.points, leaf.model) for leaf in _decisions.leaves(found)} == {
        (even, 0),
        (large & ~even, None),
        (everything & ~large & ~even, None),
    }
    assert _decisions.fewest(everything, [1, large, even], 2) == [1, 2]
    assert list(_decisions.bits(0b1010)) == [1, 3]


def test_sizes_without_a_region() -> None:
    """The model fails at sizes for which there are too many branches, with the reason."""
    x = torch.randn(2, 6, 4)
    shapes = ({1: "t"},)
    with pytest.warns(UserWarning, match="The model fails at sizes .* such as t=.*more branches"):
        program = pt2onnx.export(OpaquePieces(), (x,), dynamic_shapes=shapes, max_regions=3)
    module = OpaquePieces()
    for size in (3, 6, 9):
        x = torch.randn(2, size, 4)
        same(program(x), module(x))
    with pytest.raises(Exception, match="the model has no branch for these sizes of t"):
        program(torch.randn(2, 50, 4))
    program = pt2onnx.export(module, (x,), dynamic_shapes=({1: Dim("t", min=1, max=12)},))
    for size in range(1, 13):
        x = torch.randn(2, size, 4)
        same(program(x), module(x))
    with pytest.raises(pt2onnx.TorchExportError, match=r"`t` is 10, but .* 1 to 64"):
        pt2onnx.export(module, (x[:, :10],), dynamic_shapes=({1: Dim("t", min=1, max=64)},))


def test_one_model_for_each_region(tmp_path: pathlib.Path) -> None:
    """They have the conditions in their metadata, and no branches; the command merges them."""
    module, x = Opaque().eval(), torch.randn(2, 6, 4)
    options: Any = {"dynamic_shapes": ({1: "t"},), "sizes": "split", "verify": True}
    program = pt2onnx.export(module, (x,), tmp_path / "m.onnx", external_data=False, **options)
    assert program.verification.ok and program.regions[0] is program
    assert [one.conditions for one in program.regions] == ["t <= 8", "t > 8"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.1.onnx", "m.2.onnx"]
    for at, sizes in enumerate([(1, 6, 8), (9, 40)]):
        model = program.regions[at]
        assert "If" not in operators(model)
        metadata = {one.key: one.value for one in model.model_proto.metadata_props}
        assert metadata["pkg.pt2onnx.conditions"] == f'["{model.conditions}"]'
        for size in sizes:
            x = torch.randn(2, size, 4)
            same(model(x), module(x))
    with pytest.raises(TypeError, match="several models: give a path"):
        pt2onnx.export(module, (x,), io.BytesIO(), **options)
    one = pt2onnx.export(Limit(), (x[:, :3],), tmp_path / "one.onnx", dynamic_shapes=({0: "b"},))
    assert not one.regions and (tmp_path / "one.onnx").exists()


def test_split_without_all_regions() -> None:
    options: Any = {"dynamic_shapes": ({1: "t"},), "sizes": "split", "max_regions": 3}
    with pytest.warns(UserWarning, match="No model is for sizes .* such as t=.*more branches"):
        program = pt2onnx.export(OpaquePieces(), (torch.randn(2, 6, 4),), **options)
    assert len(program.regions) > 1


def test_regions_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning says that nothing compared the model."""
    from pt2onnx._capture import _regions

    monkeypatch.setattr(_regions.importlib.util, "find_spec", lambda _: None)
    with pytest.warns(UserWarning, match="not compared with the module, as onnxruntime is not"):
        pt2onnx.export(Opaque().eval(), (torch.randn(2, 6, 4),), dynamic_shapes=({1: "t"},))


class Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(6, 4) * {0: x.shape[1]}[0]


def test_sizes_that_the_module_takes() -> None:
    """Only these have regions."""
    module = Fixed().eval()
    program = pt2onnx.export(module, (torch.randn(2, 6, 4),), dynamic_shapes=({1: Dim("t")},))
    for size in (1, 6):
        x = torch.randn(2, size, 4)
        same(program(x), module(x))


def test_verification_at_borders() -> None:
    """A model that is wrong at other sizes is found, on both sides of what the code asks for."""
    shapes, x = ({1: "t"},), torch.randn(2, 6, 4)
    with pytest.warns(UserWarning, match=r"Output 'mul' \(t=9\)"):
        program = pt2onnx.export(Limit(), (x,), dynamic_shapes=shapes, sizes="warn", verify=True)
    assert [one.inputs for one in program.verification.outputs if not one.ok] == ["t=9"]
    program = pt2onnx.export(Limit(), (x,), dynamic_shapes=shapes, verify=True)
    assert program.verification.ok


HELD = r"`t` is 1 to 8, but dynamic_shapes asks for {}. The code decides by it at .*test_sizes.py"


def test_conditions_that_are_left() -> None:
    """They are warnings with the user's names and lines; errors for ranges that the user gave, and
    with ``sizes="error"``."""
    x = torch.randn(2, 6, 4)
    with pytest.warns(UserWarning, match=HELD.format("1 or more") + r":\d+: `scale = "):
        program = pt2onnx.export(Opaque(), (x,), dynamic_shapes=({1: "t"},), sizes="warn")
    same(program(torch.ones(2, 8, 4)), torch.full((2, 8, 4), 2.0))
    for size, options in ((Dim("t", min=1, max=64), "warn"), ("t", "error")):
        asked = "1 to 64" if options == "warn" else "1 or more"
        with pytest.raises(pt2onnx.TorchExportError) as caught:
            shapes = ({1: size},)
            pt2onnx.export(Opaque(), (x,), dynamic_shapes=shapes, sizes=options, max_regions=1)
        assert re.search(HELD.format(asked), str(caught.value)), caught.value
    with pytest.raises(ValueError, match="the parameter `sizes` is 'all', not one of merge"):
        pt2onnx.export(Opaque(), (x,), sizes="all")  # type: ignore[arg-type]


def test_conditions_that_do_not_matter(recwarn: pytest.WarningsRecorder) -> None:
    """A capture that is right where a condition does not hold is taken."""

    class Either(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return {0: x + x, 1: x * 2}[int(x.shape[1] % 2)]

    program = pt2onnx.export(Either().eval(), (torch.zeros(2, 6, 4),), dynamic_shapes=({1: "t"},))
    assert not list(recwarn)
    same(program(torch.ones(2, 7, 4)), torch.full((2, 7, 4), 2.0))


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._fft_r2c(x, [0], 1, True)


def test_conditions_of_complex_numbers() -> None:
    """torch asks inside of the operator, and the results of the capture are complex."""
    program = pt2onnx.export(Spectrum().eval(), (torch.rand(2, 3),), dynamic_shapes=({0: "n"},))
    assert program._capture_strategy == "TorchExportNonStrictStrategy"
    for size in (1, 2, 5):
        x = torch.rand(size, 3)
        same(program(x), torch.view_as_real(Spectrum()(x)))


def test_divisors_of_conditions() -> None:
    """A model computes conditions also at sizes at which the code does not ask for them."""
    functions = pytest.importorskip("torch.utils._sympy.functions")
    t = symbol("t")
    half = functions.FloorDiv(t, 2)
    condition = sympy.Eq(functions.Mod(t, functions.FloorDiv(t + 9, half)), 0)
    made = Condition(total(condition))
    assert [made.holds({"t": size}) for size in (0, 1, 10)] == [True, False, False]
    assert made.holds({"t": 11}) == holds(condition, {"t": 11})
    assert holds(condition, {"t": 1}) is False
    for one in (sympy.Eq(functions.Mod(t, 8), 0), sympy.Eq(functions.FloorDiv(t, t + 1), 0)):
        assert total(one) == one


class Nested(nn.Module):
    def forward(self, x: Any, pair: Any, *rest: Any, k: Any, **others: Any) -> Any:
        sizes = (x, pair[0], pair[1]["a"], rest[0], k, others["z"])
        return [one * 2 if one.shape[0] > 3 + at else one for at, one in enumerate(sizes)]


@pytest.mark.parametrize("way", [0, 1])
def test_names_of_conditions(way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions have the names of the dimensions of all kinds of arguments."""

    monkeypatch.setattr(_torch_export, "STRATEGIES", _torch_export.STRATEGIES[way : way + 1])
    given = [torch.randn(9) for _ in range(6)]
    args = (given[0], (given[1], {"a": given[2]}), given[3])
    axes = [{0: name} for name in "abcdef"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt2onnx.export(
            Nested(),
            args,
            kwargs={"k": given[4], "z": given[5]},
            dynamic_shapes={
                "x": axes[0],
                "pair": (axes[1], {"a": axes[2]}),
                "rest": (axes[3],),
                "k": axes[4],
                "others": {"z": axes[5]},
            },
            sizes="warn",
        )
    texts = [str(one.message) for one in caught if "holds only" in str(one.message)]
    for at, name in enumerate("abcdef"):
        assert any(f"`{name}` is {4 + at} or more, but" in text for text in texts), texts


def test_names_of_conditions_of_2_6() -> None:
    """PyTorch 2.6 names inputs by their place."""
    x, y = torch.ones(2), torch.ones(3)
    found = _source_names.tensors(nn.Identity(), ([x],), {"k": y})
    assert found["L['args'][0][0][0]"] is x and found["L['args'][1]['k']"] is y
    assert found["L['flat_args'][1]"] is y


def _sizes(**asked: Any) -> Sizes:
    leaves = [TensorLeaf(name, torch.zeros(6), {0: size}) for name, size in asked.items()]
    return Sizes(list(asked), tuple(leaf.value for leaf in leaves), {}, leaves)


def test_asked_sizes() -> None:
    sizes = _sizes(x="t", y=Dim("h", min=2, max=9), z="t + 1", w=Dim.AUTO, v=Dim("v", min=1))
    assert {name: (d.low, d.high, d.exact) for name, d in sizes.dims.items()} == {
        "t": (1, None, False),
        "h": (2, 9, True),
        "t___1": (1, None, False),
        "w_dim_0": (1, None, False),
        "v": (1, None, False),
    }


def test_sizes_at_borders() -> None:
    sizes = _sizes(x="t")
    t = symbol("t")
    condition = Condition(sympy.Le(t, 100))
    assert next(sizes.broken(condition)) == {"t": 101}
    assert {100, 101} <= {point["t"] for point in sizes.to_try([condition])}
    assert not list(sizes.broken(Condition(sympy.Ge(t, 1))))
    # A tensor that is larger than any.
    assert not list(sizes.broken(Condition(t * 4 < 2**31)))
    assert {1, 7, 12, 13} <= {point["t"] for point in sizes.to_try()}
    assert holds(sympy.Eq(1 / t, 1), {"t": 0}) is False


def test_examples_of_other_sizes() -> None:
    """Sorted lengths stay sorted and within the sizes, floats that are all equal become others."""
    x, lengths = torch.zeros(3, 9, 2), torch.tensor([9, 7, 4])
    leaves = [TensorLeaf("x", x, {0: "b", 1: "t"}), TensorLeaf("n", lengths, {0: "b"})]
    example = Sizes(["x", "n"], (x, lengths), {}, leaves).at({"b": 5, "t": 6})
    made, of = example.args
    assert made.shape == (5, 6, 2) and made.unique().numel() > 1
    assert of.tolist() == [6, 6, 6, 6, 4] and example.sizes == "b=5, t=6"


class Smoothed(torch.nn.Module):
    """A loop with a weight whose sizes are 1, which Dynamo has as symbols."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", torch.full((1, 1, 3), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kernel = self.kernel

        def more(count: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            return count < 3

        def step(count: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return count + 1, torch.nn.functional.conv1d(y, kernel, padding=1)

        return while_loop(more, step, (torch.tensor(0), x))[1]


def test_sizes_of_weights_in_loops(recwarn: pytest.WarningsRecorder) -> None:
    """They are none of the example's."""
    module = Smoothed().eval()
    shapes = ({0: "batch", 2: "width"},)
    program = pt2onnx.export(module, (torch.rand(2, 1, 6),), dynamic_shapes=shapes)
    assert not [one for one in recwarn if "may be wrong" in str(one.message)]
    x = torch.rand(1, 1, 9)
    same(program(x), module(x))


class Summed(torch.nn.Module):
    """Looks whether a size is 1, where that does not matter."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(1) if x.shape[1] > 1 else x


def test_a_size_of_1_takes_no_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    own = _torch_export.TorchExport._export_once

    def counted(*args: Any) -> torch.export.ExportedProgram:
        calls.append(args)
        return own(*args)

    monkeypatch.setattr(_torch_export.TorchExport, "_export_once", counted)
    program = pt2onnx.export(Summed(), (torch.rand(2, 6, 4),), dynamic_shapes=({0: "b", 1: "t"},))
    assert len(calls) == 1
    for size in (1, 2, 9):
        x = torch.rand(3, size, 4)
        same(program(x), Summed()(x))
