"""Writes eval.txt: single nodes, their inputs and what ONNX Runtime computes (or numpy, for types it has no kernel for).

Run with onnx, onnxruntime, numpy and ml_dtypes installed; `=> none` are cases that the evaluator must leave alone.
"""

import pathlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

OPSET = 26
BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {
    "float64": "double", "float32": "float", "float16": "float16", "bfloat16": "bfloat16", "bool": "bool",
    **{f"{u}int{b}": f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)},
}
FLOATS = ["float32", "float64", "float16", "bfloat16"]
NARROW = {
    **{f"float8_{n}": f"float8{n}" for n in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")},
    "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1", "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2",
}
FLOAT8 = list(NARROW)[:4]
NAMES |= NARROW
INTS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
lines = []


def array(values, dtype):
    return np.array(values, dtype=np.dtype(getattr(ml_dtypes, dtype)) if dtype == "bfloat16" or dtype in NARROW else dtype)


def type_number(dtype):
    return int(helper.np_dtype_to_tensor_dtype(array(0, dtype).dtype))


def number(v):
    if isinstance(v, (bool, np.bool_)):
        return str(int(v))
    if isinstance(v, (int, np.integer)) or np.asarray(v).dtype.name in ("int4", "uint4", "int2", "uint2"):
        return str(int(v))
    v = float(v)
    return "nan" if np.isnan(v) else ("inf" if v > 0 else "-inf") if np.isinf(v) else repr(v)


def spelled(a):
    if a is None:
        return '""'
    dims = f"[{', '.join(map(str, a.shape))}]" if a.shape else ""
    return f"{NAMES[a.dtype.name]}{dims} {{{', '.join(number(v) for v in a.ravel())}}}"


def attribute(name, value):
    if isinstance(value, np.ndarray):
        return f"{name}: tensor = {spelled(value)}"
    if isinstance(value, list):
        return f"{name}: ints = [{', '.join(map(str, value))}]"
    kind = {int: "int", float: "float", str: "string"}[type(value)]
    return f"{name}: {kind} = " + (f'"{value}"' if kind == "string" else str(value))


def run(op, inputs, attributes, outputs):
    inputs = [None if a is None else np.array(a, order="C") for a in inputs]
    types = [None if a is None else helper.np_dtype_to_tensor_dtype(a.dtype) for a in inputs]
    given = {k: onnx.numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **given)
    infos = [helper.make_tensor_value_info(n, t, a.shape) for n, t, a in zip(names, types, inputs) if n]
    ys = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    graph = helper.make_graph([node], "g", infos, ys)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    # ONNX Runtime lacks most of these types.
    narrow = any(a is not None and a.dtype.name in NARROW for a in inputs)
    if narrow or {"to", "output_dtype"} & set(attributes) and model.graph.output[0].type.tensor_type.elem_type >= 17:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, {n: a for n, a in zip(names, inputs) if n})
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = {n: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(a.view(np.uint16) if a.dtype == BF16 else a, t)
                  for n, t, a in zip(names, types, inputs) if n}
        results = session.run_with_ort_values(None, values)
        return [r.numpy().view(BF16) if r.element_type() == TensorProto.BFLOAT16 else r.numpy() for r in results]
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "Could not find an implementation" not in str(error) and "type" not in str(error).lower():
            raise
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, {n: a for n, a in zip(names, inputs) if n})


def case(op, *inputs, outputs=1, none=False, **attributes):
    shown = f" <{', '.join(attribute(k, v) for k, v in attributes.items())}>" if attributes else ""
    call = f"{op}{shown} ({', '.join(spelled(a) for a in inputs)})"
    if none:
        lines.append(f"{call} => none")
        return
    results = run(op, list(inputs), attributes, outputs)
    lines.append(f"{call} => ({', '.join(spelled(np.asarray(r)) for r in results)})")


def i64(*v):
    return np.array(v, dtype=np.int64)


def s64(v):
    return np.array(v, dtype=np.int64)


def extremes(dtype):
    info = np.iinfo(dtype)
    return array([info.min, info.max, 1, 5, info.max - 1], dtype), array([2 if info.min == 0 else -2, 1, info.max, 3, 7], dtype)


def arithmetic():
    for op in ["Add", "Sub", "Mul"]:
        for dtype in ["int64", "int32", "uint64", "uint32", "int8", "uint8", "int16", "uint16"]:
            a, b = extremes(dtype)
            with np.errstate(over="ignore"):
                f = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
                lines.append(f"{op} ({spelled(a)}, {spelled(b)}) => ({spelled(f(a, b))})")
        for dtype in FLOATS:
            case(op, array([[1.5, -2.25, 3e4], [0.1, -0.0, np.inf]], dtype), array([0.3, 7.0, 2.5], dtype))
    for dtype in INTS:
        signed = not dtype.startswith("u")
        a = array([7, 100, -7 if signed else 9, 1], dtype)
        b = array([2, 7, 2, -3 if signed else 3], dtype)
        case("Div", a, b)
        case("Mod", a, b)
        case("Mod", a, b, fmod=1)
        case("Max", a, b)
        case("Min", a, b, array(3, dtype))
        case("Div", a, array([0, 1, 1, 1], dtype), none=True)
        case("Mod", a, array([0, 1, 1, 1], dtype), none=True)
    case("Div", i64(-(2**63)), i64(-1), none=True)
    for dtype in FLOATS:
        a = array([1.5, -7.25, 0.0, 3.0], dtype)
        case("Div", a, array([0.7, 2.0, 3.0, -0.0], dtype))
        case("Mod", a, array([0.5, 2.0, 3.0, 1.25], dtype), fmod=1)
        case("Max", a, array([0.7, -8.0, 3.0, np.nan], dtype))
        case("Min", a, array([0.7, -8.0, 3.0, 4.0], dtype), array([np.nan, 1, 1, 1], dtype))
        case("Neg", a)
        case("Abs", a)
        case("Sign", array([1.5, -7.25, 0.0, np.inf], dtype))
        case("Sign", array([np.nan], dtype), none=True)
        case("Sqrt", array([4.0, 2.0, 0.0, -1.0], dtype))
        case("Reciprocal", array([4.0, 3.0, -0.5, 0.0], dtype))
        for op in ["Exp", "Sin", "Cos", "Tan", "Tanh", "Sigmoid"]:
            case(op, array([0.0, 1.0, -2.5, 0.1], dtype))
        case("Log", array([1.0, 2.5, 0.0, 0.1], dtype))
        for op in ["Floor", "Ceil", "Round"]:
            case(op, array([0.5, 1.5, 2.5, -0.5, -1.5, -1.2, 3.7, -0.0], dtype))
        case("Clip", a, array(-1.0, dtype), array(2.0, dtype))
        case("Clip", a, None, array(2.0, dtype))
        case("Clip", a, array(0.5, dtype))
        case("Clip", array([np.nan], dtype), array(0.5, dtype), none=True)
        case("Relu", a)
        case("Sum", a, a, array(1.0, dtype))
    for dtype in INTS:
        case("Clip", array([1, 5, 100], dtype), array(3, dtype), array(50, dtype))
        case("Abs", array([1, 5, 100], dtype))
        case("Sign", array([1, 0, 100], dtype))
    case("Neg", i64(3, -4, 0))
    case("Neg", array([3, -4, -128], "int8"))
    case("Abs", array([3, -4, 0], "int32"))
    case("Pow", array([2.0, 3.0, 0.5], "float32"), array([2.0, 0.5, -1.0], "float32"))
    case("Pow", array([2.0, 3.0, 0.5], "float32"), i64(2))
    case("Pow", array([2.0, 3.0, 0.5], "float64"), array([0.5], "float32"))
    case("Pow", array([2.0, 3.0, 0.5], "float16"), array([0.5], "float16"))
    case("Pow", i64(2, 3, -4), i64(10, 5, 3))
    case("Pow", array([2, 3, -4], "int32"), array([2.0], "float32"))
    case("Pow", i64(2), i64(-1), none=True)
    case("Pow", i64(10), i64(19), none=True)
    case("Pow", array([2], "int32"), array([0.5], "float32"), none=True)


def logic():
    for dtype in INTS + FLOATS:
        a, b = array([1, 2, 3, 3], dtype), array([3, 2, 1, 2], dtype)
        for op in ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]:
            case(op, a, b)
        case("Where", np.array([[True], [False]]), a, b)
    for op in ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]:
        case(op, array([np.nan, 1.0, np.inf], "float32"), array([np.nan, np.nan, np.inf], "float32"))
    t, f = np.array([True, True, False, False]), np.array([True, False, True, False])
    for op in ["And", "Or", "Xor", "Equal"]:
        case(op, t, f)
    case("Not", t)
    case("Where", t, f, t)
    for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
        case(op, array([12, 10], "int32"), array([10, -1], "int32"))
        case(op, array([12, 10], "uint8"), array([10], "uint8"))
    case("BitwiseNot", array([12, -1], "int64"))
    case("IsNaN", array([np.nan, 1.0, np.inf], "float32"))
    case("IsNaN", array([np.nan, 1.0, np.inf], "float16"))
    case("IsInf", array([np.nan, 1.0, np.inf, -np.inf], "float32"))
    case("IsInf", array([np.nan, 1.0, np.inf, -np.inf], "float32"), detect_negative=0)
    case("IsInf", array([np.nan, 1.0, np.inf, -np.inf], "float64"), detect_positive=0)


def casts():
    types = INTS + FLOATS + ["bool"]
    number_of = lambda d: helper.np_dtype_to_tensor_dtype(BF16 if d == "bfloat16" else np.dtype(d))
    for source in types:
        a = array([0, 1, 3, 100], source) if source in INTS else array([0.0, 1.0, 3.6, 100.25], source)
        for target in types:
            if source != target:
                case("Cast", a, to=int(number_of(target)))
    for target in ["int8", "uint8", "int32", "uint32"]:
        case("Cast", i64(300, -1, 2**33 + 5), to=int(number_of(target)))
    case("Cast", array([-1, -128], "int8"), to=int(number_of("int64")))
    case("Cast", array([-3.7, -0.2, 2.9], "float32"), to=int(number_of("int32")))
    case("Cast", i64(16777217, 33554435), to=int(number_of("float32")))
    case("Cast", array([1.0 + 2**-11, 65520.0, 1e-8, np.nan, -np.inf], "float32"), to=int(number_of("float16")))
    case("Cast", array([1.0 + 2**-8, 1.0 + 3 * 2**-8, 3.4e38, np.inf], "float32"), to=int(number_of("bfloat16")))
    case("Cast", array([np.nan, 0.0, -0.0, 0.3], "float32"), to=int(number_of("bool")))
    case("Cast", array([3e9], "float32"), to=int(number_of("int32")))
    case("Cast", array([np.nan], "float32"), to=int(number_of("int64")))
    case("Cast", array([-1.0], "float32"), to=int(number_of("uint8")), none=True)
    case("Cast", array([np.inf], "float32"), to=int(number_of("int64")))
    case("CastLike", array([1.5, 2.5], "float32"), i64(1))


def shapes():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    case("Shape", x)
    case("Shape", x, start=1)
    case("Shape", x, start=-2, end=-1)
    case("Shape", x, start=2, end=1)
    case("Shape", x, start=-9, end=9)
    case("Size", x)
    case("Reshape", x, i64(4, 6))
    case("Reshape", x, i64(0, -1))
    case("Reshape", x, i64(-1))
    case("Reshape", np.zeros((0, 3), np.float32), i64(3, 0), allowzero=1)
    case("Reshape", x, i64(5, -1), none=True)
    case("Flatten", x, axis=2)
    case("Flatten", x, axis=0)
    case("Flatten", x, axis=-1)
    case("Flatten", x, axis=3)
    case("Squeeze", np.ones((1, 2, 1), np.int32))
    case("Squeeze", np.ones((1, 2, 1), np.int32), i64(-1))
    case("Unsqueeze", i64(1, 2), i64(0, -1))
    case("Unsqueeze", i64(1, 2), i64(1))
    case("Transpose", x, perm=[2, 0, 1])
    case("Transpose", np.array([[1, 2], [3, 4]], np.uint16))
    case("ConstantOfShape", i64(2, 3))
    case("ConstantOfShape", i64(), value=np.array([7], np.int64))
    case("ConstantOfShape", i64(3), value=np.array([True]))
    case("ConstantOfShape", i64(2, 0), value=np.array([2.5], np.float16))
    case("Range", s64(0), s64(5), s64(1))
    case("Range", s64(10), s64(-1), s64(-3))
    case("Range", s64(3), s64(3), s64(1))
    case("Range", s64(3), s64(1), s64(1))
    case("Range", np.int32(1), np.int32(10), np.int32(4))
    case("Range", np.float32(0), np.float32(1), np.float32(0.1))
    case("Range", np.float64(1), np.float64(-1), np.float64(-0.25))
    case("Range", s64(0), s64(5), s64(0), none=True)


def selection():
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    case("Concat", i64(1, 2), i64(3), axis=0)
    case("Concat", x[:, :1], x[:, 1:], axis=-2)
    case("Concat", np.array([True]), np.array([False, True]), axis=0)
    case("Expand", i64(1, 2, 3), i64(2, 3))
    case("Expand", np.ones((3, 1), np.float16), i64(2, 1, 4))
    case("Expand", np.ones((2, 3), np.float32), i64(1))
    case("Gather", x, i64(2, 0), axis=1)
    case("Gather", x, s64(-1), axis=2)
    case("Gather", i64(7, 8, 9), s64(1))
    case("Gather", i64(7, 8, 9), np.array([[0, -1]], np.int32))
    case("Gather", i64(7, 8, 9), s64(3), none=True)
    case("GatherElements", x, np.array([[[0, 1, 2, 0]], [[2, 2, -1, 1]]]), axis=1)
    case("GatherElements", np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([[0, 0], [1, 0]]), axis=1)
    case("Slice", x, i64(1), i64(3), i64(2))
    case("Slice", x, i64(0, -1), i64(2, -4), i64(1, 2), i64(1, -1))
    case("Slice", i64(0, 1, 2, 3, 4), i64(-1), i64(-(2**63)), i64(0), i64(-2))
    case("Slice", i64(0, 1, 2, 3, 4), i64(1), i64(2**63 - 1))
    case("Slice", i64(0, 1, 2, 3, 4), i64(3), i64(1))
    case("Slice", i64(0, 1, 2, 3, 4), i64(9), i64(1), i64(0), i64(-1))
    case("Slice", i64(0, 1, 2, 3, 4), np.array([1], np.int32), np.array([5], np.int32), np.array([0], np.int32), np.array([3], np.int32))
    case("Split", i64(1, 2, 3, 4, 5), i64(2, 3), outputs=2)
    case("Split", x, None, outputs=2, axis=2, num_outputs=2)
    case("Split", i64(1, 2, 3, 4, 5), None, outputs=3, num_outputs=3)
    case("Tile", np.array([[1, 2], [3, 4]], np.int32), i64(2, 3))
    case("Tile", i64(1, 2), i64(0))
    case("Pad", np.array([[1, 2], [3, 4]], np.float32), i64(0, 1, 1, 0), np.float32(9))
    case("Pad", i64(1, 2), i64(2, 1))
    case("Pad", np.ones((2, 2), np.int32), i64(1, 0), np.int32(5), i64(-1))
    for k in [-1, 0, 1]:
        case("Trilu", np.arange(12, dtype=np.float32).reshape(3, 4), s64(k))
        case("Trilu", np.arange(18, dtype=np.int64).reshape(2, 3, 3), s64(k), upper=0)
    case("Trilu", np.ones((2, 3), np.bool_))


def reductions():
    x = np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2) / 4
    for op in ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceMin", "ReduceMax", "ReduceL1", "ReduceL2", "ReduceSumSquare"]:
        case(op, x)
        case(op, x, i64(1), keepdims=0)
        case(op, x, i64(-1, 0))
        case(op, x.astype(np.float64), i64(2))
    for op in ["ReduceSum", "ReduceMin", "ReduceMax", "ReduceProd", "ReduceMean"]:
        case(op, np.array([[1, -5, 3], [7, 2, 4]], np.int64), i64(1))
        case(op, np.array([[1, -5, 3], [7, 2, 4]], np.int32), i64(0), keepdims=0)
        case(op, np.array([[1, 5, 3], [7, 2, 4]], np.float16), i64(0), keepdims=0)
    case("ReduceSum", np.zeros((2, 0), np.float32), i64(1))
    case("ReduceProd", np.zeros((2, 0), np.float32), i64(1))
    case("ReduceMax", np.array([[True, False], [False, False]]), i64(1))
    case("ReduceMin", np.array([[True, False], [True, True]]), i64(1))
    case("ReduceMax", np.array([np.nan, 1], np.float32), none=True)
    case("ReduceSum", x, i64(), noop_with_empty_axes=1, none=True)
    for dtype in ["int64", "int32", "float32", "float64"]:
        a = array([[1, 2, 3], [4, 5, 6]], dtype)
        case("CumSum", a, s64(1))
        case("CumSum", a, s64(0), exclusive=1)
        case("CumSum", a, s64(-1), reverse=1)
        case("CumSum", a, s64(1), reverse=1, exclusive=1)
    for op in ["Softmax", "LogSoftmax"]:
        for dtype in ["float32", "float64", "float16"]:
            case(op, array([[1, 1, -90], [3, 3, -90]], dtype))
            case(op, array([[1, 2, 3, 4], [1, 2, 3, 4]], dtype), axis=0)
        case(op, np.array([1, np.inf], np.float32), none=True)
    for op in ["ArgMax", "ArgMin"]:
        case(op, np.array([[1, 7, 7], [2, 0, 0]], np.float32), axis=1)
        case(op, np.array([[1, 7, 7], [2, 0, 0]], np.float32), axis=-1, keepdims=0, select_last_index=1)
        case(op, np.array([[1, 7, 7], [2, 0, 0]], np.int64), axis=0)
    case("MatMul", np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4))
    case("MatMul", np.arange(12, dtype=np.float64).reshape(2, 2, 3), np.arange(3, dtype=np.float64))
    case("MatMul", np.arange(3, dtype=np.int64), np.arange(3, dtype=np.int64))
    case("MatMul", np.arange(3, dtype=np.float32), np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    case("MatMul", np.arange(6, dtype=np.float32).reshape(1, 2, 3), np.arange(18, dtype=np.float32).reshape(3, 1, 3, 2)[:2])


def networks():
    for dtype in ["float32", "float64", "float16"]:
        a = array([-30.0, -1.5, -0.25, 0.0, 0.5, 2.0, 40.0], dtype)
        for op in ["Softplus", "Softsign", "Elu", "LeakyRelu"]:
            case(op, a)
        case("Elu", a, alpha=0.5)
        case("LeakyRelu", a, alpha=-0.25)
    for op in ["Sinh", "Cosh", "Asin", "Acos", "Atan"]:
        case(op, array([-0.75, -0.25, 0.0, 0.5, 1.0], "float32"))
    a = array([-9.0, -1.5, -0.25, 0.0, 0.5, 2.0, 9.0], "float32")
    for op in ["Erf", "Gelu", "HardSwish", "HardSigmoid"]:
        case(op, a)
    case("Gelu", a, approximate="tanh")
    case("HardSigmoid", a, alpha=0.25, beta=0.75)
    m = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    s, b = array([1.0, -2.0, 0.5], "float32"), array([0.5, 0.0, -1.0], "float32")
    case("LayerNormalization", m, s)
    case("LayerNormalization", m.reshape(1, 2, 3), np.stack([s, b]), np.stack([b, s]), axis=1, epsilon=0.1)
    case("LayerNormalization", m, s, b, axis=-1)
    case("LayerNormalization", m.astype("float16"), s.astype("float16"), none=True)
    x = array([[[1.0, 5.0], [0.0, 8.0], [-3.0, -1.0]], [[5.0, 1.0], [8.0, 0.0], [-1.0, -3.0]]], "float32")
    case("BatchNormalization", x, s, b, b, array([1.0, 4.0, 0.25], "float32"), epsilon=0.5)
    case("BatchNormalization", x, s, b, b, array([1.0, 4.0, 0.25], "float32"), training_mode=1, momentum=0.75, epsilon=0.0, outputs=3)
    case("BatchNormalization", x, s, b, b, array([1.0, 4.0], "float32"), none=True)
    case("InstanceNormalization", x, s, b, epsilon=0.5)
    case("InstanceNormalization", x.reshape(1, 2, 3, 2), s[:2], b[:2])
    case("InstanceNormalization", x, s[:2], b[:2], none=True)
    case("RMSNormalization", m, s, epsilon=0.25)
    x = np.float32(2) + np.sin(np.arange(24, dtype=np.float32)).reshape(1, 1, 4, 6)
    sizes, scales = i64(1, 1, 7, 3), array([1.0, 1.0, 0.6, 2.5], "float32")
    for mode in ["nearest", "linear", "cubic"]:
        for place in ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]:
            case("Resize", x, None, None, sizes, mode=mode, coordinate_transformation_mode=place)
        case("Resize", x, None, scales, mode=mode)
    for near in ["floor", "ceil", "round_prefer_ceil"]:
        case("Resize", x, None, None, i64(7, 3), axes=[2, -1], mode="nearest", nearest_mode=near)
    case("Resize", np.arange(4, dtype=np.int32).reshape(1, 1, 2, 2), None, None, i64(1, 1, 3, 4))
    case("Resize", x, None, None, sizes, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
    case("Resize", x, None, None, i64(1, 1, 3, 2), mode="linear", antialias=1)
    case("Resize", x, None, None, sizes, mode="nearest", keep_aspect_ratio_policy="not_larger", none=True)
    case("Resize", x, array([0, 0, 0, 0, 1, 1, 1, 1], "float32"), None, sizes, mode="linear", coordinate_transformation_mode="tf_crop_and_resize", none=True)
    case("Resize", np.full_like(x, np.inf), None, None, sizes, mode="linear", none=True)
    case("MatMul", m.astype("float16"), m.T.astype("float16"))
    case("MatMul", np.zeros((2, 0), "float16"), np.zeros((0, 1), "float16"))
    case("Gemm", m, np.ones((3, 2), np.float32))
    case("Gemm", m, m, array([1.0, -2.0], "float32"), transB=1)
    case("Gemm", m, m, array([[1.0], [2.0], [3.0]], "float32"), transA=1, alpha=0.5, beta=2.0)
    case("Gemm", m.astype(np.float64), m.astype(np.float64), array(1.0, "float64"), transB=1)
    case("Einsum", m, m, equation="ij,kj->ik")
    case("Einsum", m, equation="ij -> j i")
    case("Einsum", m, array([1.0, 2.0], "float32"), equation="bd,b->d")
    case("Einsum", np.arange(9, dtype=np.float32).reshape(3, 3), equation="ii->i")
    x = np.sin(np.arange(10, dtype=np.float32)).reshape(1, 5, 2)
    for inverse in [0, 1]:
        case("DFT", x, None, s64(1), inverse=inverse)
        case("DFT", x, s64(8), s64(-2), inverse=inverse)
        case("DFT", x[..., :1], s64(3), s64(1), inverse=inverse)
    case("DFT", x[..., :1], s64(8), s64(1), onesided=1)
    case("DFT", x.transpose(1, 0, 2).astype(np.float64)[..., :1], None, s64(0), onesided=1)
    case("ScatterND", i64(1, 2, 3, 4), i64([0], [-1]), i64(9, 8))
    case("ScatterND", m, i64([1]), array([[7.0, 8.0, 9.0]], "float32"))
    case("ScatterND", m, i64([1, 0], [1, 0]), array([7.0, 8.0], "float32"), reduction="add")
    case("ScatterND", np.array([True, False]), i64([1]), np.array([True]))
    case("ScatterElements", m, i64([1, 0, -1]), array([[5.0, 6.0, 7.0]], "float32"))
    case("ScatterElements", m, i64([1, 1], [0, 2]), array([[5.0, 6.0], [7.0, 8.0]], "float32"), axis=1, reduction="add")
    onoff = array([0.5, 2.0], "float32")
    case("OneHot", i64(0, -1, 3, 2), s64(3), onoff)
    case("OneHot", i64([0, 1], [2, 1]), i64(3), i64(0, 1), axis=1)
    case("NonZero", array([[0.0, -1.0], [0.5, 0.0]], "float32"))
    case("NonZero", np.array([True, False, True]))
    case("GatherND", m, i64([1, 0], [0, -1]))
    case("GatherND", m, i64([[1]], [[0]]))
    case("EyeLike", m)
    case("EyeLike", m, k=1, dtype=7)
    case("EyeLike", np.zeros((3, 2), np.int32), k=-1)
    case("TopK", array([3.0, 1.0, 3.0, -0.5, 2.0], "float32"), i64(3), outputs=2)
    case("TopK", np.array([[5, -1, 5], [2, 2, 9]]), i64(3), outputs=2, axis=-1, largest=0)
    case("TopK", np.array([[5, 1, 4], [2, 2, 9]], np.int32), i64(1), outputs=2, axis=0)
    case("TopK", array([1.0, np.nan], "float32"), i64(1), outputs=2, none=True)
    case("TopK", array([1.0, 2.0], "float32"), i64(2), outputs=2, none=True, sorted=0)
    case("ConvTranspose", np.ones((1, 1, 3), np.float32), np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4), strides=[2])
    case(
        "ConvTranspose", np.arange(8, dtype=np.float32).reshape(1, 2, 4), np.arange(12, dtype=np.float32).reshape(2, 2, 3),
        array([0.5, -0.5, 1.0, 2.0], "float32"), group=2, pads=[1, 0], dilations=[2], strides=[2], output_padding=[1],
    )
    case("ConvTranspose", np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), np.ones((1, 2, 2, 2), np.float32), pads=[0, 1, 0, 0])


def narrow():
    values = [0.0, -0.0, 0.7, -1.3, 2.5, 5.0, 17.0, -240.0, 464.0, 465.0, -57344.0, 1e6, np.nan]
    for dtype in FLOAT8:
        for source in ["float32", "float16", "bfloat16", "float64"]:
            for saturate in [0, 1]:
                finite = array(np.clip(values, -65504, 65504), source)
                case("Cast", finite, to=type_number(dtype), saturate=saturate)
        for saturate, extremes in [(0, [np.inf, -np.inf]), (1, [np.inf, -np.inf])]:
            given = array(extremes, "float32")
            case("Cast", given, to=type_number(dtype), saturate=saturate, none=bool(saturate) and "fnuz" in dtype)
        codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype))
        for target in ["float32", "float16", "bfloat16", "float64"]:
            case("Cast", codes, to=type_number(target))
        few = array([0.0, 1.0, 3.5, 100.0], dtype)
        for other in FLOAT8 + ["float4_e2m1fn", "int8", "int64", "bool"]:
            if other != dtype:
                case("Cast", few, to=type_number(other))
        case("Cast", array([0, 3, 100, 900], "int64"), to=type_number(dtype))
        case("Cast", array([True, False], "bool"), to=type_number(dtype))
        case("Cast", array([1.0625 + 1e-12], "float64"), to=type_number(dtype), none="e4m3" in dtype)
    for mode in ["up", "down", "nearest"]:
        given = array([1.0, 1.2, 1.5, 1.7, 3.0, 1e-30, 2.0**127], "float32")
        case("Cast", given, to=type_number("float8_e8m0fnu"), round_mode=mode)
        case("Cast", array([3e38], "float32"), to=type_number("float8_e8m0fnu"), round_mode=mode, saturate=0)
        case("Cast", array([3e38, np.nan], "float32"), to=type_number("float8_e8m0fnu"), round_mode=mode)
    for wrong in [0.0, -1.0, np.inf]:
        case("Cast", array([wrong], "float32"), to=type_number("float8_e8m0fnu"), none=True)
    case("Cast", array([1.0, 4.0, 2.0**-126, 2.0**127], "float8_e8m0fnu"), to=type_number("float32"))
    for target in ["float32", "float16", "float64", "int8", "bool"]:
        case("Cast", np.arange(16, dtype=np.uint8).astype(np.float32).astype(ml_dtypes.float4_e2m1fn), to=type_number(target))
    case("Cast", array([0.0, -0.0, 0.25, 0.75, 1.25, 5.0, -7.0, 1e9, np.inf], "float32"), to=type_number("float4_e2m1fn"))
    case("Cast", array([np.nan], "float32"), to=type_number("float4_e2m1fn"), none=True)
    for dtype, info in [(d, ml_dtypes.iinfo(getattr(ml_dtypes, d))) for d in ("int4", "uint4", "int2", "uint2")]:
        every = array(list(range(info.min, info.max + 1)), dtype)
        for target in ["float32", "bfloat16", "int64", "uint8", "bool"]:
            case("Cast", every, to=type_number(target))
        case("Cast", array([-9, 0, 1, 17, 100, 127], "int8"), to=type_number(dtype))
        case("Cast", array([0.0, 1.0], "float32"), to=type_number(dtype))
        case("Cast", array([1.5], "float32"), to=type_number(dtype), none=True)
        case("Cast", array([300.0], "float32"), to=type_number(dtype), none=True)
    # Operators that only move elements.
    for dtype in list(NARROW):
        x = array(np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 1]) + (1 if "e8m0" in dtype else 0), dtype).reshape(2, 5)
        case("Transpose", x)
        case("Reshape", x, i64(5, 2))
        case("Unsqueeze", x, i64(0))
        case("Flatten", x)
        if "e8m0" not in dtype and dtype not in ("int2", "uint2"):
            case("Identity", x)
    x = array([[1, -2, 3], [-8, 7, 0]], "int4")
    scales, x32 = array([0.5, 2.0, 0.25], "float32"), array([[0.7, -3.0, 1.125], [100.0, -1e9, 0.0]], "float32")
    for dtype in ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"]:
        zeros = array([1, 0, 1], dtype)
        case("QuantizeLinear", x32, scales, zeros)
        case("QuantizeLinear", x32, scales, output_dtype=type_number(dtype))
        case("DequantizeLinear", array([[1, 0, 1], [0, 1, 1]], dtype), scales, zeros, axis=-1)
    for dtype in FLOAT8 + ["float4_e2m1fn"]:
        for saturate in [0, 1]:
            case("QuantizeLinear", x32, scales, output_dtype=type_number(dtype), saturate=saturate)
        case("QuantizeLinear", x32[:, :1], array(0.1, "float32"), array(0, dtype))
        case("DequantizeLinear", array([[1, 3, 0], [0.5, 1, 2]], dtype), scales, axis=1)
        case("DequantizeLinear", array([1, 3, 0], dtype), array(0.1, "float32"), array(0, dtype))
    case("DynamicQuantizeLinear", array([[0.5, -1.5, 2.0], [0.25, 3.0, -0.75]], "float32"), outputs=3)
    case("DynamicQuantizeLinear", array([1.0, 3.0], "float32"), outputs=3)
    case("DynamicQuantizeLinear", array([-1.0, -3.0], "float32"), outputs=3)
    case("DynamicQuantizeLinear", array([0.0, 0.0], "float32"), outputs=3, none=True)
    case("DynamicQuantizeLinear", array([1.0, np.inf], "float32"), outputs=3, none=True)
    a8, b8 = array([[1, 200, 3], [40, 0, 255]], "uint8"), array([[1, -2], [100, -128], [5, 127]], "int8")
    case("MatMulInteger", a8, b8)
    case("MatMulInteger", a8, b8, array(7, "uint8"), array(-3, "int8"))
    case("MatMulInteger", a8, b8, array(7, "uint8"), array([-3, 4], "int8"))
    case("QuantizeLinear", x32, array(0.5, "float32"))
    case("QuantizeLinear", x32, array(0.0, "float32"), none=True)
    case("QuantizeLinear", array([np.nan], "float32"), array(1.0, "float32"), none=True)
    case("QuantizeLinear", array([1.0, 2.5], "float16"), array(0.5, "float16"), array(3, "int8"))
    case("QuantizeLinear", array([1.0, 2.5], "float16"), array(0.5, "float32"), array(3, "int8"), precision=1)
    case("QuantizeLinear", array([7, -9, 100], "int32"), array(0.5, "float32"), array(3, "int8"))
    case("QuantizeLinear", x32, array([[0.5, 1.0, 2.0]], "float32"), axis=0, block_size=2, output_dtype=type_number("int4"))
    case("QuantizeLinear", x32, array([[0.5, 1.0], [2.0, 4.0]], "float32"), array([[1, 2], [3, 4]], "uint4"), axis=1, block_size=2)
    case("DequantizeLinear", x, array([[0.5, 1.0], [2.0, 4.0]], "float32"), array([[1, 2], [3, 4]], "int4"), axis=1, block_size=2)
    case("DequantizeLinear", x, array([[0.5, 1.0, 2.0]], "float32"), axis=0, block_size=2)
    case("DequantizeLinear", x, scales[:2], axis=0, output_dtype=type_number("float16"))
    case("DequantizeLinear", x, array([1.5, 2.0, 1.0], "bfloat16"))
    case("DequantizeLinear", array([2**24 + 1, -7], "int32"), array(0.1, "float32"))
    case("DequantizeLinear", array([2049], "int16"), array(0.1, "float16"), none=True)
    case("DequantizeLinear", x, scales, array([0, 0], "int4"), none=True)


for family in [arithmetic, logic, casts, narrow, shapes, selection, reductions, networks]:
    lines.append(f"\n# {family.__name__}")
    family()
path = pathlib.Path(__file__).with_name("eval.txt")
path.write_text("# Written by eval.py.\n" + "\n".join(lines) + "\n")
