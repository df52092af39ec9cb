"""The table of exports with torch.onnx.export and with pt2onnx.export in its place."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

#: The ways to export.
WAYS = ("torch", "pt2onnx")


def parse_options(doc: str, names: Collection[str]) -> argparse.Namespace:
    """The options of a script: how often each export runs, their names, and the options of a process of one export.

    Args:
        doc: The help text of the script.
        names: The names of its exports; others are those of other scripts.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(names))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.names = [name for name in given.names if name in names]
    return given


def export_function(way: str) -> Callable[..., Any]:
    """The function that exports, in a process of one export: it uses one thread."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if way == "torch":
        return torch.onnx.export
    import pt2onnx

    return pt2onnx.export


def results(script: str, name: str, runs: int, compare: Callable[[Path, Path], str] | None = None) -> tuple[dict[str, list[Any]], str]:
    """The results of processes of one export by way, which each prints as JSON in its last line, and of a comparison.

    Args:
        script: The file of the script.
        name: The export.
        runs: How many processes each way has.
        compare: Compares the folders of the first process of each way.
    """
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, list[Any]] = {way: [] for way in WAYS}
        for way in WAYS:
            for run in range(runs):
                out = Path(folder, f"{way} {run}")
                out.mkdir()
                command = [sys.executable, os.path.abspath(script), "--way", way, "--folder", out, name]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                found[way].append(json.loads(done.stdout.splitlines()[-1]))
        first, second = (Path(folder, f"{way} 0") for way in WAYS)
        return found, compare(first, second) if compare else ""


def medians(found: dict[str, list[Any]], key: str) -> dict[str, float]:
    """The median of a number by way."""
    return {way: statistics.median(run[key] for run in runs) for way, runs in found.items()}


def print_table(
    names: Iterable[str],
    before: Sequence[str],
    after: Sequence[tuple[str, str]],
    measure: Callable[[str], tuple[Sequence[str], dict[str, float], Sequence[str]]],
) -> None:
    """Prints a Markdown table of exports, a row as soon as it is measured, and a sentence about the ratios.

    Args:
        names: The exports.
        before: The titles of the columns before the seconds.
        after: The titles of those after them, with the alignment of each.
        measure: Gives the cells before, the seconds by way, and the cells after of an export.
    """
    titles = [*before, "torch.onnx, s", "pt2onnx, s", "ratio", *(title for title, _ in after)]
    lines = ["---"] * len(before) + ["---:"] * 3 + [line for _, line in after]
    print(f"| {' | '.join(titles)} |\n| {' | '.join(lines)} |")
    ratios = []
    for name in names:
        first, seconds, last = measure(name)
        theirs, ours = (seconds[way] for way in WAYS)
        ratios.append(ours / theirs)
        cells = [*first, f"{theirs:.2f}", f"{ours:.2f}", f"{ratios[-1]:.2f}", *last]
        print(f"| {' | '.join(cells)} |", flush=True)
    if not ratios:
        return
    print(f"\nRatio of the seconds: median {statistics.median(ratios):.2f}, largest {max(ratios):.2f}.")
