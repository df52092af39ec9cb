"""Exports of parts of models: decoders that take another way for one token are captured twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import _option_json, _progress
from .._errors import TorchExportError, native_errors
from .._export import export
from .._program import ONNXProgram
from .._pt2onnx import choose
from .._types import is_dict, is_items

if TYPE_CHECKING:
    from ._generation import Part

#: The axis that decides.
_LENGTH = "sequence_length"


def exported(part: Part, path: str, options: dict[str, Any]) -> ONNXProgram:
    """Exports a part into a file.

    Args:
        part: The part.
        path: The file.
        options: Those of ``pt2onnx.export``.
    """
    shapes = options.get("dynamic_shapes", part.dynamic_shapes)
    # A step of a decoder has at least one token, so that there are keys.
    length = _LENGTH if part.one_token is None else torch.export.Dim(_LENGTH, min=1)
    given: dict[str, Any] = {
        "input_names": part.input_names,
        "output_names": part.output_names,
        # The sizes of a text, of those before it and of its mask belong together, which captures at
        # other sizes do not know.
        "sizes": "warn",
        **options,
        "dynamic_shapes": _with_length(shapes, length),
    }
    if not part.is_twice:
        try:
            return export(part.model, (), path, kwargs=part.kwargs, **given)
        except TorchExportError:
            # One token and several may need other captures.
            if part.one_token is None:
                raise
    assert part.one_token is not None
    several = _with_length(shapes, torch.export.Dim(_LENGTH, min=2))
    one = _with_length(shapes, torch.export.Dim.STATIC)
    both = [
        (part.model, {**given, "kwargs": kwargs, "dynamic_shapes": sizes})
        for kwargs, sizes in ((part.one_token, one), (part.kwargs, several))
    ]
    return _chosen(both, path, f"{_LENGTH} <= 1", (_LENGTH, "input_ids", 1))


def merged(parts: list[Part], path: str, options: dict[str, Any]) -> ONNXProgram:
    """Exports the decoder for the tokens after the first and that for the first one as one model,
    whose input ``use_cache_branch`` chooses."""
    both = [
        (
            part.model,
            {
                "sizes": "warn",
                **options,
                "kwargs": part.kwargs,
                "dynamic_shapes": part.dynamic_shapes,
            },
        )
        for part in parts
    ]
    return _chosen(both, path, "used >= 1", ("used", "use_cache_branch", None))


def _chosen(
    models: list[tuple[torch.nn.Module, dict[str, Any]]],
    path: str,
    condition: str,
    place: tuple[str, str, int | None],
) -> ONNXProgram:
    """One model that takes the first of two where a condition holds.

    Args:
        models: The modules with their options.
        path: The file.
        condition: The condition.
        place: Its name, and the input and axis whose size it is; None for the number of true
            elements of the input.
    """
    name, source, axis = place
    saving: dict[str, Any] = {}
    programs: list[ONNXProgram] = []
    for model, given in models:
        saving = {key: given.pop(key) for key in list(given) if key in _option_json.SAVING}
        external = given.pop("external_data", None)
        if external is not None:
            saving["weights"] = "external" if external else "embed"
        programs.append(export(model, (), **given))
    with native_errors():
        native = choose(
            [program._native for program in programs],
            (condition, 0, 1),
            {name: (source, axis)},
            {name: (0, None)},
            [],
        )
    made = ONNXProgram(native)
    with _progress.shown("write", models[0][1].get("verbose")):
        made.save(path, **saving)
    return made


def _with_length(shapes: Any, size: object) -> Any:
    """Dynamic shapes with another size in place of the length."""
    if is_dict(shapes):
        return {key: _with_length(value, size) for key, value in shapes.items()}
    if is_items(shapes):
        return [_with_length(value, size) for value in shapes]
    return size if shapes == _LENGTH else shapes
