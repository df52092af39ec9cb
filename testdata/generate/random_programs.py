#!/usr/bin/env python3
"""Random PyTorch programs: converted, run in ONNX Runtime and compared with PyTorch.

    venv/bin/python testdata/generate/random_programs.py run --seed S --count N       # programs S, S+1, ..., S+N-1
    venv/bin/python testdata/generate/random_programs.py show SEED...                 # prints programs
    venv/bin/python testdata/generate/random_programs.py minimise SEED...             # makes failing programs small
    venv/bin/python testdata/generate/random_programs.py freeze FOLDER --count N      # saves programs as cases

A program depends on its seed alone. Its calls are drawn from the table in random_ops.py. docs/random-programs.md says more.
"""
from __future__ import annotations

import argparse
import dataclasses
import logging
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time
import traceback
import warnings

import make
import torch
from random_ops import GROUPS
from random_program import Author, others_of, words

LIMIT = 24  # seconds a conversion may take, far more than it needs


# Unusual options for the conversion.
def options(seed):
    r = random.Random(f"options {seed}")
    target = r.choice(["ort-cpu", "ort-cpu", "ort"])
    return [["--target", "ort-cpu"], ["--target", target, "--opset", str(r.randint(13, 26)), "--optimize", str(r.choice([0, 1, 2]))]]


class Wrong(Exception):
    """How a program fails: `kind` is wrong, refused, error or unexported."""

    def __init__(self, kind, what, given=()):
        super().__init__(what)
        self.kind, self.given = kind, list(given)


def tolerances(dtype, like_float32):
    if dtype == torch.float64 and not like_float32:
        return 1e-6, 1e-8
    return {torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 1e-2)}.get(dtype, (3e-5, 3e-6))


def spread(wanted, noisy):
    """By how much each element depends on rounding: infinite where it is not determined."""
    far = torch.zeros(wanted.shape, dtype=torch.float64)
    for other in noisy:
        if other.shape != wanted.shape:
            return torch.full_like(far, float("inf"))
        a, b = wanted.double(), other.double()
        same = (a == b) | (a.isnan() & b.isnan())
        distance = (a - b).abs().nan_to_num(float("inf"), float("inf"), float("inf"))
        if not wanted.is_floating_point():
            distance = torch.full_like(distance, float("inf"))
        far = torch.maximum(far, torch.where(same, 0.0, distance))
    return far


def difference(got, wanted, noisy, like_float32):
    """The difference, or None."""
    far = spread(wanted, noisy)
    # Nothing is determined, perhaps not even the shape.
    if far.isinf().all() and far.numel():
        return None
    if got.dtype != wanted.dtype:
        return f"type {got.dtype}, PyTorch's is {wanted.dtype}"
    if got.shape != wanted.shape:
        return f"shape {list(got.shape)}, PyTorch's is {list(wanted.shape)}"
    a, b = got.double(), wanted.double()
    rtol, atol = tolerances(wanted.dtype, like_float32) if wanted.is_floating_point() else (0, 0)
    close = (got == wanted) | (a.isnan() & b.isnan()) | far.isinf() | ((a - b).abs() <= atol + rtol * b.abs() + 10 * far)
    close &= (a.isfinite() == b.isfinite()) | far.isinf()
    if wanted.is_floating_point():
        # Beyond the largest number or just below it.
        close |= (b.abs() > 0.9 * torch.finfo(wanted.dtype).max) & (a.abs() > 0.9 * torch.finfo(wanted.dtype).max) & (a.sign() == b.sign())
    if close.all():
        return None
    at = tuple((~close).nonzero()[0].tolist())
    return f"{int((~close).sum())} of {close.numel()} values; at {list(at)} {got[at].item()}, PyTorch's is {wanted[at].item()}"


def fed(tensor):
    """A value that ONNX Runtime takes; NumPy has no bfloat16."""
    import numpy
    import onnxruntime

    if tensor.dtype == torch.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.view(torch.int16).numpy().view(numpy.uint16), 16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def given_back(value):
    if value.data_type() == "tensor(bfloat16)":
        return torch.utils.dlpack.from_dlpack(value._ortvalue.to_dlpack())
    return torch.from_numpy(value.numpy().copy()).reshape(value.shape())


def saved(program, door, folder):
    """The file of the program, the options that it needs, inputs that it takes, and what PyTorch runs."""
    if door != "export":
        file, made = pathlib.Path(folder, "p.pt"), program.trace() if door == "trace" else program.script()
        made.save(file)
        loaded = torch.jit.load(file)
        if not program.is_same(loaded, program.inputs):
            raise ValueError("TorchScript differs from the program")
        return file, program.declared(), [program.inputs, *program.others(loaded)], loaded
    file, (exported, _) = pathlib.Path(folder, "p.pt2"), program.export()
    torch.export.save(exported, file)
    return file, [], [program.inputs, *others_of(program, exported)], None


def examine(program, command, ways, door):
    """Raises `Wrong` at the first thing that fails. Returns how many outputs were compared."""
    with tempfile.TemporaryDirectory() as folder:
        return examine_in(folder, program, command, ways, door)


def examine_in(folder, program, command, ways, door):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        file, declared, samples, module = saved(program, door, folder)
    except Exception as error:
        raise Wrong("unexported", f"{type(error).__name__}: {str(error)[:200]}") from None
    references = []
    for inputs in samples:
        wanted = list(make.leaves(program.eager(inputs, module=module)))
        try:
            noisy = [list(make.leaves(program.eager(inputs, seed, module))) for seed in range(4)]
        except Exception:
            # An index that depends on rounding may not exist after another one.
            continue
        references.append((inputs, wanted, noisy))
    compared = 0
    model = pathlib.Path(folder, "p.onnx")
    for given in ways:
        model.unlink(missing_ok=True)
        try:
            done = subprocess.run([command, file, "-o", model, *declared, *given], capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Wrong("error", f"no end after {LIMIT} s", given) from None
        # Operators of a newer opset: the message says so.
        if done.returncode == 4 and "needs operators that opset" in done.stderr:
            continue
        if done.returncode:
            raise Wrong("error", f"exit {done.returncode}: {done.stderr[:1500]}", given)
        try:
            session = onnxruntime.InferenceSession(model, quiet(), providers=["CPUExecutionProvider"])
        except Exception as error:
            # The conversion says which kernels ONNX Runtime lacks.
            if "no CPU kernel" in done.stderr:
                continue
            raise Wrong("refused", f"load: {str(error)[:600]}", given) from None
        # The command warns of what it assumes of sizes.
        for inputs, wanted, noisy in references[:1] if " taken " in done.stderr else references:
            sizes = {n: list(t.shape) for n, t in inputs.items()}
            names = [i.name for i in session.get_inputs()]
            if len(names) != len(inputs):
                raise Wrong("wrong", f"inputs {names}", given)
            try:
                values = dict(zip(names, map(fed, make.leaves(program.arguments(inputs)))))
                got = session.run_with_ort_values([o.name for o in session.get_outputs()], values)
            except Exception as error:
                raise Wrong("refused", f"run, {sizes}: {str(error)[:600]}", given) from None
            if len(got) != len(wanted):
                raise Wrong("wrong", f"{len(got)} outputs of {len(wanted)}", given)
            for i, (value, w, *n) in enumerate(zip(got, wanted, *noisy)):
                compared += 1
                if what := difference(given_back(value), w, n, "float32" in done.stderr):
                    raise Wrong("wrong", f"output {i}, {sizes}: {what}", given)
    return compared


def quiet():
    import onnxruntime

    session = onnxruntime.SessionOptions()
    session.log_severity_level, session.intra_op_num_threads = 4, 1
    return session


def apart(function, *args, seconds=150):
    """The function's result from a separate process, which may crash or hang."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def work():
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        try:
            there.send(function(*args))
        except Exception:
            there.send(("generator", traceback.format_exc()[-600:], []))

    process = context.Process(target=work)
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else ("error", f"no end after {seconds} s", [])
    except EOFError:
        return "refused", "the process that ran it crashed", []
    finally:
        process.kill()
        process.join()


def outcome(program, command, ways, door):
    """(kind, text, options of the conversion)."""
    try:
        return "passed", f"{examine(program, command, ways, door)} outputs", []
    except Wrong as wrong:
        return wrong.kind, str(wrong), wrong.given


def short(seed):
    """The length of a program that is to be frozen."""
    return random.Random(seed).choice([2, 3, 4, 5, 6])


def judged(seed, groups, command, door="export", frozen=False):
    return outcome(Author(seed, groups, short(seed) if frozen else None).write(), command, options(seed)[: 1 if frozen else 2], door)


def prepare():
    """The first export of a process takes seconds: it happens before the processes of the programs are forked."""
    import onnxruntime  # noqa: F401

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    torch.export.export(Model(), (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim("n")},), strict=False).module()


def run(given):
    prepare()
    counts, started = {}, time.time()
    for seed in range(given.seed, given.seed + given.count):
        kind, text, ways = apart(judged, seed, given.groups, given.pt2onnx, given.door)
        counts[kind] = counts.get(kind, 0) + 1
        if kind not in ("passed", "unexported") or given.verbose:
            print(f"seed {seed}: {kind} {' '.join(ways)}: {text}", flush=True)
    ordered = ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items()))
    print(f"{given.count} programs in {time.time() - started:.0f} s: {ordered}")


def smaller(program):
    """Programs with something less, the largest steps first."""
    for name in program.outputs:
        if len(program.outputs) > 1:
            yield dataclasses.replace(program, outputs=[name])
    for i in reversed(range(len(program.lines))):
        rest = program.lines[:i] + program.lines[i + 1 :]
        yield trimmed(dataclasses.replace(program, lines=rest))
    for i in reversed(range(len(program.lines))):
        yield from value_as_input(program, i)
    if any(program.axes.values()):
        yield dataclasses.replace(program, axes={n: {} for n in program.inputs})
    if list(program.parameters) != list(program.parameters.values()):
        yield dataclasses.replace(program, parameters={n: n for n in program.inputs}, feed=False)
    if list(program.paths) != list(program.paths.values()):
        yield dataclasses.replace(program, paths={n: n for n in program.weights})


def trimmed(program):
    """Without lines that name what is gone, and without inputs and weights that nothing names."""
    known, lines = {*program.inputs, *program.weights}, []
    for names, code in program.lines:
        if known.issuperset(words(code)):
            lines.append((names, code))
            known |= set(names)
    outputs = [n for n in program.outputs if n in known] or [n for names, _ in lines for n in names][-1:]
    used = {n for _, code in lines for n in words(code)} | set(outputs)
    inputs = {n: t for n, t in program.inputs.items() if n in used} or dict(list(program.inputs.items())[:1])
    weights = {n: t for n, t in program.weights.items() if n in used}
    return dataclasses.replace(program, lines=lines, outputs=outputs, inputs=inputs, weights=weights)


def value_as_input(program, i):
    """The program from line `i` on, with that line's results as inputs."""
    names, _ = program.lines[i]
    if not names:
        return
    until = dataclasses.replace(program, lines=program.lines[: i + 1], outputs=names)
    try:
        results = dict(zip(names, until.eager(program.inputs)))
    except Exception:
        return
    fresh = {f"x{n[1:]}9": t.clone() for n, t in results.items() if not t.is_complex()}
    lines = [(n, re.sub(r"\bv(\d+)\b", lambda m: f"x{m[1]}9" if m[0] in results else m[0], code)) for n, code in program.lines[i + 1 :]]
    outputs = [n for n in program.outputs if n not in results]
    if len(fresh) < len(results) or not lines or not outputs:
        return
    yield trimmed(
        dataclasses.replace(
            program,
            lines=program.lines[:i] + lines,
            outputs=outputs,
            inputs=program.inputs | fresh,
            axes=program.axes | {n: {} for n in fresh},
            parameters=program.parameters | {n: n for n in fresh},
        )
    )


def minimise(given):
    prepare()
    for seed in given.seeds:
        program = Author(seed, given.groups).write()
        kind, text, ways = apart(outcome, program, given.pt2onnx, options(seed), given.door)
        if kind in ("passed", "unexported"):
            print(f"seed {seed}: {kind}")
            continue
        found = True
        while found:
            found = False
            for less in smaller(program):
                if not less.outputs or less == program:
                    continue
                again = apart(outcome, less, given.pt2onnx, [ways] if ways else options(seed), given.door)
                if again[0] == kind:
                    program, text, found = less, again[1], True
                    break
        print(f"# seed {seed}: {kind} {' '.join(ways)}: {text}\n{described(program)}", flush=True)


def described(program):
    tensors = [(program.inputs, "input"), (program.weights, "weight")]
    facts = [f"# {what} {n} = {t.tolist()} {t.dtype} {list(t.shape)} {program.axes.get(n) or ''}" for group, what in tensors for n, t in group.items()]
    return "\n".join(facts) + "\n" + program.source()


def show(given):
    for seed in given.seeds:
        print(f"# seed {seed}\n{described(Author(seed, given.groups).write())}")


def freeze_one(seed, given):
    """Saves the program as a case, if it exports and its results do not depend on rounding. Returns whether it did."""
    program = Author(seed, length=short(seed)).write()
    try:
        exported, shapes = program.export()
        others = list(others_of(program, exported))
    except Exception:
        return False
    other = random.Random(f"size {seed}").choice(others) if others else None
    for inputs in [program.inputs] + [other] * bool(other):
        wanted = list(make.leaves(program.eager(inputs)))
        for noise in range(4):
            for w, n in zip(wanted, make.leaves(program.eager(inputs, noise))):
                rtol, atol = tolerances(w.dtype, False) if w.is_floating_point() else (0, 0)
                if w.shape != n.shape or (spread(w, [n]) > atol + rtol * w.double().abs().nan_to_num(0, 0, 0)).any():
                    return False
    name = f"random_{seed:04}"
    try:
        make.save(given.folder, name, program.module(), program.arguments(), shapes, other and program.arguments(other))
    except Exception:
        shutil.rmtree(pathlib.Path(given.folder, name), ignore_errors=True)
        return False
    return True


def freeze(given):
    prepare()
    done, seed = 0, given.seed
    while done < given.count:
        kind, text, _ = apart(judged, seed, None, given.pt2onnx, "export", True)
        if kind == "passed":
            done += apart(freeze_one, seed, given) is True
        elif kind != "unexported":
            print(f"seed {seed} fails: {kind}: {text}", flush=True)
        seed += 1
    print(f"{done} programs of the seeds {given.seed} to {seed - 1}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="convert, run and compare programs")
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--count", type=int, default=100)
    runs.add_argument("--verbose", action="store_true", help="also name programs that pass, and those that PyTorch does not export")
    runs.set_defaults(function=run)
    for name, function, text in (("show", show, "print programs"), ("minimise", minimise, "make failing programs small")):
        command = commands.add_parser(name, help=text)
        command.add_argument("seeds", type=int, nargs="+", metavar="SEED")
        command.set_defaults(function=function)
    for command in commands.choices.values():
        command.add_argument("--groups", nargs="+", choices=list(GROUPS), help="draw calls of these groups only")
    for command in (runs, commands.choices["minimise"]):
        command.add_argument("--door", choices=["export", "trace", "script"], default="export", help="how the program is saved: by torch.export, torch.jit.trace or torch.jit.script")
    frozen = commands.add_parser("freeze", help="save programs as cases")
    frozen.add_argument("folder")
    frozen.add_argument("--seed", type=int, default=0)
    frozen.add_argument("--count", type=int, default=300)
    frozen.set_defaults(function=freeze)
    for command in (runs, commands.choices["minimise"], frozen):
        command.add_argument("--pt2onnx", default=os.environ.get("PT2ONNX", "target/release/pt2onnx"), help="the command")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    given.function(given)


if __name__ == "__main__":
    main()
