"""Latency of three networks whose operators PyTorch and ONNX define otherwise, beside torch.onnx.export.

    python3 -m venv --system-site-packages /tmp/venv && /tmp/venv/bin/pip install kornia==0.9.0 torch_geometric==2.8.1
    /tmp/venv/bin/python bench/graph_networks.py [--runs N]

kornia's SIFT descriptor (remainders of angles), and two layers of PyTorch Geometric (extremes of the
edges of a node, with NaN). Needs pt2onnx in the environment, or PYTHONPATH=python. The sessions take
turns in one thread, the shortest time of CPU counts.
"""

import argparse
import tempfile
import time
from pathlib import Path

import kornia
import onnxruntime
import pt2onnx
import torch
from torch_geometric.nn import PNAConv, TransformerConv


def networks():
    """Each network by name, with its arguments."""
    nodes, edges = torch.rand(100, 16), torch.randint(0, 100, (2, 600))
    pna = PNAConv(
        16, 16, aggregators=["mean", "min", "max", "std"], scalers=["identity", "amplification", "attenuation"],
        deg=torch.tensor([0, 10, 20, 30]))
    yield "kornia SIFTDescriptor", kornia.feature.SIFTDescriptor(32, 8, 4), (torch.rand(64, 1, 32, 32),)
    yield "PyG PNAConv", pna, (nodes, edges)
    yield "PyG TransformerConv", TransformerConv(16, 16, heads=2), (nodes, edges)


def shortest(files, arguments, runs):
    """The shortest time of each file in milliseconds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    best = dict.fromkeys(files, float("inf"))
    for _ in range(runs):
        sessions = {f: onnxruntime.InferenceSession(f, options, providers=["CPUExecutionProvider"]) for f in files}
        for turn in range(200):
            for file, session in sessions.items():
                names = [i.name for i in session.get_inputs()]
                feed = dict(zip(names, (a.numpy() for a in arguments)))
                start = time.thread_time()
                session.run(None, feed)
                best[file] = min(best[file], 1000 * (time.thread_time() - start))
    return list(best.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    torch.manual_seed(0)
    print("| network | pt2onnx ms | torch.onnx ms | ratio |\n| --- | ---: | ---: | ---: |")
    for name, module, arguments in networks():
        module.eval()
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = (str(Path(folder) / f"{n}.onnx") for n in ("ours", "theirs"))
            pt2onnx.export(module, arguments, ours)
            torch.onnx.export(module, arguments, theirs, dynamo=True, verbose=False)
            a, b = shortest([ours, theirs], arguments, runs)
        print(f"| {name} | {a:.3f} | {b:.3f} | {a / b:.3f} |", flush=True)


if __name__ == "__main__":
    main()
