"""The models of the ONNX backend tests, as the installed `onnx` package has them, before and after `pt2onnx optimize`.

`backend.py write FOLDER` writes FOLDER/before/NAME.onnx. `backend.py check FOLDER` runs FOLDER/after/NAME.onnx and holds the
outputs against those expected: in ONNX Runtime where it gives them for the model before, else in the reference evaluator of
`onnx` where that does. Prints counts, and every model that has become wrong; then the exit code is 1. Used by
`cargo xtask backend`.
"""

import collections
import os
import pathlib
import sys
import warnings

# One model after the other is small: threads would only get in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Opsets that the runtime knows and does not vouch for yet.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import numpy as np
import onnx
import onnx.backend.test
import onnxruntime
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

# The data are made with all the overflows that the tests are about.
warnings.simplefilter("ignore")
np.seterr(all="ignore")

# Folders of the package with models and their data, and how exact their outputs are.
STORED = ["simple", "pytorch-operator", "pytorch-converted"]

# Operators that draw numbers; a `Dropout` of the tests has a seed or is the identity.
DRAWING = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def value(path):
    """A tensor, sequence or optional of a stored test, of whichever kind its bytes are."""
    data = path.read_bytes()
    for proto, read in [
        (onnx.TensorProto, numpy_helper.to_array),
        (onnx.SequenceProto, numpy_helper.to_list),
        (onnx.OptionalProto, numpy_helper.to_optional),
    ]:
        try:
            message = proto.FromString(data)
        except Exception:
            continue
        if message.SerializeToString(deterministic=True) == data:
            return read(message)
    raise ValueError(path)


def stored():
    """Name, model, data sets and tolerances of the tests that come as files."""
    root = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    for folder in STORED:
        for case in sorted((root / folder).iterdir()):
            model = case / "model.onnx"
            if not model.exists():
                continue
            sets = []
            for data in sorted(case.glob("test_data_set_*")):
                numbered = lambda kind: sorted(data.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
                sets.append([[value(p) for p in numbered(kind)] for kind in ("input", "output")])
            yield f"{folder}_{case.name}", onnx.load(model), sets, 1e-3, 1e-5


def in_function(model):
    """The same with all nodes in a function; None where that cannot be."""
    graph = model.graph
    if graph.initializer or graph.sparse_initializer or model.functions:
        return None
    opsets = list(model.opset_import)
    inputs, outputs = [i.name for i in graph.input], [o.name for o in graph.output]
    function = helper.make_function("backend.local", "Graph", inputs, outputs, graph.node, opsets)
    call = helper.make_node("Graph", inputs, [f"{o}.out" for o in outputs], domain="backend.local")
    ends = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in graph.output]
    for end in ends:
        end.name = f"{end.name}.out"
    outside = helper.make_graph([call], graph.name, graph.input, ends)
    opsets.append(helper.make_opsetid("backend.local", 1))
    version = max(model.ir_version, 8)
    return helper.make_model(outside, functions=[function], opset_imports=opsets, ir_version=version)


def in_body(model):
    """The same with all nodes in the bodies of an `If`; None where that cannot be."""
    graph = model.graph
    tensors = all(o.type.HasField("tensor_type") for o in graph.output)
    onnx_opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    taken = {o.name for o in graph.output} & ({i.name for i in graph.input} | {i.name for i in graph.initializer})
    if not tensors or onnx_opset < 11 or taken or model.functions:
        return None
    bodies = {}
    for branch in ("then_branch", "else_branch"):
        text = graph.SerializeToString()
        body = onnx.GraphProto.FromString(text)
        body.name = branch
        body.ClearField("input")
        body.ClearField("initializer")
        bodies[branch] = body
    ends = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in graph.output]
    for end in ends:
        end.name = f"{end.name}.out"
    condition = helper.make_node("Constant", [], ["condition.in"], value=numpy_helper.from_array(np.array(True)))
    choice = helper.make_node("If", ["condition.in"], [e.name for e in ends], **bodies)
    outside = helper.make_graph([condition, choice], graph.name, graph.input, ends, graph.initializer)
    return helper.make_model(outside, opset_imports=model.opset_import, ir_version=model.ir_version)


def with_constants(model, sets, kept):
    """The same with the inputs from number `kept` on as initialisers; None where they have no such data."""
    given = list(sets[0][0].values())
    inputs = list(model.graph.input)[: len(given)]
    tensors = all(isinstance(v, onnx.TensorProto | np.ndarray | np.generic) for v in given[kept:])
    if len(sets) > 1 or len(inputs) <= kept or not tensors:
        return None
    made = onnx.ModelProto.FromString(model.SerializeToString())
    for declared, data in list(zip(inputs, given))[kept:]:
        tensor = data if isinstance(data, onnx.TensorProto) else numpy_helper.from_array(np.asarray(data))
        if tensor.data_type != declared.type.tensor_type.elem_type:
            return None
        tensor = onnx.TensorProto.FromString(tensor.SerializeToString())
        tensor.name = declared.name
        made.graph.initializer.append(tensor)
    del made.graph.input[kept : len(given)]
    return made


def with_any_sizes(model):
    """The same with a name for each dimension of the inputs, and outputs of unknown sizes; None where nothing would change."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    changed = False
    for number, declared in enumerate(made.graph.input):
        for axis, dim in enumerate(declared.type.tensor_type.shape.dim):
            changed |= dim.HasField("dim_value")
            dim.dim_param = f"size_{number}_{axis}"
    for declared in made.graph.output:
        for dim in declared.type.tensor_type.shape.dim:
            dim.Clear()
    return made if changed else None


def unnamed():
    """All tests that have data."""
    for case in collect_testcases():
        if case.model is not None and case.data_sets:
            yield case.name, case.model, case.data_sets, case.rtol, case.atol
    yield from stored()


def tests():
    """All tests that have data, with their inputs by name."""
    for name, model, sets, *rest in unnamed():
        names = [i.name for i in model.graph.input]
        yield name, model, [(dict(zip(names, inputs)), outputs) for inputs, outputs in sets], *rest


FORMS = [
    ("", lambda m, _: m),
    ("_in_function", lambda m, _: in_function(m)),
    ("_in_body", lambda m, _: in_body(m)),
    ("_of_constants", lambda m, sets: with_constants(m, sets, 0)),
    ("_of_one_input", lambda m, sets: with_constants(m, sets, 1)),
    ("_of_any_size", lambda m, _: with_any_sizes(m)),
]


def cases():
    """The tests in all forms."""
    for name, model, sets, *rest in tests():
        for suffix, form in FORMS:
            made = form(model, sets)
            if made is not None:
                yield name + suffix, made, sets, *rest


def nodes_of(graph):
    """The nodes of a graph or function, those of bodies included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def draws(model):
    """Whether a run of the model differs from the next: it draws numbers and has no seed. The expected results came by chance."""
    nodes = (node for part in [model.graph, *model.functions] for node in nodes_of(part))
    return any(node.op_type in DRAWING and all(a.name != "seed" for a in node.attribute) for node in nodes)


def plain(v):
    """Protobuf messages as what they hold, elements of types that NumPy lacks as numbers."""
    if isinstance(v, onnx.TensorProto):
        v = numpy_helper.to_array(v)
    if isinstance(v, onnx.SequenceProto):
        v = numpy_helper.to_list(v)
    if isinstance(v, onnx.OptionalProto):
        v = numpy_helper.to_optional(v)
    return v


def same(got, wanted, rtol, atol):
    got, wanted = plain(got), plain(wanted)
    if isinstance(wanted, (list, tuple)):
        return isinstance(got, (list, tuple)) and len(got) == len(wanted) and all(
            same(g, w, rtol, atol) for g, w in zip(got, wanted)
        )
    if wanted is None or got is None:
        return wanted is got
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        return False
    if wanted.dtype == object or wanted.dtype.kind in "US":
        return [str(g) for g in got.ravel()] == [str(w) for w in wanted.ravel()]
    if got.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind not in "biufc":
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    if wanted.dtype.kind in "bi" or wanted.dtype.kind == "u":
        return bool((got == wanted).all())
    if wanted.dtype == np.float16:
        # Operators that become one round once less: that may be two units in the last place.
        rtol = max(rtol, 2 * np.finfo(np.float16).eps)
    if wanted.dtype.kind == "f" and wanted.size:
        # A sum that cancels is as exact as its summands.
        finite = np.abs(wanted[np.isfinite(wanted)])
        atol = max(atol, float(np.finfo(wanted.dtype).eps * finite.max(initial=0)))
    return bool(np.allclose(got, wanted, rtol=rtol, atol=atol, equal_nan=True))


def feeds(model, inputs):
    """The data of the model's inputs, by name. Initialisers that are inputs as well keep their values."""
    constants = {t.name for t in model.graph.initializer}
    given = {i.name: plain(inputs[i.name]) for i in model.graph.input if i.name in inputs and i.name not in constants}
    return {name: np.asarray(v) if isinstance(v, np.generic) else v for name, v in given.items()}


def in_runtime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Else it would do the optimising.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds(model, inputs))


def in_reference(model, inputs):
    return ReferenceEvaluator(model).run(None, feeds(model, inputs))


def right(run, model, sets, rtol, atol):
    try:
        return all(
            len(outputs) == len(got) and all(same(g, w, rtol, atol) for g, w in zip(got, outputs))
            for inputs, outputs in sets
            for got in [run(model, inputs)]
        )
    except Exception as error:
        return str(error)


def write(folder):
    (folder / "before").mkdir(parents=True, exist_ok=True)
    for name, model, *_ in cases():
        onnx.save(model, folder / "before" / f"{name}.onnx")


def check(folder):
    counts, nodes, wrong = collections.Counter(), [0, 0], []
    for name, before, *rest in cases():
        path = folder / "after" / f"{name}.onnx"
        if not path.exists():
            counts["not optimised"] += 1
            continue
        after = onnx.load(path)
        for i, model in enumerate([before, after]):
            nodes[i] += len(model.graph.node)
        if draws(before):
            counts["draw numbers without a seed"] += 1
            continue
        for how, run in [("ONNX Runtime", in_runtime), ("the reference evaluator", in_reference)]:
            if right(run, before, *rest) is True:
                result = right(run, after, *rest)
                if result is True:
                    counts[f"right in {how}"] += 1
                else:
                    wrong.append(f"{name}, in {how}: {result or 'other outputs'}")
                break
        else:
            counts["neither gives what is expected of the model before"] += 1
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    print(f"{len(wrong):5} wrong; {nodes[0]} nodes became {nodes[1]}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    task, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.exit({"write": write, "check": check}[task](folder))
