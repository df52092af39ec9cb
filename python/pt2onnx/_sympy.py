"""SymPy, which is loaded where it is used first: traces need none."""

from __future__ import annotations

import importlib
from typing import Any


class _Sympy:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("sympy"), name)


sympy: Any = _Sympy()
