"""Writes docs/python-api.md from the docstrings of the package. With ``--check``, fails if the page
is not up to date.

PYTHONPATH=python python python/api.py [--check]
"""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pt2onnx

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "python-api.md"
HEAD = """# The Python API

`python/api.py` makes this page from the docstrings. [The Python package](python.md) shows how the
parts are used.
"""
#: The modules, and the order of the main one. Names that are missing here come after.
FIRST = [
    "export",
    "convert",
    "ONNXProgram",
    "verify",
    "Verification",
    "OutputCheck",
    "translation",
    "inspect",
    "check",
    "load",
    "optimize",
    "diff",
]
MODULES = {"pt2onnx": pt2onnx, "pt2onnx.hf": pt2onnx.hf, "pt2onnx.compat": pt2onnx.compat}
#: Classes that users meet, but do not import.
MORE = {"pt2onnx": {"Cx": "_cx", "Value": "_cx"}}


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for path, module in MODULES.items():
        if path != "pt2onnx":
            parts.append(f"## Module `{path}`\n\n{markdown(module)}")
        names = sorted(
            module.__all__, key=lambda n: (FIRST.index(n) if n in FIRST else len(FIRST), n)
        )
        objects = {name: getattr(module, name) for name in names}
        for name, source in MORE.get(path, {}).items():
            objects[name] = getattr(sys.modules[f"pt2onnx.{source}"], name)
        for name, value in objects.items():
            if not name.startswith("__"):
                parts.append(
                    f"{'##' if path == 'pt2onnx' else '###'} `{path}.{name}`\n\n"
                    + "\n\n".join(described(name, value))
                )
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def described(name: str, value: Any) -> Iterator[str]:
    """A function, or a class with its methods."""
    if not inspect.isclass(value):
        yield from ([signature(name, value)] if callable(value) else [])
        yield markdown(value)
        return
    if dataclasses.is_dataclass(value):
        yield signature(name, value)
    elif issubclass(value, (Exception, Warning)):
        yield f"Bases: `{'`, `'.join(base.__name__ for base in value.__bases__)}`"
    yield markdown(value)
    for key, member in vars(value).items():
        if key.startswith("_") and key != "__call__":
            continue
        if isinstance(member, property):
            kind = str(inspect.signature(member.fget).return_annotation)
            yield f"**`{key}`**: `{kind}`. {markdown(member)}"
        elif inspect.isfunction(member):
            yield f"**`{key}`**\n\n{signature(key, member)}\n\n{markdown(member)}"


def signature(name: str, value: Any) -> str:
    """The parameters with their types and defaults, on a line each if there are many."""
    found = inspect.signature(value)
    returns = found.return_annotation
    given = [
        str(p.replace(annotation=shown(p.annotation), default=shown(p.default, repr)))
        for p in found.parameters.values()
        if p.name != "self"
    ]
    kinds = [p.kind for p in found.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    text = f"{name}({', '.join(given)})"
    if len(text) > 100:
        text = f"{name}(\n" + "".join(f"    {part},\n" for part in given) + ")"
    if returns not in (found.empty, None):
        text += f" -> {returns}"
    return f"```python\n{text}\n```"


class Shown:
    """A text that is its own ``repr``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown(value: Any, text: Callable[[Any], str] = str) -> Any:
    """An annotation or a default as it is written; a default that is made anew for each object as
    ``...``."""
    if value is inspect.Parameter.empty:
        return value
    return Shown("..." if "factory" in repr(value) else text(value))


def markdown(value: Any) -> str:
    """A docstring as Markdown. Raises ValueError if there is none."""
    text = inspect.getdoc(value)
    if not text:
        raise ValueError(f"{value!r} has no docstring")
    out: list[str] = []
    code = False
    # "items", "text" or none.
    section = ""
    for line in text.splitlines():
        if code and line and not line.startswith("    "):
            out.append("```\n")
            code = False
        if line in ("Args:", "Raises:", "Returns:"):
            out.append("Parameters:\n" if line == "Args:" else f"{line}\n")
            section = "text" if line == "Returns:" else "items"
            continue
        item = re.match(r"    (\S[^:]*): (.*)", line)
        if code:
            out.append(line[4:])
        elif section == "items" and item:
            out.append(f"- `{'`, `'.join(item[1].split(', '))}`: {item[2]}")
        elif section == "items" and line.startswith("        "):
            out.append(f"  {line.strip()}")
        else:
            if section == "text" and line.startswith("    "):
                line = line.removeprefix("    ")
            elif line:
                section = ""
            code = line.endswith("::")
            out.append(line.removesuffix("::") + (":\n\n```python" if code else ""))
    if code:
        out.append("```")
    joined = (
        re.sub(r"\n{3,}", "\n\n", "\n".join(out))
        .replace("```python\n\n", "```python\n")
        .replace("\n\n```", "\n```")
    )
    # Double backticks of reStructuredText, but not the three around code.
    joined = re.sub(r"(?<!`)``(?!`)", "`", joined)
    return re.sub(r"(:)\n```python", r"\1\n\n```python", joined)


def main() -> int:
    text = page()
    if sys.argv[1:] == ["--check"]:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        if not same:
            print(f"{PAGE} is not up to date: run python/api.py", file=sys.stderr)
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
