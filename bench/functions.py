"""Models with functions of their modules (`--module-functions all`) beside the flat ones, as a Markdown table.

    python bench/functions.py --bin target/release/pt2onnx --cases FOLDER [--match REGEX]

FOLDER has conformance cases of whole models. Needs what bench/opsets.py needs. For each model: its nodes and functions, and whether

- onnx.checker accepts it (with type inference),
- ONNX Runtime computes PyTorch's numbers, and without its optimiser the same bits as of the flat model,
- `pt2onnx optimize --inline --optimize 0` gives the nodes of the flat model again, operator by operator.

The exit code is 1 if one of them fails.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx

from opsets import differs, loaded, run, samples


def operators(graph):
    """How many nodes there are of each operator, bodies included, calls of functions not followed."""
    count = collections.Counter()
    for node in graph.node:
        count[node.domain, node.op_type] += 1
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                count += operators(body)
    return count


def written(binary, *arguments):
    made = subprocess.run([*binary, *map(str, arguments)], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(made.stderr)
    return onnx.load(str(arguments[arguments.index("-o") + 1]))


def numbers(case, path, plain):
    """Results that differ from PyTorch's, or from the flat model's."""
    said = json.loads((case / "case.json").read_text())
    session, exact, other = loaded(path), loaded(path, optimize=False), loaded(plain, optimize=False)
    for inputs, outputs in samples(case):
        got = run(session, inputs)
        if len(got) != len(outputs):
            return "another number of outputs"
        if why := next(filter(None, (differs(g, w, said) for g, w in zip(got, outputs))), None):
            return why
        if any(a.tobytes() != b.tobytes() for a, b in zip(run(exact, inputs), run(other, inputs), strict=True)):
            return "other bits than the flat model"
    return None


def outcome(binary, case, folder):
    """-> (nodes of the flat model, nodes of the main graph, functions, what is wrong)"""
    plain, path, again = (folder / f"{name}.onnx" for name in ("flat", "functions", "inlined"))
    convert = case / "model.pt2", "--target", "ort-cpu", "-o"
    flat = written(binary, *convert, plain)
    model = written(binary, *convert, path, "--module-functions", "all")
    onnx.checker.check_model(str(path), full_check=True)
    wrong = numbers(case, path, plain)
    inlined = written(binary, "optimize", path, "-o", again, "--inline", "--optimize", "0")
    wanted, found = operators(flat.graph), operators(inlined.graph)
    if wrong is None and (wanted != found or inlined.functions):
        wrong = f"inlined: {sorted((found - wanted).items())} more, {sorted((wanted - found).items())} fewer"
    return sum(wanted.values()), len(model.graph.node), len(model.functions), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cases", required=True, type=pathlib.Path)
    parser.add_argument("--match", default="")
    args = parser.parse_args()
    cases = [f.parent for f in sorted(args.cases.rglob("case.json")) if (f.parent / "model.pt2").exists()]
    cases = [case for case in cases if re.search(args.match, case.name)]
    print("| model | nodes | nodes outside of functions | functions | |\n|---|---:|---:|---:|---|")
    good = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                nodes, outside, functions, wrong = outcome(args.bin.split(), case, pathlib.Path(folder))
            except Exception as e:
                nodes, outside, functions, wrong = "", "", "", " ".join(str(e).split())[:200]
        good += wrong is None
        print(f"| {case.name} | {nodes} | {outside} | {functions} | {wrong or 'equal'} |", flush=True)
    print(f"\n{good} of {len(cases)} models are equal")
    sys.exit(good != len(cases))


if __name__ == "__main__":
    main()
