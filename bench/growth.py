"""CPU time of `pt2onnx optimize` by the size of structured graphs, as a Markdown table.

    python bench/growth.py --bin target/release/pt2onnx [--sizes 1500,6000,24000] [KIND ...]

Each kind of graph repeats a structure so many times: chains, one value with many users, branches, functions. The time of the
start is subtracted; the exponent is that of the growth from the first size to the last one: 1 is linear.
"""

import argparse
import math
import pathlib
import resource
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def value(name, shape=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, content, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(content, dtype), name)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def branches(name, condition, output, yes, no):
    """An `If`; each branch is a list of nodes, and the last one gives its output."""
    bodies = [helper.make_graph(nodes, f"{name}_body", [], [value(nodes[-1].output[0])]) for nodes in (yes, no)]
    return node("If", [condition], [output], then_branch=bodies[0], else_branch=bodies[1])


def convolutions(n):
    """`Conv`, `BatchNormalization` with other weights each time, and `Relu`."""
    nodes, constants = [], []
    for i in range(n):
        scale = [f"{part}{i}" for part in "gbmv"]
        nodes += [
            node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"]),
            node("BatchNormalization", [f"c{i}", *scale], [f"n{i}"]),
            node("Relu", [f"n{i}"], [f"x{i + 1}"]),
        ]
        constants += [constant(f"w{i}", np.full((2, 2, 1, 1), 0.1 + i / n))]
        constants += [constant(name, [1.5, 0.5 + i / n]) for name in scale]
    return model(nodes, [value("x0", ["A", 2, "H", "W"])], [value(f"x{n}")], constants)


def scaled_convolutions(n):
    """`Conv`, and `Mul` and `Add` of one number that all share."""
    nodes, constants = [], [constant("k", 1.5)]
    for i in range(n):
        nodes += [
            node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"]),
            node("Mul", [f"c{i}", "k"], [f"m{i}"]),
            node("Add", [f"m{i}", "k"], [f"a{i}"]),
            node("Relu", [f"a{i}"], [f"x{i + 1}"]),
        ]
        constants += [constant(f"w{i}", np.full((2, 2, 1, 1), 0.1 + i / n))]
    return model(nodes, [value("x0", ["A", 2, "H", "W"])], [value(f"x{n}")], constants)


def layers(n):
    """`MatMul`, `Add`, `Mul` and `Relu`, with other weights each time."""
    nodes, constants = [], []
    for i in range(n):
        nodes += [
            node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]),
            node("Add", [f"p{i}", f"b{i}"], [f"s{i}"]),
            node("Mul", [f"s{i}", f"k{i}"], [f"m{i}"]),
            node("Relu", [f"m{i}"], [f"x{i + 1}"]),
        ]
        constants += [constant(f"w{i}", np.full((3, 3), 0.1 + i / n))]
        constants += [constant(f"{part}{i}", [1.5, 0.5 + i / n, 2]) for part in "bk"]
    return model(nodes, [value("x0", ["A", 3])], [value(f"x{n}")], constants)


def projections(n):
    """Layers of one input, whose results one `Concat` takes."""
    nodes, constants = [], []
    for i in range(n):
        nodes += [node("MatMul", ["x", f"w{i}"], [f"p{i}"]), node("Add", [f"p{i}", f"b{i}"], [f"s{i}"])]
        constants += [constant(f"w{i}", np.full((3, 3), 0.1 + i / n)), constant(f"b{i}", [1.5, 0.5 + i / n, 2])]
    nodes += [node("Concat", [f"s{i}" for i in range(n)], ["y"], axis=0)]
    return model(nodes, [value("x", ["A", 3])], [value("y")], constants)


def slices(n):
    """Slices of one tensor, packed in the reverse order."""
    ends = [constant(f"i{i}", [i], np.int64) for i in range(n + 1)]
    nodes = [node("Slice", ["x", f"i{i}", f"i{i + 1}", "i1"], [f"s{i}"]) for i in range(n)]
    nodes += [node("Concat", [f"s{i}" for i in reversed(range(n))], ["y"], axis=1)]
    return model(nodes, [value("x", ["A", n])], [value("y")], ends)


def dimensions_of_one(n):
    """A dimension that is taken away once and added `n` times."""
    nodes = [node("Squeeze", ["x", "a"], ["q"]), node("MatMul", ["q", "w"], ["z"])]
    nodes += [node("Unsqueeze", ["q", "a"], [f"u{i}"]) for i in range(n)]
    nodes += [node("Concat", [f"u{i}" for i in range(n)], ["y"], axis=1)]
    constants = [constant("a", [0], np.int64), constant("w", np.ones((3, 3)))]
    return model(nodes, [value("x", [1, "A", 3])], [value("y"), value("z")], constants)


def nested_dimensions(n):
    """`n` dimensions that are added and then taken away."""
    names = [f"x{i}" for i in range(2 * n + 1)]
    ops = ["Unsqueeze"] * n + ["Squeeze"] * n
    nodes = [node(op, [before, "a"], [after]) for op, before, after in zip(ops, names, names[1:], strict=False)]
    return model(nodes, [value("x0", ["A", 2])], [value(names[-1])], [constant("a", [0], np.int64)])


def packs(n):
    """A `Concat` of the one before and another tensor."""
    nodes = [node("Concat", [f"x{i}", f"t{i % 50}"], [f"x{i + 1}"], axis=0) for i in range(n)]
    inputs = [value("x0", ["A", 3]), *(value(f"t{i}", [f"B{i}", 3]) for i in range(50))]
    return model(nodes, inputs, [value(f"x{n}")])


def computed_sizes(n):
    """`Reshape` to sizes that are computed of the tensor."""
    nodes = []
    for i in range(n):
        nodes += [
            node("Shape", [f"x{i}"], [f"s{i}"]),
            node("Gather", [f"s{i}", "zero"], [f"g{i}"]),
            node("Concat", [f"g{i}", "rest"], [f"t{i}"], axis=0),
            node("Reshape", [f"x{i}", f"t{i}"], [f"r{i}"]),
            node("Sin", [f"r{i}"], [f"x{i + 1}"]),
        ]
    constants = [constant("zero", [0], np.int64), constant("rest", [-1], np.int64)]
    return model(nodes, [value("x0", ["A", 3, 4])], [value(f"x{n}")], constants)


def sizes_of_data(n):
    """Tensors whose sizes depend on data, each packed with the one before."""
    nodes = []
    for i in range(n):
        nodes += [
            node("NonZero", [f"x{i % 10}"], [f"z{i}"]),
            node("Concat", [f"y{i}", f"z{i}"], [f"y{i + 1}"], axis=1),
            node("Neg", [f"y{i + 1}"], [f"k{i}"]),
        ]
    outputs = [value(f"k{i}", None, TensorProto.INT64) for i in range(n)]
    return model(nodes, [value(f"x{i}", ["A", 3]) for i in range(10)], outputs, [constant("y0", np.zeros((2, 0)), np.int64)])


def wide_branches(n):
    """An `If` with `n` products in each branch."""

    def branch(part):
        products = [node("Mul", ["x", f"{part}{i}"], [f"{part}m{i}"]) for i in range(n)]
        return [*products, node("Sum", [f"{part}m{i}" for i in range(n)], [f"{part}s"])]

    constants = [constant(f"{part}{i}", i + 2 + k * n) for k, part in enumerate("tf") for i in range(n)]
    chosen = branches("wide", "c", "y", branch("t"), branch("f"))
    return model([chosen], [value("x", ["A", 3]), value("c", [], TensorProto.BOOL)], [value("y")], constants)


def branches_of_ranks(n):
    """`If` whose branches give different ranks; the next node takes one of them."""
    nodes = []
    for i in range(n):
        nodes += [
            node("ReduceSum", [f"x{i}", "one"], [f"r{i}"], keepdims=1),
            node("Shape", [f"x{i}"], [f"s{i}"]),
            node("Gather", [f"s{i}", "zero"], [f"d{i}"]),
            node("Equal", [f"d{i}", "single"], [f"q{i}"]),
            branches(
                f"if{i}",
                f"q{i}",
                f"f{i}",
                [node("Squeeze", [f"r{i}", "one"], [f"t{i}"])],
                [node("Identity", [f"r{i}"], [f"e{i}"])],
            ),
            node("Gemm", [f"f{i}", "w"], [f"x{i + 1}"]),
        ]
    numbers = [constant("one", [1], np.int64), constant("zero", 0, np.int64), constant("single", 1, np.int64)]
    return model(nodes, [value("x0", ["A", 3])], [value(f"x{n}")], [*numbers, constant("w", np.ones((1, 3)))])


def loops(n):
    """`Loop` of three trips."""
    nodes = []
    for i in range(n):
        inputs = [value(f"i{i}", [], TensorProto.INT64), value(f"c{i}", [], TensorProto.BOOL), value(f"s{i}")]
        steps = [node("Sin", [f"s{i}"], [f"o{i}"]), node("Identity", [f"c{i}"], [f"d{i}"])]
        body = helper.make_graph(steps, "body", inputs, [value(f"d{i}", [], TensorProto.BOOL), value(f"o{i}")])
        nodes += [node("Loop", ["three", "", f"x{i}"], [f"x{i + 1}"], body=body)]
    return model(nodes, [value("x0", ["A", 3])], [value(f"x{n}")], [constant("three", 3, np.int64)])


def functions(n):
    """Functions; each calls the one before twice."""

    def function(i):
        imports = [helper.make_opsetid("", 20), helper.make_opsetid("d", 1)]
        calls = [node(f"f{i - 1}", ["a"], ["c"], domain="d"), node(f"f{i - 1}", ["c"], ["b"], domain="d")]
        return helper.make_function("d", f"f{i}", ["a"], ["b"], calls if i else [node("Sin", ["a"], ["b"])], imports)

    made = model([node(f"f{n}", ["x"], ["y"], domain="d")], [value("x", ["A", 3])], [value("y")])
    made.opset_import.append(helper.make_opsetid("d", 1))
    made.functions.extend(function(i) for i in range(n + 1))
    return made


KINDS = [
    convolutions,
    scaled_convolutions,
    layers,
    projections,
    slices,
    dimensions_of_one,
    nested_dimensions,
    packs,
    computed_sizes,
    sizes_of_data,
    wide_branches,
    branches_of_ranks,
    loops,
    functions,
]


def seconds(binary, path, runs):
    """The least CPU time of several runs."""

    def once():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([binary, "optimize", path, "-o", path.with_name("out.onnx")], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="names of kinds; all without any")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--sizes", default="1500,6000,24000")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    kinds = [kind for kind in KINDS if not given.kinds or kind.__name__ in given.kinds]
    heads = [f"{size:,}" for size in sizes]
    print("| ms of CPU by repetitions |", " | ".join(heads), "| exponent |")
    print("| --- |" + " ---: |" * (len(sizes) + 1))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "in.onnx")

        def measured(made):
            onnx.save(made, path)
            return seconds(given.bin, path, given.runs)

        start = measured(layers(1))
        for kind in kinds:
            times = [max(measured(kind(size)) - start, 1e-4) for size in sizes]
            exponent = math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])
            cells = " | ".join(f"{time * 1e3:.0f}" for time in times)
            title = kind.__doc__.strip().rstrip(".")
            print(f"| {title} | {cells} | {exponent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
