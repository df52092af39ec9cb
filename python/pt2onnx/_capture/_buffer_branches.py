"""Branches that code chooses by the values of weights (``if not self.initialized:``) while
torch.export captures it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from .. import _errors, _pytree
from .._frames import line_outside, torch_root
from .._types import is_items

#: Weights with more elements are not looked into.
SMALL = 16

#: Deterministic functions of weights and scalars, which are evaluated.
_EVALUATED = frozenset(
    (
        *("eq", "ne", "lt", "le", "gt", "ge", "all", "any", "logical_not", "logical_and"),
        *("logical_or", "isnan", "isfinite", "isinf", "sum", "min", "max", "minimum", "maximum"),
        *("abs", "neg", "add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder"),
        *("pow", "sqrt", "ceil", "floor", "round", "bool", "int", "long", "float", "double", "to"),
        *("squeeze", "reshape", "view", "detach", "clone", "__eq__", "__ne__", "__lt__", "__le__"),
        *("__gt__", "__ge__", "__and__", "__or__", "__invert__", "__getitem__", "__neg__"),
        *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__"),
        *("__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__pow__"),
    )
)

#: Functions that ask for the value of a tensor.
_QUESTIONS = frozenset(("__bool__", "__int__", "__float__", "__index__", "item", "tolist"))

#: Functions of lists of numbers. PyTorch asks tensors in such lists for their values.
_OF_LISTS = frozenset(
    (
        *("pad", "view", "reshape", "expand", "repeat", "zeros", "ones", "full"),
        *("new_zeros", "new_ones", "new_full"),
    )
)


class WritesFlag(Exception):
    """The code chooses by the value of a weight that it writes to."""


class BufferBranches:
    """Questions about the values of weights: the place by the name of the weight."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def check(self, program: torch.export.ExportedProgram) -> None:
        """Checks that the answers hold for later calls.

        Raises:
            WritesFlag: The program writes to a weight that was asked about.
        """
        if not self.asked:
            return
        # Only functional programs have a list of the weights that they write to.
        signature = _pytree.decomposed(program).graph_signature
        parameters = getattr(signature, "parameters_to_mutate", {})
        written = {*signature.buffers_to_mutate.values(), *parameters.values()}
        for name in written & self.asked.keys():
            raise WritesFlag(
                f"the code chooses by the value of `{name}`, which it writes to, so that the next "
                f"call may do something else ({self.asked[name]}): call the module once before the "
                f"export, or set `{name}`"
            )


class _Weight(NamedTuple):
    """A small weight: its name, its value, the dict that holds it, and its key there."""

    name: str
    value: torch.Tensor
    holder: Mapping[str, torch.Tensor | None]
    key: str


class _Computed(NamedTuple):
    """A tensor that was computed from weights.

    The tensor is kept so that no other one gets its id.
    """

    tensor: torch.Tensor
    version: int
    value: object
    names: frozenset[str]


def may_help(model: torch.nn.Module, error: BaseException) -> bool:
    """Whether a capture failed because it asked for a value of data, and the model has small
    weights, which may be flags."""
    return "DataDependent" in type(error).__name__ and bool(_weights(model))


@contextlib.contextmanager
def answered(model: torch.nn.Module) -> Generator[BufferBranches, None, None]:
    """Answers questions about the values of small weights by their values, as Python does."""
    mode = _Answering(_weights(model))
    with mode:
        yield mode.branches


class _Answering(TorchFunctionMode):
    def __init__(self, weights: Sequence[_Weight]) -> None:
        super().__init__()
        self.branches = BufferBranches()
        self._weights = weights
        self._computed: dict[int, _Computed] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        name = getattr(func, "__name__", "")
        if name in _OF_LISTS:
            args = tuple(map(self._with_numbers, args))
        if name not in _QUESTIONS and name not in _EVALUATED:
            return func(*args, **(kwargs or {}))
        found = [self._argument(arg) for arg in args]
        names = frozenset[str]().union(*(one[1] for one in found if one))
        if any(one is None for one in found) or not names or kwargs:
            return func(*args, **(kwargs or {}))
        with _disable_current_modes():
            answer: object = func(*(one[0] for one in found if one))
        if name in _QUESTIONS:
            self._ask(names)
            return answer
        result: object = func(*args)
        if isinstance(result, torch.Tensor) and isinstance(answer, torch.Tensor):
            self._computed[id(result)] = _Computed(result, result._version, answer, names)
        return result

    def _argument(self, arg: object) -> tuple[object, frozenset[str]] | None:
        """The value of an argument, and the weights that it is made of; None if it is unknown."""
        if isinstance(arg, torch.Tensor):
            return self._value(arg)
        return (arg, frozenset()) if _is_constant(arg) else None

    def _value(self, tensor: torch.Tensor) -> tuple[object, frozenset[str]] | None:
        if computed := self._computed.get(id(tensor)):
            same = tensor._version == computed.version
            return (computed.value, computed.names) if same else None
        weights = (w for w in self._weights if w.holder.get(w.key) is tensor)
        return next(((w.value, frozenset((w.name,))) for w in weights), None)

    def _with_numbers(self, arg: object) -> object:
        """A list of numbers, with the values of the weights in it."""
        if type(arg) not in (tuple, list) or not is_items(arg):
            return arg
        found = [
            self._value(item) if isinstance(item, torch.Tensor) and item.ndim == 0 else None
            for item in arg
        ]
        self._ask(frozenset[str]().union(*(one[1] for one in found if one)))
        with _disable_current_modes():
            pairs = zip(found, arg, strict=True)
            numbers = [_number(one[0]) if one else item for one, item in pairs]
        return tuple(numbers) if isinstance(arg, tuple) else numbers

    def _ask(self, names: frozenset[str]) -> None:
        file, line = line_outside(torch_root(), __file__)
        self.branches.asked.update(dict.fromkeys(sorted(names), f"{file}:{line}"))


def _number(value: object) -> object:
    return value.item() if isinstance(value, torch.Tensor) else value


def _weights(model: torch.nn.Module) -> list[_Weight]:
    modules = cast(Iterable[tuple[str, torch.nn.Module]], model.named_modules())
    holders: list[tuple[str, dict[str, torch.Tensor | None]]] = [
        (path, vars(module)[name])
        for path, module in modules
        for name in ("_parameters", "_buffers")
    ]
    return [
        _Weight(f"{path}.{key}" if path else key, tensor.detach().clone(), holder, key)
        for path, holder in holders
        for key, tensor in holder.items()
        if tensor is not None and tensor.numel() <= SMALL and _has_value(tensor)
    ]


def _has_value(tensor: torch.Tensor) -> bool:
    return tensor.device.type != "meta" and not isinstance(tensor, FakeTensor)


def _is_constant(value: object) -> bool:
    """Whether it is the same each time. Sizes may be symbolic numbers."""
    if is_items(value):
        return all(map(_is_constant, value))
    plain = value is None or type(value) in (bool, int, float, str)
    return plain or isinstance(value, torch.dtype)


def warn_of(flags: Mapping[str, str]) -> None:
    """Warns of values of weights for which alone the program holds."""
    for place in dict.fromkeys(flags.values()):
        weights = [f"`{name}`" for name, where in flags.items() if where == place]
        more = f" and {len(weights) - 2} more" if len(weights) > 3 else ""
        listed = ", ".join(weights[: 2 if more else 3]) + more
        _errors.warn(
            f"The model holds only for the values that these weights have now: {listed}. The code "
            f"decides by them at {place}"
        )
