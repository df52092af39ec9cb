"""Converts networks with pt2onnx for other runtimes, runs them there, and compares with PyTorch.

    python runtimes.py WORK CORPUS COMMAND RTEN [NAME ...] [--opset N] [--every N]

WORK is the folder of the environments, one for each runtime, and of the models. CORPUS has folders
with model.pt2, case.json and io.safetensors, or bundles of them (.tar.zst). COMMAND is pt2onnx,
RTEN the program of runtimes/rten. Each network is written with the runtime's own target and with `standard`. Models run in a process
without network that is started again after one that ends. Prints a Markdown table, and what failed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import venv
from collections import Counter
from pathlib import Path

import numpy as np

#: By name: the packages of the environment (none: those of this one), the target, and the opset.
RUNTIMES = {
    "onnxruntime": ([], "ort-cpu", 20),
    "reference": ([], "portable", 20),
    "openvino": (["openvino==2026.4.1"], "openvino", 20),
    "rten": ([], "rten", 20),
    "mnn": (["MNN==3.6.1"], "mnn", 18),
    "opencv": (["opencv-python-headless==5.0.0"], "opencv", 18),
}
#: Seconds that one model may take.
PATIENCE = 30


def onnxruntime(model, inputs, names):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def reference(model, inputs, names):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, inputs)


def openvino(model, inputs, names):
    import openvino as ov

    core = ov.Core()
    precise = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(model), "CPU", precise)
    found = compiled(dict(inputs))
    return [found[i] for i in range(len(names))]


def opencv(model, inputs, names):
    import cv2

    cv2.setNumThreads(1)
    net = cv2.dnn.readNetFromONNX(model)
    for name, value in inputs.items():
        net.setInput(np.ascontiguousarray(value), name)
    return list(net.forward(names))


def mnn(model, inputs, names):
    import _tools
    import MNN

    made = str(Path(model).with_suffix(".mnn"))
    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", model, "--MNNModel", made, "--bizCode", "MNN", "--keepInputFormat", "1"])
    net = MNN.nn.load_module_from_file(made, list(inputs), names)
    kinds = {"int64": np.int32, "bool": np.int32}
    given = []
    for value in inputs.values():
        value = np.ascontiguousarray(value.astype(kinds.get(str(value.dtype), value.dtype)))
        kind = MNN.expr.float if value.dtype == np.float32 else MNN.expr.int
        variable = MNN.expr.placeholder(list(value.shape), MNN.expr.NCHW, kind)
        variable.write(value.tolist() if value.ndim else [value.item()])
        given.append(variable)
    found = net.forward(given)
    found = found if isinstance(found, list) else [found]
    return [np.array(MNN.expr.convert(v, MNN.expr.NCHW).read()) for v in found]


def rten(model, inputs, names):
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for i, (name, value) in enumerate(inputs.items()):
            (Path(folder) / f"input-{i}").write_bytes(np.ascontiguousarray(value).tobytes())
            lines.append(f"{name} {value.dtype} {','.join(map(str, value.shape))} input-{i}")
        (Path(folder) / "inputs").write_text("\n".join(lines))
        done = subprocess.run([os.environ["RTEN"], model, folder], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else "it ended")
        found = []
        for i, line in enumerate((Path(folder) / "outputs").read_text().splitlines()):
            dtype, sizes = line.split(" ")
            raw = np.frombuffer((Path(folder) / f"output-{i}").read_bytes(), dtype)
            found.append(raw.reshape([int(n) for n in sizes.split(",") if n]))
        return found


def tensors(path, start):
    """The tensors `start.N` of a file of safetensors, in order."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    kinds = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?",
             "U64": "<u8", "U32": "<u4", "U16": "<u2"}
    # Complex numbers are pairs in models.
    pairs = {"C64": "<f4", "C128": "<f8"}
    found = {}
    for name, entry in head.items():
        if name.startswith(start + "."):
            first, last = entry["data_offsets"]
            raw, kind, shape = data[8 + size :][first:last], entry["dtype"], entry["shape"]
            if kind == "BF16":
                import ml_dtypes

                array = np.frombuffer(raw, "<u2").view(ml_dtypes.bfloat16)
            elif kind in pairs:
                array, shape = np.frombuffer(raw, pairs[kind]), [*shape, 2]
            else:
                array = np.frombuffer(raw, kinds[kind])
            found[int(name.rsplit(".", 1)[1])] = array.reshape(shape)
    return [found[i] for i in sorted(found)]


#: How far numbers of a type may be apart, relative to their largest.
APART = {"float16": 4e-3, "bfloat16": 3e-2}


def differs(found, expected, drawn=False):
    """How the outputs of a runtime differ; nothing if they do not. Only the sizes count of those that are drawn."""
    if len(found) < len(expected):
        return f"{len(found)} outputs"
    for i, (a, b) in enumerate(zip(found, expected)):
        a = np.asarray(a)
        if a.size != b.size or a.shape != b.shape and b.ndim:
            return f"wrong: output {i} is {a.shape}, not {b.shape}"
        if drawn:
            continue
        apart = APART.get(str(b.dtype), 1e-3)
        a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        same = np.isclose(a, b, rtol=apart, atol=apart * scale + 1e-5, equal_nan=True)
        if not same.all():
            return f"wrong: {np.count_nonzero(~same)} of {same.size} elements of output {i}"
    return ""


def worker(name):
    """Reads a network per line, and prints its verdict."""
    run = globals()[name]
    for line in sys.stdin:
        model, folder, names = json.loads(line)
        try:
            given = tensors(Path(folder) / "io.safetensors", "input")
            expected = tensors(Path(folder) / "io.safetensors", "output")
            found = run(model, dict(zip(names[0], given)), names[1])
            case = json.loads((Path(folder) / "case.json").read_text())
            verdict = differs(found, expected, case.get("compare") == "shape")
        except Exception as error:
            verdict = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print("VERDICT " + verdict, flush=True)


def interpreter(work, name, packages):
    """The interpreter of the runtime's own environment, made if it is not there."""
    if not packages:
        return sys.executable
    home = work / "venvs" / name
    python = home / "bin" / "python"
    if not (home / "done").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "numpy", "onnx==1.23.0", *packages], check=True)
        (home / "done").touch()
    return str(python)


class Worker:
    """A process without network that runs models."""

    def __init__(self, python, name, rten):
        # Some runtimes report to their makers.
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            sys.exit("runtimes.py: `unshare -n` fails: models run without network only")
        self.command = ["unshare", "-n", python, __file__, "--worker", name]
        self.environment = dict(os.environ, RTEN=rten, OMP_NUM_THREADS="1")
        self.process = None

    def verdict(self, job):
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=self.environment, start_new_session=True)
        limit = threading.Timer(PATIENCE, os.killpg, (self.process.pid, signal.SIGKILL))
        limit.start()
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self.process.stdout:
            if line.startswith("VERDICT "):
                limit.cancel()
                return line[8:].strip()
        limit.cancel()
        self.process = None
        return "the process ended"


def converted(command, folder, out, target, opset):
    """The model's path, or the error of the conversion."""
    given = [command, folder / "model.pt2", "-o", out, "--opset", str(opset), "--target", target]
    done = subprocess.run(given, capture_output=True, text=True)
    return "" if done.returncode == 0 else "refused: " + " ".join(done.stderr.split())[:300]


def unpacked(corpus, work):
    """The folder of the networks: that of the corpus, or where its bundles are unpacked."""
    bundles = sorted(corpus.glob("*.tar.zst"))
    for bundle in bundles:
        folder = work / "corpus" / bundle.name.removesuffix(".tar.zst")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "--zstd", "-xf", bundle, "-C", folder], check=True)
    return work / "corpus" if bundles else corpus


def ends(model):
    """The names of the inputs and outputs of a model."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def main():
    if sys.argv[1] == "--worker":
        return worker(sys.argv[2])
    parser = argparse.ArgumentParser()
    for name in ("work", "corpus", "command", "rten"):
        parser.add_argument(name, type=Path)
    parser.add_argument("names", nargs="*", metavar="name", default=list(RUNTIMES))
    parser.add_argument("--opset", type=int)
    parser.add_argument("--every", type=int, default=1, help="take one network of so many")
    parser.add_argument("--targets", nargs="*", help="other targets than the runtime's and standard")
    args = parser.parse_args()
    corpus = unpacked(args.corpus, args.work)
    folders = sorted(path.parent for path in corpus.rglob("model.pt2"))[:: args.every]
    rows, failures = [], []
    for name in args.names:
        packages, own, usual = RUNTIMES[name]
        opset = args.opset or usual
        python = interpreter(args.work, name, packages)
        counts = {}
        for target in args.targets or [own, "standard"]:
            models = args.work / "models" / f"{target}-{opset}"
            models.mkdir(parents=True, exist_ok=True)
            work, count = Worker(python, name, str(args.rten)), Counter()
            for folder in folders:
                place = str(folder.relative_to(corpus)).replace("/", "-")
                model = models / f"{place}.onnx"
                verdict = converted(args.command, folder, model, target, opset)
                if not verdict:
                    verdict = work.verdict([str(model), str(folder), ends(model)])
                kind = "right" if not verdict else "refused" if verdict.startswith("refused") else "wrong" if verdict.startswith("wrong") else "error"
                count[kind] += 1
                if verdict:
                    failures.append(f"{name} {target} {place}: {verdict}")
            counts[target] = count
        for target, count in counts.items():
            cells = [count[kind] for kind in ("right", "wrong", "error", "refused")]
            rows.append(f"| {name} | `{target}` | {opset} | " + " | ".join(map(str, cells)) + " |")
        print("\n".join(failures), file=sys.stderr, flush=True)
        failures.clear()
    print(f"{len(folders)} networks\n\n| runtime | target | opset | right | wrong | error | refused by pt2onnx |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
