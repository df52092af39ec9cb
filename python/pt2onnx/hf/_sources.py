"""Folders of transformers: their models, and the files beside the weights."""

from __future__ import annotations

import fnmatch
import importlib
import os
import shutil
from typing import Any

from . import _checkpoints, _json

#: The files of tokenizers, processors and chat templates.
_FILES = (
    *("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt"),
    *("*.model", "*processor_config.json", "chat_template*", "normalizer.json", "*.jinja"),
    *("source.spm", "target.spm", "sentencepiece*", "spiece*", "generation_config.json"),
)

#: The configuration of a model.
_CONFIG = "config.json"


def loaded(model: Any) -> tuple[Any, str | None]:
    """A model, and the folder that it comes from; None for a model that is given.

    Raises:
        ValueError: There is no such folder, it has no model, or a file is missing or damaged.
    """
    if not isinstance(model, str):
        return model, None
    folder = model
    path = os.path.join(folder, _CONFIG)
    if not os.path.isfile(path):
        raise ValueError(
            f"{folder} has no {_CONFIG}: give a folder of a model of transformers, as "
            "save_pretrained writes it, or a model"
        )
    transformers = importlib.import_module("transformers")
    config = _json.read(path)
    _checkpoints.check(folder)
    names: list[str] = config.get("architectures") or []
    kinds = [getattr(transformers, name, None) for name in names]
    kind = next((one for one in kinds if one is not None), None)
    if kind is None:
        known = ", ".join(names) or "none"
        raise ValueError(
            f"{path} names no class of transformers {transformers.__version__} (architectures: "
            f"{known}): load the model, and give it to export"
        )
    return kind.from_pretrained(folder, local_files_only=True).eval(), folder


def copy_files(source: str, folder: str) -> None:
    """Copies the files of the tokenizer, the processor and the chat template."""
    for name in sorted(os.listdir(source)):
        path = os.path.join(source, name)
        known = any(fnmatch.fnmatch(name, pattern) for pattern in _FILES)
        if known and os.path.isfile(path) and not os.path.exists(os.path.join(folder, name)):
            shutil.copyfile(path, os.path.join(folder, name))
