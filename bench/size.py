"""Compares nodes and bytes of pt2onnx's models with torch.onnx.export's, as the conformance cases recorded them.

    python bench/size.py --bin "target/release/pt2onnx --target ort-cpu" --cases testdata/cases [--worst 10]

Needs onnx. Only cases whose model the other exporter could make and run count (`peer` of case.json: its default opset, as
ours). Nodes of bodies and functions count, too. Told per folder of cases: the totals, their ratio, in how many cases ours
are more, and the same of the bytes, where up to 1 % more is not more.
"""

import argparse
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx


def count(nodes):
    bodies = [g for n in nodes for a in n.attribute for g in [a.g, *a.graphs]]
    return len(nodes) + sum(count(g.node) for g in bodies)


def size(binary, case):
    """Nodes and bytes of the case's model; None where there is no model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        run = subprocess.run([*binary, case / "model.pt2", "-o", path], capture_output=True)
        if run.returncode:
            return None
        model = onnx.load(path, load_external_data=False)
        nodes = count(model.graph.node) + sum(count(f.node) for f in model.functions)
        return nodes, sum(f.stat().st_size for f in Path(folder).iterdir())


def compare(binary, folder, worst):
    cases = [f.parent for f in sorted(folder.rglob("case.json"))]
    peers = {c: json.loads((c / "case.json").read_text()).get("peer", {}) for c in cases}
    cases = [c for c in cases if peers[c].get("status") == "pass"]
    with ThreadPoolExecutor(2) as pool:
        sizes = list(pool.map(lambda c: size(binary, c), cases))
    rows = [(c, *s, peers[c]["nodes"], peers[c]["bytes"]) for c, s in zip(cases, sizes) if s]
    print(f"{folder}: {len(rows)} of {len(cases)} converted")
    for what, ours, theirs, slack in [("nodes", 1, 3, 1.0), ("bytes", 2, 4, 1.01)]:
        total, others = (sum(r[i] for r in rows) for i in (ours, theirs))
        more = sorted((r[theirs] - r[ours], r) for r in rows if r[ours] > slack * r[theirs])
        print(f"  {what}: {total} to {others}, {total / others:.3f}; more in {len(more)} cases, {len(more) / len(rows):.1%}")
        for _, r in more[:worst]:
            print(f"    {r[0].relative_to(folder)}: {r[ours]} to {r[theirs]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/pt2onnx", help="the command, split at spaces")
    parser.add_argument("--cases", type=Path, action="append", required=True, help="a folder with cases somewhere below")
    parser.add_argument("--worst", type=int, default=10, help="how many cases to name")
    arguments = parser.parse_args()
    for folder in arguments.cases:
        compare(arguments.bin.split(), folder, arguments.worst)


if __name__ == "__main__":
    main()
