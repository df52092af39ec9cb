"""Converts the models of the ONNX backend tests to other opsets and back with `pt2onnx optimize --opset`, and runs the results.

    python xtask/python/opset_pairs.py target/release/pt2onnx [--opsets all] [--forms] [--jobs N] [PART-OF-A-NAME ...]

Each model goes to every opset of `--opsets`, and from the oldest one that takes it to every newer one. A result is right if
`onnx.checker` takes it, where it takes the model itself, and ONNX Runtime, or else the reference evaluator of `onnx`, gives the
outputs of the test for it, where it does for the model itself. `--forms` also tries each model in a function, in bodies, of constants and with any sizes.
Prints how many are right, refused (with an error) and wrong, and the wrong ones; then the exit code is 1. Used by
`cargo xtask backend --opsets`.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import onnx
from backend import cases, draws, in_reference, in_runtime, right, tests

#: All that `--opset` takes.
ALL = list(range(7, 27))
SOME = [9, 10, 11, 12, 13, 15, 17, 18, 20, 22, 24, 26]

#: Messages of a runner that lacks something itself: kernels, and opsets before 7, which come with the models.
LACKS = re.compile(r"NOT_IMPLEMENTED|No implementation|No Op registered|NotImplemented")


def opsets(text):
    return ALL if text == "all" else [int(number) for number in text.split(",")]


def convert(binary, source, target, opset):
    target.unlink(missing_ok=True)
    command = [binary, "optimize", source, "-o", target, "--opset", str(opset)]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode, run.stderr.strip()


def refused_by_checker(path):
    """The checker's message about a model; None if it accepts it."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # whatever it says
        return " ".join(str(error).split())[:200]
    return None


class Case:
    """A model with its data, and what runs it as the test expects."""

    def __init__(self, name, model, sets, rtol, atol):
        self.name, self.sets = name, sets
        # Other operators round differently, and so do the kernels of other opsets.
        self.rtol, self.atol = max(rtol, 1e-3), max(atol, 2e-3 if "fp16" in name or "float16" in name else 1e-4)
        tried = () if draws(model) else (in_runtime, in_reference)
        runners = [run for run in tried if self.runs(run, model) is True]
        # The reference evaluator does not have all older operators.
        self.runners = [in_reference, in_runtime] if runners == [in_reference] else runners

    def runs(self, runner, model):
        return right(runner, model, self.sets, self.rtol, self.atol)

    def verdict(self, path, checked):
        """`right`, or what is wrong with a model that was written."""
        if checked and (said := refused_by_checker(path)):
            return f"wrong: the checker says: {said}"
        model, said = onnx.load(path), ""
        for runner in self.runners:
            result = self.runs(runner, model)
            if result is True:
                return "right"
            said = " ".join(str(result or "other outputs").split())[:250]
            if runner is in_runtime and not LACKS.search(said):
                return f"wrong: {said}"
        return f"cannot be run: {said}" if LACKS.search(said) else f"wrong: {said}"


def one(options, folder, number, case):
    """The verdict for each pair of opsets."""
    name, model, *rest = case
    found = {}
    written = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    tried = Case(name, model, *rest)
    if written is None or not tried.runners:
        return name, found
    source = folder / f"{number}.onnx"
    onnx.save(model, source)
    checked = refused_by_checker(source) is None

    def step(before, after, given, path):
        code, said = convert(options.binary, given, path, after)
        last = said.splitlines()[-1][:300] if said else ""
        if code in (101, 134) or code < 0 or "ended unexpectedly" in said:
            found[before, after] = f"panic: {last}"
        elif code:
            found[before, after] = f"refused: {' '.join(said.split())[:300]}"
        else:
            found[before, after] = tried.verdict(path, checked)
        return not code

    done = [o for o in options.opsets if step(written, o, source, folder / f"{number}.{o}.onnx")]
    oldest = done[0] if done else written
    for back in options.opsets:
        if oldest < back and oldest != written:
            step(oldest, back, folder / f"{number}.{oldest}.onnx", folder / f"{number}.back.onnx")
    for file in folder.glob(f"{number}.*onnx"):
        file.unlink(missing_ok=True)
    return name, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--opsets", type=opsets, default=SOME)
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--refused", action="store_true", help="also print what is refused on the way up, or cannot be run")
    options = parser.parse_intermixed_args()
    chosen = cases() if options.forms else tests()
    chosen = (c for c in chosen if not options.names or any(part in c[0] for part in options.names))
    counts, bad = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        work = lambda pair: one(options, pathlib.Path(folder), *pair)
        for name, found in pool.map(work, enumerate(chosen)):
            counts["models run" if found else "models that nothing runs"] += 1
            for (before, after), verdict in found.items():
                kind = verdict.split(":")[0]
                counts[kind] += 1
                line = f"{name}: {before} to {after}: {verdict}"
                if kind in ("wrong", "panic"):
                    bad.append(line)
                if kind in ("wrong", "panic") or (options.refused and kind != "right"):
                    print(line, flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
