"""The files of safetensors of a folder, and where the weights of its model are in them.

Transformers maps these files, and weights of their element type are views of the maps. A model with
``weights="link"`` refers to the files.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch

from .. import _mapped
from . import _json

#: The end of the names of the files.
_END = ".safetensors"

#: The only file of weights, and the list of several.
_ONE = f"model{_END}"
_INDEX = f"{_ONE}.index.json"

#: The largest header that safetensors itself reads.
_LARGEST = 100_000_000


class _Stored(NamedTuple):
    """A tensor of a file: its bytes there."""

    name: str
    path: str
    start: int
    bytes: torch.Tensor


def check(folder: str) -> None:
    """Looks for the files of weights that transformers would load.

    Raises:
        ValueError: One is missing, or damaged. Transformers does not say which.
    """
    index = os.path.join(folder, _INDEX)
    names = [_ONE]
    if os.path.isfile(index):
        names = sorted(set(_json.read(index).get("weight_map", {}).values()))
    for path in (os.path.join(folder, name) for name in names):
        if os.path.isfile(path):
            _header(path)
        elif names != [_ONE]:
            raise ValueError(f"{path} is missing, which {_INDEX} names: copy it again")


def linked(source: str, folder: str, temporary: str, model: Any) -> dict[Any, _mapped.Place]:
    """The places of a model's weights in the files of its folder.

    Args:
        source: The folder of the model.
        folder: The folder that is written. If it is that of the model, its files have to be where
            the model is written first.
        temporary: The folder in which it is written first.
        model: The model. Weights that are not as in a file have no place.

    Raises:
        OSError: The files cannot be in the temporary folder.
    """
    paths = sorted(glob.glob(os.path.join(glob.escape(os.path.abspath(source)), f"*{_END}")))
    if os.path.isdir(folder) and os.path.samefile(source, folder):
        paths = [_beside(path, temporary) for path in paths]
    by_size: dict[int, list[_Stored]] = {}
    for path in paths:
        for stored in _tensors(path):
            by_size.setdefault(stored.bytes.numel(), []).append(stored)
    places: dict[_mapped.Memory, _mapped.Place] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        storage: torch.UntypedStorage = tensor.untyped_storage()
        memory = _mapped.memory(storage)
        own = _bytes(storage, 0, storage.nbytes())
        # The same name first: another name is that of a tied or of a renamed weight.
        candidates = by_size.get(storage.nbytes(), [])
        for stored in sorted(candidates, key=lambda one: one.name != name):
            if memory not in places and _equal(own, stored.bytes):
                places[memory] = stored.path, stored.start
    return places


def _beside(path: str, folder: str) -> str:
    """Another name of a file, in a folder."""
    made = os.path.join(folder, os.path.basename(path))
    os.link(path, made)
    return made


def _header(path: str) -> tuple[dict[str, dict[str, Any]], int]:
    """The header of a file, which lists its tensors, and where their bytes begin.

    Raises:
        ValueError: It is not of safetensors.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length <= min(size - 8, _LARGEST):
            with contextlib.suppress(ValueError):
                header: dict[str, dict[str, Any]] = json.loads(file.read(length))
                ends = [one["data_offsets"][1] for one in header.values() if "data_offsets" in one]
                if 8 + length + max(ends, default=0) <= size:
                    return header, 8 + length
    raise ValueError(f"{path} is not a file of safetensors, or was cut off: copy it again")


def _tensors(path: str) -> Iterator[_Stored]:
    """The tensors of a file.

    Raises:
        ValueError: It is not of safetensors.
    """
    header, start = _header(path)
    size = os.path.getsize(path)
    storage: Any = cast(Any, torch.UntypedStorage).from_file(path, False, size)
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (start + int(offset) for offset in entry["data_offsets"])
        if 0 < begin < end <= size:
            yield _Stored(name, path, begin, _bytes(storage, begin, end))


def _bytes(storage: torch.UntypedStorage, begin: int, end: int) -> torch.Tensor:
    """A part of a storage as bytes."""
    whole = torch.tensor([], dtype=torch.uint8).set_(cast(Any, storage))
    return whole[begin:end]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether bytes are equal, which the first ones nearly always decide."""
    few = slice(0, 64)
    return torch.equal(one[few], other[few]) and torch.equal(_eights(one), _eights(other))


def _eights(part: torch.Tensor) -> torch.Tensor:
    """Bytes by eights where that is possible: those compare faster."""
    fits = part.numel() % 8 == part.storage_offset() % 8 == 0
    return part.view(torch.int64) if fits else part
