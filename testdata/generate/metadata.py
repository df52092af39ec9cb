#!/usr/bin/env python3
"""Stores what torch.onnx.export(dynamo=True, optimize=False) writes of the interface and the origin of archives' models, as JSON
for the tests (`crates/pt2onnx/tests/metadata`).

    venv/bin/python testdata/generate/metadata.py OUT_FOLDER CASE...
    venv/bin/python testdata/generate/make.py bundle OUT_FOLDER testdata/metadata/torch.tar.zst

Each CASE is an archive, or a folder with a model.pt2. OUT_FOLDER/CASE.json gets the metadata_props of the graph and, by name, the types
and metadata_props of inputs, outputs and initialisers. Before it translates a program, PyTorch traces it anew: it decomposes operators,
inserts some and counts names from the start. Each entry of "nodes" is what one FX node of that trace says (all ONNX nodes made from it
say the same), with the node of the archive's graph that it comes from ("" where PyTorch inserted it) and, in "names", what the nodes
that its text names are called in the archive, if otherwise. Sizes are called by what they are, <2*s3>, as several nodes may compute
one; "sizes" says which nodes of the archive do. Stack traces are numbered, as many nodes share one.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
import warnings

FX = "pkg.torch.onnx.fx_node"
TRACE = "pkg.torch.onnx.stack_trace"


def props(entries):
    return {p.key: p.value for p in entries}


def origin(node):
    """Name of the node in the archive's graph; None for nodes that PyTorch inserted."""
    if node.op in ("placeholder", "get_attr"):
        return node.name
    source = node.meta.get("from_node")
    if not source:
        return None
    source = source[-1]
    while source.from_node:
        source = source.from_node[-1]
    return source.name


def size(node):
    """The expression of a size, <2*s3>; None for other nodes."""
    import torch

    value = node.meta.get("val")
    return f"<{value.node.expr}>" if isinstance(value, torch.SymInt) else None


def metadata(archive):
    """PyTorch's metadata of an archive."""
    import torch

    program = torch.export.load(archive)
    bodies = [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    sizes = {n.name: size(n) for body in bodies for n in body.nodes if size(n)}
    exported = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
    model = exported.model_proto

    def value(value):
        """Its type as in ONNX's text, and what it says."""
        return {"type": f"{value.dtype.name.lower()}{value.shape}", **value.metadata_props}

    nodes, traces, graphs = [], [], {}
    for body in (exported.model.graph, *exported.model.functions.values()):
        for node in body.all_nodes():
            fx = node.meta.get("node")
            entry = dict(node.metadata_props)
            if not entry or fx is None:
                continue
            if fx.graph not in graphs:
                graphs[fx.graph] = {n.name: size(n) or origin(n) or n.name for n in fx.graph.nodes}
            used = set(re.findall(r"%(\w+)", entry[FX]))
            entry["names"] = {n: o for n, o in graphs[fx.graph].items() if n in used and n != o}
            entry["from"] = origin(fx) or ""
            trace = entry.pop(TRACE)
            if trace not in traces:
                traces.append(trace)
            entry[TRACE] = traces.index(trace)
            if entry not in nodes:
                nodes.append(entry)
    # Other metadata: values in between, which today are none.
    graph = exported.model.graph
    ends = {*graph.inputs, *graph.outputs, *graph.initializers.values()}
    between = [v for n in graph.all_nodes() for v in n.outputs if v not in ends]
    return {
        "torch": torch.__version__.split("+")[0],
        "graph": props(model.graph.metadata_props),
        "inputs": {v.name: value(v) for v in graph.inputs},
        "outputs": {v.name: value(v) for v in graph.outputs},
        "initializers": {v.name: value(v) for v in graph.initializers.values()},
        "between": {v.name: {**v.metadata_props} for v in between if v.metadata_props},
        "sizes": sizes,
        "traces": traces,
        "nodes": nodes,
    }


def main():
    warnings.simplefilter("ignore")
    try:
        import transformers.cache_utils  # noqa: F401  (its outputs and caches are in the trees of its models' programs)
        import transformers.integrations.executorch  # noqa: F401
    except ImportError:
        pass
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
