"""An export leaves the module, its objects and torch as they were, whether it succeeds, fails or is
interrupted.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import random
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pt2onnx
import pytest
import torch
from pt2onnx._state import Snapshot

nn = torch.nn

TABLE: dict[str, Any] = {}
TOTAL = 0


@functools.lru_cache
def table(size: int) -> torch.Tensor:
    return torch.arange(size) * 1.0


def remember(value: Any, seen: list[Any] = []) -> None:  # noqa: B006 (what is tested)
    seen.append(value)


def counter() -> Callable[[Any], None]:
    count, last = 0, None

    def count_up(value: Any) -> None:
        nonlocal count, last
        count, last = count + 1, value

    return count_up


class Plain:
    """An object with attributes."""


class Slots:
    __slots__ = ("__secret", "free", "value")

    def __init__(self) -> None:
        self.value, self.__secret = 1, [2]

    def write(self, value: Any) -> None:
        self.value, self.free = value, value
        self.__secret.append(value)


@dataclasses.dataclass
class Data:
    value: Any = None
    items: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    items: dict[str, Any] = dataclasses.field(default_factory=dict)


class Ordered(collections.OrderedDict[str, Any]):
    """With an attribute, and a method that must not be called."""

    def __init__(self) -> None:
        super().__init__(one=1, two=2)
        self.writes = 0

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if hasattr(self, "writes"):
            self.writes += 1


class Registry:
    """A class that nothing is an object of."""

    entries: dict[str, Any] = {}  # noqa: RUF012
    last: Any = None


class Net(nn.Module):
    """All kinds of things that ``forward`` may write to."""

    of_class: Any = None
    cache: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.drop, self.norm = nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4)
        self.emb = nn.Embedding(4, 4, max_norm=0.1)
        self.register_buffer("whole", torch.zeros(4))
        self.register_buffer("part", self.whole[:2])
        self.register_buffer("lazy", None)
        self.plain, self.none, self.count = torch.zeros(3), None, 0
        self.list, self.dict = [1], {"a": [torch.zeros(1)], "b": {}}
        self.ordered, self.own_ordered = collections.OrderedDict(a=1, b=2), Ordered()
        self.default, self.set, self.deque = collections.defaultdict(list), {1}, collections.deque()
        self.tuple, self.counts = ([], {}), collections.Counter("aab")
        self.data, self.frozen, self.slots = Data(), Frozen(), Slots()
        self.space = types.SimpleNamespace(a=1)
        self.deep = Plain()
        self.deep.a, self.deep.a.b = Plain(), Plain()  # type: ignore[attr-defined]
        self.deep.a.b.c = Plain()  # type: ignore[attr-defined]
        self.deep.a.b.c.items = [{}]  # type: ignore[attr-defined]
        self.up, self.partial = counter(), functools.partial(remember, seen=[])
        self.random, self.generator = random.Random(3), torch.Generator()
        self.array = numpy.zeros(3)
        self.register_forward_hook(lambda module, args, result: None)

    @property
    def scale(self) -> Any:
        return getattr(self, "_scale", None)

    @scale.setter
    def scale(self, value: Any) -> None:
        self._scale = value


def write_global(m: Net, x: Any, y: Any) -> None:
    global TOTAL, ADDED
    TOTAL, ADDED = y * 2, y  # type: ignore[name-defined]


def write_data(m: Net, x: Any, y: Any) -> None:
    m.data.value, m.data.items = y, [*m.data.items, y]


def set_grad(m: Net, x: Any, y: Any) -> None:
    m.lin.weight.requires_grad_(False)
    m.lin.bias.grad = torch.zeros(4)


def write_weight(m: Net, x: Any, y: Any) -> None:
    with torch.no_grad():
        m.lin.weight.mul_(1.5)
        m.lin.bias.data.add_(1)


def change_settings(m: Net, x: Any, y: Any) -> None:
    torch.set_grad_enabled(True)
    torch.manual_seed(1)
    random.seed(1)
    gc.disable()
    torch.backends.cudnn.benchmark = True
    warnings.simplefilter("ignore")


WRITES: dict[str, Callable[[Net, Any, Any], Any]] = {
    "class attribute": lambda m, x, y: setattr(type(m), "of_class", y * 2),
    "new class attribute": lambda m, x, y: setattr(type(m), "made", y * 2),
    "dict of a class": lambda m, x, y: m.cache.__setitem__("k", y * 2),
    "registry": lambda m, x, y: (setattr(Registry, "last", y), Registry.entries.update(k=y)),
    "new attribute": lambda m, x, y: setattr(m, "fresh", y * 2),
    "None": lambda m, x, y: setattr(m, "none", y * 2),
    "tensor": lambda m, x, y: setattr(m, "plain", y * 2),
    "tensor in place": lambda m, x, y: m.plain.add_(1),
    "deleted": lambda m, x, y: delattr(m, "count"),
    "list": lambda m, x, y: m.list.append(y * 2),
    "dict": lambda m, x, y: m.dict.__setitem__("k", y * 2),
    "nested list": lambda m, x, y: m.dict["a"].__setitem__(0, y * 2),
    "ordered": lambda m, x, y: (m.ordered.move_to_end("a"), m.ordered.update(c=y)),
    "own ordered": lambda m, x, y: m.own_ordered.__setitem__("k", y * 2),
    "default": lambda m, x, y: m.default["k"].append(y),
    "set": lambda m, x, y: m.set.add("k"),
    "deque": lambda m, x, y: m.deque.append(y),
    "tuple": lambda m, x, y: (m.tuple[0].append(y), m.tuple[1].update(k=y)),
    "counter": lambda m, x, y: m.counts.update("abc"),
    "dataclass": write_data,
    "frozen dataclass": lambda m, x, y: m.frozen.items.update(k=y),
    "slots": lambda m, x, y: m.slots.write(y),
    "namespace": lambda m, x, y: setattr(m.space, "b", y),
    "deep object": lambda m, x, y: m.deep.a.b.c.items[0].update(k=y),  # type: ignore[attr-defined]
    "property": lambda m, x, y: setattr(m, "scale", y),
    "closure": lambda m, x, y: m.up(y),
    "default argument": lambda m, x, y: remember(y),
    "partial": lambda m, x, y: m.partial(y),
    "global": write_global,
    "dict in globals": lambda m, x, y: TABLE.__setitem__("k", y),
    "lru_cache": lambda m, x, y: table(7),
    "attribute of a function": lambda m, x, y: setattr(write_data, "last", y),
    "sizes": lambda m, x, y: setattr(m, "shape", x.shape),
    "count": lambda m, x, y: setattr(m, "count", m.count + 1),
    "buffer in place": lambda m, x, y: m.whole.add_(1),
    "view of a buffer": lambda m, x, y: m.part.data.fill_(3),
    "buffer replaced": lambda m, x, y: setattr(m, "whole", m.whole + y.sum()),
    "buffer of None": lambda m, x, y: setattr(m, "lazy", y.detach()),
    "new buffer": lambda m, x, y: m.register_buffer("late", y.detach()),
    "attribute of a submodule": lambda m, x, y: setattr(m.lin, "last", y * 2),
    "new submodule": lambda m, x, y: m.add_module("more", nn.ReLU()),
    "memory of a weight": lambda m, x, y: setattr(m.lin.weight, "data", m.lin.weight.data * 2),
    "weight in place": write_weight,
    "autograd": set_grad,
    "attribute of a weight": lambda m, x, y: setattr(m.lin.weight, "note", y),
    "renormed embedding": lambda m, x, y: m.emb(torch.tensor([1, 2])),
    "training": lambda m, x, y: m.drop.train(),
    "statistics": lambda m, x, y: m.norm.train()(x),
    "hook": lambda m, x, y: m.lin.register_forward_hook(lambda *args: None),
    "random numbers": lambda m, x, y: (torch.rand(2), random.random(), numpy.random.rand()),
    "own random numbers": lambda m, x, y: (
        m.random.random(),
        torch.rand(2, generator=m.generator),
    ),
    "array": lambda m, x, y: m.array.__iadd__(1),
    "settings": change_settings,
}


def module(write: Callable[[Net, Any, Any], Any], outcome: str) -> Net:
    def forward(self: Net, x: torch.Tensor) -> torch.Tensor:
        y = self.lin(x)
        write(self, x, y)
        if outcome == "fails":
            raise ValueError("no")
        if outcome == "interrupted":
            raise KeyboardInterrupt
        return y * 2

    made: Net = type("Made", (Net,), {"forward": forward, "__module__": __name__})()
    return made.eval()


def picture(value: Any, path: str = "m", seen: dict[int, str] | None = None) -> dict[str, Any]:
    """All that can be reached from a value, by path: identity, and numbers of tensors."""
    seen = {} if seen is None else seen
    found: dict[str, Any] = {}
    if isinstance(value, (int, float, str, type(None), type, types.ModuleType)):
        return {path: (type(value), value)}
    found[path] = (id(value), type(value))
    if id(value) in seen:
        return found
    seen[id(value)] = path
    parts: dict[Any, Any] = {}
    if isinstance(value, torch.Tensor):
        numbers = value.detach().tolist()
        found[path] += (numbers, value.data_ptr(), value.requires_grad)
        parts = {".grad": value.grad} if value.is_leaf else {}
    elif isinstance(value, (dict, list, tuple, collections.deque)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parts = {f"[{at}:{key!r}]": item for at, (key, item) in enumerate(items)}
    elif isinstance(value, (set, frozenset)):
        found[path] += (frozenset(map(id, value)),)
    elif isinstance(value, random.Random):
        found[path] += (value.getstate(),)
    elif isinstance(value, torch.Generator):
        found[path] += (value.get_state().tolist(),)
    elif isinstance(value, numpy.ndarray):
        found[path] += (value.tolist(),)
    elif isinstance(value, functools.partial):
        parts = {".args": value.args, ".keywords": value.keywords}
    elif isinstance(value, types.FunctionType):
        cells = value.__closure__ or ()
        parts = {f".cell{at}": cell.cell_contents for at, cell in enumerate(cells)}
        parts["defaults"] = value.__defaults__
    elif isinstance(value, Slots):
        names = ("value", "free", "_Slots__secret")
        parts = {f".{name}": getattr(value, name) for name in names if hasattr(value, name)}
    if hasattr(value, "__dict__"):
        parts = {**parts, **{f".{key}": item for key, item in vars(value).items()}}
    for name, part in parts.items():
        found |= picture(part, f"{path}{name}", seen)
    return found


def settings() -> list[Any]:
    return [
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state()[1].tolist(),
        gc.isenabled(),
        torch.backends.cudnn.benchmark,
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch._dynamo.config.get_config_copy(),
        torch.jit._trace._trace_module_map,
        torch._C._get_tracing_state(),
        torch._C._len_torch_dispatch_stack(),
        torch._C._len_torch_function_stack(),
        getattr(torch.compiler, "is_exporting", bool)(),
        list(torch.cuda._queued_calls),
        id(warnings.filters),
        list(warnings.filters),
    ]


def state(net: Net) -> dict[str, Any]:
    cls = type(net)
    roots = {
        "m": net,
        "class": dict(vars(cls)),
        "base": dict(vars(Net)),
        "registry": dict(vars(Registry)),
        "globals": {name: value for name, value in globals().items() if name[0] != "_"},
    }
    found: dict[str, Any] = {}
    for name, root in roots.items():
        shallow = root if name == "m" else {k: root[k] for k in root if not k.startswith("__")}
        part = picture(shallow, name)
        found |= part if name == "m" else {k: v for k, v in part.items() if k != name}
    found["settings"] = settings()
    entries = table.cache_info().currsize
    found["cache"] = 0 if entries == 0 else table(7).tolist()
    return found


def check(write: Callable[[Net, Any, Any], Any], options: dict[str, Any], outcome: str) -> None:
    net, x = module(write, outcome), torch.rand(3, 4)
    table.cache_clear()
    before = state(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pt2onnx.export(net, (x,), dynamic_shapes={"x": {0: "n"}}, **options)
        except (KeyboardInterrupt, pt2onnx.OnnxExporterError, ValueError) as error:
            assert isinstance(error, KeyboardInterrupt) == (outcome == "interrupted")
    after = state(net)
    assert {key for key in {*before, *after} if before.get(key) != after.get(key)} == set()


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, "succeeds"), ({"dynamo": False}, "succeeds"), ({"dynamo": False}, "interrupted")],
    ids=str,
)
@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_left_behind(write: str, options: dict[str, Any], outcome: str) -> None:
    check(WRITES[write], options, outcome)


@pytest.mark.parametrize("outcome", ["succeeds", "fails", "interrupted"])
@pytest.mark.parametrize("options", [{}, {"dynamo": False}, {"verify": True}], ids=str)
def test_many_changes(options: dict[str, Any], outcome: str) -> None:
    """The capture by torch.export fails after some of them."""

    def write(m: Net, x: Any, y: Any) -> None:
        for name, function in WRITES.items():
            if name not in ("deleted", "renormed embedding"):
                function(m, x, y)

    check(write, options, outcome)


def test_interrupt_of_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while torch traces."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    net, x = module(WRITES["global"], "succeeds"), torch.rand(3, 4)
    before = state(net)
    monkeypatch.setattr(net.lin, "forward", interrupted)
    for options in ({}, {"dynamo": False}):
        with pytest.raises(KeyboardInterrupt):
            pt2onnx.export(net, (x,), **options)
    monkeypatch.undo()
    after = state(net)
    assert {key for key in {*before, *after} if before.get(key) != after.get(key)} == set()


class Returned(nn.Module):
    """Returns a list and a buffer that it writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        self.seen.append(x * 2)
        self.sum.add_(x)
        return self.seen, self.sum


@pytest.mark.filterwarnings("ignore:.*the program writes into")
@pytest.mark.parametrize("dynamo", [True, False])
def test_results_that_are_restored(dynamo: bool) -> None:
    module = Returned().eval()
    program = pt2onnx.export(module, (torch.ones(3),), dynamo=dynamo, verify=True)
    assert program.verification is not None and program.verification.ok
    assert not module.seen and not module.sum.any()


@pytest.mark.parametrize("kind", [torch.int64, torch.float16, torch.float32, torch.bool])
def test_writes_of_torchscript_are_seen(kind: torch.dtype) -> None:
    """Constants that code in TorchScript shares between operators reach modes as numbers, which
    ``index_put_`` refuses."""
    module = nn.Linear(4, 4)
    old = module.weight.detach().clone()

    def marked(x: torch.Tensor, at: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        weight.index_put_((at - 1,), x.sum())
        mask = torch.zeros(x.shape, dtype=kind)
        mask[(torch.arange(x.shape[0]), (at - 1) // 2)] = 1
        return mask

    at = torch.tensor([1, 2, 3])
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        args = torch.rand(2, 4), at[:2], module.weight
        traced = torch.jit.trace(marked, args, check_trace=False)
    module.weight.data.copy_(old)
    snapshot = Snapshot(module)
    for _ in range(4):
        with snapshot.kept(), torch.no_grad():
            found = traced(torch.rand(3, 4), at, module.weight)
        assert torch.equal(module.weight, old)
        assert found.dtype == kind
        assert found.nonzero().tolist() == [[0, 0], [1, 0], [2, 1]]
