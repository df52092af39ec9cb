"""Measures the exports of libraries with torch.onnx.export and with pt2onnx.export in its place.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/libraries.py [--runs 3] [NAME ...]

Needs torch, onnxruntime, ultralytics, timm, torchvision and transformers. Models have random weights; nothing is downloaded. Each
export runs in its own process, which exports once before it is measured. Printed is a table: seconds of CPU of the call, the
peak of memory of the process, and the largest difference between the outputs of the two models, relative to the largest output.
"""

import json
import os
import resource
import time
from pathlib import Path

from export_table import WAYS, export_function, medians, parse_options, print_table, results

#: The exports by name: what is exported, and whether the batch is dynamic.
EXPORTS = {
    "ultralytics yolo11n": ("ultralytics", "yolo11n", {}),
    "ultralytics yolo11n, dynamic": ("ultralytics", "yolo11n", {"dynamic": True}),
    "ultralytics yolo11n-seg, dynamic": ("ultralytics", "yolo11n-seg", {"dynamic": True}),
    "ultralytics yolo11n, nms": ("ultralytics", "yolo11n", {"nms": True}),
    "ultralytics yolo11n, nms, dynamic": ("ultralytics", "yolo11n", {"nms": True, "dynamic": True}),
    "timm resnet18": ("timm", "resnet18", {}),
    "timm convnext_atto, dynamic": ("timm", "convnext_atto", {"dynamic": True}),
    "timm vit_tiny_patch16_224, dynamic": ("timm", "vit_tiny_patch16_224", {"dynamic": True}),
    "torchvision mobilenet_v3_small, dynamic": ("torchvision", "mobilenet_v3_small", {"dynamic": True}),
    "torchvision fasterrcnn_mobilenet_v3_large_320_fpn": ("detection", "fasterrcnn_mobilenet_v3_large_320_fpn", {}),
    "torchvision ssdlite320_mobilenet_v3_large": ("detection", "ssdlite320_mobilenet_v3_large", {}),
    "transformers Bert, dynamic": ("transformers", "Bert", {"dynamic": True}),
    "transformers Llama, dynamic": ("transformers", "Llama", {"dynamic": True}),
}


def by_ultralytics(name, options, out):
    """Exports by the library's own code."""
    from ultralytics import YOLO

    os.environ["YOLO_AUTOINSTALL"] = "false"
    os.chdir(out)
    model = YOLO(f"{name}.yaml")
    model.export(format="onnx", imgsz=160, simplify=False, conf=0.0, opset=17, verbose=False, **options)


def of_module(kind, name, dynamic):
    """A module, its arguments, their names, and the dynamic axes."""
    import torch

    if kind == "transformers":
        import transformers

        sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
        config = getattr(transformers, f"{name}Config")(vocab_size=300, max_position_embeddings=128, use_cache=False, **sizes)
        model = getattr(transformers, f"{name}Model")(config)
        ids = torch.arange(14).reshape(2, 7) + 3
        names, args = ["input_ids", "attention_mask"], (ids, torch.ones_like(ids))

        class LastHidden(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask):
                return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

        axes = {name: {0: "batch", 1: "length"} for name in names}
        return LastHidden(), args, names, axes if dynamic else None
    if kind == "timm":
        import timm

        model, args = timm.create_model(name, pretrained=False), (torch.rand(2, 3, 224, 224),)
    else:
        import torchvision

        models = torchvision.models.detection if kind == "detection" else torchvision.models
        weights = {"weights": None, "weights_backbone": None} if kind == "detection" else {"weights": None}
        model = getattr(models, name)(**weights)
        args = ([torch.rand(3, 160, 160)],) if kind == "detection" else (torch.rand(2, 3, 128, 128),)
    return model, args, ["x"], {"x": {0: "batch"}} if dynamic else None


def export(way, name, out):
    """Exports twice in this process, and prints the seconds of the second call."""
    import torch

    function, seconds = export_function(way), []

    def timed(model, args, f, *rest, **options):
        start = time.process_time()
        function(model, args, Path(out, "model.onnx"), *rest, **options)
        seconds.append(time.process_time() - start)
        # Ultralytics reads the file that it asked for.
        Path(f).write_bytes(Path(out, "model.onnx").read_bytes())

    torch.onnx.export = timed
    kind, model, options = EXPORTS[name]
    for _ in range(2):
        torch.manual_seed(0)
        if kind == "ultralytics":
            by_ultralytics(model, options, out)
        else:
            module, args, names, axes = of_module(kind, model, bool(options))
            scratch = Path(out, "copy.onnx")
            torch.onnx.export(module.eval(), args, scratch, input_names=names, dynamic_axes=axes, opset_version=17, dynamo=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds[-1], "peak": peak}))


def difference(one, other):
    """The largest difference of the outputs of two models, relative to the largest output."""
    import numpy as np
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    results = []
    for path in (one, other):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        random, feeds = np.random.default_rng(0), {}
        for value in session.get_inputs():
            size = {"batch": 2, "length": 9}
            shape = [d if isinstance(d, int) else size.get(d, 160 if i > 1 else 1) for i, d in enumerate(value.shape)]
            feeds[value.name] = random.random(shape, np.float32) if "float" in value.type else random.integers(0, 2, shape)
        results.append(session.run(None, feeds))
    if [x.shape for x in results[0]] != [x.shape for x in results[1]]:
        return float("inf")
    # Detections whose scores tie come in any order.
    pairs = [(np.sort(x.astype(float).ravel()), np.sort(y.astype(float).ravel())) for x, y in zip(*results)]
    return max((np.abs(x - y).max() / max(1, np.abs(y).max()) for x, y in pairs if x.size), default=0.0)


def measure(name, runs):
    """The cells of an export in the table."""
    found, gap = results(__file__, name, runs, lambda *outs: f"{difference(*(Path(out, 'model.onnx') for out in outs)):.1g}")
    peaks = medians(found, "peak")
    return [name], medians(found, "seconds"), [*(f"{peaks[way]:.0f}" for way in WAYS), gap]


def main():
    given = parse_options(__doc__, EXPORTS)
    if given.way:
        return export(given.way, given.names[0], given.folder)
    numbers = [(title, "---:") for title in ("torch.onnx, MB", "pt2onnx, MB", "difference")]
    print_table(given.names, ["export"], numbers, lambda name: measure(name, given.runs))


if __name__ == "__main__":
    main()
