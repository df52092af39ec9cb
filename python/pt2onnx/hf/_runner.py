"""Text generation from the files of a folder, with ONNX Runtime."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Iterator
from typing import Any

#: An array of numpy, which is imported when it is needed.
Array = Any

#: The element types of ONNX Runtime that states have, and numpy's.
_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(int64)": "int64"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The tokens that begin and end a text."""

    start: int
    ends: frozenset[int]

    @classmethod
    def of(cls, model: Any) -> Settings:
        """Those of a model."""
        generation = getattr(model, "generation_config", None)
        return cls._found([vars(one) for one in (generation, model.config) if one is not None])

    @classmethod
    def read(cls, folder: str) -> Settings:
        """Those of a folder."""
        found: list[dict[str, Any]] = []
        for name in ("generation_config.json", "config.json"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    found.append(json.load(file))
        return cls._found(found)

    @classmethod
    def _found(cls, configs: list[dict[str, Any]]) -> Settings:
        def first(*names: str) -> Any:
            values = (config.get(name) for config in configs for name in names)
            return next((value for value in values if value is not None), None)

        start = first("decoder_start_token_id", "bos_token_id")
        end = first("eos_token_id")
        ends = frozenset(int(one) for one in ((end,) if isinstance(end, int) else end or ()))
        return cls(int(start or 0), ends)


class Runner:
    """The models of a folder.

    Args:
        folder: The folder of the models.
        settings: The tokens that begin and end a text.
    """

    def __init__(self, folder: str, settings: Settings) -> None:
        self._folder, self.settings = folder, settings
        self._numpy = importlib.import_module("numpy")
        self._ort = importlib.import_module("onnxruntime")
        self._sessions: dict[str, Any] = {}

    def _session(self, name: str) -> Any:
        if name not in self._sessions:
            path = os.path.join(self._folder, f"{name}.onnx")
            providers = ["CPUExecutionProvider"]
            self._sessions[name] = self._ort.InferenceSession(path, providers=providers)
        return self._sessions[name]

    def _has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self._folder, f"{name}.onnx"))

    def _run(self, name: str, inputs: dict[str, Array]) -> dict[str, Array]:
        session = self._session(name)
        names = [output.name for output in session.get_outputs()]
        wanted = {one.name for one in session.get_inputs()}
        given = {key: value for key, value in inputs.items() if key in wanted}
        return dict(zip(names, session.run(names, given), strict=True))

    def _empty(self, name: str, rows: int) -> dict[str, Array]:
        """The states before the first token."""
        made: dict[str, Array] = {}
        for one in self._session(name).get_inputs():
            if one.name.startswith("past"):
                sizes = [size if isinstance(size, int) else 0 for size in one.shape]
                made[one.name] = self._numpy.zeros([rows, *sizes[1:]], _TYPES[one.type])
        return made

    def greedy(self, inputs: dict[str, Array], steps: int) -> Array:
        """The most likely tokens."""
        return self._numpy.concatenate(list(self.tokens(inputs, steps)), 1)

    def tokens(self, inputs: dict[str, Array], steps: int) -> Iterator[Array]:
        """The most likely tokens, one column after the other.

        Args:
            inputs: ``input_ids`` and ``attention_mask``, or the main input of an encoder.
            steps: The number of tokens.
        """
        make = self._encoder_decoder if self._has("encoder_model") else self._decoder
        return make(inputs, steps)

    def _decoder(self, inputs: dict[str, Array], steps: int) -> Iterator[Array]:
        numpy = self._numpy
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        states = self._empty("model", len(ids))
        for _ in range(steps):
            positions = numpy.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1] :]
            given = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
            results = self._run("model", {**given, **states})
            ids = results["logits"][:, -1:].argmax(-1)
            yield ids
            states = as_past(results)
            mask = numpy.concatenate([mask, numpy.ones_like(ids)], 1)

    def _encoder_decoder(self, inputs: dict[str, Array], steps: int) -> Iterator[Array]:
        numpy = self._numpy
        states = self._run("encoder_model", inputs)["last_hidden_state"]
        given: dict[str, Array] = {"encoder_hidden_states": states}
        if "attention_mask" in inputs:
            given["encoder_attention_mask"] = inputs["attention_mask"]
        merged = "decoder_model_merged" if self._has("decoder_model_merged") else None
        if merged:
            given |= self._empty(merged, len(states))
        tokens = numpy.full((len(states), 1), self.settings.start, numpy.int64)
        for step in range(steps):
            name = merged or ("decoder_with_past_model" if step else "decoder_model")
            flag = numpy.array([step > 0])
            results = self._run(name, {"input_ids": tokens, "use_cache_branch": flag, **given})
            tokens = results["logits"][:, -1:].argmax(-1)
            yield tokens
            given |= as_past(results)


def as_past(results: dict[str, Array]) -> dict[str, Array]:
    """The states of results by the names of inputs."""
    found: dict[str, Array] = {}
    for name, value in results.items():
        if name.startswith("present."):
            found[f"past_key_values.{name.removeprefix('present.')}"] = value
        elif name.startswith("present_"):
            found[f"past_{name.removeprefix('present_')}"] = value
    return found
