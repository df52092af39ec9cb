"""A mixture of experts in ONNX Runtime: as pt2onnx exports it, and as com.microsoft.MoE.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/experts.py [--runs 40] [--width 512]

Needs torch, transformers, onnx and onnxruntime. The layer is Mixtral's, with 8 experts of three times its width, and 2 for each token. Ours
is exported with target `ort`: products of the tokens of each expert that has some. Printed are medians of milliseconds of CPU, one thread,
by the number of tokens; the results are compared with those of the module.
"""

import argparse
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy
import onnxruntime

EXPERTS, CHOSEN = 8, 2


def module(width):
    """The layer, which returns the states alone."""
    import torch
    import transformers

    sizes = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": 1, "vocab_size": 100}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
    torch.manual_seed(0)
    config = transformers.MixtralConfig(**sizes, **heads, num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN)
    layer = transformers.MixtralForCausalLM(config).eval().model.layers[0].mlp

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            found = self.layer(x)
            return found[0] if isinstance(found, tuple) else found

    return States().eval()


def kernel(states, width):
    """The model of one operator, whose weights of gates and values take turns."""
    from onnx import helper, numpy_helper

    weights = {name.split(".", 1)[1]: value.detach().numpy() for name, value in states.named_parameters()}
    gate = next(value for name, value in weights.items() if name.startswith("gate"))
    both = next(value for name, value in weights.items() if "gate_up" in name)
    down = next(value for name, value in weights.items() if "down" in name)
    halves = both.reshape(EXPERTS, 2, -1, width).swapaxes(1, 2).reshape(both.shape)
    constants = {"rows": numpy.array([-1, width]), "gate": gate.T, "both": halves, "down": down}
    rule = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.0, "activation_beta": 0.0}
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "gate"], ["scores"]),
        helper.make_node("MoE", ["x", "scores", "both", "", "down"], ["y"], domain="com.microsoft", k=CHOSEN, normalize_routing_weights=1, **rule),
    ]
    ends = [[helper.make_tensor_value_info(name, 1, ["batch", "tokens", width])] for name in "xy"]
    arrays = [numpy_helper.from_array(numpy.ascontiguousarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "experts", *ends, arrays)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--width", type=int, default=512)
    given = parser.parse_args()
    import pt2onnx
    import torch

    torch.set_num_threads(1)
    states = module(given.width)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "experts.onnx")
        sizes = ({0: "batch", 1: "tokens"},)
        pt2onnx.export(states, (torch.randn(2, 7, given.width),), path, dynamic_shapes=sizes, target="ort", verbose=False)
        models = (str(path), kernel(states, given.width))
        sessions = [onnxruntime.InferenceSession(model, options) for model in models]
    print("| tokens | pt2onnx, ms | com.microsoft.MoE, ms |\n| ---: | ---: | ---: |")
    for tokens in (1, 4, 16, 128, 512):
        x = torch.randn(1, tokens, given.width)
        with torch.no_grad():
            expected = states(x).numpy()
        times = [[] for _ in sessions]
        for run in range(max(5, given.runs * 16 // max(tokens, 16)) + 1):
            for session, found in zip(sessions, times, strict=True):
                start = time.process_time()
                result = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
                if run:
                    found.append(1e3 * (time.process_time() - start))
                numpy.testing.assert_allclose(result, expected, atol=1e-3 * numpy.abs(expected).max())
        print(f"| {tokens} | {' | '.join(f'{statistics.median(found):.2f}' for found in times)} |", flush=True)


if __name__ == "__main__":
    main()
