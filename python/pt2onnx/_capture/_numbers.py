"""Numbers among the arguments as tensors, which have no say in the types of results: ``x * 2.5``
has the type of ``x``, whatever type a tensor of 2.5 has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch

from .. import _compare, _pytree
from .._types import Args, Kwargs
from ._torch_export import Call

#: The element types of numbers of Python.
_TYPES: dict[type, torch.dtype] = {bool: torch.bool, int: torch.int64, float: torch.float64}

#: Functions whose operands have a common type. Reflected ones and those that write have these names
#: as well.
_ARITHMETIC = frozenset(
    (
        *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "truediv"),
        *("floor_divide", "floordiv", "mod", "remainder", "fmod", "pow", "neg", "abs", "atan2"),
        *("eq", "ne", "lt", "le", "gt", "ge", "equal", "not_equal", "less", "less_equal"),
        *("greater", "greater_equal", "and", "or", "xor", "bitwise_and", "bitwise_or"),
        *("bitwise_xor", "lshift", "rshift", "where", "clamp", "clamp_min", "clamp_max", "clip"),
    )
)

#: Functions whose result is the number itself.
_COPIES = frozenset(("clone", "detach", "requires_grad"))

#: Those that divide, which makes floats of integers.
_DIVISIONS = frozenset(("div", "divide", "true_divide", "truediv"))


class Number(torch.Tensor):
    """A number of Python as a tensor."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            name = _name(func)
            if name in _COPIES:
                return func(*args, **kwargs).as_subclass(cls)
            if name not in _ARITHMETIC:
                return func(*args, **kwargs)
            operands = [*args[name == "where" :], *kwargs.values()]
            others = [one for one in operands if _is_tensor(one) and not isinstance(one, Number)]
            if others or name == "where":

                def cast_(value: object) -> object:
                    return _cast(value, others) if isinstance(value, Number) else value

                first = args[: name == "where"]
                rest = map(cast_, args[name == "where" :])
                return func(*first, *rest, **{key: cast_(value) for key, value in kwargs.items()})
            if name in _DIVISIONS and not kwargs:
                args = tuple(one.double() if isinstance(one, Number) else one for one in args)
            result: torch.Tensor = func(*args, **kwargs)
            return result.as_subclass(cls)

    def __deepcopy__(self, memo: object) -> Number:
        return self.detach().clone().as_subclass(Number)


def as_numbers(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with tensors for numbers, as the tracer of TorchScript has them."""
    return _transform(lambda tensor: tensor.as_subclass(Number), args, kwargs)


def as_tensors(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with plain tensors for numbers, for torch.export."""
    return _transform(lambda tensor: tensor, args, kwargs)


def decide_types(program: torch.export.ExportedProgram | None, call: Call) -> bool:
    """Whether results have other types in a program that has tensors for numbers than in the
    module: ``buffer * 2.5`` is a double there if the buffer has no dimensions."""
    if program is None:
        return False
    nodes = [node for node in program.graph.nodes if node.op == "output"]
    names = set(program.graph_signature.user_outputs)
    made = [arg for arg in nodes[0].args[0] if isinstance(arg, torch.fx.Node) and arg.name in names]
    values = [node.meta.get("val") for node in made]
    types = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    results = _compare.run(call.model, call.args, call.kwargs, snapshot=call.snapshot)
    own = [result.dtype for result in results if isinstance(result, torch.Tensor)]
    return len(own) == len(types) and own != types


def like(tensor: torch.Tensor, original: object) -> torch.Tensor:
    """The tensor as a number, if the original is one."""
    return tensor.as_subclass(Number) if isinstance(original, Number) else tensor


def _transform(
    make: Callable[[torch.Tensor], torch.Tensor], args: Args, kwargs: Kwargs
) -> tuple[Args, Kwargs]:
    def to_tensor(leaf: object) -> object:
        dtype = _TYPES.get(type(leaf))
        return leaf if dtype is None else make(torch.tensor(leaf, dtype=dtype))

    return cast(tuple[Args, Kwargs], _pytree.transform(to_tensor, (args, kwargs)))


def _name(func: Callable[..., Any]) -> str:
    """The name of a function without the marks of operators, reflected ones and those that
    write."""
    name: str = getattr(func, "__name__", "")
    plain = name.strip("_")
    if name.startswith(("__r", "__i")) and plain[1:] in _ARITHMETIC:
        return plain[1:]
    return "sub" if plain == "rsub" else plain


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _cast(number: torch.Tensor, others: list[Any]) -> torch.Tensor:
    """A number as a tensor of the type that PyTorch computes it in beside these tensors."""
    value = {torch.bool: True, torch.int64: 1}.get(number.dtype, 1.0)
    types = [torch.result_type(other, value) for other in others]
    common = torch.get_default_dtype() if not types and isinstance(value, float) else number.dtype
    for at, dtype in enumerate(types):
        common = torch.promote_types(common, dtype) if at else dtype
    return number.to(common)
