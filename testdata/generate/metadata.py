#!/usr/bin/env python3
"""Stores the metadata that torch.onnx.export(dynamo=True, optimize=False) writes for archives, as JSON for the tests.

    venv/bin/python testdata/generate/metadata.py OUT_FOLDER CASE...

Each CASE is an archive, or a folder with a model.pt2. OUT_FOLDER/CASE.json gets the metadata_props of the graph and, by name, those of
inputs, outputs and initialisers; nodes are listed by FX node, as all ONNX nodes made from one FX node say the same.
Stack traces are numbered, as many nodes share one.
"""
from __future__ import annotations

import json
import pathlib
import sys
import warnings

FX = "pkg.torch.onnx.fx_node"
TRACE = "pkg.torch.onnx.stack_trace"


def props(entries):
    return {p.key: p.value for p in entries}


def metadata(archive):
    """What PyTorch says of an archive."""
    import torch

    program = torch.export.load(archive)
    model = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False).model_proto
    nodes, traces = {}, []

    def walk(body):
        """All nodes, those of bodies behind the node that owns them, by name of the attribute."""
        for node in body:
            yield node
            for attribute in sorted(node.attribute, key=lambda a: a.name):
                yield from walk(attribute.g.node)

    values = {v.name: props(v.metadata_props) for v in model.graph.value_info}
    for node in walk(node for body in (model.graph, *model.functions) for node in body.node):
        entry = props(node.metadata_props)
        if not entry:
            continue
        # %name : [num_users=..
        name = entry[FX].split(" ", 1)[0].lstrip("%")
        trace = entry.pop(TRACE)
        if trace not in traces:
            traces.append(trace)
        nodes.setdefault(name, {**entry, TRACE: traces.index(trace)})
    return {
        "torch": torch.__version__,
        "graph": props(model.graph.metadata_props),
        "inputs": {v.name: props(v.metadata_props) for v in model.graph.input},
        "outputs": {v.name: props(v.metadata_props) for v in model.graph.output},
        "initializers": {t.name: values.get(t.name, {}) for t in model.graph.initializer},
        "traces": traces,
        "nodes": nodes,
    }


def main():
    warnings.simplefilter("ignore")
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for case in map(pathlib.Path, sys.argv[2:]):
        try:
            found = metadata(case if case.is_file() else case / "model.pt2")
        except Exception as e:  # PyTorch does not export everything that pt2onnx does.
            print(f"{case.name}: {type(e).__name__}", file=sys.stderr)
            continue
        (out / f"{case.name.removesuffix('.pt2')}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
