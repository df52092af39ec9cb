"""Options, from keywords to the JSON that Rust reads: keys are the flags of the command."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from . import _errors
from ._options import RENAMED, ConvertOptions, OptimizeOptions, SaveOptions

if TYPE_CHECKING:
    import torch

#: The keywords of each function.
CONVERTING = frozenset(ConvertOptions.__annotations__)
SAVING = frozenset(SaveOptions.__annotations__)
OPTIMIZING = frozenset(OptimizeOptions.__annotations__) - SAVING


def to_json(options: Mapping[str, object]) -> str:
    """The options as JSON. Those that are None keep their defaults.

    Args:
        options: Options by keyword.

    Raises:
        TypeError: An option is unknown.
        ImportError: An option needs ONNX Runtime, which is missing.
    """
    options = renamed(options)
    reject_unknown(options, CONVERTING)
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


def reject_unknown(options: Mapping[str, object], known: Collection[str]) -> None:
    """Raises TypeError for an option that is not one of ``known``, with the most similar name."""
    unknown = sorted(options.keys() - set(known))
    if unknown:
        # Only needed for errors.
        import difflib

        similar = difflib.get_close_matches(unknown[0], known, n=1)
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


def _plain(value: object) -> object:
    """Paths as texts, sets and tuples as lists."""
    if isinstance(value, os.PathLike):
        return cast("os.PathLike[str]", value).__fspath__()
    return list(cast(Iterable[object], value))
