"""Awkward weights: equal numbers, whatever memory they are in."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pt2onnx
import pytest
import torch
from helpers import Call, check, operators, same, since


class Held(torch.nn.Module):
    """Tensors as buffers; returns all of them, plus the input."""

    def __init__(self, *tensors: torch.Tensor, cast: torch.dtype | None = torch.float32) -> None:
        super().__init__()
        self.cast = cast
        for i, tensor in enumerate(tensors):
            self.register_buffer(f"t{i}", tensor)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [b.to(self.cast) + x if self.cast else b + x.to(b.dtype) for b in self.buffers()]


X = torch.tensor(1.0)


def buffers(*tensors: torch.Tensor, **options: Any) -> pt2onnx.ONNXProgram:
    """Checks a module with these weights, at no and at full optimisation."""
    check(Held(*tensors), (X,), optimize=False, **options)
    return check(Held(*tensors), (X,), **options)


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "slice": lambda t: t[1:3, 2:5],
    "step": lambda t: t[::2, ::3],
    "transposed": lambda t: t.T,
    "row": lambda t: t[2],
    "column": lambda t: t[:, 2],
    "diagonal": lambda t: t.diagonal(),
    "expanded": lambda t: t[:1].expand(5, 6),
    "scalar": lambda t: t[1, 1],
    "expanded scalar": lambda t: t[1, 1].expand(3, 4),
    "windows": lambda t: t.as_strided((4, 4), (2, 1)),
    "unfolded": lambda t: t.unfold(1, 3, 1),
    "permuted": lambda t: t.reshape(2, 2, 6).permute(2, 0, 1),
    "empty": lambda t: t[:0],
    "end": lambda t: t[-1:, -1:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    buffers(VIEWS[name](torch.randn(4, 6)))


def test_views_of_one_storage(tmp_path: pathlib.Path) -> None:
    """All of them together, in memory and in a file."""
    base = torch.randn(4, 6)
    model = Held(base, *(view(base) for view in VIEWS.values()))
    check(model, (X,))
    pt2onnx.export(model.eval(), (X,), tmp_path / "m.onnx", external_threshold=1)
    same(pt2onnx.load(tmp_path / "m.onnx")(X), model(X))


def test_view_of_large_storage(tmp_path: pathlib.Path) -> None:
    """Only what is seen is written."""
    path = tmp_path / "m.onnx"
    model = Held(torch.randn(1 << 20)[5:1000])
    check(model, (X,), f=path, external_data=False)
    assert path.stat().st_size < 10_000


def test_overlapping() -> None:
    base = torch.randn(20)
    buffers(base[:10], base[5:15], base[10:], base.as_strided((3, 5), (2, 1), 3))


def test_tied() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(50, 64)
            self.head = torch.nn.Linear(64, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids))

    program = check(Tied(), (torch.arange(5),))
    weights = [t for t in program.model_proto.graph.initializer if len(t.raw_data) >= 64 * 50 * 4]
    assert len(weights) == 1


def test_shared_modules() -> None:
    layer = torch.nn.Linear(8, 8)
    check(torch.nn.Sequential(layer, torch.nn.ReLU(), layer), (torch.randn(2, 8),))


DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.uint16,
    torch.uint32,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_element_types(dtype: torch.dtype) -> None:
    if dtype == torch.bool:
        values = torch.tensor([[True, False, True]])
    elif dtype.is_floating_point:
        values = torch.randn(3, 5).to(dtype)
    else:
        values = torch.tensor([[0, 1, 100], [5, 7, 9]]).to(dtype)
    # Bits, not only what a cast makes of them.
    program = pt2onnx.export(Held(values, values.T).eval(), (X,), optimize=False)
    stored = [t for t in program.model_proto.graph.initializer if t.dims]
    wanted = {
        values.contiguous().view(torch.uint8).numpy().tobytes(),
        values.T.contiguous().view(torch.uint8).numpy().tobytes(),
    }
    assert {bytes(t.raw_data) for t in stored} == wanted
    if dtype not in (torch.uint16, torch.uint32):
        check(Held(values), (X,), target="ort-cpu")


def test_bfloat16_module() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).to(torch.bfloat16)
    program = pt2onnx.export(model.eval(), (torch.randn(2, 8, dtype=torch.bfloat16),))
    assert {t.data_type for t in program.model_proto.graph.initializer} == {
        onnx.TensorProto.BFLOAT16
    }


def test_complex() -> None:
    values = torch.randn(3, 4, dtype=torch.complex64)
    for held in (
        values,
        values.T,
        values.conj(),
        values.T.conj()[1:],
        values.imag,
        values.real,
        values.conj().imag,
    ):
        model = Held(held, cast=None)
        check(model, (X,))


def test_negative_bit() -> None:
    values = torch.randn(3, dtype=torch.complex64).conj().imag
    assert values.is_neg()
    buffers(values)


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format], ids=str)
def test_memory_formats(format: torch.memory_format) -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
    ).to(memory_format=format)
    check(model, (torch.randn(2, 3, 8, 8).to(memory_format=format),))


def test_channels_last_3d() -> None:
    model = torch.nn.Conv3d(2, 4, 2).to(memory_format=torch.channels_last_3d)
    check(model, (torch.randn(1, 2, 4, 4, 4),))


def test_parametrised() -> None:
    model = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3))
    check(model, (torch.randn(2, 4),))


class TwoParts(torch.Tensor):
    """A tensor that is the sum of two others."""

    @staticmethod
    def __new__(cls: Any, first: torch.Tensor, second: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, first.shape, dtype=first.dtype, requires_grad=False
        )

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        self.first, self.second = first, second

    def __repr__(self, **_: Any) -> str:
        return "TwoParts()"

    def __tensor_flatten__(self) -> Any:
        return ["first", "second"], None

    @classmethod
    def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return cls(parts["first"], parts["second"])

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.aten.detach.default:
            return TwoParts(args[0].first, args[0].second)
        args, kwargs = torch.utils._pytree.tree_map(
            lambda a: a.first + a.second if isinstance(a, TwoParts) else a, (args, kwargs or {})
        )
        return function(*args, **kwargs)


@since(2, 8)
def test_subclass() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(
                TwoParts(torch.randn(3, 4), torch.randn(3, 4)), requires_grad=False
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, self.weight)

    check(Model(), (torch.randn(2, 4),))


def test_parameter_subclass() -> None:
    """A class that behaves as a plain tensor."""

    class Named(torch.nn.Parameter):
        pass

    model = torch.nn.Linear(4, 3)
    model.weight = Named(torch.randn(3, 4))
    check(model, (torch.randn(2, 4),))


def test_meta(tmp_path: pathlib.Path) -> None:
    """Weights without values: a model without values, given later."""
    with torch.device("meta"):
        model = torch.nn.Linear(64, 64)
    exported = torch.export.export(model.eval(), (torch.randn(2, 64, device="meta"),))
    with pytest.warns(UserWarning, match="2 of 2 weights"):
        program = pt2onnx.export(exported)
    program.save(tmp_path / "m.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert (tmp_path / "m.onnx").stat().st_size < 64 * 64
    real = torch.nn.Linear(64, 64)
    program.apply_weights(real.state_dict())
    x = torch.randn(2, 64)
    same(program(x), real(x))


def test_mapped(tmp_path: pathlib.Path) -> None:
    """Weights in a file, mapped into memory."""
    model = torch.nn.Linear(64, 64)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    state = torch.load(tmp_path / "w.pt", mmap=True)
    other = torch.nn.Linear(64, 64)
    other.load_state_dict(state, assign=True)
    x = torch.randn(2, 64)
    same(pt2onnx.export(other.eval(), (x,))(x), model(x))


def test_from_numpy() -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    buffers(torch.from_numpy(array), torch.from_numpy(array[::2, 1:]))


def test_read_only_numpy() -> None:
    array = np.frombuffer(np.arange(6, dtype=np.float32).tobytes(), np.float32)
    with pytest.warns(UserWarning):
        tensor = torch.from_numpy(array)
    buffers(tensor)


def test_sparse() -> None:
    """A sparse constant becomes a dense one."""
    model = Call(lambda x: x + 1)
    model.register_buffer("unused", torch.eye(3).to_sparse())
    check(model, (torch.randn(2),))


def test_inline_constants() -> None:
    check(Call(lambda x: x + torch.tensor([1.0, 2.0]) + torch.tensor(3)), (torch.randn(2),))


def test_nothing_is_copied() -> None:
    """The model's weights are the module's memory: changes are seen."""
    model = torch.nn.Linear(64, 64).eval()
    x = torch.randn(2, 64)
    program = pt2onnx.export(model, (x,))
    with torch.no_grad():
        model.weight.add_(1)
    same(program(x), model(x))


def test_memory_is_kept() -> None:
    """A program holds the memory of its weights, and gives it back."""
    import gc
    import weakref

    model = torch.nn.Linear(64, 64).eval()
    x = torch.randn(2, 64)
    expected = model(x)
    program = pt2onnx.export(model, (x,))
    gone = weakref.ref(model)
    program.exported_program = None
    del model
    gc.collect()
    assert gone() is None
    torch.randn(100, 64, 64)
    same(program(x), expected)


def test_wrong_weights() -> None:
    program = pt2onnx.export(torch.nn.Linear(64, 64).eval(), (torch.randn(2, 64),))
    with pytest.raises(pt2onnx.OnnxExporterError, match="weight"):
        program.apply_weights({"weight": torch.randn(3, 3)})
    with pytest.raises(pt2onnx.OnnxExporterError, match="weight"):
        program.apply_weights({"weight": torch.randn(64, 64, dtype=torch.float64)})
    with pytest.raises(TypeError, match=r"weight weight: it must be a torch.Tensor, not int"):
        program.apply_weights({"weight": 3})
    with pytest.warns(UserWarning, match="'nothing' not found"):
        program.apply_weights({"nothing": torch.randn(3, 3)})


def test_folded_weights() -> None:
    """Transposed and normalised weights of a model at full optimisation."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(3),
    )
    x = torch.randn(2, 3, 5, 5)
    model(x)
    program = check(model, (x,))
    assert "BatchNormalization" not in operators(program)


def test_unknown_element_type() -> None:
    model = Call(lambda x: x + 1)
    model.register_buffer("w", torch.zeros(4, dtype=torch.uint8).view(torch.bits8))
    with pytest.raises(Exception, match="bits8"):
        pt2onnx.export(model, (X,))


class Pairs(torch.nn.Module):
    """Numbers of four bits, two in a byte: PyTorch counts the bytes, ONNX the numbers."""

    def __init__(self) -> None:
        super().__init__()
        numbers = torch.tensor([[0x21, 0x43], [0x65, 0xF7]], dtype=torch.uint8)
        self.register_buffer("w", numbers.view(torch.float4_e2m1fn_x2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1, self.w, torch.empty([3, 1], dtype=torch.float4_e2m1fn_x2)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this PyTorch has no float4")
def test_float4() -> None:
    with pytest.warns(UserWarning, match="needs opset 23"):
        program = pt2onnx.export(Pairs().eval(), (X,))
    assert program.opset_version == 23
    assert [str(output.dtype) for output in program.model.graph.outputs[1:]] == [
        "FLOAT4E2M1",
        "FLOAT4E2M1",
    ]
    assert [output.shape.numpy() for output in program.model.graph.outputs[1:]] == [(2, 4), (3, 2)]
    held = program.model.graph.initializers["w"].const_value.numpy().astype("float32")
    assert held.tolist() == [[0.5, 1.0, 1.5, 2.0], [3.0, 4.0, 6.0, -6.0]]


class Flagged(torch.nn.Module):
    """Takes a branch by the values of its buffers, and counts its calls if ``writes``."""

    def __init__(self, ready: bool = True, writes: bool = False) -> None:
        super().__init__()
        self.register_buffer("ready", torch.tensor(ready))
        self.register_buffer("calls", torch.tensor([3.0, 0.0]))
        self.writes = writes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            x = x + 1
        if (self.calls > 2).any() and self.calls[1].item() == 0:
            x = x * 2 + int(self.calls[0])
        if self.writes:
            self.calls.add_(1)
        return x


@since(2, 8)
@pytest.mark.parametrize("ready", [True, False])
def test_branches_by_values_of_weights(ready: bool) -> None:
    x = torch.randn(2, 3)
    with pytest.warns(
        UserWarning,
        match="The model holds only for the values that these weights have now: `ready`",
    ):
        program = check(Flagged(ready).eval(), (x,), dynamic_shapes=({0: "n"},))
    same(program(torch.ones(4, 3)), Flagged(ready)(torch.ones(4, 3)))


class Limited(torch.nn.Module):
    """Compares a buffer with a size."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.tensor(3))
        self.register_buffer("ready", torch.tensor(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2 if int(self.ready + self.limit) == 4 else x
        x = torch.nn.functional.pad(x, (self.ready, max(self.ready, self.limit - 1)))
        return torch.where(self.limit > x.shape[0], x + 1, x - 1)


@since(2, 8)
def test_sizes_beside_values_of_weights() -> None:
    """Sizes that are compared with weights stay dynamic."""
    check(
        Limited(), (torch.randn(2, 3),), dynamic_shapes=({0: "n"},), others=[(torch.randn(5, 3),)]
    )


@since(2, 8)
def test_branches_by_values_that_are_written() -> None:
    """The next call may take another branch."""

    class NoScript(Flagged):
        def forward(self, x: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
            return super().forward(x)

    x = torch.randn(2, 3)
    same(pt2onnx.export(Flagged(writes=True).eval(), (x,))(x), Flagged(writes=True)(x))
    with pytest.raises(
        pt2onnx.TorchExportError, match="chooses by the value of `calls`, which it writes to"
    ):
        pt2onnx.export(NoScript(writes=True).eval(), (x,))
