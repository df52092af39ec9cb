"""One export for `cargo xtask bench python`: bench_export.py MODEL WAY. Prints seconds, seconds of CPU, and the peak memory of the process.

The ways are `capture` (torch.export.export alone), `pt2onnx` and `torch.onnx`. No file is written.
"""

import json
import resource
import sys
import time
import warnings

import bench_models
import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
model, args, dynamic = bench_models.MODELS[sys.argv[1]]()
way = sys.argv[2]
if way == "pt2onnx":
    import pt2onnx
wall, cpu = time.perf_counter(), time.process_time()
if way == "capture":
    made = torch.export.export(model, args, dynamic_shapes=dynamic, strict=False)
else:
    module = pt2onnx if way == "pt2onnx" else torch.onnx
    options = {} if way == "pt2onnx" else {"dynamo": True}
    made = module.export(model, args, dynamic_shapes=dynamic, verbose=False, **options)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak}))
