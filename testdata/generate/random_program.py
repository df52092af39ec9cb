"""A random PyTorch program: how it is drawn, what it is, and PyTorch's results with and without other roundings."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import linecache
import random
import re

import torch
import torch.nn.functional as F
from random_ops import EXACT, GROUPS
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

FLOATS = {torch.float32, torch.float64, torch.float16, torch.bfloat16}
INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}
COMPLEX = {torch.complex64, torch.complex128}
KINDS = {
    "x": FLOATS | INTEGERS | {torch.bool},
    "n": FLOATS | INTEGERS,
    "f": FLOATS,
    "F": {torch.float32, torch.float64},
    "i": INTEGERS,
    "I": {torch.int64},
    "b": {torch.bool},
    "c": COMPLEX,
}
# The share of each in programs; most have one float type, so that values meet.
TYPES = [[torch.float32]] * 6 + [[torch.float64], [torch.float16], [torch.bfloat16], sorted(FLOATS, key=str), sorted(FLOATS | INTEGERS, key=str)]
NUMBERS = "0.5 -1.5 2 3 -1 0 1 0.1 7 1e-3 100.0 True float('inf') -float('inf') float('nan') -0.0".split()
WHOLE = "1 2 3 -1 -3 5 0 127 True 2**31 0.5".split()
# Names that the program, ONNX or a file format could take for their own.
ODD_NAMES = "input output add val_0 é Ж x_1 x__1 _ l self_ relu s0 None_ float_ Identity graph weight lambda_x X0 x0_ sym_size_int_1".split()
ODD_PATHS = ["weight/0", "a b", "é", "0", "input", "x0", "Конв", "relu.next"[:4], "a:b", "it's", "-", "forward"]
ODD_DIMS = "batch x0 é s0 s1 add input N_ _m dim_0 batch_size".split()


# Control flow, as PyTorch defines it, without tracing.
def plain_cond(predicate, yes, no, operands):
    return (yes if predicate else no)(*operands)


def plain_while(condition, body, carry):
    carry = tuple(t.clone() for t in carry)
    while condition(*carry):
        carry = body(*carry)
    return carry


def plain_scan(step, carry, xs):
    outs = []
    for x in xs:
        carry, out = step(carry, x)
        outs.append(out)
    return carry, torch.stack(outs)


def plain_map(function, xs):
    return torch.stack([function(x) for x in xs])


def whole(x):
    """A whole number from 0 to 3 that export does not know."""
    u = (x.reshape(-1)[0] % 4).item()
    torch._check(u >= 0)
    torch._check(u < 4)
    return u


def names_of(traced):
    """Names that the text of a program can use."""
    higher = torch._higher_order_ops
    if traced:
        flow = dict(cond=torch.cond, while_loop=higher.while_loop, scan=lambda f, c, xs: higher.scan(f, c, xs, dim=0), map=higher.map)
    else:
        flow = dict(cond=plain_cond, while_loop=plain_while, scan=plain_scan, map=plain_map)
    return flow | dict(torch=torch, F=F, whole=whole)


@dataclasses.dataclass
class Program:
    """Lines `(names, code)` over inputs and weights."""

    seed: int
    inputs: dict  # tensors by name
    axes: dict  # by input: the symbol of each dynamic dimension
    weights: dict
    lines: list
    outputs: list
    parameters: dict  # the names that the inputs have in `forward`
    paths: dict  # the names that the weights have in the module
    dims: dict  # the names of the symbols
    feed: bool  # whether the inputs come in one dict

    def source(self):
        """The method `forward`."""
        given = list(self.parameters[n] for n in self.inputs)
        head = ["def forward(self, feed):" if self.feed else f"def forward({', '.join(['self', *given])}):"]
        if self.feed:
            body = [f"{n} = feed[{self.parameters[n]!r}]" for n in self.inputs]
        else:
            body = [f"{n} = {self.parameters[n]}" for n in self.inputs if n != self.parameters[n]]
        body += [f"{n} = self.odd.get_buffer({self.paths[n]!r})" for n in self.weights]
        body += [", ".join(names) + " = " + code if names else code for names, code in self.lines]
        body.append(f"return ({', '.join(self.outputs)},)")
        return "\n    ".join(head + body) + "\n"

    def module(self, traced=True):
        scope = names_of(traced)
        exec(self.source(), scope)
        module = type("Random", (torch.nn.Module,), {"forward": scope["forward"]})()
        module.odd = torch.nn.Module()
        for name, value in self.weights.items():
            module.odd.register_buffer(self.paths[name], value.clone())
        module.about = {"program": self.source().split("\n")}
        return module.eval()

    def arguments(self, inputs=None):
        """The arguments of `forward`; `inputs` by the program's names."""
        values = {self.parameters[n]: (inputs or self.inputs)[n].clone() for n in self.inputs}
        return (values,) if self.feed else tuple(values.values())

    def eager(self, inputs, noise=None, module=None):
        """PyTorch's results, of the program or of what was made of it; with `noise`, as other roundings could give them."""
        module = copy.deepcopy(module) if module else self.module(traced=False)
        with Noise(noise) if noise is not None else contextlib.nullcontext(), torch.no_grad():
            return [torch.as_tensor(r) for r in module(*self.arguments(inputs)) if r is not None]

    def shapes(self, named):
        """The `dynamic_shapes` for `torch.export.export`, with names for the dimensions or without."""
        if not any(self.axes.values()):
            return None
        if named:
            symbols = {s: torch.export.Dim(self.dims[s], min=0) for s in self.dims}
        else:
            symbols = {s: torch.export.Dim.AUTO for s in self.dims}
        each = {self.parameters[n]: {a: symbols[s] for a, s in self.axes[n].items()} for n in self.inputs}
        return (each,) if self.feed else tuple(each.values())

    def export(self):
        """The exported program, and the dynamic shapes that it took."""
        for shapes in (self.shapes(named=True), self.shapes(named=False)):
            try:
                return torch.export.export(self.module(), self.arguments(), dynamic_shapes=shapes, strict=False), shapes
            except Exception as error:
                last = error
                if shapes is None:
                    break
        raise last

    def trace(self):
        """The program as `torch.jit.trace` sees it: control flow and whole numbers are those of the inputs."""
        if self.feed:
            raise ValueError("traces take no dicts")
        return torch.jit.trace(self.module(traced=False), self.arguments(), check_trace=False, strict=False)

    def script(self):
        """The program as `torch.jit.script` compiles it."""
        if self.feed:
            raise ValueError("scripts take tensors")
        text = re.sub(r"self\.odd\.get_buffer\(.*\)", lambda m: "self." + next(n for n in self.weights if m[0] == f"self.odd.get_buffer({self.paths[n]!r})"), self.source())
        file, scope = f"random{self.seed}.py", names_of(traced=False)
        # TorchScript reads the source of functions.
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        exec(compile(text, file, "exec"), scope)
        module = type("Random", (torch.nn.Module,), {"forward": scope["forward"]})()
        for name, value in self.weights.items():
            module.register_buffer(name, value.clone())
        return torch.jit.script(module.eval())

    def declared(self):
        """The command's options for the inputs of a trace or script."""
        kinds = {n: str(t.dtype).removeprefix("torch.") for n, t in self.inputs.items()}
        sizes = {n: ",".join(f"{self.axes[n][a]}>=0" if a in self.axes[n] else str(size) for a, size in enumerate(t.shape)) for n, t in self.inputs.items()}
        return [text for i, n in enumerate(self.inputs) for text in ("--input", f"{i}={kinds[n]}[{sizes[n]}]")]

    def resized(self, sizes):
        """Inputs whose symbols have other sizes."""
        r = random.Random(f"{self.seed} {sorted(sizes.items())}")
        made = {}
        for name, value in self.inputs.items():
            shape = [sizes.get(self.axes[name].get(a), n) for a, n in enumerate(value.shape)]
            made[name] = values(r, shape, value.dtype)
        return made

    def others(self, runner, accepts=lambda inputs: True):
        """Inputs of sizes 1, 0 and more that the exported or traced program takes and treats as the program itself does."""
        symbols = sorted({s for axes in self.axes.values() for s in axes.values()})
        if not symbols:
            return
        for size in (1, 0, 7):
            for sizes in ({s: size + (i if size > 1 else 0) for i, s in enumerate(symbols)}, *({s: size} for s in symbols[:1] if len(symbols) > 1)):
                inputs = self.resized(sizes)
                if accepts(list(inputs.values())) and self.is_same(runner, inputs):
                    yield inputs

    def is_same(self, runner, inputs):
        """Whether the results have the types and sizes of the program's own."""
        try:
            wanted, got = self.eager(inputs), self.eager(inputs, module=runner)
        except Exception:
            return False
        return [(t.shape, t.dtype) for t in got] == [(t.shape, t.dtype) for t in wanted]


def accepted(exported, inputs):
    """Whether the sizes are those of the exported program, or in the ranges of its symbols."""
    ranges = {str(symbol): r for symbol, r in exported.range_constraints.items()}
    users = set(exported.graph_signature.user_inputs)
    recorded = [n.meta["val"].shape for n in exported.graph.nodes if n.op == "placeholder" and n.name in users]
    for shape, value in zip(recorded, inputs):
        for size, n in zip(shape, value.shape):
            bounds = ranges.get(str(size))
            if bounds is None and str(size) != str(n) or bounds is not None and not bounds.lower <= n <= bounds.upper:
                return False
    return True


def others_of(program, exported):
    """Inputs of other sizes for an exported program."""
    return program.others(exported.module(), lambda inputs: accepted(exported, inputs))


class Noise(TorchDispatchMode):
    """Moves operands and results of inexact ops by about the rounding of their types."""

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def moved(self, value):
        if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()) or value.itemsize < 2:
            return value
        step = 4 * torch.finfo(value.dtype).eps
        factor = 1 + step * (torch.rand(value.shape, generator=self.generator, dtype=torch.float64) - 0.5)
        return (value * factor).to(value.dtype)

    def shifted(self, value):
        if self.moved(value) is value or not value.numel():
            return value
        parts = torch.view_as_real(value) if value.is_complex() else value
        step = torch.finfo(value.dtype).eps * parts.abs().nan_to_num(0, 0, 0).max()
        parts = parts + (step * (torch.rand(parts.shape, generator=self.generator) - 0.5)).to(parts.dtype)
        return torch.view_as_complex(parts) if value.is_complex() else parts

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        written = any(a.alias_info is not None for a in (*schema.arguments, *schema.returns))
        if written or func.namespace != "aten" or schema.name.split("::")[1].strip("_") in EXACT or "empty" in schema.name:
            return func(*args, **kwargs)
        result = tree_map(self.moved, func(*tree_map(self.moved, args), **tree_map(self.moved, kwargs)))
        # Sums and products of matrices round by what is large in them.
        return result if torch.Tag.pointwise in func.tags else tree_map(self.shifted, result)


def values(r, shape, dtype):
    """Random values: small ones, halves and whole numbers, and special ones."""
    g = torch.Generator().manual_seed(r.getrandbits(32))
    style = r.random()
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) < 0.5
    if dtype in INTEGERS:
        if style < 0.15:
            info = torch.iinfo(dtype)
            return torch.randint(max(info.min, -(2**40)), min(info.max, 2**40) + 1, shape, generator=g).to(dtype)
        return torch.randint(0 if dtype == torch.uint8 else -5, 6, shape, generator=g).to(dtype)
    if style < 0.5:
        return torch.randn(shape, generator=g).to(dtype)
    numbers = torch.randint(-6, 7, shape, generator=g) / 2
    if style > 0.75:
        special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e4, 1e-6])
        numbers = torch.where(torch.rand(shape, generator=g) < 0.3, special[torch.randint(0, 6, shape, generator=g)], numbers)
    return numbers.to(dtype)


class Author:
    """Writes a program: draws a call, runs it, and keeps it if PyTorch does."""

    def __init__(self, seed, groups=None, length=None):
        self.seed, self.r = seed, random.Random(seed)
        self.groups = {n: g for n, g in GROUPS.items() if not groups or n in groups}
        self.types = self.r.choice(TYPES)
        self.length = length or self.r.choice([2, 3, 4, 5, 6, 8, 12])
        self.values, self.inputs, self.axes, self.weights, self.lines = {}, {}, {}, {}, []
        self.scope = names_of(traced=False)

    def dtype(self):
        other = [torch.int64, torch.int64, torch.bool, torch.int32]
        return self.r.choice(self.types) if self.r.random() < 0.75 else self.r.choice(other)

    def write(self):
        r = self.r
        sizes = {"n": r.choice([2, 3, 4]), "m": r.choice([3, 4, 6])}
        dynamic = r.random() < 0.6
        for i in range(r.choice([1, 1, 2, 2, 3])):
            rank = r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]) if i else r.choice([1, 2, 2, 3, 3, 4])
            axes = [r.choice(["n", "m", "n", "m", 1, 2, 3, 4, 0 if r.random() < 0.1 else 2]) for _ in range(rank)]
            dtype = r.choice(self.types) if i == 0 else self.dtype()
            self.inputs[f"x{i}"] = values(r, [sizes.get(a, a) for a in axes], dtype)
            self.axes[f"x{i}"] = {k: a for k, a in enumerate(axes) if a in sizes and dynamic}
        self.values = {n: t.clone() for n, t in self.inputs.items()}
        lines = {name: [line.strip() for line in text.strip().split("\n")] for name, (_, text) in self.groups.items()}
        for _ in range(40 * self.length):
            if len(self.lines) == self.length:
                break
            group = r.choices(list(self.groups), [weight for weight, _ in self.groups.values()])[0]
            self.add(r.choice(lines[group]))
        return self.finished()

    def finished(self):
        r = self.r
        results = [n for names, _ in self.lines for n in names]
        used = {n for _, code in self.lines for n in words(code)}
        outputs = [n for n in results if n not in used] + [n for n in results if n in used and r.random() < 0.2]
        outputs = list(dict.fromkeys(outputs or results or list(self.inputs)))
        odd = r.random() < 0.25
        parameters = dict(zip(self.inputs, r.sample(ODD_NAMES, len(self.inputs)) if odd else self.inputs))
        paths = dict(zip(self.weights, r.sample(ODD_PATHS, len(self.weights)) if odd and len(self.weights) < len(ODD_PATHS) else self.weights))
        dims = dict(zip("nm", r.sample(ODD_DIMS, 2) if odd else ["n", "m"]))
        return Program(self.seed, self.inputs, self.axes, self.weights, self.lines, outputs, parameters, paths, dims, odd and r.random() < 0.3)

    def add(self, template):
        self.operands, self.fresh = [], {}
        try:
            code = re.sub(r"\{([^{}]+)\}", lambda m: self.fill(m[1]), template)
        except LookupError:
            return
        try:
            result, assigned = eval(compile(code, "line", "eval"), self.scope, self.values | self.fresh), True
        except SyntaxError:
            result, assigned = None, False
            try:
                exec(code, self.scope, self.values | self.fresh)
            except Exception:
                return
        except Exception:
            return
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if assigned and not all(self.fits(v) for v in results):
            return
        names = [f"v{sum(len(n) for n, _ in self.lines) + i}" for i in range(len(results))] if assigned else []
        # One name for a list of one.
        if isinstance(result, (tuple, list)) and len(results) == 1:
            code += "[0]"
        self.lines.append((names, code))
        self.weights |= {n: t.clone() for n, t in self.fresh.items()}
        self.values |= self.fresh | dict(zip(names, results))

    @staticmethod
    def fits(value):
        if isinstance(value, torch.Tensor):
            return value.numel() <= 2000 and value.dim() <= 5 and value.dtype in KINDS["x"] | COMPLEX
        return type(value) is int

    def fill(self, what):
        r = self.r
        choices = re.split(r"(?<!\\)\|", what)
        if len(choices) > 1:
            return r.choice(choices).replace("\\|", "|")
        first = self.values[self.operands[0]] if self.operands else None
        if what.isdigit():
            return self.operands[int(what)]
        if what == "d":
            return str(r.randrange(-first.dim(), first.dim()) if first.dim() else r.choice([0, -1]))
        if what == "num":
            return r.choice(NUMBERS if first is None or first.is_floating_point() else WHOLE)
        if what == "u":
            return r.choice([n for n, v in self.values.items() if type(v) is int] or [])
        if what.startswith("w:"):
            sizes = dict(zip("BCD", first.shape)) | {"L": first.shape[-1] if first.dim() else 1}
            name = f"w{len(self.weights) + len(self.fresh)}"
            shape = [sizes[s] if s in sizes else int(s) for s in what[2:].split(",")]
            self.fresh[name] = torch.randn(shape, generator=torch.Generator().manual_seed(r.getrandbits(32))).to(first.dtype)
            return name
        kind, rank, more, relation = re.fullmatch(r"([a-zA-Z])(\d?)(\+?)([~=]?)", what).groups()
        candidates = [n for n, v in self.values.items() if isinstance(v, torch.Tensor) and v.dtype in KINDS[kind] and self.suits(v, rank, more, relation, first)]
        # Recent results are likelier, so that calls build on each other.
        name = r.choices(candidates, range(1, len(candidates) + 1))[0]
        self.operands.append(name)
        return name

    @staticmethod
    def suits(value, rank, more, relation, first):
        if rank and (value.dim() < int(rank) or not more and value.dim() != int(rank)):
            return False
        if relation == "=":
            return value.shape == first.shape and value.dtype == first.dtype
        if relation == "~":
            try:
                return torch.broadcast_shapes(value.shape, first.shape) is not None
            except RuntimeError:
                return False
        return True


def words(code):
    return re.findall(r"\b[vxw]\d+\b", code)
