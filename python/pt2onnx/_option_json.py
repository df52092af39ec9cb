"""Options, from keywords to the JSON that Rust reads: keys are the flags of the command."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from . import _errors
from ._options import RENAMED, ConvertOptions, OptimizeOptions, SaveOptions
from ._types import is_items

if TYPE_CHECKING:
    import torch

#: The keywords of each function.
CONVERTING = frozenset(ConvertOptions.__annotations__)
SAVING = frozenset(SaveOptions.__annotations__)
OPTIMIZING = frozenset(OptimizeOptions.__annotations__) - SAVING

#: The key of attributes of modules, which users do not give.
MODULE_ATTRIBUTES = "module_attributes"


def to_json(options: Mapping[str, object]) -> str:
    """The options as JSON. Those that are None keep their defaults.

    Args:
        options: Options by keyword.

    Raises:
        TypeError: An option is unknown.
        ImportError: An option needs ONNX Runtime, which is missing.
    """
    options = renamed(options)
    reject_unknown(options.keys() - {MODULE_ATTRIBUTES}, CONVERTING)
    given = {key.replace("_", "-"): value for key, value in options.items() if value is not None}
    if isinstance(given.get("optimize"), bool):
        given["optimize"] = 2 if given["optimize"] else 0
    if samples := given.get("calibration-data"):
        from . import _ort_library

        _ort_library.load("calibration_data")
        if isinstance(samples, (str, bytes, os.PathLike)):
            given["calibration-data"] = [samples]
    return json.dumps(given, default=_plain)


def optimize_json(options: Mapping[str, object]) -> str:
    """The options of ``optimize`` as JSON.

    Args:
        options: Options by keyword.

    Raises:
        TypeError: An option is unknown, or has no meaning for models.
    """
    if others := sorted((options.keys() & CONVERTING) - OPTIMIZING):
        raise TypeError(f"optimize has no option {others[0]!r}: it is one of conversions")
    return to_json(options)


def renamed(options: Mapping[str, object]) -> dict[str, object]:
    """The options by their present keywords. Warns of old ones.

    Args:
        options: Options by keyword, as the user gave them.

    Raises:
        TypeError: An option has both of its keywords.
    """
    made = dict(options)
    for old in [key for key in options if key in RENAMED]:
        new = RENAMED[old]
        if new in made:
            raise TypeError(f"the options {old!r} and {new!r} are the same: give {new!r}")
        made[new] = made.pop(old)
        _errors.warn(f"the option {old!r} is called {new!r} now", DeprecationWarning)
    return made


def reject_unknown(
    options: Iterable[str], known: Collection[str], others: Collection[str] = ()
) -> None:
    """Raises TypeError for an option that is not one of ``known``, with the most similar name of
    these and ``others``."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        # Only needed for errors.
        import difflib

        similar = difflib.get_close_matches(unknown[0], [*known, *others], n=1)
        hint = f": did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(f"there is no option {unknown[0]!r}{hint}")


def module_functions(modules: bool | Collection[type[torch.nn.Module]] | None) -> list[str] | None:
    """The option ``module_functions`` for ``export_modules_as_functions``.

    Args:
        modules: True for all modules, or classes of modules.
    """
    if isinstance(modules, bool) or modules is None:
        return ["all"] if modules else None
    return [f"{each.__module__}.{each.__qualname__}" for each in modules] or None


def module_attributes(model: object) -> dict[str, dict[str, object]]:
    """Attributes of the modules of a model by their paths: those that their classes annotate, as in
    ``torch.onnx.export``. Tensors are left out, and what is neither a number, a text, nor a list of
    these.

    Args:
        model: A module; others have none.
    """
    named = cast(
        "Callable[[], Iterable[tuple[str, object]]] | None", getattr(model, "named_modules", None)
    )
    return {path: _annotated(module) for path, module in (named() if named else ()) if path}


def _annotated(module: object) -> dict[str, object]:
    """The annotated attributes of a module, without those that all modules have."""
    cls = type(module)
    names = [
        name
        for one in reversed(cls.__mro__)
        if one.__module__ != "torch.nn.modules.module"
        for name in inspect.get_annotations(one)
    ]
    found = {name: getattr(module, name, None) for name in names}
    return {name: value for name, value in found.items() if _is_attribute(value)}


def _is_attribute(value: object) -> bool:
    plain = (bool, int, float, str)
    if is_items(value):
        return bool(value) and all(isinstance(item, plain) for item in value)
    return isinstance(value, plain)


def _plain(value: object) -> object:
    """Paths as texts, sets and tuples as lists."""
    if isinstance(value, os.PathLike):
        return cast("os.PathLike[str]", value).__fspath__()
    return list(cast(Iterable[object], value))
