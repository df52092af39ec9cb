"""Text from the tokens of a folder, part by part."""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import _genai, _runner

#: The package of onnxruntime-genai.
_PACKAGE = "onnxruntime_genai"


class Part(NamedTuple):
    """A part of a text: how many tokens there are so far, and the seconds that they took."""

    text: str
    tokens: int
    seconds: float


def stream(folder: str, text: str, steps: int, raw: bool) -> Iterator[Part]:
    """Continues a text.

    Args:
        folder: The folder of the model and its tokenizer.
        text: The text.
        steps: The largest number of new tokens.
        raw: Whether to leave out the chat template.

    Raises:
        ValueError: The folder has no model that generates text, or no tokenizer.
    """
    names = ("model.onnx", "decoder_model.onnx", "decoder_model_merged.onnx")
    inner = next(
        (
            path
            for path in (folder, os.path.join(folder, "onnx"))
            if any(os.path.exists(os.path.join(path, name)) for name in names)
        ),
        None,
    )
    if inner is None:
        raise ValueError(f"{folder} has no model that generates text: export one into it")
    tokenizer = _tokenizer(folder)
    ids, seen = _encoded(tokenizer, text, raw), 0
    found: list[int] = []
    start = time.perf_counter()
    for token in _tokens(folder, inner, ids, steps):
        found.append(token)
        whole: str = tokenizer.decode(found, skip_special_tokens=True)
        # Bytes of a character may be in several tokens.
        ready = "" if whole.endswith("\N{REPLACEMENT CHARACTER}") else whole[seen:]
        seen += len(ready)
        yield Part(ready, len(found), time.perf_counter() - start)


def _tokenizer(folder: str) -> Any:
    transformers = importlib.import_module("transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise ValueError(
            f"{folder} has no tokenizer: export from a folder that has one, or give tokenizer= "
            f"({error})"
        ) from None


def _encoded(tokenizer: Any, text: str, raw: bool) -> list[int]:
    if raw or getattr(tokenizer, "chat_template", None) is None:
        return list(tokenizer(text)["input_ids"])
    message = [{"role": "user", "content": text}]
    prompt: str = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(prompt, add_special_tokens=False)["input_ids"])


def _tokens(folder: str, inner: str, ids: list[int], steps: int) -> Iterator[int]:
    of_genai = os.path.exists(os.path.join(folder, _genai.FILE))
    if of_genai and importlib.util.find_spec(_PACKAGE) is not None:
        yield from _by_genai(folder, ids, steps)
        return
    numpy = importlib.import_module("numpy")
    settings = _runner.Settings.read(folder)
    runner = _runner.Runner(inner, settings)
    rows = numpy.array([ids], numpy.int64)
    inputs = {"input_ids": rows, "attention_mask": numpy.ones_like(rows)}
    for column in runner.tokens(inputs, steps):
        token = int(column[0, 0])
        if token in settings.ends:
            return
        yield token


def _by_genai(folder: str, ids: list[int], steps: int) -> Iterator[int]:
    genai = importlib.import_module(_PACKAGE)
    model = genai.Model(folder)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(ids) + steps, do_sample=False, batch_size=1)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(ids)
    settings = _runner.Settings.read(folder)
    while not generator.is_done():
        generator.generate_next_token()
        token = int(generator.get_next_tokens()[0])
        if token in settings.ends:
            return
        yield token
