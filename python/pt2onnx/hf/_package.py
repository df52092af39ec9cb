"""Writes the folder of a model: all of its files, or none."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch

from .. import _convert, _mapped, _option_json, _progress
from .._program import ONNXProgram
from . import (
    _checkpoints,
    _genai,
    _generation,
    _heads,
    _json,
    _last,
    _lengths,
    _options,
    _samples,
    _sources,
    _tasks,
    _verify,
)

#: The folder of models for transformers.js.
_ONNX = "onnx"

#: The name of the decoder for the first token and for others.
_MERGED = "decoder_model_merged"

#: Models of more bytes do not fit into one file.
_LARGEST = 1_900_000_000

#: The files of processors, and the parts that have a separate file in older versions.
_PROCESSOR, _PREPROCESSOR = "processor_config.json", "preprocessor_config.json"
_PARTS_OF_PROCESSORS = ("image_processor", "feature_extractor")

_PARTS_OF_MERGED = ("decoder_model", "decoder_with_past_model")


def export(
    model: Any,
    folder: str,
    task: str | None,
    tokenizer: Any,
    layout: str | None,
    dtypes: Sequence[str] | None,
    merge_decoders: bool,
    all_logits: bool,
    calibration_text: str | None,
    verify: bool,
    options: Mapping[str, Any],
) -> dict[str, ONNXProgram]:
    """See ``pt2onnx.hf.export``."""
    chosen, types, given = _options.settled(layout, dtypes, options)
    folder = os.path.abspath(folder)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise ValueError(f"{folder} is a file: name a folder, which need not be there")
    loaded: Any
    loaded, source = _sources.loaded(os.fspath(model) if hasattr(model, "__fspath__") else model)
    of = _tasks.chosen(loaded, task)
    _check(loaded, of, chosen, merge_decoders)
    if chosen == "genai" and given.get("max_positions") is None:
        given["max_positions"] = _genai.context_length(loaded)
    rows = None
    if calibration_text is not None:
        if given.get("quantize") != "int4" or not of.generates:
            raise ValueError("calibration_text is for quantize='int4' of models that generate text")
        context = _genai.context_length(loaded)
        rows = _samples.tokens(calibration_text, tokenizer, source, context)
    writer = _Writer(loaded, of, chosen, given, verify, rows)
    last = chosen == "genai" and not all_logits
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    # Scans of loops have no gradients.
    with tempfile.TemporaryDirectory(dir=parent, prefix=".pt2onnx-") as temporary, torch.no_grad():
        links: dict[Any, _mapped.Place] = {}
        if source is not None and given.get("weights") == "link":
            links = _checkpoints.linked(source, folder, temporary, loaded)
        with _mapped.at(links), _last.only_last(loaded) if last else contextlib.nullcontext():
            made = writer.models(temporary, tokenizer, merge_decoders)
        if verify:
            _verify.check(loaded, of, made, _models(temporary, chosen), chosen == "genai")
        if chosen == "transformers.js":
            made |= writer.variants(temporary, made, types)
        writer.settings(temporary, source, tokenizer)
        _move(temporary, folder)
    return made


def _models(folder: str, layout: str) -> str:
    return os.path.join(folder, _ONNX) if layout == "transformers.js" else folder


def _check(model: Any, task: _tasks.Task, layout: str, merge: bool) -> None:
    """Raises ValueError where a model does not have what is asked for."""
    both = bool(getattr(model.config, "is_encoder_decoder", False)) and task.generates
    if merge and not both:
        raise ValueError(
            f"merge_decoders is for models with an encoder and a decoder that generate tokens; "
            f"{type(model).__name__} with the task {task.name!r} has one model: leave it out"
        )
    if layout == "genai" and (both or not task.generates):
        raise ValueError(
            f"the target '{_genai.TARGET}' is for decoders, and {type(model).__name__} "
            + ("has an encoder" if both else f"has the task {task.name!r}")
            + ": give target='ort'"
        )


class _Writer:
    """Writes the files of a model into a folder."""

    def __init__(
        self,
        model: Any,
        task: _tasks.Task,
        layout: str,
        options: Mapping[str, Any],
        verify: bool,
        rows: numpy.ndarray[Any, Any] | None,
    ) -> None:
        self._model, self._task, self._layout = model, task, layout
        self._options, self._verify = dict(options), verify
        self._rows = rows
        self._external: dict[str, bool] = {}

    def models(self, folder: str, processor: Any, merge: bool) -> dict[str, ONNXProgram]:
        """Writes the models."""
        parts = self._parts(processor)
        inner = _models(folder, self._layout)
        os.makedirs(inner, exist_ok=True)
        js = self._layout == "transformers.js"
        made: dict[str, ONNXProgram] = {}
        for name, part in parts.items():
            if js and name in _PARTS_OF_MERGED:
                continue
            made[name] = self._write(name, part, inner)
            if self._layout == "genai":
                cache = part.kwargs.get("past_key_values")
                program = made[name]
                _genai.write(inner, self._model, cache, program.input_names, program.report)
        if (merge or js) and _PARTS_OF_MERGED[0] in parts:
            path = os.path.join(inner, f"{_MERGED}.onnx")
            both = _generation.merged_parts(parts)
            made[_MERGED] = _lengths.merged(both, path, self._saving(_MERGED))
        return made

    def _parts(self, processor: Any) -> dict[str, _generation.Part]:
        if self._task.generates:
            return _generation.generation_models(self._model, 2, 3, 4)
        model = self._model
        if _tasks.tasks_of(model)[0].name != self._task.name == "feature-extraction":
            # The features are those before the head.
            model = model.base_model
        return {"model": _heads.part(model, self._task, processor)}

    def _write(self, name: str, part: _generation.Part, folder: str) -> ONNXProgram:
        path, options = os.path.join(folder, f"{name}.onnx"), self._saving(name)
        if self._rows is not None:
            with tempfile.TemporaryDirectory() as temporary:
                samples = os.path.join(temporary, "samples.npz")
                _samples.write(samples, part, self._rows)
                return _lengths.exported(part, path, {**options, "calibration_data": [samples]})
        if not self._task.generates:
            options = {**options, "verify": self._verify}
        return _lengths.exported(part, path, options)

    def _saving(self, name: str) -> dict[str, Any]:
        """The options of a model; those of transformers.js have files of weights of other
        names."""
        if self._layout != "transformers.js" or self._options.get("weights") is not None:
            return self._options
        tensors = (*self._model.parameters(), *self._model.buffers())
        size = sum(one.numel() * one.element_size() for one in tensors)
        self._external[name] = size > _LARGEST
        if not self._external[name]:
            return {**self._options, "weights": "embed"}
        return {**self._options, "weights": "external", "weights_file": f"{name}.onnx_data"}

    def variants(
        self, folder: str, models: Mapping[str, ONNXProgram], dtypes: Sequence[str]
    ) -> dict[str, ONNXProgram]:
        """Writes the models with other element types."""
        inner = _models(folder, self._layout)
        made: dict[str, ONNXProgram] = {}
        for dtype in dtypes:
            variant = _options.VARIANTS[dtype]
            for name, program in models.items() if variant.suffix else ():
                file = f"{name}{variant.suffix}"
                saving = {
                    key: value
                    for key, value in self._saving(file).items()
                    if key in _option_json.SAVING
                }
                path = os.path.join(inner, f"{file}.onnx")
                given: dict[str, Any] = {**variant.options, **saving}
                with _progress.shown(f"write {file}.onnx", self._options.get("verbose")):
                    made[file] = _convert.optimize(program, path, **given)
        if "fp32" not in dtypes:
            for name in models:
                os.remove(os.path.join(inner, f"{name}.onnx"))
        return made

    def settings(self, folder: str, source: str | None, tokenizer: Any) -> None:
        """Writes the configurations and the files of the tokenizer."""
        generation = getattr(self._model, "generation_config", None)
        for part in (self._model.config, generation, tokenizer):
            if part is not None:
                part.save_pretrained(folder)
        if source is not None:
            _sources.copy_files(source, folder)
        if self._layout == "transformers.js":
            self._add_js_config(os.path.join(folder, "config.json"))
            _add_preprocessor(folder)

    def _add_js_config(self, path: str) -> None:
        config = _json.read(path)
        own: dict[str, Any] = {
            "dtype": "fp32",
            "kv_cache_dtype": {"fp16": "float32", "q4f16": "float32"},
            "use_external_data_format": {
                f"{name}.onnx": True for name, there in self._external.items() if there
            },
        }
        config["transformers.js_config"] = own
        _json.write(path, config)


def _add_preprocessor(folder: str) -> None:
    """Writes the settings of images or audio into the file that transformers.js reads. Processors
    of transformers 5 have them in their own file."""
    path, own = (os.path.join(folder, name) for name in (_PREPROCESSOR, _PROCESSOR))
    if os.path.exists(path) or not os.path.exists(own):
        return
    config = _json.read(own)
    parts = [config[name] for name in _PARTS_OF_PROCESSORS if name in config]
    if parts:
        kind = config.get("processor_class")
        _json.write(path, {**parts[0], **({"processor_class": kind} if kind else {})})


def _move(source: str, folder: str) -> None:
    """Moves files into a folder when all are written; models come after their weights. Other names
    of files that are there stay behind.

    Raises:
        PermissionError: An existing file is read-only.
    """
    found = [
        (os.path.join(root, name), os.path.relpath(os.path.join(root, name), source))
        for root, _, names in os.walk(source)
        for name in names
    ]
    found = [(path, name) for path, name in found if not _is_at(path, os.path.join(folder, name))]
    for _, name in found:
        target = os.path.join(folder, name)
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only", target)
    for path, name in sorted(found, key=lambda one: (one[1].endswith(".onnx"), one[1])):
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(path, target)


def _is_at(path: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(path, other)
