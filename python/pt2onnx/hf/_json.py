"""Files of JSON, such as configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import _files


def read(path: str) -> dict[str, Any]:
    """The content of a file.

    Raises:
        ValueError: It is damaged.
    """
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return found


def write(path: str, config: Mapping[str, Any]) -> None:
    """Writes a file, which may take the place of another."""

    def write_text(made: str) -> None:
        with open(made, "w", encoding="utf-8") as file:
            file.write(f"{json.dumps(config, indent=2)}\n")

    _files.replace(path, write_text)
