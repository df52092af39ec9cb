"""The command: ``python -m pt2onnx`` and ``pt2onnx``."""

from __future__ import annotations

import sys

from ._pt2onnx import command


def main() -> int:
    """Runs the command with the words of the command line. Returns its exit code."""
    import os
    import signal

    from . import _ort_library

    # The command would ask the first python3 of PATH, which may be another one.
    library = None if "ORT_DYLIB_PATH" in os.environ else _ort_library.of_package()
    if library is not None:
        os.environ["ORT_DYLIB_PATH"] = library
    # While Rust works, Python sees no signals: Ctrl-C ends the process at once, as it ends the
    # command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["pt2onnx", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
