"""Probes ONNX Runtime for the element types its CPU kernels lack.

For every operator of the default domain, at every version that an opset which pt2onnx writes uses, and for each of its type
variables: one model of one node for each element type, loaded without optimisation. Prints JSON rows
{name, since, variable, lacking: [type, ...]} where ONNX Runtime refuses what the standard allows: all types if it has no kernel
for the operator at all. Kernels in RUN are also run once, as they refuse types only then. The variable `*` stands for all
variables that allow a type at once: its types are those that lack a kernel only beside other types.
"""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper

# The opsets that pt2onnx writes and the pinned release runs.
FIRST, LAST = 7, 26
DTYPES = {
    "double": TensorProto.DOUBLE, "float": TensorProto.FLOAT, "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
    "int16": TensorProto.INT16, "int8": TensorProto.INT8, "uint64": TensorProto.UINT64,
    "uint32": TensorProto.UINT32, "uint16": TensorProto.UINT16, "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}  # fmt: skip
# Types of a variable while another is probed: the first that it allows.
USUAL = ["float", "int64", "int32", "bool", "uint8", "float16"]
# Bodies and sequences have no separate kernels per type.
SKIPPED = {"If", "Loop", "Scan", "Optional", "SequenceMap", "StringConcat", "StringSplit", "RegexFullMatch"}
# Values that attributes need so that a session accepts the node at all.
ATTRIBUTES = {
    "equation": "ij->ij", "kernel_shape": [1, 1], "perm": [0], "axis": 0, "axes": [0], "blocksize": 1, "scales": [1.0],
    "shape": [1], "to": TensorProto.FLOAT, "size": 1, "pooled_shape": [1, 1], "hidden_size": 1, "k": 1, "num_heads": 1,
}  # fmt: skip

# Optional inputs without which a session does not accept the node.
NEEDED = {("Resize", "scales")}

NUMPY = {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(float16)": np.float16}
# Operators whose kernels are run, and the shapes of their first inputs.
RUN = {"GRU": [(1, 1, 1), (1, 3, 1), (1, 3, 1)], "LSTM": [(1, 1, 1), (1, 4, 1), (1, 4, 1)]}

options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def tensor_types(allowed):
    return [t[7:-1] for t in allowed if t.startswith("tensor(") and t[7:-1] in DTYPES]


def model(schema, opset, types, rank):
    """One node of the operator, its type variables standing for `types`; None where it cannot be built."""
    def of(formal):
        name = types.get(formal.type_str)
        if name is None and formal.type_str.startswith("tensor("):
            name = formal.type_str[7:-1]
        return DTYPES.get(name)

    shape = None if rank is None else [None] * rank
    inputs, outputs, values = [], [], []
    for i, formal in enumerate(schema.inputs):
        times = 2 if formal.option == defs.OpSchema.FormalParameterOption.Variadic else 1
        optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
        if optional and formal.type_str != types.get("*") and (schema.name, formal.name) not in NEEDED:
            inputs.append("")
            continue
        for j in range(times):
            if of(formal) is None:
                return None
            name = f"x{i}_{j}"
            inputs.append(name)
            values.append(helper.make_tensor_value_info(name, of(formal), shape))
    while inputs and not inputs[-1]:
        inputs.pop()
    results = []
    for i, formal in enumerate(schema.outputs):
        optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
        # One result at least.
        if optional and formal.type_str != types.get("*") and (i > 0 or schema.min_output > 0):
            continue
        if of(formal) is None:
            return None
        outputs.append(f"y{i}")
        results.append(helper.make_tensor_value_info(f"y{i}", of(formal), None))
    attributes = {}
    for name, attribute in schema.attributes.items():
        # ONNX Runtime needs the hidden size, too.
        if attribute.required or name == "hidden_size":
            if name not in ATTRIBUTES:
                return None
            attributes[name] = ATTRIBUTES[name]
    # Attributes that name the type of the output.
    for name in ("to", "dtype", "output_dtype", "output_datatype"):
        formal = schema.outputs[0].type_str
        bound_by_input = any(formal == i.type_str for i in schema.inputs)
        if name in schema.attributes and not bound_by_input and formal in types:
            attributes[name] = DTYPES[types[formal]]
    if schema.name == "ConstantOfShape":
        attributes["value"] = helper.make_tensor("v", DTYPES[types["T2"]], [1], [0])
    node = helper.make_node(schema.name, inputs, outputs, **attributes)
    graph = helper.make_graph([node], "g", values, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def loads(schema, opset, types):
    """Whether ONNX Runtime loads the node, whatever the inputs' rank, and runs it; None where that is unknown."""
    shapes = RUN.get(schema.name)
    for rank in (None, 4, 3, 2, 1, 0, 5):
        proto = model(schema, opset, types if shapes is None else types | {"*": None}, rank)
        if proto is None:
            return None
        try:
            session = onnxruntime.InferenceSession(
                proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            if shapes is not None:
                given = zip(session.get_inputs(), shapes, strict=True)
                session.run(None, {value.name: np.ones(shape, NUMPY[value.type]) for value, shape in given})
            return True
        except Exception as error:  # noqa: BLE001: whatever it is, the node was refused
            if any(reason in str(error) for reason in ("NOT_IMPLEMENTED", "is invalid", "does not support")):
                return False
    return None


def forms():
    newest = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated and schema.name not in SKIPPED:
            newest.setdefault(schema.name, []).append(schema)
    for name, versions in sorted(newest.items()):
        versions.sort(key=lambda s: s.since_version)
        for i, schema in enumerate(versions):
            until = versions[i + 1].since_version - 1 if i + 1 < len(versions) else LAST
            first, last = max(schema.since_version, FIRST), min(until, LAST)
            if first <= last:
                yield schema, last


def main():
    rows = []
    for schema, opset in forms():
        allowed = {c.type_param_str: tensor_types(c.allowed_type_strs) for c in schema.type_constraints}
        usual = {v: next((t for t in USUAL if t in ts), ts[0]) for v, ts in allowed.items() if ts}
        for variable, types in allowed.items():
            verdicts = {t: loads(schema, opset, usual | {variable: t, "*": variable}) for t in types}
            # Where no type loads, it is the probe that does not fit the operator: perhaps by its optional inputs and outputs.
            if not any(verdicts.values()):
                verdicts = {t: loads(schema, opset, usual | {variable: t}) for t in types}
            if not any(verdicts.values()) and None in verdicts.values():
                continue
            lacking = [t for t, loaded in verdicts.items() if not loaded]
            if lacking:
                rows.append({"name": schema.name, "since": schema.since_version, "variable": variable, "lacking": lacking})
        # Types that one variable cannot stand for alone, but all together can.
        alone = {t for row in rows if (row["name"], row["since"]) == (schema.name, schema.since_version) for t in row["lacking"]}
        shared = sorted(t for t in alone if sum(t in types for types in allowed.values()) > 1)
        together = [t for t in shared if loads(schema, opset, usual | {v: t for v, types in allowed.items() if t in types})]
        if together:
            rows.append({"name": schema.name, "since": schema.since_version, "variable": "*", "lacking": together})
    print(json.dumps({"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__, "rows": rows}, indent=0))


main()
