"""Branches that code chooses by the values of weights (``if not self.initialized:``) while torch.export captures it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _answers

if TYPE_CHECKING:
    import torch

#: Weights with more elements are not looked into.
SMALL = 16

#: What makes one tensor of weights and numbers, and the same one each time.
_COMPUTES = frozenset(
    "eq ne lt le gt ge all any logical_not logical_and logical_or isnan isfinite isinf sum min max minimum maximum abs neg add sub mul div true_divide "
    "floor_divide remainder pow sqrt ceil floor round bool int long float double to squeeze reshape view detach clone "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __invert__ __getitem__ __neg__ __add__ __radd__ __sub__ __rsub__ __mul__ "
    "__rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __pow__".split()
)

#: What asks for the value of a tensor.
_ASKS = frozenset("__bool__ __int__ __float__ __index__ item tolist".split())


#: What takes lists of numbers, of which PyTorch asks tensors among them for their values.
_TAKES = frozenset("pad view reshape expand repeat zeros ones full new_zeros new_ones new_full".split())


class WritesFlag(Exception):
    """The code chooses by the value of a weight that it writes to."""


class Flags:
    """What code asked about the values of weights: the place by the name of the weight."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def check(self, program: torch.export.ExportedProgram) -> None:
        """Raises WritesFlag if the program writes to a weight that was asked about: the answer holds for the first call only."""
        if not self.asked:
            return
        # torch.export tells what a program writes to only of programs that are functional.
        signature = program.run_decompositions({}).graph_signature
        written = {*signature.buffers_to_mutate.values(), *getattr(signature, "parameters_to_mutate", {}).values()}
        for name in written & self.asked.keys():
            raise WritesFlag(
                f"the code chooses by the value of `{name}`, which it writes to, so that the next call may do "
                f"something else ({self.asked[name]}): call the module once before the export, or set `{name}`"
            )


def may_help(model: torch.nn.Module, error: BaseException) -> bool:
    """Whether a capture failed because it asked for a value of data, in a model that has weights that may be flags."""
    return "DataDependent" in type(error).__name__ and bool(_weights(model))


@contextlib.contextmanager
def answered(model: torch.nn.Module) -> Iterator[Flags]:
    """Answers questions about the values of small weights by their values, as Python does."""
    from torch.overrides import TorchFunctionMode

    flags, weights = Flags(), _weights(model)
    #: What was computed of weights: the tensor, which is kept so that no other one has its id, and its version; its value, and the weights.
    known: dict[int, tuple[Any, int, Any, frozenset[str]]] = {}

    def value(tensor: Any) -> tuple[Any, frozenset[str]] | None:
        """The value of a tensor, and the weights that it is made of; None if it is not known."""
        if id(tensor) in known:
            _, version, computed, names = known[id(tensor)]
            return (computed, names) if tensor._version == version else None
        return next(((value, frozenset((name,))) for place, key, value, name in weights if place.get(key) is tensor), None)

    def asks(names: frozenset[str]) -> None:
        flags.asked.update(dict.fromkeys(sorted(names), _place()))

    def number_or_list(arg: Any) -> Any:
        """A list of numbers, with those that weights tell."""
        if type(arg) not in (tuple, list):
            return arg
        found = [value(item) if _is_tensor(item) and item.ndim == 0 else None for item in arg]
        asks(frozenset().union(*(one[1] for one in found if one)))
        with _without_modes():
            numbers = [one[0].item() if one else item for one, item in zip(found, arg)]
        return type(arg)(numbers)

    class Answering(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            if name in _TAKES:
                args = tuple(map(number_or_list, args))
            if name not in _ASKS and name not in _COMPUTES:
                return function(*args, **(kwargs or {}))
            none = frozenset[str]()
            found = [value(arg) if _is_tensor(arg) else (arg, none) if _is_plain(arg) else None for arg in args]
            names = none.union(*(one[1] for one in found if one))
            if any(one is None for one in found) or not names or kwargs:
                return function(*args, **(kwargs or {}))
            values = [one[0] for one in found if one]
            with _without_modes():
                answer = function(*values)
            if name in _ASKS:
                asks(names)
                return answer
            result = function(*args)
            if _is_tensor(result) and _is_tensor(answer):
                known[id(result)] = (result, result._version, answer, names)
            return result

    with Answering():
        yield flags


def _weights(model: torch.nn.Module) -> list[tuple[dict[str, Any], str, Any, str]]:
    """Where each small weight is, with its value and name."""
    return [
        (place, key, tensor.detach().clone(), f"{path}.{key}" if path else key)
        for path, module in model.named_modules()
        for place in (module._parameters, module._buffers)
        for key, tensor in place.items()
        if tensor is not None and tensor.numel() <= SMALL and _has_value(tensor)
    ]


def _has_value(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return tensor.device.type != "meta" and not isinstance(tensor, FakeTensor)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _is_plain(value: Any) -> bool:
    """Whether it is the same each time. Sizes may be symbolic numbers."""
    import torch

    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str) or isinstance(value, torch.dtype)


def _without_modes() -> contextlib.AbstractContextManager[Any]:
    """Computes with numbers, not with what torch.export puts in their place."""
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def _place() -> str:
    """The line of the user's code that asks."""
    root, frame = _answers.root(), sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((root, __file__)):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
