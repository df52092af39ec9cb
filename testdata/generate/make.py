#!/usr/bin/env python3
"""Makes conformance cases from PyTorch models, and packs them into the bundles that the tests read.

    python3 -m venv venv && venv/bin/pip install -r testdata/generate/requirements.txt
    venv/bin/python testdata/generate/make.py cases FOLDER [NAME...]   # saves the programs below as cases
    venv/bin/python testdata/generate/make.py stateful FOLDER            # saves stateful programs and three steps of each
    venv/bin/python testdata/generate/make.py bundle FOLDER OUT.tar.zst  # packs a folder of cases

A case is a folder: model.pt2 (from torch.export.save), io.safetensors (input.N and output.N as PyTorch computed them,
alt.input.N and alt.output.N for other sizes of the dynamic dimensions), case.json, and functions.onnxtxt where functions of ONNX
translate its ops. Add a program: a function that
returns (module, args, dynamic_shapes, other args), decorated with @case.
"""
from __future__ import annotations

import argparse
import copy
import io
import json
import pathlib
import tarfile

import bodies
import custom
import interface
import loops
import modules
import neural
import refused

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


@case
def mlp():
    """The multilayer perceptron of torch.onnx's documentation: a tensor, a dict and a list, one dynamic batch."""
    import torch

    class MLP(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc0 = torch.nn.Linear(8, 8)
            self.fc1 = torch.nn.Linear(8, 4)
            self.fc2 = torch.nn.Linear(4, 2)
            self.fc3 = torch.nn.Linear(2, 2)
            self.fc_combined = torch.nn.Linear(24, 8)

        def forward(self, tensor_x, input_dict, input_list):
            x = torch.cat([tensor_x, input_dict["tensor_x"], input_list[0]], dim=1)
            for layer in (self.fc_combined, self.fc0, self.fc1, self.fc2):
                x = torch.sigmoid(layer(x))
            return self.fc3(x)

    def args(n):
        return torch.rand(n, 8), {"tensor_x": torch.rand(n, 8)}, [torch.rand(n, 8)]

    batch = {0: torch.export.Dim.DYNAMIC}
    return MLP(), args(97), (batch, {"tensor_x": batch}, [batch]), args(3)


def stateful_programs():
    """Modules that write into their buffers, with the inputs of three calls."""
    import torch

    class Cache(torch.nn.Module):
        def __init__(self, write):
            super().__init__()
            self.register_buffer("keys", torch.zeros(1, 2, 8, 4))
            self.write = write

        def forward(self, key, position):
            self.write(self.keys, key, position)
            return (key @ self.keys.transpose(-1, -2)).softmax(-1)

    def index_copy(keys, key, position):
        keys.index_copy_(2, position, key)

    def index_put(keys, key, position):
        keys[:, :, position] = key

    def slice_copy(keys, key, position):
        start = position.item()
        torch._check(start >= 0)
        torch._check(start < 8)
        keys.narrow(2, start, 1).copy_(key)

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x):
            self.calls.add_(1)
            return x * self.calls

    class RunningMean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x)

    class Observer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.observer = torch.ao.quantization.FusedMovingAvgObsFakeQuantize()
            self.observer(torch.tensor([-0.5, 1.25]))

        def forward(self, x):
            return self.observer(x)

    calls = [(torch.randn(1, 2, 1, 4), torch.tensor([i])) for i in (0, 1, 5)]
    for write in (index_copy, index_put, slice_copy):
        yield write.__name__, Cache(write).eval(), calls
    yield "counter", Counter(), [(torch.randn(2),) for _ in range(3)]
    yield "running_mean", RunningMean().train(), [(torch.randn(4, 3),) for _ in range(3)]
    yield "observer", Observer().eval(), [(k * torch.randn(4, 3),) for k in (1, 5, 2)]


def stateful(folder):
    """Each call's inputs and outputs as step.K.input.N and step.K.output.N, the buffers after it as step.K.state.NAME, and
    those before the first as initial.NAME."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    for name, module, calls in stateful_programs():
        program = torch.export.export(copy.deepcopy(module), calls[0], strict=False)
        target = pathlib.Path(folder) / name
        target.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, target / "model.pt2")
        tensors = {f"initial.{n}": b.clone() for n, b in module.named_buffers()}
        for step, args in enumerate(calls):
            with torch.no_grad():
                outputs = module(*args)
            tensors |= {f"step.{step}.input.{i}": t for i, t in enumerate(leaves(args))}
            tensors |= {f"step.{step}.output.{i}": t for i, t in enumerate(leaves(outputs))}
            tensors |= {f"step.{step}.state.{n}": b.clone() for n, b in module.named_buffers()}
        save_file(tensors, target / "io.safetensors")
        print(target)


def leaves(tree):
    """Tensors of nested values, complex ones as pairs; Python numbers as PyTorch makes tensors of them."""
    import torch
    import torch.utils._pytree as pytree

    for leaf in pytree.tree_leaves(tree):
        if leaf is None:
            continue
        leaf = leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf)
        leaf = torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
        yield leaf.detach().contiguous().clone()


def make(folder, names):
    import reductions
    import torch

    custom.register(case)
    interface.register(case)
    bodies.register(case)
    loops.register(case)
    modules.register(case)
    neural.register(case)
    refused.register(case)
    cases = CASES | reductions.programs()
    for name in names or cases:
        torch.manual_seed(0)
        save(folder, name, *cases[name]())


def save(folder, name, module, args, dynamic_shapes, other):
    """Saves a program as a case, with PyTorch's results for `args`, and for `other` if that is not None."""
    import torch
    from safetensors.torch import save_file

    with torch.set_grad_enabled(not getattr(module, "no_grad", False)):
        program = torch.export.export(module.eval(), args, dynamic_shapes=dynamic_shapes, strict=False)
    target = pathlib.Path(folder) / name
    target.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, target / "model.pt2")
    tensors = {}
    for prefix, given in (("", args), ("alt.", other)):
        if given is None:
            continue
        # Programs may write into their inputs and buffers: each run has copies of both.
        with torch.no_grad():
            outputs = copy.deepcopy(program.module())(*copy.deepcopy(given))
        tensors |= {f"{prefix}input.{i}": t for i, t in enumerate(leaves(given))}
        tensors |= {f"{prefix}output.{i}": t for i, t in enumerate(leaves(outputs))}
    save_file(tensors, target / "io.safetensors")
    about = {"suite": "made", "name": name, "torch": torch.__version__.split("+")[0], "dynamic": other is not None}
    about |= getattr(module, "about", {})
    if functions := getattr(module, "functions", None):
        (target / "functions.onnxtxt").write_bytes(functions.read_bytes())
    (target / "case.json").write_text(json.dumps(about, indent=1))
    print(target)


def bundle(folder, out):
    """Sorted, without times and owners: the same cases give the same file."""
    import zstandard

    folder, packed = pathlib.Path(folder), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    data = zstandard.ZstdCompressor(level=19, write_content_size=True).compress(packed.getvalue())
    pathlib.Path(out).write_bytes(data)
    print(f"{out}: {len(data)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    cases = commands.add_parser("cases", help="save the programs of this file as cases")
    cases.add_argument("folder")
    cases.add_argument("names", nargs="*", metavar="NAME")
    states = commands.add_parser("stateful", help="save stateful programs and three steps of each")
    states.add_argument("folder")
    pack = commands.add_parser("bundle", help="pack a folder of cases")
    pack.add_argument("folder")
    pack.add_argument("out")
    given = parser.parse_args()
    if given.command == "cases":
        make(given.folder, given.names)
    elif given.command == "stateful":
        stateful(given.folder)
    else:
        bundle(given.folder, given.out)


if __name__ == "__main__":
    main()
