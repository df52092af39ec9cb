"""The behaviour of ``torch.onnx.export(dynamo=False)`` that callers rely on: its inputs, quantised
tensors, numbers, and ``dynamic_axes``."""

from __future__ import annotations

import io
import pathlib
import warnings
from typing import Any

import onnx
import pt2onnx
import pytest
import torch
from helpers import Call, check, same
from pt2onnx import _leaves


def quint8(*sizes: int, scale: float = 0.1, zero_point: int = 10) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.randn(*sizes), scale, zero_point, torch.quint8)


class Quantised(torch.nn.Module):
    """Takes a quantised tensor and a plain one, gives a quantised one and a plain one."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.relu(x), x.dequantize() + y


@pytest.mark.parametrize("scripted", [False, True])
def test_quantised_inputs_and_results(scripted: bool) -> None:
    """They are three tensors each: integers, scale and zero point, which may differ from those of
    the example."""
    model: Any = torch.jit.script(Quantised()) if scripted else Quantised()
    args = quint8(2, 3), torch.randn(2, 3)
    program = pt2onnx.export(
        model, args, input_names=["q", "scale", "zero", "y"], dynamo=False, verify=True
    )
    assert program.input_names == ["q", "scale", "zero", "y"]
    assert program.verification is not None and program.verification.ok
    other = quint8(2, 3, scale=0.3, zero_point=100), torch.randn(2, 3)
    first, second = Quantised()(*other)
    same(program(*other), [*_leaves.components(first, result=True), second])


def test_results_that_are_quantised() -> None:
    """PyTorch cannot write such a program."""
    x = torch.randn(3, 4)

    def quantise(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.2, 3, torch.qint8)

    program = pt2onnx.export(Call(quantise), (x,))
    same(program(x), _leaves.components(quantise(x), result=True))


@pytest.mark.parametrize(
    ("function", "args", "names"),
    [
        # Elements are read, also if the result does not depend on them.
        (lambda x, y: x.view_as(y), (torch.randn(2, 6), torch.randn(3, 4)), ["x", "y"]),
        (lambda x, y: torch.full_like(x, 2.0) + y, (torch.tensor(3.0), torch.randn(2)), ["x", "y"]),
        (lambda x, y: (x + y) * 2, (torch.randn(0), torch.randn(1)), ["x", "y"]),
        (lambda x, y: x.fill_(y), (torch.randn(2), 3), ["x", "y"]),
        # Sizes and types are not.
        (lambda x, y: y + x.shape[0], (torch.randn(2), torch.randn(2)), ["y"]),
        (lambda x, y: torch.zeros_like(x) + y, (torch.randn(2), torch.randn(2)), ["y"]),
        (lambda x, y: x.zero_() + y, (torch.randn(2), torch.randn(2)), ["y"]),
        (lambda x, y: x.new_ones(2, dtype=x.dtype), (torch.randn(2), torch.randn(2)), []),
    ],
)
def test_inputs_that_are_kept(function: Any, args: tuple[Any, ...], names: list[str]) -> None:
    """Inputs whose elements the code reads, and no others."""

    class Module(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return function(x, y)

    program = pt2onnx.export(Module(), args, input_names=["x", "y"], dynamo=False)
    assert program.input_names == names


class Branches(torch.nn.Module):
    """An input that a branch reads; the condition decides on types."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.is_floating_point():
            return x.new_zeros(x.shape)
        return x + y


def test_inputs_of_scripts_that_are_kept() -> None:
    x = torch.randn(2, 3)
    assert pt2onnx.export(torch.jit.script(Branches()), (x, x), dynamo=False).input_names == []


class ByNumber(torch.nn.Module):
    """A number decides on a dimension."""

    def forward(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        return x.unsqueeze(dim).squeeze(dim).unsqueeze(dim) * 2


class ByTruth(torch.nn.Module):
    """A truth value decides on a branch."""

    def forward(self, x: torch.Tensor, twice: bool) -> torch.Tensor:
        if twice:
            x = x * 2
        return x


@pytest.mark.parametrize(
    ("model", "values"), [(ByNumber(), (1, 0, -1)), (ByTruth(), (True, False))]
)
def test_numbers_are_inputs(model: Any, values: tuple[Any, ...]) -> None:
    x = torch.randn(2, 3)
    program = pt2onnx.export(model, (x, values[0]), dynamo=False)
    for value in values:
        same(program(x, value), model(x, value))


class Rowless(torch.nn.Module):
    """Asks whether there are rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) == 0:
            x = torch.ones(1, 3)
        return x * 2


def test_sizes_that_are_zero_in_the_example() -> None:
    model = torch.jit.script(Rowless())
    program = pt2onnx.export(
        model, (torch.zeros(0, 3),), input_names=["x"], dynamic_axes={"x": [0]}, dynamo=False
    )
    for size in (0, 1, 4):
        x = torch.randn(size, 3)
        same(program(x), model(x))


def test_dynamic_axes_of_other_names() -> None:
    """They have no effect."""
    x = torch.randn(2, 3)
    with pytest.warns(UserWarning, match="lengths"):
        program = pt2onnx.export(
            Call(torch.relu),
            (x,),
            input_names=["x"],
            dynamic_axes={"x": [0], "lengths": [0]},
            dynamo=False,
        )
    assert program(torch.randn(5, 3))[0].shape == (5, 3)
    with pytest.raises(RuntimeError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pt2onnx.export(
            Call(torch.relu), (x,), input_names=["x"], dynamic_axes={"x": [0], "lengths": [0]}
        )


class AsLarge(torch.nn.Module):
    """How many dimensions the result has depends on a size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_ones(x.shape[1 : x.size(2)]) + x.sum()


def test_sizes_that_must_be_known() -> None:
    """Without a model in which all are dynamic, one is fixed, with a warning; the others are
    dynamic."""
    script, axes = torch.jit.script(AsLarge()), {"x": {0: "n", 1: "m", 2: "k"}}
    with pytest.warns(UserWarning, match="for k, as"):
        program = pt2onnx.export(
            script, (torch.randn(2, 4, 3),), input_names=["x"], dynamic_axes=axes, dynamo=False
        )
    x = torch.randn(3, 5, 3)
    same(program(x), script(x))
    with pytest.raises(pt2onnx.ConversionError, match="known integer"):
        pt2onnx.export(script, (x,), dynamic_shapes=axes)


class AnySizes(torch.nn.Module):
    """A list whose length and sizes follow from the sizes of the argument."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        if x.shape[1] < 5:
            if x.size(0) == 1:
                x = x + 4
            else:
                parts = list(x)
                parts.append(x)
                return parts
        return [x, x]


def test_lists_of_any_sizes() -> None:
    """They are sequences if their length is not known, else a tensor for each."""
    script, x = torch.jit.script(AnySizes()), torch.randn(3, 4)
    program = pt2onnx.export(
        script, (x,), input_names=["x"], dynamic_axes={"x": [0, 1]}, dynamo=False
    )
    for sizes in ((3, 4), (4, 6), (1, 2), (2, 2)):
        x = torch.randn(sizes)
        (found,) = program(x)
        same(found, script(x))
    assert len(pt2onnx.export(script, (x,), dynamo=False).output_names) == 3


class EmptyLists(torch.nn.Module):
    """Two lists that stay empty, as the first one never gets longer than it is."""

    def forward(self, x: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        rows: list[torch.Tensor] = []
        last: list[torch.Tensor] = []
        for i in range(x.size(0)):
            if len(rows) > 2:
                rows.append(x[i])
                last.append(rows[-1])
        return rows, last


def test_empty_lists() -> None:
    """A model must have results: the lists are sequences then. The code reads elements, though not
    at these sizes."""
    program = pt2onnx.export(
        torch.jit.script(EmptyLists()), (torch.randn(4, 2),), input_names=["x"], dynamo=False
    )
    assert program.input_names == ["x"] and program(torch.randn(4, 2)) == ([], [])


class Divisions(torch.nn.Module):
    """Makes floats of integers, and from nothing."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        numbers = [float(i) / 2 for i in range(x.shape[0])]
        return [
            x / 3,
            x + 0.1,
            torch.sin(x),
            torch.zeros(2),
            torch.tensor(numbers),
            torch.tensor(0.1) * x,
            x.double().mean(),
        ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["script", "module", "program"])
def test_default_types(kind: str, dtype: torch.dtype) -> None:
    """Floats that have no other type are those of ``torch.set_default_dtype``."""
    x, model = torch.tensor([1, 2, 5]), Divisions().eval()
    torch.set_default_dtype(dtype)
    try:
        given: Any = {
            "script": torch.jit.script,
            "module": lambda m: m,
            "program": lambda m: torch.export.export(m, (x,)),
        }[kind](model)
        program = pt2onnx.export(given, (x,), dynamo=False)
        expected = model(x)
    finally:
        torch.set_default_dtype(torch.float32)
    same(program(x), expected)


def test_frozen_modules() -> None:
    x = torch.randn(2, 4)
    frozen = torch.jit.freeze(torch.jit.trace(torch.nn.Linear(4, 3).eval(), x))
    check(frozen, (x,), dynamo=False)


def test_errors_of_the_module() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        assert torch.onnx.is_in_onnx_export()
        raise KeyError("no such layer")

    with pytest.raises(KeyError):
        pt2onnx.export(Call(fails), (torch.randn(2),), dynamo=False)
    with pytest.raises(ValueError, match="DataParallel"):
        pt2onnx.export(
            torch.nn.DataParallel(torch.nn.Linear(2, 2)), (torch.randn(2, 2),), dynamo=False
        )
    check(torch.nn.DataParallel(torch.nn.Linear(2, 2)), (torch.randn(2, 2),))


class Affine(torch.autograd.Function):
    """Two results, and arguments that are no tensors."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, by: float, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert not any(ctx.needs_input_grad)
        ctx.save_for_backward(x)
        return x * by + y, x.sum()


class Raised(torch.autograd.Function):
    """Has its context in a separate method, and a default."""

    @staticmethod
    def forward(x: torch.Tensor, by: int = 2) -> torch.Tensor:
        return x.abs() ** by

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.by = inputs[1]


class Written(torch.autograd.Function):
    """Writes into its argument and into what it made, and calls another function."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.mark_dirty(x)
        made = x.add_(1).sin()
        return x, Affine.apply(made.mul_(2), 3.0, x.exp())[0]


class Hidden(torch.autograd.Function):
    """Writes into its argument, and does not say so."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(3).exp()


class Calls(torch.nn.Module):
    """A module that torch.export does not capture."""

    apply_to = Written.apply

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        count = int((x.sum() * 0).item()) + 1
        y = x * 2
        first, second = self.apply_to(y)
        again, _ = Written.apply(first)
        scaled, total = Affine.apply(x, 0.5, second)
        # The next node is a constant like one of the function.
        total = total + x.sum()
        return [scaled + again * total + y, Raised.apply(x, 3), Raised.apply(x)] * count


def test_autograd_functions_in_traces() -> None:
    x = torch.randn(2, 3)
    program = pt2onnx.export(Calls(), (x,), dynamo=False)
    for values in (x, torch.randn(2, 3)):
        same(program(values), Calls()(values))


def test_autograd_functions_that_write_without_a_word() -> None:
    def hidden(x: torch.Tensor) -> list[torch.Tensor]:
        y = x * 2
        return [Hidden.apply(y) + y] * (int((x.sum() * 0).item()) + 1)

    with pytest.raises(
        pt2onnx.OnnxExporterError,
        match="the autograd function Hidden writes into a tensor that it does not return",
    ):
        pt2onnx.export(Call(hidden), (torch.randn(2, 3),), dynamo=False)


def test_constants_that_are_lost() -> None:
    """A program of torch.export may have a constant without values where the module moves a
    weight."""

    class Moved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                self.weight.data = self.weight.data.to(x.device)
            return x * self.weight

    module, x = Moved().eval(), torch.randn(2, 3)
    same(pt2onnx.export(module, (x,), dynamo=False)(x), x * module.weight)


def test_keys_that_are_tensors() -> None:
    """They are inputs, before the values under them."""

    def summed(parts: dict[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        (key,) = parts
        return parts[key] + key

    # A last dict holds keywords.
    program = pt2onnx.export(
        Call(summed), ({torch.tensor(1.0): torch.randn(2, 3)}, {}), dynamo=False
    )
    x = torch.randn(2, 3)
    same(program({torch.tensor(5.0): x}), x + 5)


class Steps(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, end: torch.Tensor, step: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        read = x[1:end:step] + 1
        x[:end:step, 0::step, :] = 1
        return x, read


@pytest.mark.parametrize("scripted", [False, True])
def test_computed_steps(scripted: bool) -> None:
    """Slices that are read, and slices that are written."""

    def arguments(rows: int, end: int, step: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(rows, 6, 2), torch.tensor(end), torch.tensor(step)

    example = arguments(8, 5, 2)
    model: Any = torch.jit.script(Steps()) if scripted else Steps()
    program = pt2onnx.export(
        model, example, input_names=["x"], dynamic_axes={"x": [0]}, dynamo=False
    )
    for rows, end, step in ((8, 5, 2), (5, 20, 3), (7, -1, 1), (4, 3, 9)):
        given = arguments(rows, end, step)
        same(program(*given), Steps()(given[0].clone(), *given[1:]))


def two(x: torch.Tensor) -> torch.Tensor:
    first, second = torch.unbind(x)
    return first - second * 2


def test_parts_as_many_as_are_taken() -> None:
    """The number of parts of a dynamic dimension is what the code takes it apart into."""
    x = torch.randn(2, 3)
    program = pt2onnx.export(
        torch.jit.script(two), (x,), input_names=["x"], dynamic_axes={"x": [0]}, dynamo=False
    )
    same(program(x), two(x))


class Part(torch.nn.Module):
    """A buffer between the parameters of a state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.register_buffer("shift", torch.randn(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight + self.shift).sin()


def test_names_of_weights(tmp_path: pathlib.Path) -> None:
    """Names of inputs go on over weights in the order of the state dict, and weights are inputs in
    it."""
    model, x = torch.nn.Sequential(Part(), Part()).eval(), torch.randn(2, 3)
    names = ["in", "w0", "s0", "w1", "s1"]
    program = check(model, (x,), input_names=names, dynamo=False)
    weights = {
        weight.name: onnx.numpy_helper.to_array(weight)
        for weight in program.model_proto.graph.initializer
    }
    for name, value in zip(names[1:], model.state_dict().values(), strict=False):
        assert (weights[name] == value.numpy()).all()
    pt2onnx.export(model, (x,), tmp_path / "m.onnx", dynamo=False, export_params=False)
    inputs = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.input
    assert [value.name for value in inputs] == ["input", *model.state_dict()]


class Placed(torch.nn.Module):
    """Takes one length only."""

    def __init__(self) -> None:
        super().__init__()
        self.places = torch.nn.Parameter(torch.randn(1, 5, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + self.places


def test_module_that_takes_no_other_sizes() -> None:
    """Verification compares it at those that it takes, and an export warns that there may be
    none."""
    model, x = Placed().eval(), torch.randn(2, 5, 4)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        program = pt2onnx.export(
            model,
            (x,),
            input_names=["x"],
            dynamic_axes={"x": {0: "n", 1: "t"}},
            dynamo=False,
            verify=True,
        )
    assert program.verification.ok
    sizes = {output.inputs for output in program.verification.outputs}
    assert len(sizes) > 1 and all("t=5" in text for text in sizes - {"given"})
    texts = [str(one.message) for one in seen]
    assert any("The module fails at other sizes" in text for text in texts)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_verification_at_other_sizes() -> None:
    """Traces and scripts are compared at a second size, too."""
    model, x = torch.nn.Linear(4, 3).eval(), torch.randn(2, 4)
    for made in (torch.jit.script(model), torch.jit.trace(model, x)):
        program = pt2onnx.export(made, (x,), dynamic_shapes=({0: "n"},))
        assert [output.inputs for output in pt2onnx.verify(program, made, (x,)).outputs] == [
            "given",
            "n=3",
        ]
    loaded = pt2onnx.convert(saved(made), dynamic_axes={"input": {0: "n"}})
    assert pt2onnx.verify(loaded, made, (x,)).notes == (
        "not compared at other sizes: the model does not tell which ones there may be",
    )


def saved(script: Any) -> bytes:
    file = io.BytesIO()
    torch.jit.save(script, file)
    return file.getvalue()


def test_one_file(tmp_path: pathlib.Path) -> None:
    """As in torch.onnx, weights that fit stand in the model, unless ``external_data`` asks for
    another file."""
    model, x = torch.nn.Linear(300, 40).eval(), torch.randn(2, 300)
    pt2onnx.export(model, (x,), tmp_path / "a.onnx", dynamo=False)
    pt2onnx.export(model, (x,), tmp_path / "b.onnx", dynamo=False, external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx", "b.onnx.data"]
