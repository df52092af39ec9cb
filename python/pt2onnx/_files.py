"""Files that take the place of others when all of them are written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable


def replace(path: str, write: Callable[[str], None]) -> None:
    """Writes a file and those beside it, which replace existing ones when all are complete."""
    folder, name = os.path.split(path)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pt2onnx-") as temporary:
        write(os.path.join(temporary, name))
        for file in sorted(os.listdir(temporary), key=lambda file: file == name):
            made, target = os.path.join(temporary, file), os.path.join(folder, file)
            if os.path.exists(target):
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, "the file is read-only", target)
                shutil.copymode(target, made)
            with open(made, "rb+") as written:
                os.fsync(written.fileno())
            os.replace(made, target)
