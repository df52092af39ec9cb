"""The table of exports with torch.onnx.export and with pt2onnx.export in its place."""

import argparse
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence

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
