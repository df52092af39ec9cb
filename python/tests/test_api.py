"""docs/python-api.md says what the docstrings say."""

from __future__ import annotations

import pathlib
import subprocess
import sys


def test_the_page_is_up_to_date() -> None:
    script = pathlib.Path(__file__).parents[1] / "api.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
