"""Results of conformance cases at each opset, as a Markdown table.

    mkdir /tmp/first && tar --zstd -xf testdata/cases/first.tar.zst -C /tmp/first
    python bench/opsets.py --bin target/release/pt2onnx --cases /tmp/first [--opsets 9,11,13] [--show]

Needs onnx, onnxruntime, numpy, safetensors, ml_dtypes. *pass*: valid for onnx.checker (with type inference), and the numbers
are PyTorch's; *error*: refused with exit code 4 and the lowest opset that does; *runtime*: valid, but ONNX Runtime has no
kernel; *wrong*: anything else. `--show` lists the cases that do not pass.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import functools
import pathlib
import subprocess
import tempfile

import json

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from safetensors import safe_open

TOLERANCE = {"float64": (1e-6, 1e-8), "float32": (1e-3, 1e-4), "float16": (1e-2, 1e-2), "bfloat16": (4e-2, 4e-2)}
NARROW = {"bfloat16": onnx.TensorProto.BFLOAT16, "float8_e4m3fn": onnx.TensorProto.FLOAT8E4M3FN,
          "float8_e5m2": onnx.TensorProto.FLOAT8E5M2}


def samples(case):
    """Pairs of inputs and outputs."""
    with safe_open(case / "io.safetensors", "numpy") as file:
        keys = set(file.keys())
        for prefix in ("", "alt."):
            def numbered(kind):
                count = sum(k.startswith(f"{prefix}{kind}.") for k in keys)
                return [file.get_tensor(f"{prefix}{kind}.{i}") for i in range(count)]
            if any(k.startswith((f"{prefix}input.", f"{prefix}output.")) for k in keys):
                yield numbered("input"), numbered("output")


def fed(array):
    kind = NARROW.get(str(array.dtype))
    if kind is None:
        return ort.OrtValue.ortvalue_from_numpy(array)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)


def fetched(value):
    """The elements of a value of ONNX Runtime, also where NumPy has no such type."""
    if value.element_type() != onnx.TensorProto.BFLOAT16:
        return value.numpy()
    count = int(np.prod(value.shape()))
    raw = ctypes.string_at(value.data_ptr(), 2 * count) if count else b""
    return np.frombuffer(raw, ml_dtypes.bfloat16).reshape(value.shape())


def differs(got, wanted, case):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{got.shape} for {wanted.dtype}{wanted.shape}"
    rtol, atol = TOLERANCE.get(str(wanted.dtype), (0, 0))
    rtol, atol = max(rtol, case.get("rtol", 0)), max(atol, case.get("atol", 0))
    if case.get("compare") == "shape" or not wanted.size:
        return None
    if str(wanted.dtype) in TOLERANCE:
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
        return None if np.allclose(got, wanted, rtol, atol, equal_nan=True) else "other numbers"
    return None if np.array_equal(got, wanted) else "other numbers"


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [] if value is None else [value]


def loaded(path, optimize=True):
    options = ort.SessionOptions()
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(session, inputs):
    """The outputs; sequences are their elements."""
    names = [i.name for i in session.get_inputs()]
    if not all(o.type.startswith("tensor(") for o in session.get_outputs()):
        return flat(session.run(None, dict(zip(names, inputs))))
    values = {n: fed(v)._ortvalue for n, v in zip(names, inputs)}
    got = session._sess.run_with_ort_values(values, [o.name for o in session.get_outputs()], None)
    return [fetched(ort.OrtValue(v)) for v in got]


def outcome(binary, opset, case):
    """-> (case, what became of it, why)"""
    said = json.loads((case / "case.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        made = subprocess.run([*binary, str(case / "model.pt2"), "-o", path, "--opset", str(opset)],
                              capture_output=True, text=True)
        if made.returncode:
            return case, "error" if made.returncode == 4 else "wrong", made.stderr
        try:
            onnx.checker.check_model(path, full_check=True)
        except Exception as e:
            return case, "wrong", f"checker: {e}"
        try:
            session = loaded(path)
            for inputs, outputs in samples(case):
                got = run(session, inputs)
                why = "another number of outputs" if len(got) != len(outputs) else None
                why = why or next(filter(None, (differs(g, w, said) for g, w in zip(got, outputs))), None)
                if why:
                    return case, "wrong", why
        except Exception as e:
            missing = "NOT_IMPLEMENTED" in str(e) or "not supported" in str(e)
            return case, "runtime" if missing else "wrong", str(e)
    return case, "pass", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cases", required=True, type=pathlib.Path)
    parser.add_argument("--opsets", default="9,11,13,15,17,18,19,20,21,22,23,24,25,26")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    cases = [f.parent for f in sorted(args.cases.rglob("case.json"))]
    print(f"{len(cases)} cases\n\n| opset | pass | error | runtime | wrong |\n|---|---|---|---|---|")
    shown = []
    for opset in map(int, args.opsets.split(",")):
        with concurrent.futures.ProcessPoolExecutor() as pool:
            done = list(pool.map(functools.partial(outcome, args.bin.split(), opset), cases, chunksize=8))
        count = collections.Counter(status for _, status, _ in done)
        print(f"| {opset} | " + " | ".join(str(count[s]) for s in ("pass", "error", "runtime", "wrong")) + " |", flush=True)
        shown += [(opset, status, case.name, why) for case, status, why in done if status != "pass"]
    for opset, status, name, why in shown if args.show else []:
        print(f"{opset} {status} {name}: {' '.join(why.split())[:300]}")


if __name__ == "__main__":
    main()
