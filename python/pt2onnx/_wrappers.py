"""Modules that hand their arguments on to another one by ``forward(*args, **kwargs)``."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import torch

from . import _compare, _shapes
from ._capture import _patches
from ._state import Snapshot
from ._types import Args, Kwargs, is_dict, is_items

#: Dynamic shapes by the parameters of the inner module.
Shapes = Callable[[object], object]

_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_PARALLEL = cast(
    tuple[type[torch.nn.Module], ...],
    (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel),
)


@contextlib.contextmanager
def inner_parameters(model: object, args: Args, kwargs: Kwargs) -> Generator[Shapes, None, None]:
    """In this context, ``forward`` of such a module has the parameters of the inner one: inputs are
    named after them, and dynamic shapes are nested as its arguments.

    Args:
        model: Any model.
        args: The positional arguments.
        kwargs: The keyword arguments.

    Yields:
        The function for dynamic shapes, which may also be nested as those of the wrapper.
    """
    inner = _inner(model, args, kwargs) if isinstance(model, torch.nn.Module) else None
    if inner is None:
        yield lambda shapes: shapes
        return
    outer = cast(torch.nn.Module, model)
    own, signature = _shapes.signature(outer), _shapes.signature(inner)
    # They also serve several processes and devices.
    parallel = isinstance(outer, _PARALLEL)
    call: Callable[..., object] = cast(Any, outer).module if parallel else outer.forward

    def forward(*args: object, **kwargs: object) -> object:
        return call(*args, **kwargs)

    vars(forward)["__signature__"] = signature
    with _patches.replaced(outer, "forward", forward):
        yield lambda shapes: _unwrapped(shapes, own, signature, args)


def _inner(model: torch.nn.Module, args: Args, kwargs: Kwargs) -> torch.nn.Module | None:
    """The module that gets the arguments."""
    if not _takes_any(model):
        return None
    if isinstance(model, _PARALLEL):
        inner: torch.nn.Module = cast(Any, model).module
        return (_inner(inner, args, kwargs) or inner) if _takes_any(inner) else inner
    own_args, own_kwargs = _compare.copied(args, kwargs)
    tensors = {id(one) for one in (*own_args, *own_kwargs.values())}

    def watched(module: torch.nn.Module) -> Callable[..., object]:
        forward: Callable[..., object] = module.forward

        def watch(*given: object, **named: object) -> object:
            same = _same(given, own_args) and named.keys() == own_kwargs.keys()
            if same and _same(tuple(named.values()), tuple(own_kwargs.values())):
                raise _Found(module)
            if tensors <= set(map(id, (*given, *named.values()))):
                # It gets all of them in another way.
                raise _Found(None)
            return forward(*given, **named)

        return watch

    try:
        with contextlib.ExitStack() as stack:
            for module in _candidates(model):
                if not _takes_any(module):
                    stack.enter_context(_patches.replaced(module, "forward", watched(module)))
            with Snapshot(model).kept(), torch.no_grad():
                model(*own_args, **own_kwargs)
    except _Found as found:
        return found.module
    except Exception:
        # The capture reports it.
        return None
    return None


class _Found(BaseException):
    """Ends the run of a wrapper at the call of the inner module, or where there is none."""

    def __init__(self, module: torch.nn.Module | None) -> None:
        super().__init__()
        self.module = module


def _candidates(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    for child in model.children():
        yield child
        if _takes_any(child):
            yield from _candidates(child)


def _takes_any(module: torch.nn.Module) -> bool:
    """Whether ``forward`` has no parameters with names."""
    if isinstance(module, torch.jit.ScriptModule):
        return False
    code = getattr(module.forward, "__code__", None)
    if code is not None and code.co_argcount > 1 and not hasattr(module.forward, "__signature__"):
        # Signatures are slow to make.
        return False
    try:
        kinds = [parameter.kind for parameter in _shapes.signature(module).parameters.values()]
    except (TypeError, ValueError):
        return False
    return bool(kinds) and all(kind in _ANY for kind in kinds)


def _same(given: Args, expected: Args) -> bool:
    pairs = zip(given, expected, strict=False)
    return len(given) == len(expected) and all(one is other for one, other in pairs)


def _unwrapped(
    shapes: object, outer: inspect.Signature, inner: inspect.Signature, args: Args
) -> object:
    """Dynamic shapes by the parameters of the inner module: see ``inner_parameters``."""
    names = {parameter.kind: name for name, parameter in outer.parameters.items()}
    positional, keywords = (names.get(kind) for kind in _ANY)
    if is_dict(shapes) and shapes and shapes.keys() <= {positional, keywords}:
        given = shapes.get(positional)
        rest = shapes.get(keywords)
    elif is_items(shapes) and 0 < len(shapes) <= len(outer.parameters):
        given, rest = shapes[0], shapes[1] if len(shapes) > 1 else None
    else:
        return shapes
    of_args = given is None or (is_items(given) and len(given) == len(args))
    if not of_args or (given and _shapes.is_axes(given)) or not (rest is None or is_dict(rest)):
        return shapes
    bound = inner.bind_partial(*args).arguments
    axes = cast(Any, given) or [None] * len(args)
    return {**dict(zip(bound, axes, strict=False)), **cast(dict[Any, Any], rest or {})}
