"""Settings of torch, of Python and of random numbers, which modules may change while they run."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import gc
import operator
import random
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch.utils._python_dispatch import _disable_current_modes

_C = cast(Any, torch._C)


class _Setting(NamedTuple):
    """A setting: how it is read, and how it is changed. ``equals`` compares two of its values."""

    get: Callable[[], Any]
    change: Callable[[Any], object]
    equals: Callable[[Any, Any], bool] = lambda one, other: bool(one == other)


#: Pairs of functions of ``torch._C``. Not every version has all.
_FUNCTIONS = (
    ("_get_tracing_state", "_set_tracing_state"),
    ("_get_cudnn_enabled", "_set_cudnn_enabled"),
    ("_get_cudnn_benchmark", "_set_cudnn_benchmark"),
    ("_get_cudnn_deterministic", "_set_cudnn_deterministic"),
    ("_get_mkldnn_enabled", "_set_mkldnn_enabled"),
    ("_get_flash_sdp_enabled", "_set_sdp_use_flash"),
    ("_get_math_sdp_enabled", "_set_sdp_use_math"),
    ("_get_mem_efficient_sdp_enabled", "_set_sdp_use_mem_efficient"),
    ("_get_graph_executor_optimize", "_set_graph_executor_optimize"),
    (
        "_get_deterministic_fill_uninitialized_memory",
        "_set_deterministic_fill_uninitialized_memory",
    ),
    ("_get_warnAlways", "_set_warnAlways"),
)

#: Attributes of modules.
_ATTRIBUTES = (
    ("torch.jit._trace", "_trace_module_map"),
    ("torch.compiler", "_is_compiling_flag"),
    ("torch.compiler", "_is_exporting_flag"),
    ("torch.compiler", "_is_non_strict_tracing_flag"),
    ("warnings", "showwarning"),
)

#: Modules with settings, if they are loaded.
_CONFIGS = ("torch._dynamo.config", "torch.fx.experimental._config", "torch._functorch.config")


@contextlib.contextmanager
def restoring_globals() -> Generator[None, None, None]:
    """Restores all settings at the end of this context."""
    settings = [*_settings(), *_of_configs()]
    with without_modes():
        old = [setting.get() for setting in settings]
    filters = warnings.filters
    content = list(filters)
    try:
        with leaving_transforms():
            yield
    finally:
        with without_modes():
            _restore(settings, old)
        if warnings.filters is not filters or list(filters) != content:
            warnings.filters = filters
            cast(list[Any], filters)[:] = content
            cast(Any, warnings)._filters_mutated()


@contextlib.contextmanager
def leaving_transforms() -> Generator[None, None, None]:
    """Leaves the modes and transforms at the end of this context that code in it is still in after
    an error."""
    stacks = _stacks()
    depths = [setting.get() for setting in stacks]
    try:
        yield
    finally:
        _restore(stacks, depths)


def _restore(settings: Sequence[_Setting], old: Sequence[Any]) -> None:
    for setting, value in zip(settings, old, strict=True):
        with contextlib.suppress(Exception):
            if not setting.equals(setting.get(), value):
                setting.change(value)


def without_modes() -> contextlib.AbstractContextManager[object]:
    """A context without the modes that the user is in, such as a fake mode."""
    active: int = _C._len_torch_dispatch_stack()
    return cast(Any, _disable_current_modes)() if active else contextlib.nullcontext()


@functools.cache
def _stacks() -> tuple[_Setting, ...]:
    """The modes and transforms that code is in."""
    return (
        _Setting(_C._len_torch_dispatch_stack, _popping("dispatch"), _at_most),
        _Setting(_C._len_torch_function_stack, _popping("function"), _at_most),
        *_of_functorch(),
    )


@functools.cache
def _settings() -> tuple[_Setting, ...]:
    """The settings of this version of torch."""
    return (
        _Setting(_default_device, cast(Any, torch).set_default_device),
        _Setting(torch.is_grad_enabled, torch.set_grad_enabled),
        _Setting(torch.get_default_dtype, torch.set_default_dtype),
        _Setting(torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        _Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        _Setting(torch.get_num_threads, torch.set_num_threads),
        _Setting(torch.is_anomaly_enabled, torch.set_anomaly_enabled),
        _Setting(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
        _Setting(torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
        *(setting for kind in ("cpu", "cuda") for setting in _of_autocast(kind)),
        *(
            _Setting(getattr(_C, get), getattr(_C, set))
            for get, set in _FUNCTIONS
            if hasattr(_C, get) and hasattr(_C, set)
        ),
        *(
            _Setting(
                functools.partial(getattr, sys.modules[module], name, None),
                functools.partial(setattr, sys.modules[module], name),
                operator.is_,
            )
            for module, name in _ATTRIBUTES
            if hasattr(sys.modules.get(module), name)
        ),
        _Setting(gc.isenabled, _collect),
        _Setting(sys.getrecursionlimit, sys.setrecursionlimit),
        _Setting(random.getstate, random.setstate),
        _Setting(torch.get_rng_state, torch.set_rng_state, torch.equal),
    )


def _collect(enabled: bool) -> None:
    """Turns the garbage collector on or off."""
    (gc.enable if enabled else gc.disable)()


def _at_most(now: int, old: int) -> bool:
    return now <= old


def _popping(kind: str) -> Callable[[int], None]:
    """A function that leaves modes until as many are left."""

    def pop(count: int) -> None:
        while getattr(_C, f"_len_torch_{kind}_stack")() > count:
            getattr(_C, f"_pop_torch_{kind}_stack")()

    return pop


def _of_functorch() -> Iterator[_Setting]:
    """The transforms of functorch that a failed capture is still in: everything that PyTorch does
    afterwards would be within them."""
    functorch: Any = getattr(_C, "_functorch", None)
    if hasattr(functorch, "pop_dynamic_layer_stack_and_undo_to_depth"):
        depth = functorch.get_dynamic_layer_stack_depth
        yield _Setting(depth, functorch.pop_dynamic_layer_stack_and_undo_to_depth, _at_most)


def _default_device() -> object:
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    return getattr(context, "device", None)


def _of_autocast(kind: str) -> Iterator[_Setting]:
    """Whether a device casts, and to which type."""
    of: Any = torch
    yield _Setting(
        functools.partial(of.is_autocast_enabled, kind),
        functools.partial(of.set_autocast_enabled, kind),
    )
    yield _Setting(
        functools.partial(of.get_autocast_dtype, kind),
        functools.partial(of.set_autocast_dtype, kind),
    )


def _of_configs() -> Iterator[_Setting]:
    """The settings of parts of torch that are loaded, and those that are loaded later."""
    for name in _CONFIGS:
        entries = getattr(sys.modules.get(name), "_config", None)
        if entries:
            yield _Setting(
                functools.partial(_overrides, entries),
                functools.partial(_override, entries),
                _same_overrides,
            )
    if "numpy" in sys.modules:
        numpy: Any = sys.modules["numpy"]
        get = functools.partial(numpy.random.get_state, legacy=False)
        yield _Setting(get, numpy.random.set_state, _same_numpy)


def _same_numpy(one: Any, other: Any) -> bool:
    a, b = one["state"], other["state"]
    return bool(a["pos"] == b["pos"] and (a["key"] == b["key"]).all())


def _overrides(entries: dict[str, Any]) -> dict[str, Any]:
    """The values that were set. Newer versions of torch keep each in a context variable."""
    return {
        name: entry.user_override.get() if _is_variable(entry) else entry.user_override
        for name, entry in entries.items()
    }


def _is_variable(entry: Any) -> bool:
    return isinstance(entry.user_override, contextvars.ContextVar)


def _same_overrides(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] is other[key] for key in other)


def _override(entries: dict[str, Any], old: dict[str, Any]) -> None:
    for name, value in old.items():
        entry = entries[name]
        if _is_variable(entry):
            if entry.user_override.get() is not value:
                entry.user_override.set(value)
        else:
            entry.user_override = value
