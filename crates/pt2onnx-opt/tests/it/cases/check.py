"""Runs the graphs of the case files in ONNX Runtime, before and after: the outputs must be the same.

Needs onnx, onnxruntime, numpy, ml_dtypes. Cases whose inputs cannot be run (absent weights, random numbers) are named and skipped.
"""

import pathlib
import re
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

SIZES = {"N": 3, "M": 4, "B": 2, "H": 6, "W": 5, "D": 4, "S": 3, "T": 7, "P": 4, "K": 2}
SPECIAL = {"s": [4, 6]}
rng = np.random.default_rng(0)


def model(text, opset):
    text = re.sub(r"\{0 \.\.\.\}", "{...}", text)
    text = re.sub(r"\b(\w+)\[([\d, ]+)\] (\w+) = \{\.\.\.\}", lambda m: f"{m[1]}[{m[2]}] {m[3]} = {{{', '.join(['0'] * int(np.prod(eval(m[2] + ','))))}}}", text)
    text = re.sub(r"\?,", "u,", text).replace("?]", "w]").replace("-inf", "-1e38")
    # The parser takes half precision by its bits only.
    for name, dtype in [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)]:
        bits = lambda m, dtype=dtype: m[1] + ", ".join(str(np.array(float(v), dtype).view(np.uint16)) for v in m[2].split(","))
        text = re.sub(r"(\b%s(?:\[[\d, ]+\])?(?: \w+ =)? \{)([^}.]*\.?[^}]*)" % name, bits, text)
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')


def run(m, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def feed(value):
    t = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else SIZES.get(d.dim_param, 8) for d in t.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
    if value.name in SPECIAL:
        return np.array(SPECIAL[value.name], dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(dims) > 0.5)
    return np.asarray(rng.standard_normal(dims) * 2).astype(dtype)


bad = 0
for path in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
    if path.stem == "eval":
        continue
    for case in path.read_text().split("\n## ")[1:]:
        title, body = case.split("\n", 1)
        before, after = body.split("---->\n")
        if after.startswith("error") or "Random" in before or "absent" in before:
            print("skipped", path.stem, title)
            continue
        opset = int(title.rsplit(": ")[-1]) if path.stem == "legalise" else 26
        try:
            a, b = model(before, 26), model(after, opset)
            if path.stem == "legalise":
                onnx.checker.check_model(b)
            feeds = {v.name: np.asarray(feed(v)) for v in a.graph.input}
        except Exception as error:
            print("FAILED", path.stem, title, error)
            bad += 1
            continue
        try:
            expected = run(a, feeds)
        except Exception as error:
            print("skipped", path.stem, title, str(error)[:200])
            continue
        try:
            actual = run(b, feeds)
            for x, y in zip(expected, actual, strict=True):
                assert x.dtype == y.dtype and x.shape == y.shape, (x.dtype, x.shape, y.dtype, y.shape)
                tolerance = 2e-3 if x.dtype == np.float16 else 1e-5
                if path.stem in ("legalise", "fuse") and x.dtype.kind == "f":
                    np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)
                else:
                    np.testing.assert_array_equal(y, x)
            print("ok", path.stem, title)
        except Exception as error:
            bad += 1
            print("FAILED", path.stem, title, error)
sys.exit(bad)
