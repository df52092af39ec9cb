#!/usr/bin/env python3
"""Makes archives with each minor version of PyTorch, and the numbers that version computes for them.

    python3 testdata/generate/archives.py make FOLDER [2.1 2.2 ...]   # all versions, newest patch each; ~3 GB downloads a version
    python3 testdata/generate/archives.py export FOLDER               # the same with the torch that runs it (`make` calls this)
    python3 testdata/generate/archives.py pack FOLDER                 # into testdata; needs torch and zstandard

Run by hand, on Linux and Python 3.11 (the newest that torch 2.1 has wheels for); one virtual environment at a time, in a
temporary folder. Each program of `programs` becomes a case FOLDER/VERSION/NAME as make.py describes it. Programs that a version
cannot export or save are left out and listed with PyTorch's reason in testdata/archives/README.md. All cases go into
testdata/archives/archives.tar.zst, which the conformance test runs; the case `small` of each version lies beside it, for the
tests of the reader.
"""
from __future__ import annotations

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

MINORS = [f"2.{minor}" for minor in range(1, 16)]
HERE = pathlib.Path(__file__).resolve()
ARCHIVES = HERE.parent.parent / "archives"


def programs():
    """(name, module, args, kwargs, dynamic, other args, other kwargs) each. `dynamic` has one entry an argument, keyword ones
    last: None or {dimension: name}, where "2*b" is twice the dimension b."""
    import torch
    from torch import nn

    def r(*shape):
        generator = torch.Generator().manual_seed(sum(shape) + len(shape))
        return torch.randn(*shape, generator=generator)

    class Small(nn.Module):
        """A weight that two layers share, a transposed view, a buffer that is written, a constant, two element types."""

        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight
            self.register_buffer("turned", r(3, 2).t())
            self.register_buffer("calls", torch.tensor(0))
            self.short = nn.Parameter(r(3).to(torch.bfloat16))

        def forward(self, x):
            self.calls.add_(1)
            y = self.second(self.first(x).relu()) + self.short.float()
            return y @ self.turned.t() + torch.tensor([1.0, 2.0]), self.calls * 2

    yield "small", Small(), (r(4, 3),), {}, ({0: "b"},), (r(6, 3),), {}

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 8, bias=False))
            self.layers[4].weight = self.layers[2].weight
            self.register_buffer("scale", r(8))

        def forward(self, x):
            return self.layers(x) * self.scale

    yield "mlp", Mlp(), (r(5, 6),), {}, ({0: "b"},), (r(3, 6),), {}

    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                                      nn.Dropout(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.head = nn.Linear(4, 5)
            self.body[1].running_mean.copy_(r(4))
            self.body[1].running_var.copy_(r(4).abs())

        def forward(self, x):
            return torch.log_softmax(self.head(self.body(x)), dim=-1)

    yield "conv", Conv(), (r(3, 3, 8, 8),), {}, ({0: "b"},), (r(4, 3, 8, 8),), {}
    yield "conv_core", Conv(), (r(3, 3, 8, 8),), {}, ({0: "b"},), (r(4, 3, 8, 8),), {}

    class Derived(nn.Module):
        def forward(self, x, y):
            return x.repeat(2, 1) + y, x.sum(0)

    yield "derived", Derived(), (r(3, 4), r(6, 4)), {}, ({0: "b"}, {0: "2*b"}), (r(5, 4), r(10, 4)), {}

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(4, 3))
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def forward(self, key, position):
            self.keys.index_copy_(0, position, key)
            self.steps.add_(1)
            return (key @ self.keys.t()).softmax(-1) * self.steps

    yield "cache", Cache(), (r(1, 3), torch.tensor([2])), {}, (None, None), None, None

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x)

    yield "norm_train", Norm().train(), (r(4, 3),), {}, (None,), None, None

    class Trees(nn.Module):
        def forward(self, x, pair, *, scale, shift):
            total = (x + pair["left"]) * scale + shift
            return {"parts": (total[0], [pair["right"] - 1, x]), "total": total}

    def pair(n):
        return (r(n, 3), {"left": r(n, 3), "right": r(2)}), {"scale": r(3), "shift": r(1)}

    rows = {0: "b"}
    yield "trees", Trees(), *pair(4), (rows, {"left": rows, "right": None}, None, None), *pair(6)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
            self.qkv, self.mlp = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, ids):
            x = self.embed(ids)
            n, s, d = x.shape
            q, k, v = self.qkv(self.norm(x)).view(n, s, 6, d // 2).transpose(1, 2).chunk(3, 1)
            future = torch.triu(torch.ones(s, s, dtype=torch.bool), 1)
            weights = (q @ k.transpose(-1, -2) * 0.5).masked_fill(future, float("-inf")).softmax(-1)
            x = x + (weights @ v).transpose(1, 2).reshape(n, s, d)
            return x + nn.functional.gelu(self.mlp(x))

    tokens = torch.arange(14).reshape(2, 7) % 11
    for name in ("attention", "attention_core"):
        yield name, Attention(), (tokens[:, :5].contiguous(),), {}, ({1: "s"},), (tokens,), {}

    class Fused(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    yield "fused_attention", Fused(), (r(2, 2, 5, 4),) * 3, {}, ({2: "s"},) * 3, (r(2, 2, 7, 4),) * 3, {}

    class Sizes(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return x.reshape(n * 2, 2), torch.arange(n + 1), x.new_zeros(n * 2 + 1) + n, x[1:], x.unsqueeze(0).expand(n, n, 4)

    yield "sizes", Sizes(), (r(6, 4),), {}, ({0: "b"},), (r(9, 4),), {}

    class Branch(nn.Module):
        def forward(self, x):
            cond = getattr(torch, "cond", None)
            if cond is None:
                from functorch.experimental.control_flow import cond
            return cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() - 1, [x])

    yield "branch", Branch(), (r(3, 4).abs(),), {}, (None,), (-r(3, 4).abs(),), {}

    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            base = r(4, 3)
            self.register_buffer("base", base)
            self.register_buffer("rows", base[1:3])
            self.register_buffer("turned", base.t())
            self.register_buffer("hidden", r(3), persistent=False)
            self.register_buffer("short", r(3).to(torch.float16))
            self.register_buffer("mask", torch.tensor([True, False, True]))
            self.empty = nn.Parameter(torch.zeros(0, 3))

        def forward(self, x):
            with torch.no_grad():
                y = x @ self.turned + self.rows.sum() + self.base.sum(1)
            z = torch.where(self.mask, x, torch.tensor([1.5, -2.0, 3.0])) + self.hidden + self.short
            return y.clamp(max=float("inf")), z.masked_fill(z > 1, float("-inf")), torch.cat([x, self.empty])

    yield "constants", Constants(), (r(2, 3),), {}, (None,), None, None

    class Literals(nn.Module):
        def forward(self, x, factor, mask=None, *, negate=False, name="sum"):
            y = x * factor if mask is None else x * mask
            return (-y if negate else y), None, factor

    yield "literals", Literals(), (r(2, 3), 3, None), {"negate": True, "name": "mean"}, (None,) * 5, None, None

    class Found(nn.Module):
        def forward(self, x):
            places = torch.nonzero(x > 0)
            return places, places.shape[0] * torch.ones(2)

    yield "found", Found(), (r(3, 4),), {}, (None,), None, None


def dims(version, torch, args, dynamic):
    """`dynamic` as this version of `torch.export.export` takes it, as keyword arguments."""
    if not any(dynamic):
        return {}
    if version == (2, 1):  # Dim and dynamic_shapes came with 2.2.
        first, constraints = {}, []

        def walk(value, spec):
            if isinstance(value, dict):
                for key in spec or {}:
                    walk(value[key], spec[key])
                return
            for axis, name in (spec or {}).items():
                dim = torch.export.dynamic_dim(value, axis)
                if "*" in name:
                    raise NotImplementedError("derived dimensions came later")
                constraints.extend([dim == first[name]] if name in first else [dim >= 3, dim <= 15])
                first.setdefault(name, dim)

        for value, spec in zip(args, dynamic):
            walk(value, spec)
        return {"constraints": constraints}
    made = {name: torch.export.Dim(name, min=3, max=15) for name in "bs"}

    def spec_of(spec):
        if not isinstance(spec, dict):
            return None
        return {k: spec_of(v) if not isinstance(v, str) else 2 * made["b"] if v == "2*b" else made[v] for k, v in spec.items()}

    return {"dynamic_shapes": tuple(map(spec_of, dynamic))}


def export(folder):
    """Cases of this version; reasons for those it does not make in FOLDER/VERSION/missing.json."""
    import inspect
    import warnings

    import torch
    import torch.utils._pytree as pytree
    from safetensors.torch import save_file

    warnings.filterwarnings("ignore")
    number = torch.__version__.split("+")[0]
    version = tuple(int(part) for part in number.split(".")[:2])
    folder = pathlib.Path(folder) / f"{version[0]}.{version[1]}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = {}

    def reason(error):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:160]

    def leaves(tree):
        flat = pytree.tree_flatten(tree)[0]
        return [leaf.detach().contiguous().clone() for leaf in flat if isinstance(leaf, torch.Tensor)]

    def results(tree):
        flat = [leaf for leaf in pytree.tree_flatten(tree)[0] if leaf is not None]
        return [torch.as_tensor(leaf).detach().contiguous().clone() for leaf in flat]

    torch.manual_seed(0)
    for name, module, args, kwargs, dynamic, other, other_kwargs in programs():
        module = module if name == "norm_train" else module.eval()
        original = copy.deepcopy(module)
        target = folder / name

        def save(dynamic):
            shapes = dims(version, torch, (*args, *kwargs.values()), dynamic)
            if "dynamic_shapes" in shapes:  # By name: older versions take no flat tuple over keyword arguments.
                names = inspect.signature(module.forward).parameters
                shapes = {"dynamic_shapes": dict(zip(names, shapes["dynamic_shapes"]))}
            program = torch.export.export(copy.deepcopy(module), args, kwargs, **shapes)
            if name.endswith("_core"):
                program = program.run_decompositions()
            target.mkdir(parents=True, exist_ok=True)
            torch.export.save(program, str(target / "model.pt2"))

        try:
            try:
                save(dynamic)
            except Exception as error:
                if not any(dynamic):
                    raise
                missing[f"{name} with dynamic sizes"] = reason(error)
                dynamic, other = (None,) * len(dynamic), None
                save(dynamic)
        except Exception as error:
            missing[name] = reason(error)
            continue
        tensors = {}
        for prefix, a, k in (("", args, kwargs), ("alt.", other, other_kwargs)):
            if a is None:
                continue
            with torch.no_grad():
                outputs = copy.deepcopy(original)(*copy.deepcopy(a), **copy.deepcopy(k))
            tensors.update({f"{prefix}input.{i}": t for i, t in enumerate(leaves((a, k)))})
            tensors.update({f"{prefix}output.{i}": t for i, t in enumerate(results(outputs))})
        save_file(tensors, str(target / "io.safetensors"))
        case = {"suite": "archives", "name": name, "torch": number, "dynamic": any(dynamic)}
        (target / "case.json").write_text(json.dumps(case, indent=1))
    print("\n".join(f"{number}: no {name}: {why}" for name, why in missing.items()))
    (folder / "missing.json").write_text(json.dumps({"torch": number, "missing": missing}, indent=1))


def make(folder, minors):
    """Each version in a fresh environment, which is gone before the next."""
    for minor in minors or MINORS:
        with tempfile.TemporaryDirectory(prefix=f"torch-{minor}-") as place:
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            python = f"{place}/bin/python"
            numpy = "numpy<2" if minor in ("2.1", "2.2") else "numpy"
            install = [python, "-m", "pip", "install", "-q", "--no-compile", "--no-cache-dir"]
            # Versions up to 2.3 import setuptools' pkg_resources or distutils.
            subprocess.run([*install, f"torch=={minor}.*", numpy, "safetensors", "setuptools"], check=True)
            done = subprocess.run([python, HERE, "export", folder])
            print(f"{minor}: {'done' if done.returncode == 0 else 'FAILED'}", flush=True)


def pack(folder):
    import make as cases

    folder = pathlib.Path(folder)
    ARCHIVES.mkdir(exist_ok=True)
    rows, reasons, names = [], [], [name for name, *_ in programs()]
    with tempfile.TemporaryDirectory() as place:
        for minor in (minor for minor in MINORS if (folder / minor).exists()):
            about = json.loads((folder / minor / "missing.json").read_text())
            made = [name for name in names if name not in about["missing"]]
            rows.append(f"| {about['torch']} | {len(made)} | {', '.join(about['missing']) or 'none'} |")
            reasons += [f"- {minor} `{name}`: {why}" for name, why in about["missing"].items()]
            for name in made:
                case = pathlib.Path(place) / minor / name
                case.mkdir(parents=True)
                for file in ("model.pt2", "io.safetensors", "case.json"):
                    (case / file).write_bytes((folder / minor / name / file).read_bytes())
            (ARCHIVES / f"torch-{minor}.pt2").write_bytes((folder / minor / "small" / "model.pt2").read_bytes())
        cases.bundle(place, ARCHIVES / "archives.tar.zst")
    (ARCHIVES / "README.md").write_text("\n".join([
        "# Archives of each version of PyTorch", "",
        "Made by `testdata/generate/archives.py`, which also wrote this page. `torch-VERSION.pt2` is the program `small` as each",
        "version saves it; `archives.tar.zst` holds all programs of all versions with PyTorch's numbers.", "",
        "| torch | programs | left out |", "| --- | --- | --- |", *rows, "",
        "Why, in PyTorch's words:", "", *reasons, ""]))


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("make", "export", "pack"):
        sys.exit(__doc__)
    {"make": lambda: make(sys.argv[2], sys.argv[3:]), "export": lambda: export(sys.argv[2]), "pack": lambda: pack(sys.argv[2])}[sys.argv[1]]()
