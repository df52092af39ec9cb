"""docs/python-api.md says what the docstrings say."""

from __future__ import annotations

import support


class Page(support.Test):
    def test_up_to_date(self) -> None:
        ran = support.python(str(support.PACKAGE / "api.py"), "--check")
        self.assertEqual(ran.returncode, 0, ran.stderr)
