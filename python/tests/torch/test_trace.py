"""dynamo=False: traces that are compared with the module, and the strategies after them."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pt2onnx
import pytest
import torch
from helpers import Call, same
from pt2onnx import _examples
from pt2onnx._capture import _budget, _module_trace, _patience, _trace
from pt2onnx._capture._torch_export import Call as Captured
from pt2onnx._state import Snapshot

X = torch.rand(4, 8)


def _call(module: torch.nn.Module, *args: torch.Tensor, shapes: object = None) -> Captured:
    return Captured(module, args, {}, shapes, Snapshot(module, args))


def exported(function: Callable[..., Any], x: torch.Tensor = X) -> pt2onnx.ONNXProgram:
    return pt2onnx.export(
        Call(function).eval(), (x,), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}}
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(x.shape[0], 2, 4).sum(-1),
        lambda x: torch.zeros(x.shape[0], 2) + x[:, :2],
        lambda x: x[torch.arange(x.shape[0]) % 2 == 0],
        lambda x: torch.nn.functional.pad(x, (0, 0, 0, (-x.shape[0]) % 4)),
    ],
)
def test_traces_that_hold(function: Callable[..., Any]) -> None:
    program = exported(function)
    assert program._capture_strategy == "TraceStrategy"
    for size in (1, 4, 7):
        x = torch.rand(size, 8)
        same(program(x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.stack([x[i] * i for i in range(x.shape[0])]),
        lambda x: x * 2 if x.sum() > 0 else x * 3,
        lambda x: x * {4: 2.0}.get(x.shape[0], 7.0),
        lambda x: x * float(x.shape[0]),
        lambda x: x * x.detach().numpy().shape[0],
    ],
)
def test_traces_that_do_not_hold(function: Callable[..., Any]) -> None:
    """Another strategy leads to the model, a warning says where it may be wrong, or there is an
    error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            program = exported(function)
        except pt2onnx.TorchExportError as error:
            assert "TraceStrategy" in error.failures_by_strategy
            return
    assert program._capture_strategy != "TraceStrategy"
    told = any("may be wrong" in str(one.message) for one in seen)
    for x in (torch.rand(4, 8), -torch.rand(4, 8), torch.rand(9, 8)):
        if not told:
            same(program(x), function(x))


class Shared(torch.nn.Module):
    """Two buffers in the same memory, tied weights, and weights that are views."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.zeros(4))
        self.register_buffer("part", self.whole[:2])
        self.register_buffer("rows", torch.rand(1, 4).expand(3, 4))
        self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.two.weight = self.one.weight
        self.plain = torch.rand(4, 4).T

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.whole.add_(1)
        y = self.two(self.one(x)) @ self.plain + self.rows[0] + self.part.sum()
        if x.shape[0] == 3:
            raise ValueError("no three rows")
        return y


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("options", [{}, {"dynamo": False}, {"verify": True}])
def test_buffers_are_left_as_they_were(rows: int, options: dict[str, Any]) -> None:
    """Values and memory, whether there is a model or not."""
    module, x = Shared().eval(), torch.rand(rows, 4)
    before = {name: (b, b.data_ptr(), b.clone()) for name, b in module.named_buffers()}
    if rows == 3:
        with pytest.raises(Exception, match="no three rows"):
            pt2onnx.export(module, (x,), **options)
    else:
        pt2onnx.export(module, (x,), **options)
    for name, (buffer, memory, values) in before.items():
        assert getattr(module, name) is buffer and buffer.data_ptr() == memory
        torch.testing.assert_close(buffer, values)


class Counts(torch.nn.Module):
    """Writes to a parameter through a view: always, while it is traced, or at one size only."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.when = when

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cases = {"always": True, "traced": torch.jit.is_tracing(), "size": int(x.shape[0]) == 4}
        if cases[self.when]:
            self.linear.weight.detach().view(-1)[1:3].add_(1)
        return self.linear(x)


@pytest.mark.parametrize("when", ["always", "traced", "size"])
@pytest.mark.parametrize("axes", [None, {"x": {0: "n"}}])
def test_parameters_are_left_as_they_were(when: str, axes: Any) -> None:
    module = Counts(when).eval()
    old = module.linear.weight.detach().clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pt2onnx.export(module, (X,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    assert torch.equal(module.linear.weight, old)


def test_weights_of_traces_are_lent() -> None:
    module = torch.nn.Linear(512, 512).eval()
    script = _trace.traced(Captured(module, (torch.rand(2, 512),), {}, None)).script()
    assert script.package.storages is not None and len(script.package.storages) == 2
    assert len(script.package.archive) < 20_000
    program = pt2onnx.export(module, (torch.rand(2, 512),), dynamo=False)
    assert program._capture_strategy == "TraceStrategy"
    x = torch.rand(2, 512)
    same(program(x), module(x))


def test_messages_have_lines_of_the_user() -> None:
    """The innermost frame of the node is in torch."""
    module = torch.nn.Sequential(Normed()).train()
    training = torch.onnx.TrainingMode.PRESERVE
    program = pt2onnx.export(module, (torch.rand(2, 3),), dynamo=False, training=training)
    assert len(program.warnings) == 1 and "first at test_trace.py:" in program.warnings[0]


class Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def test_names_and_roles_of_weights() -> None:
    module = Shared().eval()
    program = pt2onnx.export(module, (torch.rand(2, 4),), dynamo=False, optimize=False)
    names = {one.name for one in program.model_proto.graph.initializer}
    assert {"one.weight", "one.bias", "two.bias"} <= names


@pytest.mark.parametrize(
    "function",
    [
        # The second input is not used.
        lambda x, y: x * 2,
        # The trace does not hold, and neither torch.export nor a script captures the module.
        lambda x, y: x * float(numpy.abs(x.detach().numpy()).max()),
        lambda x, y: torch.stack([x[i] * i for i in range(x.shape[0])]) + y.shape[0],
    ],
)
def test_one_trace_of_a_call(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that are kept and later strategies use the first trace."""
    made: list[Any] = []
    once = _trace.trace_call

    def counted(call: Captured, run: _trace.Run) -> Any:
        made.append([tuple(leaf.value.shape) for leaf in _trace.tensor_leaves(call)])
        return once(call, run)

    monkeypatch.setattr(_trace, "trace_call", counted)
    axes = {"x": {0: "n"}, "y": {0: "n"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pt2onnx.export(
            Call(function).eval(),
            (X, X),
            dynamo=False,
            input_names=["x", "y"],
            dynamic_axes=axes,
        )
    assert made.count([(4, 8), (4, 8)]) == 1


class Limited(torch.nn.Module):
    """Does the same with rows of up to 64 elements, by two ways."""

    def __init__(self, border: int) -> None:
        super().__init__()
        self.border = border

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, :64] if x.shape[1] > self.border else x) + 1


@pytest.mark.parametrize(("border", "layers"), [(1, _budget.SMALL), (8, 1)])
def test_other_sides_of_branches(border: int, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is traced there as well, unless it is large and does the same at all sizes but 1."""
    made: list[Any] = []
    once = _trace.trace_call

    def counted(call: Captured, run: _trace.Run, **options: Any) -> Any:
        made.append(call)
        return once(call, run, **options)

    monkeypatch.setattr(_trace, "trace_call", counted)
    module = torch.nn.Sequential(Limited(border), *[torch.nn.ReLU()] * layers)
    axes = {"x": {0: "n", 1: "m"}}
    x = torch.rand(2, 7)
    program = pt2onnx.export(module, (x,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    if border == 1:
        assert len(made) == 1
    for size in (2, 7, 9, 100):
        x = torch.rand(3, size)
        same(program(x), module(x))


def test_graphs_of_traces() -> None:
    """They have no calls of inner modules, and no marks of reads."""
    inner = torch.nn.Sequential(Limited(1), torch.nn.Softplus())
    module = torch.nn.Sequential(torch.nn.Sequential(inner, inner), torch.nn.ReLU()).eval()
    program = _trace.trace_call(_call(module, X, shapes=({1: "n"},)), None)
    assert isinstance(program.code, _module_trace.ModuleTrace)
    kinds = [node.kind() for node in program.code.inlined_graph.nodes()]
    assert kinds.count("aten::softplus") == 2
    assert not {"prim::CallMethod", "prim::Print"} & set(kinds)
    assert [[bool(read) for read in program.code.reads(torch.rand(3, n))] for n in (1, 2)] == [
        [False, False],
        [True, True],
    ]
    nodes = [node.kind() for graph in program.code.graphs() for node in graph.nodes()]
    assert "prim::Print" not in nodes


def test_hooks_run_in_traces() -> None:
    module = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid())
    module[0].register_forward_hook(lambda *given: given[-1] * 2)
    module[1].register_forward_pre_hook(lambda _, given: (given[0] + 1,))
    program = pt2onnx.export(module, (X,), dynamo=False)
    same(program(X), module(X))
    with torch.nn.modules.module.register_module_forward_hook(lambda *given: given[-1] - 1):
        program = pt2onnx.export(module, (X,), dynamo=False)
        want = module(X)
    same(program(X), want)


def test_traces_are_freed_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        exported(lambda x: x + 1)
        assert not [one for one in gc.get_objects() if type(one) is _module_trace.ModuleTrace]
    finally:
        gc.enable()


class Strided(torch.nn.Module):
    """Takes multiples of 32 only. Its channels are split, and not its dynamic sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 32, stride=32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, other = self.stem(x).chunk(2, dim=1)
        large = torch.nn.functional.interpolate(other, scale_factor=32)
        return large + x[:, :1] + one.mean()


def test_one_run_besides_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    stem = torch.nn.Conv2d.forward

    def count(self: torch.nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        runs.append(tuple(x.shape))
        return stem(self, x)

    monkeypatch.setattr(torch.nn.Conv2d, "forward", count)
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    x = torch.rand(1, 3, 160, 160)
    program = pt2onnx.export(Strided(), (x,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    assert program._capture_strategy == "TraceStrategy"
    assert runs == [(2, 3, 64, 64), (1, 3, 160, 160)]


def test_examples_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a batch of 2 may be as large as the length, and a run takes no time."""
    elements: list[int] = []
    resize = _examples.resize

    def count(*args: Any) -> torch.Tensor:
        made = resize(*args)
        elements.append(made.numel())
        return made

    def by_sizes(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] < x.shape[1] else x * 3

    monkeypatch.setattr(_examples, "resize", count)
    axes = {"x": {0: "batch", 1: "length"}}
    x = torch.rand(2, 16000)
    program = pt2onnx.export(
        Call(by_sizes), (x,), dynamo=False, input_names=["x"], dynamic_axes=axes
    )
    for x in (torch.rand(2, 3), torch.rand(3, 2)):
        same(program(x), by_sizes(x))
    assert max(elements) <= 16000 * 2 * 100


class Packed(torch.nn.Module):
    """Takes lengths that are sorted only."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True)
        return torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


def test_sorted_lengths(recwarn: pytest.WarningsRecorder) -> None:
    """They stay sorted at other sizes, so that the trace can be compared there."""
    module = Packed().eval()
    axes = {"x": {0: "batch", 1: "length"}, "lengths": {0: "batch"}}
    program = pt2onnx.export(
        module,
        (torch.rand(2, 9, 4), torch.tensor([9, 7])),
        dynamo=False,
        input_names=list(axes),
        dynamic_axes=axes,
    )
    assert program._capture_strategy == "TraceStrategy"
    assert not [one for one in recwarn if "may be wrong" in str(one.message)]
    args = torch.rand(3, 14, 4), torch.tensor([14, 12, 12])
    same(program(*args), module(*args))


class FlatPacked(Packed):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        self.lstm.flatten_parameters()
        return super().forward(x, lengths)


@pytest.mark.parametrize("kind", [Packed, FlatPacked])
def test_traces_after_torch_export(kind: type[Packed]) -> None:
    """Traces at two sizes are the same, although one of them has run."""
    module = kind().eval()
    program = pt2onnx.export(
        module,
        (torch.rand(2, 9, 4), torch.tensor([9, 7])),
        dynamic_shapes=({0: "batch", 1: "length"}, {0: "batch"}),
    )
    assert program._capture_strategy == "TraceStrategy"
    args = torch.rand(3, 14, 4), torch.tensor([14, 12, 12])
    same(program(*args), module(*args))


def test_reads_of_constants() -> None:
    """A number that is computed from constants of the trace."""
    program = exported(lambda x: x * int(torch.tensor(3) * torch.tensor(2.0)) + x.shape[0])
    assert program._capture_strategy == "TraceStrategy"
    same(program(X[:3]), X[:3] * 6 + 3)


class Jumps(torch.nn.Module):
    """Takes another branch at other sizes, in a way that the graph of a trace does not show."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.from_numpy(numpy.full((1,), x.detach().numpy().shape[0], numpy.float32))
        return x * weight


def test_refuted_traces_warn() -> None:
    with pytest.warns(match="may be wrong"):
        exported(Jumps())


def test_captures_end_where_there_is_a_trace(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch.export may take hours. Without a trace, it may."""
    monkeypatch.setattr(_patience, "SECONDS", 0.0)
    monkeypatch.setattr(_patience, "TRACES", 0.0)
    options = {"dynamic_shapes": ({0: "rows"},), "report": True, "artifacts_dir": tmp_path}
    with pytest.warns(match="may be wrong"):
        program = pt2onnx.export(Jumps(), (X,), dynamo=False, **options)
    assert program._capture_strategy == "LenientTraceStrategy"
    report = next(tmp_path.glob("*.md")).read_text()
    assert "torch.export was given up after 0 s" in report
    program = pt2onnx.export(torch.nn.Linear(8, 2), (X,), dynamic_shapes=({0: "rows"},))
    assert program._capture_strategy == "TorchExportNonStrictStrategy"


@pytest.mark.parametrize("rows", [1, 4])
def test_results_without_numbers(rows: int) -> None:
    """They do not show that the trace has a size of its example."""
    nan = float("nan")
    program = exported(lambda x: (x[:rows] * nan * float(x.shape[0])).sum(-1))
    assert program._capture_strategy != "TraceStrategy"


TABLE = torch.arange(8.0)


#: Dynamic shapes of a function of one matrix.
DYNAMIC = (({0: "rows", 1: "columns"},),)


@pytest.mark.parametrize("shapes", [None, DYNAMIC])
def test_sizes_are_keys(shapes: object) -> None:
    """A tensor that stands for a size is another key, be the size dynamic or static."""
    function = lambda x: x * {4: 2.0}.get(x.shape[0], 7.0) + torch.rand(4, 8)  # noqa: E731
    traced = _trace.traced(Captured(Call(function), (X,), {}, shapes))
    assert traced.sizes.keys
    with pytest.raises(_trace.TraceWarning):
        _trace.check_own(traced)
    function = lambda x: x * 2 + torch.rand(4, 8)  # noqa: E731
    traced = _trace.traced(Captured(Call(function), (X,), {}, shapes))
    assert not traced.sizes.keys
    _trace.check_own(traced)


def test_notes_are_on_values_only() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        torch._assert(rows * 2 < columns + 8, "too many rows")
        return x * int(rows + 1) if rows % 2 == 0 else x

    traced = _trace.traced(Captured(Call(function), (X,), {}, DYNAMIC))
    assert traced.sizes.any and not traced.notes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert exported(function)._capture_strategy != "TraceStrategy"
    traced = _trace.traced(Captured(Call(lambda x: x * int(x.sum() > 0)), (X,), {}, DYNAMIC))
    assert not traced.sizes.any and traced.notes


@pytest.mark.parametrize("shapes", [None, DYNAMIC])
@pytest.mark.parametrize(
    "of_data",
    [
        lambda x: (x > 0).nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.where(x > 0)[0],
        lambda x: torch.unique(x, dim=0) * 2,
        lambda x: x[: (x > 0).sum()],
        lambda x: x.new_zeros(int((x > 0).nonzero().shape[0]), 2) + 1,
        lambda x: torch.repeat_interleave(x, (x[:, 0] > 0).long(), dim=0),
    ],
)
def test_sizes_that_values_decide(of_data: Callable[..., Any], shapes: object) -> None:
    """A note on each, also where all sizes of the arguments are static."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if of_data(x).shape[0] > 3 else x * 3

    traced = _trace.traced(Captured(Call(function), (X,), {}, shapes))
    assert [note for note in traced.notes if "size that values decide" in note]


def test_sizes_that_values_do_not_decide() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        total = x[x > 0].sum()
        return x * total if (x * total)[: x.shape[0]].shape[0] > 3 else x

    assert not _trace.traced(Captured(Call(function), (X,), {}, DYNAMIC)).notes


class Counting(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = (x > 0).nonzero().shape[0]
        return x * 2 if n > 3 else x * 3


@pytest.mark.parametrize("axes", [None, {"x": {0: "n"}}])
def test_branches_on_sizes_that_values_decide(axes: Any) -> None:
    program = pt2onnx.export(Counting(), (X,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    for x in (X, -X):
        same(program(x), Counting()(x))


@pytest.mark.filterwarnings("ignore:.*squeeze.*:UserWarning")
def test_a_single_row_may_be_another_case() -> None:
    """The trace is then compared with the module at three rows."""
    program = exported(lambda x: (x * 2).squeeze(0).cumsum(-1), X[:2])
    assert program._capture_strategy == "TraceStrategy"
    same(program(X), (X * 2).cumsum(-1))


def test_static_sizes_may_be_read() -> None:
    """They are numbers, as for an image of one size in a batch of any."""

    def function(x: torch.Tensor) -> torch.Tensor:
        torch._assert(x.shape[1] == 8, "of one size")
        return x * int(x.shape[1])

    for axis, reads in ((0, False), (1, True), (-1, True)):
        shapes = (({axis: "size"},),)
        assert _trace.traced(Captured(Call(function), (X,), {}, shapes)).sizes.any == reads


def test_results_without_elements() -> None:
    """Such as those of a detector that finds nothing."""
    program = exported(lambda x: (x[x[:, 0] > 2], x[x[:, 0] > 3, :4]))
    assert program._capture_strategy == "TraceStrategy"
    assert [list(output.shape) for output in program(X)] == [[0, 8], [0, 4]]


def test_convolutions() -> None:
    """The tracer records them, so that the input is used."""
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.SiLU(inplace=True)).eval()
    x = torch.zeros(1, 3, 8, 8)
    program = pt2onnx.export(module, (x,), dynamo=False)
    assert program._capture_strategy == "TraceStrategy" and len(program.input_names) == 1
    x = torch.rand(1, 3, 8, 8)
    same(program(x), module(x))


def test_traces_do_not_load_dynamo() -> None:
    """It takes more memory and time than a small model."""
    code = """
import sys, torch, pt2onnx
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
axes = {"x": {0: "batch"}}
pt2onnx.export(model, (torch.rand(2, 4),), dynamo=False, input_names=["x"], dynamic_axes=axes)
assert not {"torch._dynamo", "sympy"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
