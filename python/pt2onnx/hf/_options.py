"""Options of ``pt2onnx.hf.export``: contradictions, and those that follow from others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from . import _genai

#: The layouts of folders.
LAYOUTS = ("optimum", "genai", "transformers.js")

#: Targets whose operators of language models need this opset.
_OPSETS = {"ort": 24, _genai.TARGET: 24}

#: The first opset whose operators restore 4 bits.
_INT4_OPSET = 21

#: How files of weights are written; a model that holds its weights has none.
_OF_FILES = ("weights_file", "external_threshold", "shard_size", "alignment")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A file of transformers.js: the end of its name, and the options that make it."""

    suffix: str
    options: dict[str, Any]


_INT4 = {"quantize": "int4", "block_size": 32, "target": "ort"}
_FLOAT16 = {"precision": "float16"}

#: The variants by transformers.js's names of element types.
VARIANTS = {
    "fp32": Variant("", {}),
    "fp16": Variant("_fp16", _FLOAT16),
    "q8": Variant("_quantized", {"quantize": "dynamic-int8"}),
    "int8": Variant("_int8", {"quantize": "dynamic-int8", "signed": True}),
    "uint8": Variant("_uint8", {"quantize": "dynamic-int8"}),
    "q4": Variant("_q4", _INT4),
    "q4f16": Variant("_q4f16", {**_INT4, **_FLOAT16}),
}

#: The options of ``pt2onnx.export`` that variants set.
_OF_VARIANTS = ("quantize", "precision", "cast_io", "cast_weights", "block_size", "signed", "mixed")


def settled(
    layout: str | None, dtypes: Sequence[str] | None, options: Mapping[str, Any]
) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The layout, the element types, and the options of exports.

    Raises:
        ValueError: They contradict each other.
    """
    given = dict(options)
    target = given.get("target")
    chosen = layout or ("genai" if target == _genai.TARGET else "optimum")
    if chosen not in LAYOUTS:
        raise ValueError(f"there is no layout {chosen!r}: give one of {', '.join(LAYOUTS)}")
    if chosen == "genai":
        given["target"] = target = target or _genai.TARGET
    if (chosen == "genai") != (target == _genai.TARGET):
        raise ValueError(
            f"the layout {chosen!r} and the target {target!r} contradict each other: the target "
            f"'{_genai.TARGET}' is for the layout 'genai'"
        )
    if dtypes is not None and chosen != "transformers.js":
        raise ValueError(
            f"dtypes are of the layout 'transformers.js', not {chosen!r}: give quantize or "
            "precision, or layout='transformers.js'"
        )
    if chosen == "transformers.js":
        _check_variants(dtypes, given)
    if given.get("quantize") == "int4":
        # Errors of the last product are those of the logits.
        own = {"mixed": True, "block_size": 32}
        given = {**own, **{name: one for name, one in given.items() if one is not None}}
    if given.get("weights") == "embed":
        wrong = next((name for name in _OF_FILES if given.get(name) is not None), None)
        if given.get("external_data"):
            wrong = "external_data"
        if wrong:
            raise ValueError(f"weights='embed' writes no file of weights: leave out {wrong}")
    opset = _OPSETS.get(target or "", _INT4_OPSET if given.get("quantize") == "int4" else None)
    if opset and given.get("opset_version") is None and given.get("opset") is None:
        given["opset_version"] = opset
    return chosen, tuple(dtypes or ("fp32",)), given


def _check_variants(dtypes: Sequence[str] | None, options: Mapping[str, Any]) -> None:
    unknown = [name for name in dtypes or () if name not in VARIANTS]
    if unknown or (dtypes is not None and not dtypes):
        raise ValueError(
            f"dtypes has {', '.join(map(repr, unknown)) or 'no names'}: give some of "
            f"{', '.join(VARIANTS)}"
        )
    wrong = next((name for name in _OF_VARIANTS if options.get(name) is not None), None)
    if wrong:
        raise ValueError(
            f"with layout='transformers.js', dtypes says how weights are stored: leave out {wrong}"
        )
