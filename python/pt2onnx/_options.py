"""Options of a conversion, from Python's keywords to what Rust reads: JSON with the keys of the command's flags."""

from __future__ import annotations

import json
from typing import Any

#: Keywords of ``export`` and ``convert`` beside those of ``torch.onnx.export``; docs/options.md explains them.
OWN = frozenset(
    """accuracy_level alignment assume_finite asymmetric aten_nodes block calibrate calibration cast_io cast_weights compress_exclude
    compress_include compress_min custom_opset default_dtype dim doc_string doc_strings dynamic_axes external_threshold fix fold_limit functions
    functions_of inline input input_names input_shape ir_version keep_initializers_as_inputs kv_names link_outside merge_weights meta
    metadata method model model_version operators opset optimize output_names precision producer quantize rename rules seed shard_size
    signed skip_pass state strip_paths target training warnings_as_errors weights weights_file""".split()
)

#: Those of ``optimize``.
OPTIMISING = frozenset(
    """accuracy_level asymmetric block calibrate calibration cast_io cast_weights compress_exclude compress_include compress_min dim
    dynamic_axes fix fold_limit inline input_names input_shape kv_names merge_weights opset optimize output_names precision quantize rename
    rules signed skip_pass target""".split()
)

#: Those that say how a model is written.
SAVING = frozenset("alignment external_threshold link_outside shard_size weights weights_file".split())


def as_json(options: dict[str, Any]) -> str:
    """The options as JSON. Those that are None keep their defaults.

    Raises TypeError for an unknown option, ImportError if one needs ONNX Runtime and there is none.
    """
    refuse_unknown(options, OWN)
    given = {key.replace("_", "-"): value for key, value in options.items() if value is not None}
    if isinstance(given.get("optimize"), bool):
        given["optimize"] = 2 if given["optimize"] else 0
    if given.get("calibrate"):
        from . import _run

        _run.load("calibrate")
        if isinstance(given["calibrate"], (str, bytes)) or hasattr(given["calibrate"], "__fspath__"):
            given["calibrate"] = [given["calibrate"]]
    return json.dumps(given, default=_plain)


def refuse_unknown(options: dict[str, Any], known: frozenset[str]) -> None:
    """Raises TypeError for an option that is not one of these, with the name that is most like it."""
    unknown = sorted(options.keys() - known)
    if unknown:
        import difflib

        alike = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f": did you mean {alike[0]!r}?" if alike else ""
        raise TypeError(f"there is no option {unknown[0]!r}{meant}")


def of_optimize(options: dict[str, Any]) -> str:
    """The options of ``optimize`` as JSON.

    Raises TypeError for one that is unknown, or has no meaning for models.
    """
    others = sorted((options.keys() & OWN) - OPTIMISING)
    if others:
        raise TypeError(f"optimize has no option {others[0]!r}: it is one of conversions")
    return as_json(options)


def of_modules(modules: Any) -> list[str] | None:
    """The option ``functions_of`` for ``export_modules_as_functions``: True, or classes of modules."""
    if isinstance(modules, bool) or modules is None:
        return ["all"] if modules else None
    return [f"{each.__module__}.{each.__qualname__}" for each in modules] or None


def _plain(value: Any) -> Any:
    """Paths as texts, sets and tuples as lists."""
    import os

    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(value)
