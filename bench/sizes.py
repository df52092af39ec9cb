"""Measures models whose code looks at sizes: at how many sizes they are right, and what that costs.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/sizes.py [--runs 5] [NAME ...]

Needs torch, onnxruntime, torchvision and transformers. Models have random weights; nothing is downloaded. Each export runs in
its own process. Printed are two tables. In the first, a size is right if ONNX Runtime computes what the module does, refused if
the model fails by its own check with the reason, and wrong otherwise. In the second are shares of the CPU time of exports,
and latencies as a ratio.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
import warnings

#: The exports that are compared at all sizes, with the sizes and that of the example.
MODELS = {
    "transformers Swin, h = w": ("Swin", range(1, 129), 32),
    "transformers Swin v2, h = w": ("Swinv2", range(1, 129), 32),
    "transformers Phi-3 with longrope": ("Phi3", range(1, 129), 20),
    "transformers Mistral with a window": ("Mistral", range(1, 129), 12),
    "transformers ViT, interpolated, h = w": ("ViT", range(8, 129, 4), 32),
}

#: The ways to export.
WAYS = ("torch dynamo=True", "torch dynamo=False", "pt2onnx dynamo=True", "pt2onnx dynamo=False")

#: Modules without conditions on sizes.
PLAIN = ("resnet18", "Bert", "Llama")

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}


def model_of(kind):
    """A module with one input."""
    import torch
    import transformers

    torch.manual_seed(0)
    decoder = {**SMALL, "vocab_size": 99, "num_key_value_heads": 2, "use_cache": False}
    vision = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}
    longrope = {
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 2.1, 2.2, 2.3]},
        "max_position_embeddings": 128,
        "original_max_position_embeddings": 32,
    }
    options = {
        "Swin": vision,
        "Swinv2": vision,
        "Phi3": {**decoder, **longrope, "pad_token_id": 0, "sliding_window": None},
        "Mistral": {**decoder, "sliding_window": 16},
        "ViT": {**SMALL, "image_size": 32, "patch_size": 8},
        "Bert": {**SMALL, "num_hidden_layers": 6, "vocab_size": 99},
        "Llama": {**decoder, "num_hidden_layers": 6},
    }
    if kind == "resnet18":
        import torchvision

        return torchvision.models.resnet18().eval()
    head = "ForCausalLM" if kind in ("Phi3", "Mistral", "Llama") else "Model"
    config = getattr(transformers, f"{kind}Config")(**options[kind])
    model = getattr(transformers, f"{kind}{head}")(config)
    extra = {"interpolate_pos_encoding": True} if kind == "ViT" else {}

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x, **extra)[0]

    return First().eval()


def argument(kind, size):
    """The input of a size, and its dynamic axes."""
    import torch

    generator = torch.Generator().manual_seed(size)
    if kind in ("Swin", "Swinv2", "ViT", "resnet18"):
        return torch.randn(1, 3, size, size, generator=generator), {2: "h", 3: "w"}
    return torch.randint(3, 50, (2, size), generator=generator), {0: "b", 1: "t"}


def export(kind, way, size):
    """The model of a way."""
    import pt2onnx
    import torch

    x, axes = argument(kind, size)
    if way.endswith("True"):
        options = {"dynamo": True, "dynamic_shapes": (axes,)}
    else:
        options = {"dynamo": False, "input_names": ["x"], "dynamic_axes": {"x": axes}}
    if way.startswith("pt2onnx"):
        return pt2onnx.export(model_of(kind), (x,), **options).model_proto.SerializeToString()
    import io

    file = io.BytesIO()
    if options["dynamo"]:
        options["dynamic_shapes"] = ({axis: torch.export.Dim.DYNAMIC for axis in axes},)
        return torch.onnx.export(model_of(kind), (x,), verbose=False, **options).model_proto.SerializeToString()
    torch.onnx.export(model_of(kind), (x,), file, **options)
    return file.getvalue()


def counted(kind, way, sizes, size):
    """At how many sizes a model is right, refused and wrong, and the seconds of the export."""
    import onnxruntime
    import torch

    start = time.process_time()
    try:
        model = export(kind, way, size)
    except Exception as error:
        return {"error": type(error).__name__, "seconds": time.process_time() - start}
    found = {"right": 0, "refused": 0, "wrong": 0, "seconds": time.process_time() - start}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    for other in sizes:
        x, _ = argument(kind, other)
        try:
            with torch.no_grad():
                # Modules of transformers keep what they have seen.
                expected = model_of(kind)(x)
        except Exception:
            continue
        try:
            (result,) = session.run(None, {name: x.numpy()})[:1]
            right = result.shape == expected.shape
            right = right and torch.allclose(torch.from_numpy(result), expected, rtol=1e-3, atol=1e-4)
            found["right" if right else "wrong"] += 1
        except Exception as error:
            found["refused" if "no branch for these sizes" in str(error) else "wrong"] += 1
    return found


def judging(kind, runs):
    """The share of the CPU time of an export that conditions take which hold anyway."""
    import pt2onnx
    import torch
    from pt2onnx._capture import _strategies

    spent = []
    own = _strategies.Capturer._narrowing

    def timed(*args):
        start = time.process_time()
        try:
            return own(*args)
        finally:
            spent.append(time.process_time() - start)

    _strategies.Capturer._narrowing = timed
    shares = []
    x, axes = argument(kind, 64 if kind == "resnet18" else 20)
    for _ in range(runs + 1):
        torch._dynamo.reset()
        spent.clear()
        start = time.process_time()
        pt2onnx.export(model_of(kind), (x,), dynamic_shapes=(axes,))
        shares.append(sum(spent) / (time.process_time() - start - sum(spent)))
    return statistics.median(shares[1:])


def scripted(runs):
    """The seconds that script takes where the conditions of a capture do not hold."""
    import pt2onnx
    import torch

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(8)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[1] % 8 != 0:
                x = torch.nn.functional.pad(x, [0, 0, 0, -x.shape[1] % 8])
            return self.layers(x)

    seconds = {"merge": [], "warn": []}
    for _ in range(runs):
        for sizes, found in seconds.items():
            torch._dynamo.reset()
            start = time.process_time()
            pt2onnx.export(Padded().eval(), (torch.randn(2, 16, 32),), dynamic_shapes=({1: "t"},), sizes=sizes)
            found.append(time.process_time() - start)
    return statistics.median(seconds["merge"]) - statistics.median(seconds["warn"])


def latency(kind, size):
    """The latency of a merged model relative to that of the model of the example alone."""
    import onnxruntime
    import pt2onnx

    x, axes = argument(kind, size)
    sessions = []
    for sizes in ("merge", "warn"):
        made = pt2onnx.export(model_of(kind), (x,), dynamic_shapes=(axes,), sizes=sizes)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        model = made.model_proto.SerializeToString()
        sessions.append(onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
    feed = {sessions[0].get_inputs()[0].name: x.numpy()}
    return ratio(sessions, feed)


def ratio(sessions, feed):
    """The median ratio of the latencies of two models, in turns."""
    best = [[], []]
    for _ in range(300):
        for session, found in zip(sessions, best, strict=True):
            start = time.perf_counter()
            session.run(None, feed)
            found.append(time.perf_counter() - start)
    quartiles = [statistics.quantiles(found, n=4)[0] for found in best]
    return quartiles[0] / quartiles[1]


def branch():
    """The microseconds of an `If` with its condition: the slope over chains of these."""
    import numpy as np
    import onnx
    import onnxruntime

    medians = []
    counts = (1, 101)
    for count in counts:
        nodes = []
        for i in range(count):
            sides = (("a", "Abs"), ("b", "Neg"))
            yes, no = (f"{c}{i}_g () => (float[N] {c}{i}) {{ {c}{i} = {op} (v{i}) }}" for c, op in sides)
            nodes.append(f"s{i} = Shape (v{i}) l{i} = LessOrEqual (s{i}, k)")
            nodes.append(f"v{i + 1} = If (l{i}) <then_branch = {yes}, else_branch = {no}>")
        head = f'<ir_version: 10, opset_import: ["": 20]> g (float[N] v0) => (float[N] v{count}) <int64[1] k = {{8}}>'
        text = f"{head} {{ {' '.join(nodes)} }}"
        model = onnx.parser.parse_model(text)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        feed, times = {"v0": np.ones(6, np.float32)}, []
        for _ in range(2000):
            start = time.perf_counter()
            session.run(None, feed)
            times.append(time.perf_counter() - start)
        medians.append(statistics.quantiles(times, n=4)[0])
    return 1e6 * (medians[1] - medians[0]) / (counts[1] - counts[0])


def cell(found):
    """The counts of one way."""
    if "error" in found:
        return f"{found['error']}"
    return f"{found['right']}, {found['refused']}, {found['wrong']} in {found['seconds']:.0f} s"


def child(*arguments):
    """The result of a process."""
    command = [sys.executable, "-W", "ignore", __file__, "--task", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        return {"error": "no end after 1800 s", "seconds": 1800}
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines and not done.returncode else {"error": "a crash", "seconds": 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        import logging

        import torch

        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        task, *rest = given.task
        with contextlib.redirect_stdout(sys.stderr):
            if task == "count":
                kind, sizes, size = MODELS[rest[0]]
                found = counted(kind, rest[1], sizes, size)
            else:
                calls = {"judging": judging, "script": scripted, "latency": latency, "If": branch}
                found = calls[task](*(int(one) if one.isdigit() else one for one in rest))
        print(json.dumps(found))
        return
    print(f"| model | {' | '.join(WAYS)} |\n| --- |{' --- |' * len(WAYS)}")
    for name in given.names:
        cells = [cell(child("count", name, way)) for way in WAYS]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\nSizes at which the model is right, refused and wrong.\n\n| cost | |\n| --- | ---: |")
    for kind in PLAIN:
        print(f"| conditions that hold anyway, {kind}: CPU of the export | +{100 * child('judging', kind, given.runs):.1f} % |", flush=True)
    print(f"| script after a capture that is too narrow: CPU | +{child('script', given.runs):.2f} s |", flush=True)
    for kind, size in (("Phi3", 20), ("Mistral", 12)):
        print(f"| merged {kind} against the single model: latency | {child('latency', kind, size):.2f} |", flush=True)
    print(f"| one `If` with its condition: latency | {child('If'):.2f} us |")


if __name__ == "__main__":
    main()
