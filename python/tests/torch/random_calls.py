"""Random calls of ``pt2onnx.export``: a module, its arguments, and options.

A call is drawn from a seed. It has a tree of arguments (tensors of several types, layouts and
ranks, numbers, None, containers, objects), parameters of all kinds, operations on them, state that
the module may write, and a tree of results.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import random
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree


class Named(typing.NamedTuple):
    head: Any
    tail: Any


@dataclasses.dataclass
class Record:
    head: Any
    tail: Any = None


@dataclasses.dataclass
class Unregistered:
    head: Any
    tail: Any = None


torch.export.register_dataclass(Record, serialized_type_name="random_calls.Record")

#: The sizes of an example, and those of the second call.
SIZES = {"rows": 3, "length": 4}
OTHERS = {"rows": 5, "length": 2}

_DTYPES = [torch.float32] * 5 + [
    *(torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool),
    torch.complex64,
]
_KEYS = ["a", "b", "a_b", "a.b", "key 1", "0", "x"]
_NAMES = ["x", "y", "args_0", "pair", "input", "mul", "weight", "x_0"]


class Leaf(typing.NamedTuple):
    """A tensor among the arguments: its sizes are numbers and keys of ``SIZES``."""

    number: int
    dtype: torch.dtype
    shape: tuple[int | str, ...]
    layout: str

    def make(self, sizes: dict[str, int]) -> torch.Tensor:
        """The tensor for these sizes."""
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        generator = torch.Generator().manual_seed(self.number)
        wide = [*shape[:-1], 2 * shape[-1]] if self.layout == "strided" and shape else shape
        values = torch.randint(-4, 9, wide, generator=generator)
        tensor = (values.abs() if self.dtype == torch.uint8 else values).to(self.dtype)
        if self.layout == "strided" and shape:
            tensor = tensor[..., ::2]
        if self.layout == "transposed" and len(shape) > 1:
            tensor = tensor.transpose(0, -1).contiguous().transpose(0, -1)
        return tensor.conj() if self.layout == "conj" and self.dtype.is_complex else tensor


@dataclasses.dataclass
class Node:
    """A container of nodes, by its class, or a value: a ``Leaf`` or a constant."""

    kind: str
    value: Any = None
    keys: list[str] = dataclasses.field(default_factory=list[str])
    children: list[Node] = dataclasses.field(default_factory=list["Node"])

    def build(self, leaf: Callable[[Leaf], Any]) -> Any:
        """The value, with these tensors."""
        if not self.children:
            return leaf(self.value) if self.kind == "tensor" else self.value
        return _container(self.kind, self.keys, [child.build(leaf) for child in self.children])

    def axes(self, of: Callable[[Leaf], Any]) -> Any:
        """Dynamic shapes of the value. Those of an object are a list."""
        if not self.children:
            return of(self.value) if self.kind == "tensor" else None
        if self.kind not in ("record", "unregistered"):
            return _container(self.kind, self.keys, [child.axes(of) for child in self.children])
        return [child.axes(of) for child in self.parts]

    @property
    def parts(self) -> list[Node]:
        """The children that are there: objects leave out fields that are None."""
        if self.kind not in ("record", "unregistered"):
            return self.children
        return [one for one in self.children if one.kind != "constant" or one.value is not None]

    def leaves(self) -> Iterator[Node]:
        """The nodes that are no containers, in order."""
        if not self.children:
            yield self
        for child in self.parts:
            yield from child.leaves()


def _container(kind: str, keys: list[str], parts: list[Any]) -> Any:
    if kind in ("dict", "ordered"):
        pairs = zip(keys, parts, strict=False)
        return dict(pairs) if kind == "dict" else collections.OrderedDict(pairs)
    if kind in ("list", "tuple"):
        return parts if kind == "list" else tuple(parts)
    return {"named": Named, "record": Record, "unregistered": Unregistered}[kind](*parts)


@dataclasses.dataclass
class Call:
    """A call of ``export``, and how it is called again."""

    seed: int
    module: Callable[[], torch.nn.Module]
    args: list[Node]
    kwargs: dict[str, Node]
    options: dict[str, Any]
    #: Whether an argument is an object that is refused.
    refused: bool
    #: Whether the module is given by its method.
    method: bool

    def arguments(self, sizes: dict[str, int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for these sizes."""
        made: dict[int, torch.Tensor] = {}

        def leaf(one: Leaf) -> torch.Tensor:
            return made.setdefault(one.number, one.make(sizes))

        args = tuple(node.build(leaf) for node in self.args)
        return args, {name: node.build(leaf) for name, node in self.kwargs.items()}


class _Drawn:
    """The parts of a call that are drawn one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.tensors: list[Node] = []

    def tensor(self) -> Node:
        draw = self.random
        if self.tensors and draw.random() < 0.08:
            # One tensor is there twice.
            return draw.choice(self.tensors)
        dtype = draw.choice(_DTYPES)
        rank = draw.choices([0, 1, 2, 3], [2, 3, 6, 1])[0]
        shape = tuple(draw.choice(["rows", "rows", "length", 3, 1]) for _ in range(rank))
        layout = draw.choices(["plain", "strided", "transposed", "conj"], [6, 1, 1, 1])[0]
        self.count += 1
        node = Node("tensor", Leaf(self.count, dtype, shape, layout))
        self.tensors.append(node)
        return node

    def node(self, depth: int = 0) -> Node:
        draw = self.random
        chance = draw.random()
        if chance < 0.62 or depth > 2:
            return self.tensor()
        if chance < 0.76:
            return Node("constant", draw.choice([2, -3, 0.5, 2.0, True, False, None, "sum"]))
        kind = draw.choice(["list", "tuple", "dict", "ordered", "named", "record"])
        if draw.random() < 0.02:
            kind = "unregistered"
        pair = kind in ("named", "record", "unregistered")
        count = 2 if pair else draw.choice([1, 2, 2, 3])
        keys = draw.sample(_KEYS, count)
        return Node(kind, None, keys, [self.node(depth + 1) for _ in range(count)])


def draw_call(seed: int) -> Call:
    """The call of a seed."""
    drawn = _Drawn(seed)
    draw = drawn.random
    names = draw.sample(_NAMES, 4)
    parameters: list[inspect.Parameter] = []
    args: list[Node] = []
    kwargs: dict[str, Node] = {}
    positions = draw.choice([1, 1, 2, 2, 3])
    only = draw.choice([0, 0, 0, 1])
    many = draw.random() < 0.2
    for at in range(positions):
        kind = "POSITIONAL_ONLY" if at < only else "POSITIONAL_OR_KEYWORD"
        parameters.append(inspect.Parameter(names[at], getattr(inspect.Parameter, kind)))
        node = drawn.node()
        if at == positions - 1 and at >= only and not many and draw.random() < 0.3:
            kwargs[names[at]] = node
        else:
            args.append(node)
    if many:
        parameters.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
        args += [drawn.node() for _ in range(draw.choice([0, 1, 2]))]
    if draw.random() < 0.3:
        parameters.append(inspect.Parameter(names[3], inspect.Parameter.KEYWORD_ONLY))
        kwargs[names[3]] = drawn.node()
    if draw.random() < 0.15:
        parameters.append(inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD))
        # A name of **kwargs may be that of a parameter that is given by position.
        kwargs[names[0] if only else "more"] = drawn.node()
    if not drawn.tensors and args:
        args[0] = drawn.tensor()
    elif not drawn.tensors:
        kwargs = {name: drawn.tensor() for name in kwargs}
    if args and not kwargs and args[-1].kind in ("dict", "ordered"):
        # It would be taken for the keywords.
        args[-1] = dataclasses.replace(args[-1], kind="list")
    if len(kwargs) > 1 and draw.random() < 0.4:
        kwargs = dict(reversed(kwargs.items()))
    recipe = _Recipe(draw)
    refused = any(_holds_unregistered(one) for one in (*args, *kwargs.values()))
    options = _options(draw, parameters, args, kwargs, recipe)
    signature = inspect.Signature(parameters)
    bound = signature.bind(*args, **kwargs).arguments
    recipe.are_tensors = [
        leaf.kind == "tensor" for node in _ordered(signature, bound) for leaf in node.leaves()
    ]
    return Call(
        seed,
        lambda: _Module(signature, recipe),
        args,
        kwargs,
        options,
        refused,
        draw.random() < 0.1,
    )


def _holds_unregistered(node: Node) -> bool:
    own = node.kind == "unregistered" and any(one.kind == "tensor" for one in node.leaves())
    return own or any(map(_holds_unregistered, node.children))


class _Recipe:
    """The computation of a module: steps on the leaves of its arguments, and a tree of results."""

    def __init__(self, draw: random.Random) -> None:
        #: Whether each leaf of the arguments is a tensor.
        self.are_tensors: list[bool] = []
        self.steps = [
            (draw.choice(_STEPS), draw.randrange(64), draw.randrange(64))
            for _ in range(draw.choice([1, 2, 2, 3, 4]))
        ]
        self.writes = draw.choices(["", "buffer", "replaced", "argument"], [8, 1, 1, 1])[0]
        self.training = draw.random() < 0.1
        kinds = ["single", "tuple", "list", "dict", "ordered", "named", "record"]
        self.results = draw.choices([*kinds, "unregistered"], [3, 4, 1, 2, 1, 1, 1, 0.5])[0]
        extras = ["argument", "weight", "buffer", "old", "number", "constant", "none"]
        self.extra = draw.choice(["", "", "", *extras])
        self.keys = draw.sample(_KEYS, 5)


def _ordered(signature: inspect.Signature, bound: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters, one by one. Those of ``**others`` are in the
    order of their names."""
    found: list[Any] = []
    for name, parameter in signature.parameters.items():
        if name in bound and parameter.kind is parameter.VAR_POSITIONAL:
            found += bound[name]
        elif name in bound and parameter.kind is parameter.VAR_KEYWORD:
            found += [bound[name][key] for key in sorted(bound[name])]
        elif name in bound:
            found.append(bound[name])
    return found


def _scaled(constants: list[Any], one: Any, other: Any) -> Any:
    return one + 1 if one.dtype == torch.bool else one * 2


def _number(constants: list[Any], one: Any, other: Any) -> Any:
    # With dynamo=False, numbers are tensors.
    numbers = [value for value in constants if type(value) in (bool, int, float)]
    numbers += [value for value in constants if isinstance(value, torch.Tensor)]
    return one * numbers[0] if numbers else one.clone()


def _sized(constants: list[Any], one: Any, other: Any) -> Any:
    return one * one.shape[0] if one.dim() else one.reshape(1)


def _linear(constants: list[Any], one: Any, other: Any) -> Any:
    real = one.abs() if one.is_complex() else one
    return constants[-1](real.flatten().float()[:, None].expand(-1, 3))


#: Steps of a tensor, and another one. The constants are those among the arguments, and the layer.
_STEPS: list[Callable[[list[Any], Any, Any], Any]] = [
    _scaled,
    _number,
    lambda constants, one, other: (one.sum() + other.sum(), one)[one.dtype == torch.bool],
    _sized,
    _linear,
    _linear,
    lambda constants, one, other: torch.stack([one, one]),
    lambda constants, one, other: one.flatten(),
    lambda constants, one, other: one[..., :1] if one.dim() else one[None],
    lambda constants, one, other: one.transpose(0, -1) if one.dim() else one.sum(),
    lambda constants, one, other: one if one.dtype == torch.bool or one.is_complex() else one // 2,
    lambda constants, one, other: one.abs() if one.dtype != torch.bool else ~one,
    lambda constants, one, other: (one if "sum" in constants else one.contiguous()) == 2,
    lambda constants, one, other: torch.view_as_real(one) if one.is_complex() else one.float(),
]


class _Module(torch.nn.Module):
    """A module with this signature that follows a recipe."""

    def __init__(self, signature: inspect.Signature, recipe: _Recipe) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.recipe = recipe
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("buf", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("table", torch.arange(3.0), persistent=False)
        self.train(recipe.training)

        def forward(*args: Any, **kwargs: Any) -> Any:
            order = _ordered(signature, signature.bind(*args, **kwargs).arguments)
            return self._follow([leaf for value in order for leaf in _leaves(value)])

        forward.__signature__ = signature  # type: ignore[attr-defined]
        self.forward = forward

    def _follow(self, values: list[Any]) -> Any:
        recipe = self.recipe
        pairs = list(zip(values, recipe.are_tensors, strict=True))
        tensors = [value for value, is_tensor in pairs if is_tensor]
        constants = [value for value, is_tensor in pairs if not is_tensor]
        old = self.buf[:2]
        if recipe.writes == "buffer":
            self.buf.add_(1)
        if recipe.writes == "replaced":
            self.buf = self.buf * 2
        if recipe.writes == "argument" and tensors[0].dtype == torch.float32:
            tensors[0].add_(1)
        pool = [*tensors, self.table, self.buf]
        for step, one, other in recipe.steps:
            chosen = pool[one % len(pool)], pool[other % len(pool)]
            pool.append(step([*constants, self.layer], *chosen))
        extra = {
            "": [],
            "argument": [tensors[-1]],
            "weight": [self.layer.weight],
            "buffer": [self.buf],
            "old": [old, (self.buf * 2).unsqueeze(0)],
            "number": [3, 2.5, tensors[0].dim()],
            "constant": [torch.zeros(20), self.table],
            "none": [None, pool[-1]],
        }[recipe.extra]
        return self._result([pool[-1], pool[-2], *extra])

    def _result(self, found: list[Any]) -> Any:
        kind = self.recipe.results
        if kind == "single":
            return found[0]
        pair = kind in ("named", "record", "unregistered")
        return _container(kind, self.recipe.keys, [found[0], tuple(found[1:])] if pair else found)


def _leaves(value: Any) -> list[Any]:
    """The leaves of a value, also of objects that are no pytrees."""
    if isinstance(value, Unregistered):
        return [leaf for part in (value.head, value.tail) for leaf in _leaves(part)]
    found = _pytree.tree_leaves(value, lambda part: isinstance(part, Unregistered))
    return [
        leaf for one in found for leaf in (_leaves(one) if type(one) is Unregistered else [one])
    ]


def _options(
    draw: random.Random,
    parameters: list[inspect.Parameter],
    args: list[Node],
    kwargs: dict[str, Node],
    recipe: _Recipe,
) -> dict[str, Any]:
    """The keywords of the export."""
    options: dict[str, Any] = {"dynamo": draw.random() < 0.5}
    if draw.random() < 0.5:
        negative = draw.random() < 0.3
        names = {"rows": "rows", "length": draw.choice(["length", "n 1"])}

        def axes(leaf: Leaf) -> dict[int, str] | None:
            rank = len(leaf.shape)
            pairs = [(at, names[one]) for at, one in enumerate(leaf.shape) if isinstance(one, str)]
            return {at - rank if negative else at: name for at, name in pairs} or None

        options["dynamic_shapes"] = _shapes(parameters, args, kwargs, axes)
    if draw.random() < 0.3:
        options["input_names"] = draw.sample(["in 1", "x", "mul", "y", "é"], draw.choice([1, 2, 5]))
    if draw.random() < 0.3:
        count = 1 if recipe.results == "single" else 2
        given = options.get("input_names", ())
        free = [name for name in ("out", "input", "mul", "o/1") if name not in given]
        options["output_names"] = draw.sample(free, min(count, len(free)))
    for name, chance in (
        ("verify", 0.3),
        ("keep_initializers_as_inputs", 0.1),
        ("export_modules_as_functions", 0.05),
    ):
        if draw.random() < chance:
            options[name] = True
    if draw.random() < 0.2:
        options["optimize"] = False
    if draw.random() < 0.2:
        options["mutations"] = draw.choice(["pairs", "outputs"])
    return options


def _shapes(
    parameters: list[inspect.Parameter],
    args: list[Node],
    kwargs: dict[str, Node],
    axes: Callable[[Leaf], Any],
) -> dict[str, Any]:
    """Dynamic shapes by parameter."""
    found: dict[str, Any] = {}
    rest = list(args)
    known = {parameter.name for parameter in parameters}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            if rest:
                found[parameter.name] = tuple(node.axes(axes) for node in rest)
        elif parameter.kind is parameter.VAR_KEYWORD:
            positional = {one.name for one in parameters if one.kind is one.POSITIONAL_ONLY}
            own = {name: node for name, node in kwargs.items() if name not in known - positional}
            if own:
                found[parameter.name] = {name: node.axes(axes) for name, node in own.items()}
        elif rest and parameter.kind is not parameter.KEYWORD_ONLY:
            found[parameter.name] = rest.pop(0).axes(axes)
        elif parameter.name in kwargs:
            found[parameter.name] = kwargs[parameter.name].axes(axes)
    return found
