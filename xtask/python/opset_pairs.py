"""Converts the models of the ONNX backend tests to other opsets and back with `pt2onnx optimize --opset`, and runs the results.

    python xtask/python/opset_pairs.py target/release/pt2onnx [PART-OF-A-NAME ...]

Each model goes to every opset of OPSETS, and from the oldest one that takes it to the newest. A result is right if ONNX Runtime
gives the outputs of the test for it, where it does for the model itself. Prints how many are right, refused (with an error) and
wrong, and the wrong ones; then the exit code is 1.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import onnx
from backend import in_reference, in_runtime, right, tests

OPSETS = [9, 10, 11, 12, 13, 15, 17, 18, 20, 22, 24, 26]


def convert(binary, source, target, opset):
    run = subprocess.run(
        [binary, "optimize", source, "-o", target, "--opset", str(opset)], capture_output=True, text=True
    )
    return run.returncode, run.stderr


def one(binary, folder, case):
    """The verdict for each pair of opsets."""
    name, model, sets, rtol, atol = case
    # Other operators round differently, and so do the kernels of other opsets.
    rtol, atol = max(rtol, 1e-3), max(atol, 2e-3 if "fp16" in name or "float16" in name else 1e-4)
    written = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None)
    if written is None or model.functions:
        return name, {}
    source = folder / f"{name}.onnx"
    onnx.save(model, source)
    runners = [r for r in (in_runtime, in_reference) if right(r, model, sets, rtol, atol) is True]
    if not runners:
        return name, {}
    found = {}

    def step(before, after, given, path):
        code, said = convert(binary, given, path, after)
        if code in (101, 134):
            found[before, after] = f"panic: {said.strip().splitlines()[-1][:150]}"
        elif code:
            found[before, after] = "refused" if after < before else f"refused upwards: {said.strip()[:300]!r}"
        else:
            verdict = right(runners[0], onnx.load(path), sets, rtol, atol)
            # The runner, not the model, lacks something.
            lacks = any(t in str(verdict) for t in ("NOT_IMPLEMENTED", "No implementation"))
            wrong = "cannot be run" if lacks else f"wrong: {verdict or 'other outputs'}"[:200]
            found[before, after] = "right" if verdict is True else wrong
        return not code

    done = [o for o in OPSETS if step(written, o, source, folder / f"{name}.{o}.onnx")]
    for back in [26, 17, 13]:
        if done and done[0] < back:
            step(done[0], back, folder / f"{name}.{done[0]}.onnx", folder / f"{name}.back.onnx")
    for file in folder.glob(f"{name}.*onnx"):
        file.unlink(missing_ok=True)
    return name, found


def main():
    binary, *parts = sys.argv[1:]
    cases = [c for c in tests() if not parts or any(p in c[0] for p in parts)]
    counts = collections.Counter()
    bad = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for name, found in pool.map(lambda c: one(binary, pathlib.Path(folder), c), cases):
            counts["run" if found else "not run"] += 1
            for (before, after), verdict in found.items():
                counts[verdict.split(":")[0]] += 1
                if verdict not in ("right", "refused", "cannot be run"):
                    bad.append(f"{name}: {before} to {after}: {verdict}")
    print(dict(counts))
    print("\n".join(bad))
    sys.exit(any(": wrong: " in b or ": panic: " in b for b in bad))


if __name__ == "__main__":
    main()
