"""Modules of kinds that captures do not see through: ``.data``, gradients, wrappers, autocast."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pt2onnx
import pytest
import torch
import torch.nn.functional as F
from helpers import same
from pt2onnx import _wrappers
from torch import nn
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch.nn.functional import scaled_dot_product_attention

#: Both exporters of torch.onnx.
DYNAMO = pytest.mark.parametrize("dynamo", [True, False])
#: Whether the first dimension is dynamic.
DYNAMIC = pytest.mark.parametrize("dynamic", [True, False])


def check(model: Any, *calls: Sequence[torch.Tensor], **options: Any) -> pt2onnx.ONNXProgram:
    """Exports a module for the first of several calls, and compares all of them."""
    expected = []
    for call in calls:
        # A call may write into weights.
        results = copy.deepcopy(model)(*copy.deepcopy(call))
        leaves = results if isinstance(results, tuple) else (results,)
        expected.append([leaf.detach() for leaf in leaves])
    program = pt2onnx.export(model, calls[0], **options)
    for call, results in zip(calls, expected, strict=True):
        same(program(*call), results)
    return program


class Data(nn.Module):
    """A module with a weight and a buffer, and a function of it and its input."""

    def __init__(self, function: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("table", torch.randn(4, 3))
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


def written_through(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.data.add_(1)
    y[:, 0].data.mul_(3)
    return y * 2


def set_on_results(_: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    y.data = x.sin()
    z = y + 1
    y.add_(5)
    return y, z


def set_on_the_input(_: Any, x: torch.Tensor) -> torch.Tensor:
    x.data = x.data * 2
    return x + 1


def set_on_a_slice(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    part = y[:, :2]
    part.data = part * 10
    return torch.cat([y, part], 1)


def weights_set(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.linear.weight.data = self.table.T @ self.table
    return self.linear(x)


def weights_set_by_the_input(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.linear.weight.data = torch.outer(x[0], x[0])
    self.linear.bias.data = x[0] * 2
    return self.linear(x)


def buffer_written(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.table.data[0].fill_(0.5)
    self.table[1].data.copy_(x[0])
    return x @ self.table.T


def clamped(self: Any, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, self.linear.weight.data.clamp(-0.1, 0.1), self.linear.bias.data[:])


DATA = [
    lambda _, x: x.data * 2,
    lambda _, x: x[:, 1:].data * x.shape[0] + x.exp().data[:, :1],
    lambda self, x: (x + self.table.data[:1]).data.relu().data,
    written_through,
    set_on_results,
    set_on_the_input,
    set_on_a_slice,
    weights_set,
    weights_set_by_the_input,
    buffer_written,
    clamped,
]


@DYNAMO
@DYNAMIC
@pytest.mark.parametrize("function", DATA)
@pytest.mark.filterwarnings("ignore:the program writes")
def test_data(function: Any, dynamic: bool, dynamo: bool) -> None:
    model = Data(function).eval()
    state = copy.deepcopy(model.state_dict())
    parameters = [(id(p), p.data_ptr()) for p in model.parameters()]
    calls = [(torch.randn(2, 3),), (torch.randn(5 if dynamic else 2, 3),)]
    shapes = ({0: "n"},) if dynamic else None
    check(model, *calls, dynamic_shapes=shapes, dynamo=dynamo)
    same(list(model.state_dict().values()), list(state.values()))
    assert [(id(p), p.data_ptr()) for p in model.parameters()] == parameters


def test_weights_that_are_resized() -> None:
    def grown(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.table.data = torch.cat([self.table, x])
        return self.table.sum(0)

    with pytest.warns(UserWarning, match="writes into the buffer `table`"):
        check(Data(grown).eval(), (torch.randn(2, 3),))


class Energy(nn.Module):
    def __init__(self, act: nn.Module, second: bool = False) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), act, nn.LayerNorm(8), nn.Linear(8, 1))
        self.second = second

    def forward(self, x: torch.Tensor) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            distance = (x[:, None] - x[None]).pow(2).sum(-1).add(1e-3).sqrt()
            energy = self.net(x).sum() + (1 / (1 + distance)).sum()
            (force,) = torch.autograd.grad(energy, x, create_graph=self.second)
            if self.second:
                (force,) = torch.autograd.grad(force.pow(2).sum(), x)
        return energy.detach(), -force


class Gradient(nn.Module):
    """A module with a net, and a function of it and its input."""

    def __init__(self, function: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self.net, x)


def without_context(net: Any, x: torch.Tensor) -> torch.Tensor:
    """As code that never runs without gradients."""
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(net(x).sum(), x)[0]


def penalty(net: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        outputs = net(x)
        grads = torch.autograd.grad(outputs, x, torch.ones_like(outputs), create_graph=True)[0]
    return grads.norm(dim=1)


def vector_jacobian(net: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    outputs, pull = torch.func.vjp(net, x)
    return outputs, pull(outputs.cos())[0]


CONV = torch.randn(3, 3, 3)

GRADIENTS = [
    without_context,
    penalty,
    vector_jacobian,
    lambda net, x: torch.func.grad(lambda y: net(y).pow(2).sum())(x),
    lambda net, x: torch.func.jacrev(net)(x[0]),
    lambda net, x: torch.vmap(torch.func.jacrev(net))(x),
    lambda net, x: torch.func.jvp(net, (x,), (x.sin(),)),
    lambda net, x: torch.func.hessian(lambda y: net(y).sum())(x[0]),
    lambda net, x: torch.vmap(torch.func.jacfwd(net))(x),
    lambda net, x: torch.autograd.functional.jacobian(lambda y: net(y).sum(0), x),
    lambda net, x: torch.func.grad(lambda y: F.conv1d(y[None], CONV, padding=1).sin().sum())(x.T),
    lambda _, x: torch.func.grad(lambda y: F.conv1d(y, CONV, stride=2).sin().sum())(x.T[None]),
    lambda _, x: torch.func.grad(lambda y: F.conv_transpose1d(y.T, CONV, stride=2).sin().sum())(x),
]


@DYNAMO
@DYNAMIC
@pytest.mark.parametrize(
    "model", [Energy(nn.SiLU()), Energy(nn.GELU(), second=True)], ids=["first", "second"]
)
def test_forces(model: Any, dynamic: bool, dynamo: bool) -> None:
    sizes = (5, 9, 1) if dynamic else (5, 5)
    calls = [(torch.randn(size, 3),) for size in sizes]
    shapes = ({0: "atoms"},) if dynamic else None
    check(model.eval(), *calls, dynamic_shapes=shapes, dynamo=dynamo)


@pytest.mark.parametrize(
    ("function", "dynamic", "dynamo"),
    [
        *((function, True, at % 2 == 0) for at, function in enumerate(GRADIENTS)),
        *((function, at % 2 == 0, at % 2 == 1) for at, function in enumerate(GRADIENTS[:5])),
    ],
)
def test_gradients(function: Any, dynamic: bool, dynamo: bool) -> None:
    sizes = (4, 7) if dynamic else (4, 4)
    calls = [(torch.randn(size, 3),) for size in sizes]
    shapes = ({0: "n"},) if dynamic else None
    check(Gradient(function).eval(), *calls, dynamic_shapes=shapes, dynamo=dynamo)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor | None = None, *, scale: float = 1.0
    ) -> torch.Tensor:
        hidden = self.linear(tokens) * scale
        return hidden if mask is None else hidden * mask[:, None]


class Tuner(nn.Module):
    """As the modules of PEFT: calls ``forward`` of the model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.adapters = nn.ModuleDict({"default": nn.Linear(1, 1)})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.forward(*args, **kwargs)


class Outer(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.base_model = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_model(*args, **kwargs)


WRAPPERS = [
    torch.optim.swa_utils.AveragedModel,
    Outer,
    lambda model: Outer(Tuner(model)),
]


def _feed(program: pt2onnx.ONNXProgram) -> list[str]:
    return [value.name for value in program.model_proto.graph.input]


@DYNAMO
@pytest.mark.parametrize("wrap", [*WRAPPERS, nn.DataParallel])
def test_wrappers(wrap: Any, dynamo: bool) -> None:
    if wrap is nn.DataParallel and not dynamo:
        return
    model = wrap(Inner()).eval()
    x, mask = torch.randn(3, 4), torch.ones(3)
    calls = (x, mask), (torch.randn(7, 4), torch.randn(7))
    options = {"dynamo": dynamo}
    for shapes in (
        ({0: "b"}, {0: "b"}),
        {"tokens": {0: "b"}, "mask": {0: "b"}},
        {"args": ({0: "b"}, {0: "b"})},
        (({0: "b"}, {0: "b"}),),
    ):
        if "args" in shapes and wrap is nn.DataParallel:
            shapes = {"inputs": shapes["args"]}
        program = check(model, *calls, dynamic_shapes=shapes, **options)
        assert _feed(program) == ["tokens", "mask"]
    program = pt2onnx.export(
        model,
        (x,),
        kwargs={"mask": mask},
        dynamic_shapes={"tokens": {0: "b"}, "mask": {0: "b"}},
        **options,
    )
    assert _feed(program) == ["tokens", "mask"]
    assert "forward" not in vars(model)
    program = check(model, (x,), **options)
    assert _feed(program) == ["tokens"]


class Sums(nn.Module):
    """Hands nothing on: its one child gets something else."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(self, *parts: torch.Tensor) -> torch.Tensor:
        return self.linear(sum(parts))


@DYNAMO
def test_modules_that_only_look_like_wrappers(dynamo: bool) -> None:
    program = check(Sums(), (torch.randn(2, 4),), dynamo=dynamo)
    assert _feed(program) == ["parts_0"]


class ByName(Outer):
    """Gives all arguments to another module, in another way."""

    def forward(self, *args: torch.Tensor) -> Any:
        return self.base_model(**dict(zip(("tokens", "mask"), args, strict=True)))


def test_arguments_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for an inner module ends at its call."""
    runs: list[object] = []
    forward = Inner.forward

    def counted(self: Inner, *args: Any, **kwargs: Any) -> torch.Tensor:
        runs.append(args)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(Inner, "forward", counted)
    args = torch.randn(3, 4), torch.ones(3)
    with _wrappers.inner_parameters(ByName(Inner()), args, {}):
        assert not runs
    program = pt2onnx.export(ByName(Inner()), args, dynamo=False)
    assert _feed(program) == ["args_0", "args_1"]


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.first(x)
        scores = (hidden @ hidden.transpose(-1, -2)).softmax(-1)
        with torch.autocast("cpu", enabled=False):
            exact = x @ x.transpose(-1, -2)
        return self.second(scores @ hidden + x), exact, torch.cat([hidden, hidden * 2])


@DYNAMO
@DYNAMIC
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_around_the_export(dtype: torch.dtype, dynamic: bool, dynamo: bool) -> None:
    model, x = Half().eval(), torch.rand(4, 6)
    shapes = ({0: "n"},) if dynamic else None
    with torch.autocast("cpu", dtype):
        program = pt2onnx.export(
            model, (x,), dynamic_shapes=shapes, dynamo=dynamo, verify=True, target="ort-cpu"
        )
        expected = model(x)
    assert program.verification is not None and program.verification.ok, program.verification
    numbers = {torch.float32: 1, torch.float16: 10, torch.bfloat16: 16}
    types = [value.type.tensor_type.elem_type for value in program.model_proto.graph.output]
    assert types == [numbers[result.dtype] for result in expected]


def test_archives_captured_under_autocast(tmp_path: Any) -> None:
    model, x = Half().eval(), torch.rand(4, 6)
    with torch.autocast("cpu", torch.float16):
        exported = torch.export.export(model, (x,))
        expected = [result.detach() for result in model(x)]
    path = str(tmp_path / "half.pt2")
    torch.export.save(exported, path)
    for found, result in zip(pt2onnx.convert(path)(x), expected, strict=True):
        assert found.dtype == result.dtype
        torch.testing.assert_close(found, result, rtol=2e-2, atol=2e-2)


@DYNAMO
def test_weight_norm_of_vectors(dynamo: bool) -> None:
    norm = torch.nn.utils.parametrizations.weight_norm
    for model in (
        norm(nn.LayerNorm(4)),
        norm(norm(nn.BatchNorm1d(4)), "bias", dim=None),
        norm(nn.Linear(4, 3), "bias"),
    ):
        check(model.eval(), (torch.randn(3, 4),), dynamo=dynamo)


@pytest.mark.parametrize("options", [{"dynamo": False}, {"training": "eval"}])
def test_verification_in_the_mode_of_the_export(options: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)).train()
    program = pt2onnx.export(model, (torch.randn(8, 4),), verify=True, **options)
    assert program.verification is not None and program.verification.ok
    assert all(module.training for module in model.modules())


@DYNAMO
def test_padded_rows_of_encoders(dynamo: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    mask = torch.tensor([[False] * 4 + [True] * 2, [False] * 3 + [True] * 3])
    kwargs = {"src_key_padding_mask": mask}
    with pytest.warns(UserWarning, match="fast path"):
        program = pt2onnx.export(
            model, (torch.randn(2, 6, 8),), kwargs=kwargs, dynamo=dynamo, verify=True
        )
    assert program.verification is not None and program.verification.ok
    assert "zeroes" in str(program.verification)
    assert torch.backends.mha.get_fastpath_enabled()


class Decoder(nn.Module):
    """As the attention of Whisper: ``is_causal`` follows from a size."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        count = x.shape[1]
        keys = torch.cat([past, x], 1)
        causal = mask is not None and count > 1
        q, k, v = self.query(x), self.key(keys), self.value(keys)
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


@DYNAMO
def test_is_causal_by_sizes(dynamo: bool) -> None:
    calls = [
        (torch.randn(2, count, 8), torch.randn(2, past, 8), torch.ones(3))
        for count, past in ((5, 2), (1, 4), (3, 3))
    ]
    shapes = ({1: "n"}, {1: "past"}, None)
    check(Decoder().eval(), *calls, dynamic_shapes=shapes, dynamo=dynamo)
    assert scaled_dot_product_attention is F.scaled_dot_product_attention


class Masked(nn.Module):
    """Masks that are computed by element, as those of transformers 4."""

    def forward(self, mask: torch.Tensor) -> torch.Tensor:
        def is_seen(row: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return (key <= query) & mask[row, key]

        seen = is_seen
        for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
            seen = torch.vmap(seen, in_dims=dims)
        rows, length = torch.arange(mask.shape[0]), torch.arange(mask.shape[1])
        with TransformGetItemToIndex():
            return seen(rows, length, length)


@DYNAMO
@DYNAMIC
def test_vmap_of_indices(dynamic: bool, dynamo: bool) -> None:
    calls = [(torch.rand(sizes) > 0.4,) for sizes in ((2, 5), (3, 7))]
    shapes = ({0: "rows", 1: "length"},) if dynamic else None
    used = calls if dynamic else calls[:1]
    check(Masked().eval(), *used, dynamic_shapes=shapes, dynamo=dynamo)
    assert torch._C._functorch.maybe_current_level() is None


class Batch(nn.Module):
    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return batch["ids"] + batch["mask"]


@DYNAMO
def test_a_dict_as_the_last_argument(dynamo: bool) -> None:
    """It holds keywords, unless only the dict itself fits."""
    batch = {"ids": torch.randn(2, 3), "mask": torch.randn(2, 3)}
    program = pt2onnx.export(Batch(), (batch,), dynamo=dynamo)
    same(program(batch), Batch()(batch))
    program = pt2onnx.export(Inner().eval(), ({"tokens": torch.randn(2, 4)},), dynamo=dynamo)
    assert _feed(program) == ["tokens"]


class Branches(nn.Module):
    """Code that looks for tensors that are too large, or whose sizes are no multiples."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.numel() * 2 > 2**31 or x.shape[0] * x.shape[1] * 4 >= 2**31:
            x = x.contiguous()
        return x if x.shape[1] // 8 * 8 == x.shape[1] else x[:, :8]


def test_conditions() -> None:
    with pytest.warns(UserWarning) as caught:
        shapes = ({0: "b", 1: "t"},)
        pt2onnx.export(Branches(), (torch.randn(2, 32),), dynamic_shapes=shapes, sizes="warn")
    texts = [str(one.message) for one in caught if "holds only" in str(one.message)]
    assert len(texts) == 1 and "holds only where (t % 8) == 0." in texts[0], texts
