"""Python's collector of garbage, which walks over all objects of PyTorch, while many are made."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Generator

#: After how many new objects a collection starts in ``collected_rarely``. After Python's 700, it is
#: a good part of the time of torch.export; without a number, garbage would have no bound.
_OBJECTS = 50_000


@contextlib.contextmanager
def not_collected() -> Generator[None, None, None]:
    """No collection runs: for work that makes no garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Rarely:
    """Collections start rarely while at least one thread is in this context."""

    def __init__(self) -> None:
        self._lock, self._depth = threading.Lock(), 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = gc.get_threshold()
                objects, *rest = self._before
                # 0 stands for never.
                gc.set_threshold(objects and max(objects, _OBJECTS), *rest)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                gc.set_threshold(*self._before)


collected_rarely = _Rarely()
