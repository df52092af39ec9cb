#!/usr/bin/env python3
"""Shows where ONNX Runtime's CPU provider computes a plain ONNX graph in another way than NumPy and PyTorch.

    pip install onnx onnxruntime numpy && python runtimes/onnxruntime/differences.py

One line for each graph: what ONNX Runtime gives, and what it should be.
"""
import numpy as np
import onnx.parser
import onnxruntime

NAN, INF = float("nan"), float("inf")
GRAPHS = [
    ("ReduceSum of int64 beyond 2^53", "int64[2] x", "int64[1] y", "y = ReduceSum(x)", [np.array([2**53, 1])], 2**53 + 1),
    ("ReduceProd of int64 beyond 2^53", "int64[2] x", "int64[1] y", "y = ReduceProd(x)", [np.array([2**53 + 1, 3])], 3 * (2**53 + 1)),
    ("MatMul of a transpose with a vector", "float[2,2] x, float[2] v", "float[2] y", "t = Transpose<perm = [1, 0]>(x) y = MatMul(t, v)", [np.array([[1, 2], [3, 4]], np.float32), np.array([1, 0], np.float32)], [1, 2]),
    ("MaxPool with NaN", "float[1,1,2] x", "float[1,1,1] y", "y = MaxPool<kernel_shape = [2]>(x)", [np.array([[[NAN, 1]]], np.float32)], NAN),
    ("LogSoftmax of float64 with infinity", "double[1,2] x", "double[1,2] y", "y = LogSoftmax<axis = 1>(x)", [np.array([[1, INF]])], [NAN, NAN]),
    ("DFT with infinity", "float[1,4,1] x, int64 a", "float[1,4,2] y", "y = DFT(x, , a)", [np.array([[[0], [INF], [0], [0]]], np.float32), np.array(1)], [INF, 0, 0, -INF, -INF, 0, 0, INF]),
    ("GridSample with infinity", "float[1,1,1,2] x, float[1,1,1,2] g", "float[1,1,1,1] y", "y = GridSample<align_corners = 1, padding_mode = \"border\">(x, g)", [np.array([[[[1, INF]]]], np.float32), np.array([[[[1, 0]]]], np.float32)], INF),
    ("float16 rounded between two nodes", "float16[1] x, float16[1] d", "float16[1] y", "q = Div(x, d) y = Floor(q)", [np.array([30], np.float16), np.array([0.3948], np.float16)], 76.0),
]


def main():
    onnxruntime.set_default_logger_severity(4)
    for title, inputs, outputs, nodes, arrays, expected in GRAPHS:
        text = f'<ir_version: 9, opset_import: ["": 20]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
        model = onnx.parser.parse_model(text)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})
        print(f"{title}: {found.flatten().tolist()}, should be {expected}")


if __name__ == "__main__":
    main()
