"""Compares nodes and bytes of pt2onnx's models with torch.onnx.export's, as the conformance cases recorded them.

    python bench/size.py --bin "target/release/pt2onnx --target ort-cpu" --cases testdata/cases [--worst 10]

    python bench/size.py --bin BIN --cases testdata/cases --list [--operators]    # every case where ours are more
    python bench/size.py --bin BIN --cases testdata/cases --before OLD            # every case where another build made less

Needs onnx. Only cases whose model the other exporter could make and run count (`peer` of case.json: its default opset, as
ours). Nodes of bodies and functions count, too. Printed per folder of cases: the totals, their ratio, in how many cases ours
are more, and the same of the bytes, where up to 1 % more is not more. `--operators` also counts how many nodes of each
operator ours have, most frequent first.
"""

import argparse
import collections
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx


def count(nodes):
    """How many nodes there are of each operator."""
    bodies = [g for n in nodes for a in n.attribute for g in [a.g, *a.graphs]]
    return sum((count(g.node) for g in bodies), collections.Counter(n.op_type for n in nodes))


def size(binary, case):
    """Nodes, bytes and operators of the case's model; None where there is no model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        run = subprocess.run([*binary, case / "model.pt2", "-o", path], capture_output=True)
        if run.returncode:
            return None
        model = onnx.load(path, load_external_data=False)
        operators = sum((count(f.node) for f in model.functions), count(model.graph.node))
        return operators.total(), sum(f.stat().st_size for f in Path(folder).iterdir()), operators


def sizes(binary, cases):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda c: size(binary, c), cases))


def compare(binary, folder, worst, before, operators):
    cases = [f.parent for f in sorted(folder.rglob("case.json"))]
    peers = {c: json.loads((c / "case.json").read_text()).get("peer", {}) for c in cases}
    cases = [c for c in cases if peers[c].get("status") == "pass" and "nodes" in peers[c]]
    other = [peers[c] for c in cases]
    others = sizes(before, cases) if before else [(p["nodes"], p["bytes"], None) for p in other]
    pairs = zip(cases, sizes(binary, cases), others)
    rows = [(c, s[0], s[1], o[0], o[1], s[2]) for c, s, o in pairs if s and o]
    print(f"{folder}: {len(rows)} of {len(cases)} converted")
    for what, ours, theirs, slack in [("nodes", 1, 3, 1.0), ("bytes", 2, 4, 1.0 if before else 1.01)]:
        total, others = (sum(r[i] for r in rows) for i in (ours, theirs))
        more = sorted((r[theirs] - r[ours], r) for r in rows if r[ours] > slack * r[theirs])
        print(f"  {what}: {total} to {others}, {total / others:.3f}; more in {len(more)} cases, {len(more) / len(rows):.1%}")
        for _, r in more[:worst]:
            print(f"    {r[0].relative_to(folder)}: {r[ours]} to {r[theirs]}")
            if operators:
                print("       ", ", ".join(f"{n} {op}" for op, n in r[5].most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/pt2onnx", help="the command, split at spaces")
    parser.add_argument("--cases", type=Path, action="append", required=True, help="a folder with cases somewhere below")
    parser.add_argument("--worst", type=int, default=10, help="how many cases to name")
    parser.add_argument("--list", action="store_true", help="name all of them")
    parser.add_argument("--operators", action="store_true", help="tell the operators of those that are named")
    parser.add_argument("--before", help="compare with this command instead of the other exporter")
    arguments = parser.parse_args()
    worst = None if arguments.list or arguments.before else arguments.worst
    before = arguments.before.split() if arguments.before else None
    for folder in arguments.cases:
        compare(arguments.bin.split(), folder, worst, before, arguments.operators)


if __name__ == "__main__":
    main()
