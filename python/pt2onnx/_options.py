"""Options of a conversion, from Python's keywords to what Rust reads: JSON with the keys of the command's flags."""

from __future__ import annotations

import json
from typing import Any

#: Keywords of ``export`` and ``convert`` beside those of ``torch.onnx.export``; docs/options.md explains them.
OWN = frozenset(
    """accuracy_level alignment allow_external_paths assume_finite aten_nodes block_size calibration_data calibration_method cast_io
    cast_weights compress_exclude compress_include custom_opset dedup_weights default_dtype dynamic_axes external_threshold fix_dim
    fold_limit inline input input_names input_shape ir_version keep_initializers_as_inputs kv_names metadata_prop method min_elements
    model_doc model_version module_functions mutations node_docs op_functions opset optimize output_names precision producer program
    provenance quantize rename rename_dim rules seed shard_size signed skip_pass strip_paths target training unsupported_ops
    warnings_as_errors weights weights_file zero_points""".split()
)

#: Those of ``optimize``.
OPTIMISING = frozenset(
    """accuracy_level block_size calibration_data calibration_method cast_io cast_weights compress_exclude compress_include dedup_weights
    dynamic_axes fix_dim fold_limit inline input_names input_shape kv_names min_elements opset optimize output_names precision quantize
    rename rename_dim rules signed skip_pass target zero_points""".split()
)

#: Those that say how a model is written.
SAVING = frozenset("alignment allow_external_paths external_threshold shard_size weights weights_file".split())


def as_json(options: dict[str, Any]) -> str:
    """The options as JSON. Those that are None keep their defaults.

    Raises TypeError for an unknown option, ImportError if one needs ONNX Runtime and there is none.
    """
    refuse_unknown(options, OWN)
    given = {key.replace("_", "-"): value for key, value in options.items() if value is not None}
    if isinstance(given.get("optimize"), bool):
        given["optimize"] = 2 if given["optimize"] else 0
    if given.get("calibration_data"):
        from . import _run

        _run.load("calibration_data")
        if isinstance(given["calibration_data"], (str, bytes)) or hasattr(given["calibration_data"], "__fspath__"):
            given["calibration_data"] = [given["calibration_data"]]
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
    """The option ``module_functions`` for ``export_modules_as_functions``: True, or classes of modules."""
    if isinstance(modules, bool) or modules is None:
        return ["all"] if modules else None
    return [f"{each.__module__}.{each.__qualname__}" for each in modules] or None


def _plain(value: Any) -> Any:
    """Paths as texts, sets and tuples as lists."""
    import os

    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return list(value)
