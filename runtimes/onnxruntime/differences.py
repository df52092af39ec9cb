#!/usr/bin/env python3
"""Shows where ONNX Runtime's CPU provider computes a plain ONNX graph in another way than NumPy and PyTorch.

    pip install onnx onnxruntime numpy && python runtimes/onnxruntime/differences.py

One line for each graph: what ONNX Runtime gives, and what it should be.
"""
import os

import numpy as np
import onnx.parser
import onnxruntime

NAN, INF = float("nan"), float("inf")
SCAN = "f, y = Scan<num_scan_inputs = 1, body = b (float[k] a, float[k] c) => (float[k] d, float[k] e) {{ d = Add(a, c) e = Identity(d) }}{}>(s, x)"
GRAPHS = [
    ("ReduceSum of int64 beyond 2^53", "int64[2] x", "int64[1] y", "y = ReduceSum(x)", [np.array([2**53, 1])], 2**53 + 1),
    ("ReduceProd of int64 beyond 2^53", "int64[2] x", "int64[1] y", "y = ReduceProd(x)", [np.array([2**53 + 1, 3])], 3 * (2**53 + 1)),
    ("Resize of 90 elements by 0.7", "float[1,1,n] x", "int64[3] y", "s = Constant<value = float[3] {1, 1, 0.7}>() r = Resize<mode = \"linear\">(x, , s) y = Shape(r)", [np.zeros((1, 1, 90), np.float32)], [1, 1, 62]),
    ("Mod with fmod of int64 beyond 2^53", "int64[1] x, int64[1] z", "int64[1] y", "y = Mod<fmod = 1>(x, z)", [np.array([2**63 - 1]), np.array([3])], 1),
    ("Min of int64 with equal upper halves", "int64[4] x, int64[4] z", "int64[4] y", "y = Min(x, z)", [np.array([2**31] * 4), np.array([1] * 4)], [1] * 4),
    ("Clip of int64 with equal upper halves", "int64[4] x", "int64[4] y", "c = Constant<value = int64 {1}>() y = Clip(x, , c)", [np.array([2**31] * 4)], [1] * 4),
    ("Sign of int64 below 2^32", "int64[4] x", "int64[4] y", "y = Sign(x)", [np.array([2**31] * 4)], [1] * 4),
    ("ReduceMax of int64 with equal upper halves", "int64[1,40] x, int64[1] a", "int64[1,1] y", "y = ReduceMax(x, a)", [np.array([[2**31] + [1] * 39]), np.array([1])], 2**31),
    ("MatMul of a transpose with a vector", "float[2,2] x, float[2] v", "float[2] y", "t = Transpose<perm = [1, 0]>(x) y = MatMul(t, v)", [np.array([[1, 2], [3, 4]], np.float32), np.array([1, 0], np.float32)], [1, 2]),
    ("MatMul of float16 weights and a tensor whose batch a Transpose moves", "float16[3,n,4] x", "float16[n,3,1] y", "w = Constant<value = float16[4,1] {15360, 15360, 15360, 15360}>() t = Transpose<perm = [1, 0, 2]>(x) y = MatMul(t, w)", [np.ones((3, 2, 4), np.float16)], [4] * 6),
    ("MaxPool with NaN", "float[1,1,2] x", "float[1,1,1] y", "y = MaxPool<kernel_shape = [2]>(x)", [np.array([[[NAN, 1]]], np.float32)], NAN),
    ("MaxPool of padding with zeros", "float[1,1,1] x", "float[1,1,2] y", "s = Constant<value = int64[6] {0, 0, 1, 0, 0, 1}>() p = Pad(x, s) y = MaxPool<kernel_shape = [2]>(p)", [np.array([[[-1]]], np.float32)], [0, 0]),
    ("MaxPool in one dimension of negative infinities", "float[1,1,2] x", "float[1,1,1] y", "y = MaxPool<kernel_shape = [2]>(x)", [np.full((1, 1, 2), -INF, np.float32)], -INF),
    ("AveragePool with ceil_mode of padding", "float[1,1,2] x", "float[1,1,2] y", "s = Constant<value = int64[6] {0, 0, 0, 0, 0, 1}>() p = Pad(x, s) y = AveragePool<kernel_shape = [2], strides = [2], ceil_mode = 1>(p)", [np.ones((1, 1, 2), np.float32)], [1, 0]),
    ("MaxPool with padding, of negative infinities", "float[1,1,1,2] x", "float[1,1,1,2] y", "y = MaxPool<kernel_shape = [1, 3], pads = [0, 1, 0, 1]>(x)", [np.full((1, 1, 1, 2), -INF, np.float32)], [-INF] * 2),
    ("AveragePool of padding as wide as the kernel", "float[1,1,1] x", "float[1,1,2] y", "s = Constant<value = int64[6] {0, 0, 2, 0, 0, 0}>() p = Pad(x, s) y = AveragePool<kernel_shape = [2]>(p)", [np.ones((1, 1, 1), np.float32)], [0, 0.5]),
    ("Resize with axes between two Transposes", "float[n,1,2,1] x", "float[n,1,4,1] y", "s = Constant<value = int64[2] {1, 4}>() t = Transpose<perm = [0, 3, 1, 2]>(x) r = Resize<axes = [2, 3]>(t, , , s) y = Transpose<perm = [0, 2, 3, 1]>(r)", [np.array([[[[1], [2]]]], np.float32)], [1, 1, 2, 2]),
    ("Resize to a smaller image, cubic, between two Transposes", "float[n,4,4,1] x", "float[n,2,2,1] y", "s = Constant<value = float[4] {1, 1, 0.5, 0.5}>() t = Transpose<perm = [0, 3, 1, 2]>(x) r = Resize<mode = \"cubic\">(t, , s) y = Transpose<perm = [0, 2, 3, 1]>(r)", [np.ones((1, 4, 4, 1), np.float32)], [1] * 4),
    ("GRU of an empty batch", "float[1,b,1] x, float[1,3,1] w", "float[1,1,b,1] y", "y = GRU<hidden_size = 1>(x, w, w)", [np.ones((1, 0, 1), np.float32), np.zeros((1, 3, 1), np.float32)], "nothing"),
    ("GRU of float64", "double[1,1,1] x, double[1,3,1] w", "double[1,1,1,1] y", "y = GRU<hidden_size = 1>(x, w, w)", [np.ones((1, 1, 1)), np.zeros((1, 3, 1))], 0),
    ("Sigmoid of float32 below -10", "float[2] x", "float[2] y", "y = Sigmoid(x)", [np.array([-15, -20], np.float32)], [3.06e-07, 2.06e-09]),
    ("Cast of 62000 to float8_e5m2", "float[1] x", "float[1] y", "c = Cast<to = 19, saturate = 0>(x) y = Cast<to = 1>(c)", [np.array([62000], np.float32)], INF),
    ("Where of a negative zero", "bool[1] c, float[1] x, float[1] z", "float[1] y", "w = Where(c, x, z) y = Reciprocal(w)", [np.array([True]), np.array([-0.0], np.float32), np.array([1], np.float32)], -INF),
    ("Selu of a negative zero", "float[1] x", "float[1] y", "s = Selu(x) y = Reciprocal(s)", [np.array([-0.0], np.float32)], -INF),
    ("Max of both zeros", "float[1] x, float[1] z", "float[1] y", "m = Max(x, z) y = Reciprocal(m)", [np.array([-0.0], np.float32), np.array([0], np.float32)], -INF),
    ("BatchNormalization in training, a mean that is read again", "float[2,1] x, float[1] e, float[1] v", "float[1] y", "b, m, n = BatchNormalization<training_mode = 1>(x, v, v, e, v) r = ReduceMin<keepdims = 0>(b) z = Sub(r, r) y = Add(z, e)", [np.array([[1], [3]], np.float32), np.array([10], np.float32), np.array([1], np.float32)], 10),
    ("ReduceLogSumExp with NaN after infinity", "float[2] x", "float y", "y = ReduceLogSumExp<keepdims = 0>(x)", [np.array([INF, NAN], np.float32)], NAN),
    ("LogSoftmax of float64 with infinity", "double[1,2] x", "double[1,2] y", "y = LogSoftmax<axis = 1>(x)", [np.array([[1, INF]])], [NAN, NAN]),
    ("MatMul of scaled float64", "double[1,1] x, double[1,1] z", "double[1,1] y", "c = Constant<value = double {0.3}>() s = Mul(x, c) y = MatMul(s, z)", [np.array([[1.0]]), np.array([[1.0]])], 0.3),
    ("MatMul of a product of a product with constants", "float[2,2] x, float[2,2] t", "float[2,2] y", "c = Constant<value = float {0.1}>() d = Constant<value = float {3.0}>() s = Mul(x, c) q = Mul(s, d) m = MatMul(q, t) y = MatMul(m, s)", [np.ones((2, 2), np.float32)] * 2, [0.12, 0.12, 0.12, 0.12]),
    ("Attention of float64", "double[1,1,1,1] q, double[1,1,2,1] k", "double[1,1,1,1] y", "y = Attention<scale = 2.0>(q, k, k)", [np.array([[[[1.0]]]]), np.array([[[[1.0], [0.0]]]])], 0.8807970779778823),
    ("Mul of float64 by a number near 1", "double[1] x", "double[1] y", "c = Constant<value = double {1.00000002}>() a = Neg(x) m = Mul(a, c) y = Neg(m)", [np.array([1e9])], 1000000020),
    ("DFT with infinity", "float[1,4,1] x, int64 a", "float[1,4,2] y", "y = DFT(x, , a)", [np.array([[[0], [INF], [0], [0]]], np.float32), np.array(1)], [INF, 0, 0, -INF, -INF, 0, 0, INF]),
    ("MatMulInteger of uint8 and int8, on x86 processors without VNNI", "uint8[1,2] x, int8[2,1] w", "int32[1,1] y", "y = MatMulInteger(x, w)", [np.array([[255, 255]], np.uint8), np.array([[127], [127]], np.int8)], 64770),
    ("DFT of 1000 float32", "float[1,1000,1] x, int64 a, int64[1] i", "float[1,1,2] y", "d = DFT(x, , a) y = Gather<axis = 1>(d, i)", [np.arange(1000, dtype=np.float32).reshape(1, 1000, 1), np.array(1), np.array([300])], [-500.0, 363.27126]),
    ("Inverse DFT of 3 float64", "double[1,3,2] x, int64 a", "double[1,3,2] y", "y = DFT<inverse = 1>(x, , a)", [np.array([[[3e9, 0], [0, 0], [0, 0]]]), np.array(1)], [1e9, 0, 1e9, 0, 1e9, 0]),
    ("GridSample of a volume, cubic", "float[1,1,1,1,1] x, float[1,1,1,1,3] g", "float[1,1,1,1,1] y", "y = GridSample<mode = \"cubic\", align_corners = 1>(x, g)", [np.ones((1, 1, 1, 1, 1), np.float32), np.zeros((1, 1, 1, 1, 3), np.float32)], 1),
    ("GridSample with infinity", "float[1,1,1,2] x, float[1,1,1,2] g", "float[1,1,1,1] y", "y = GridSample<align_corners = 1, padding_mode = \"border\">(x, g)", [np.array([[[[1, INF]]]], np.float32), np.array([[[[1, 0]]]], np.float32)], INF),
    ("GridSample of a NaN coordinate", "float[1,1,2,2] x, float[1,1,1,2] g", "float[1,1,1,1] y", "y = GridSample<align_corners = 1>(x, g)", [np.ones((1, 1, 2, 2), np.float32), np.array([[[[NAN, 0]]]], np.float32)], NAN),
    ("float16 rounded between two nodes", "float16[1] x, float16[1] d", "float16[1] y", "q = Div(x, d) y = Floor(q)", [np.array([30], np.float16), np.array([0.3948], np.float16)], 76.0),
    ("MatMul of batches with an inner dimension of 0", "float[b,2,k] x, float[b,k,2] z, float[b,2,2] w", "float[b,2,2] y", "e = Exp(w) m = ReduceMax<keepdims = 0>(e) n = Add(x, m) y = MatMul(n, z)", [np.zeros((300, 2, 0), np.float32), np.zeros((300, 0, 2), np.float32), np.zeros((300, 2, 2), np.float32)], "zeros"),
    ("Expand to no elements", "float[n,1] x", "float[n,m] y", "e = Exp(x) s = Constant<value = int64[2] {1, 0}>() z = Expand(e, s) y = Neg(z)", [np.ones((2, 1), np.float32)], "nothing"),
    ("Scan along an empty dimension", "float[n,1] x, float[1] s", "float[n,1] y", SCAN.format(""), [np.zeros((0, 1), np.float32), np.zeros(1, np.float32)], "nothing"),
    ("Einsum of empty operands", "float[a,b] x, float[c,b] z", "float[a,c] y", 'y = Einsum<equation = "ij,kj->ik">(x, z)', [np.zeros((2, 0), np.float32)] * 2, [0, 0, 0, 0]),
    ("Attention of a query without keys, whose scores are NaN", "float[1,1,1,2] q, float[1,1,2,2] k, float[1,1,2,2] v, bool[1,2] m", "float[1,1,1,2] y", "y = Attention(q, k, v, m)", [np.full((1, 1, 1, 2), NAN, np.float32), np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 2), bool)], [NAN, NAN]),
    ("Pad in mode wrap of no elements", "float[n,1] x, int64[4] p", "float[n,3] y", "y = Pad<mode = \"wrap\">(x, p)", [np.zeros((0, 1), np.float32), np.array([0, 1, 0, 1])], "nothing"),
    ("Scan of empty slices", "float[n,m] x, float[n] s", "float[n,m] y", SCAN.format(", scan_input_axes = [1], scan_output_axes = [1]"), [np.zeros((0, 2), np.float32), np.zeros(0, np.float32)], "nothing"),
]


def given(inputs, outputs, nodes, arrays):
    """What ONNX Runtime gives, or its error."""
    opset = 23 if "Attention" in nodes else 20
    text = f'<ir_version: 9, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    try:
        session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})[0]
    except Exception as error:
        return f"an error: {str(error)[-60:]}"


def shown(result):
    """Of many elements the sum of their sizes."""
    if isinstance(result, str) or result.size <= 4:
        return result if isinstance(result, str) else result.flatten().tolist()
    return f"{result.size} elements, in all {np.abs(result.astype(float)).sum()}"


def main():
    onnxruntime.set_default_logger_severity(4)
    for title, inputs, outputs, nodes, arrays, expected in GRAPHS:
        here, there = os.pipe()
        # Some graphs end the process.
        if not (child := os.fork()):
            os.write(there, str(shown(given(inputs, outputs, nodes, arrays))).encode())
            os._exit(0)
        os.close(there)
        status = os.waitpid(child, 0)[1]
        found = os.read(here, 4096).decode() if status == 0 else f"the process ends by signal {status}"
        print(f"{title}: {found}, should be {expected}", flush=True)


if __name__ == "__main__":
    main()
