"""Converts networks with pt2onnx for other runtimes, runs them there, and compares with PyTorch.

    python runtimes.py WORK CORPUS COMMAND RTEN [NAME ...] [--opset N] [--every N]
    python runtimes.py WORK CORPUS COMMAND RTEN [NAME ...] --graphs

WORK is the folder of the environments, one for each runtime, and of the models. CORPUS has folders
with model.pt2, case.json and io.safetensors, or bundles of them (.tar.zst). COMMAND is pt2onnx,
RTEN the program of runtimes/rten. Each network is written with the runtime's own target and with
`standard`. Models run in a process without network that is started again after one that ends.
Prints a Markdown table, and what failed. With --graphs, runs the graphs of runtimes/NAME, which the
runtime refuses or has wrong.
"""

import argparse
import json
import os
import re
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
    "reference": ([], "reference", 20),
    "openvino": (["openvino==2026.4.1"], "openvino", 20),
    "rten": ([], "rten", 20),
    "mnn": (["MNN==3.6.1"], "mnn", 18),
    "opencv": (["opencv-python-headless==5.0.0.93"], "opencv", 18),
    "iree": (["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0"], "iree", 18),
    "tflite": (["onnx2tf==1.29.24", "ai-edge-litert==2.1.0", "tensorflow-cpu==2.19.1"], "tflite", 18),
    "web": (["npm:onnxruntime-web@1.30.0"], "web", 20),
}
#: Those that take models of fixed sizes.
STATIC = {"iree", "tflite"}
#: Seconds that one model may take.
PATIENCE = 180


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
    return program([os.environ["RTEN"]], model, inputs)


def web(model, inputs, names):
    return program(["node", str(ROOT / "runtimes/web/run.mjs")], model, inputs)


def program(command, model, inputs):
    """The outputs of a program of ours that runs a model; the folder is described there."""
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for i, (name, value) in enumerate(inputs.items()):
            (Path(folder) / f"input-{i}").write_bytes(np.ascontiguousarray(value).tobytes())
            lines.append(f"{name} {value.dtype} {','.join(map(str, value.shape))} input-{i}")
        (Path(folder) / "inputs").write_text("\n".join(lines))
        done = subprocess.run([*command, model, folder], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(next(filter(None, map(str.strip, done.stderr.splitlines())), "it ended"))
        found = []
        for i, line in enumerate((Path(folder) / "outputs").read_text().splitlines()):
            dtype, sizes = line.split(" ")
            raw = np.frombuffer((Path(folder) / f"output-{i}").read_bytes(), dtype)
            found.append(raw.reshape([int(n) for n in sizes.split(",") if n]))
        return found


def iree(model, inputs, names):
    import onnx
    from iree import runtime
    from iree.compiler import ir, tools
    from iree.compiler.extras import onnx_importer

    loaded = onnx.shape_inference.infer_shapes(onnx.load(model), data_prop=True)
    # It computes float64 with float32 otherwise, but does not convert outputs.
    ends = [*loaded.graph.input, *loaded.graph.output]
    double = any(end.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE for end in ends)
    info = onnx_importer.ModelInfo(loaded)
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    extra = ["--iree-llvmcpu-target-cpu=host", f"--iree-input-demote-f64-to-f32={not double}".lower()]
    made = tools.compile_str(module.get_asm(), target_backends=["llvm-cpu"], input_type="onnx", extra_args=extra)
    config = runtime.Config("local-sync")
    loaded = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, made), config)
    function = next(name for name in loaded.vm_module.function_names if "$" not in name and not name.startswith("__"))
    found = loaded[function](*inputs.values())
    return [np.asarray(v) for v in (found if isinstance(found, (list, tuple)) else [found])]


def tflite(model, inputs, names):
    import onnx
    from onnx2tf import onnx2tf
    from ai_edge_litert.interpreter import Interpreter

    with tempfile.TemporaryDirectory() as folder:
        # It downloads images otherwise, to compare each operator.
        onnx2tf.download_test_image_data = lambda: np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        # Images have their channels last there.
        images = {name: np.moveaxis(value, 1, -1) for name, value in inputs.items() if value.ndim == 4}
        others = [name for name in inputs if name not in images]
        onnx2tf.convert(model, output_folder_path=folder, keep_shape_absolutely_input_names=others or None, non_verbose=True)
        net = Interpreter(str(next(Path(folder).glob("*_float32.tflite"))), num_threads=1)
        plain = {re.sub(r"\W", "_", name): value for name, value in {**inputs, **images}.items()}
        given = {at["index"]: plain[re.sub(r"\W", "_", at["name"].removeprefix("serving_default_").rsplit(":", 1)[0])]
                 for at in net.get_input_details()}
        for at, value in given.items():
            net.resize_tensor_input(at, value.shape)
        net.allocate_tensors()
        for at in net.get_input_details():
            net.set_tensor(at["index"], given[at["index"]].astype(at["dtype"]))
        net.invoke()
        # Outputs are in the order of their names, and numbered.
        ends = sorted(net.get_output_details(), key=lambda at: int(*re.findall(r"\d+$", at["name"])[:1]))
        found = dict(zip(sorted(names), (net.get_tensor(at["index"]) for at in ends)))
        shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in onnx.load(model).graph.output]
        return [channels_first(found[name], shape) for name, shape in zip(names, shapes)]


def channels_first(found, shape):
    """An output of onnx2tf, which may have the channels last."""
    moved = np.moveaxis(found, -1, 1) if found.ndim > 2 else found
    return moved if list(found.shape) != shape == list(moved.shape) else found


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


def network(folder):
    """The inputs and outputs of a network, and how they are compared."""
    start = [tensors(folder / "io.safetensors", kind) for kind in ("input", "output")]
    return *start, json.loads((folder / "case.json").read_text())


def drawn(model):
    """Inputs of a small model, and what onnx's reference evaluator makes of them."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    rng, loaded = np.random.default_rng(0), onnx.load(model)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in loaded.graph.input}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return list(given.values()), ReferenceEvaluator(loaded).run(None, given), {}


def worker(name):
    """Reads a network per line, and prints its verdict."""
    run = globals()[name]
    for line in sys.stdin:
        model, folder, names = json.loads(line)
        try:
            given, expected, case = network(Path(folder)) if folder else drawn(model)
            found = run(model, dict(zip(names[0], given)), names[1])
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
    if packages[0].startswith("npm:"):
        if not (home / "done").exists():
            home.mkdir(parents=True, exist_ok=True)
            given = [package.removeprefix("npm:") for package in packages]
            subprocess.run(["npm", "install", "--ignore-scripts", "--silent", *given], cwd=home, check=True)
            (home / "done").touch()
        return sys.executable
    if not (home / "done").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "numpy", "onnx==1.23.0", *packages], check=True)
        (home / "done").touch()
    return str(python)


class Worker:
    """A process without network that runs models."""

    def __init__(self, python, name, work, rten):
        # Some runtimes report to their makers.
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            sys.exit("runtimes.py: `unshare -n` fails: models run without network only")
        self.command = ["unshare", "-n", python, __file__, "--worker", name]
        programs = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        module = work / "venvs/web/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs"
        self.environment = dict(os.environ, PATH=programs, RTEN=rten, ORT_WEB=str(module), OMP_NUM_THREADS="1")
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


def converted(command, folder, out, target, opset, fixed):
    """Nothing, or the error of the conversion. Fixed sizes are those of the given inputs."""
    given = [command, folder / "model.pt2", "-o", out, "--opset", str(opset)]
    if fixed:
        subprocess.run(given, capture_output=True)
        sizes = [value.shape for value in tensors(folder / "io.safetensors", "input")]
        for name, shape in zip(ends(out)[0], sizes):
            given += ["--input-shape", f"{name}={','.join(map(str, shape))}"]
    done = subprocess.run([*given, "--target", target], capture_output=True, text=True)
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


ROOT = Path(__file__).resolve().parents[2]


def explained(name, failures):
    """How many failures have each known reason (runtimes/NAME/reasons.txt), and those without one."""
    path = ROOT / "runtimes" / name / "reasons.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    known = [line.rsplit(" -> ", 1) for line in lines if not line.startswith("#")]
    reasons, left = Counter(), []
    for failure in failures:
        reason = next((reason for pattern, reason in known if re.search(pattern, failure)), None)
        if reason is None:
            left.append(failure)
        else:
            reasons[reason] += 1
    return reasons, left


def graphs(work, names, rten):
    """Runs the small graphs that a runtime has wrong, and prints what it makes of each."""
    import onnx

    (work / "models").mkdir(parents=True, exist_ok=True)
    for name in names:
        python = interpreter(work, name, RUNTIMES[name][0])
        worker = Worker(python, name, work, rten)
        for path in sorted((ROOT / "runtimes" / name).glob("*.onnxtxt")):
            model = work / "models" / f"{path.stem}.onnx"
            onnx.save(onnx.parser.parse_model(path.read_text()), model)
            print(f"{name} {path.stem}: {worker.verdict([str(model), '', ends(model)]) or 'right'}", flush=True)


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
    parser.add_argument("--graphs", action="store_true", help="run the graphs of runtimes/NAME instead")
    args = parser.parse_args()
    if args.graphs:
        return graphs(args.work, args.names, str(args.rten))
    corpus = unpacked(args.corpus, args.work)
    folders = sorted(path.parent for path in corpus.rglob("model.pt2"))[:: args.every]
    rows, failures, told = [], [], []
    for name in args.names:
        packages, own, usual = RUNTIMES[name]
        opset = args.opset or usual
        python = interpreter(args.work, name, packages)
        counts = {}
        for target in args.targets or dict.fromkeys([own, "standard"]):
            models = args.work / "models" / f"{target}-{opset}"
            models.mkdir(parents=True, exist_ok=True)
            work, count = Worker(python, name, args.work, str(args.rten)), Counter()
            for folder in folders:
                place = str(folder.relative_to(corpus)).replace("/", "-")
                model = models / f"{place}.onnx"
                verdict = converted(args.command, folder, model, target, opset, name in STATIC)
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
        reasons, failures = explained(name, failures)
        print("\n".join(failures), file=sys.stderr, flush=True)
        told += [f"- {name}, {count}: {reason}" for reason, count in reasons.most_common()]
        failures.clear()
    print(f"{len(folders)} networks\n\n| runtime | target | opset | right | wrong | error | refused by pt2onnx |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join([*rows, "", *told]))


if __name__ == "__main__":
    main()
