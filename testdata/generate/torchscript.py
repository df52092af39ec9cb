#!/usr/bin/env python3
"""TorchScript programs, traced and scripted, saved as cases: model.pt, io.safetensors, and case.json with the options for the inputs.
Where a program is to be refused, `refused` is a part of the message.

    venv/bin/python testdata/generate/torchscript.py FOLDER [NAME...]
"""
from __future__ import annotations

import copy
import enum
import json
import pathlib
import sys
import warnings
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torchscript_cases
import torchscript_control
import torchscript_empty
import torchscript_loops
import torchscript_memory
import torchscript_quantized
import torchscript_values
from make import leaves
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

warnings.filterwarnings("ignore")

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}


def script(name, module, inputs, *samples, method="forward"):
    CASES[name] = ("script", module, {"input": inputs, "method": method}, *samples)


def trace(name, module, inputs, *samples):
    CASES[name] = ("trace", module, {"input": inputs}, *samples)


class Packed(nn.Module):
    """A recurrent network over sequences of different lengths."""

    def __init__(self, network, batch_first=False, sort=True):
        super().__init__()
        self.network, self.batch_first, self.sort = network, batch_first, sort

    def forward(self, x: Tensor, lengths: Tensor):
        packed = pack_padded_sequence(x, lengths, self.batch_first, self.sort)
        result, state = self.network(packed)
        return pad_packed_sequence(result, self.batch_first), state


def lengths(*numbers):
    return torch.tensor(numbers)


FIVE = (torch.randn(5, 3, 4), lengths(5, 3, 1)), (torch.randn(7, 2, 4), lengths(6, 6))
DYNAMIC = {"x": "float32[time,batch,4]", "lengths": "int64[batch]"}
trace("packed_lstm", Packed(nn.LSTM(4, 3)), DYNAMIC, *FIVE)
trace("packed_lstm_layers", Packed(nn.LSTM(4, 3, 2, dropout=0.1, bidirectional=True)), DYNAMIC, *FIVE)
trace("packed_lstm_projected", Packed(nn.LSTM(4, 3, proj_size=2, bidirectional=True)), DYNAMIC, *FIVE)
trace("packed_gru_batch_first", Packed(nn.GRU(4, 3, 2, batch_first=True), True),
      {"x": "float32[batch,time,4]", "lengths": "int64[batch]"},
      (torch.randn(3, 5, 4), lengths(5, 3, 1)), (torch.randn(2, 7, 4), lengths(6, 6)))
trace("packed_rnn_relu_unsorted", Packed(nn.RNN(4, 3, nonlinearity="relu"), sort=False), DYNAMIC,
      (torch.randn(5, 3, 4), lengths(2, 5, 1)), (torch.randn(7, 2, 4), lengths(1, 6)))


class Between(nn.Module):
    """Changes packed steps between two networks."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTM(4, 4), nn.RNN(4, 2)

    def forward(self, x, lengths):
        packed, _ = self.first(pack_padded_sequence(x, lengths))
        packed = nn.utils.rnn.PackedSequence(packed.data.relu() * 2, packed.batch_sizes)
        packed, last = self.second(packed)
        return pad_packed_sequence(packed, padding_value=-1.0, total_length=8)[0], last


trace("packed_steps_are_changed", Between(), DYNAMIC, *FIVE)


class Bounds(nn.Module):
    def forward(self, start: Tensor, end: Tensor, steps: Tensor):
        n = int(steps.item())
        return (torch.arange(float(end.item())), torch.arange(start.item(), end.item(), 0.75, dtype=torch.int64),
                torch.linspace(float(start.item()), float(end.item()), n), torch.hann_window(n), torch.kaiser_window(n),
                torch.blackman_window(n, periodic=False), torch.bartlett_window(n))


script("bounds_from_data", Bounds(), {"start": "float32[]", "end": "float32[]", "steps": "int64[]"},
       (torch.tensor(0.5), torch.tensor(7.25), torch.tensor(6)), (torch.tensor(-2.0), torch.tensor(3.0), torch.tensor(1)))


class Kind(enum.Enum):
    LINEAR = 0
    SQUARE = 1


class Pair(NamedTuple):
    first: Tensor
    second: Optional[Tensor]


class Containers(nn.Module):
    """Dicts, lists by reference, NamedTuples, Enums, strings, optional values."""

    def __init__(self):
        super().__init__()
        self.kind = Kind.SQUARE
        self.names: List[str] = ["one", "two"]
        self.layers = nn.ModuleDict({"one": nn.Linear(3, 3), "two": nn.Linear(3, 3)})

    def pair(self, x: Tensor) -> Pair:
        return Pair(x, None if self.kind == Kind.LINEAR else x * x)

    def forward(self, x: Tensor, scale: Optional[Tensor] = None) -> Dict[str, Tensor]:
        found: Dict[str, Tensor] = {}
        same = found
        for name, layer in self.layers.items():
            same[f"{name}!"] = layer(x)
        pair = self.pair(x)
        second = pair.second
        if second is not None:
            found["second"] = second
        if scale is not None:
            found["scaled"] = x * scale
        parts = [x.sum(0)]
        parts.append(x.amax(0))
        parts += [p + 1 for p in parts]
        found["parts"] = torch.stack(parts[1:] + parts[:1])
        return found


script("containers", Containers(), {"x": "float32[n,3]", "scale": "none"}, (torch.randn(2, 3), None), (torch.randn(4, 3), None))
script("optional_given", Containers(), {"x": "float32[n,3]", "scale": "float32[3]"}, (torch.randn(2, 3), torch.randn(3)))


class Control(nn.Module):
    """Conditions on data and on sizes, loops over sizes and on data."""

    def forward(self, x: Tensor, steps: int) -> Tuple[Tensor, Tensor, Tensor]:
        if bool(x.sum() > 0):
            y = x + 1
        else:
            y = x * 2
        total = torch.zeros(3)
        for i in range(steps):
            total = total + x[0] * i
        count = torch.zeros(1)
        while bool(count.sum() < x.abs().sum()):
            count = count + 1.5
        return y, total, count


script("control_on_data", Control(), {"x": "float32[n,3]", "steps": "int64[]"}, (torch.randn(2, 3), 3), (-torch.rand(4, 3), 0))


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)

    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        return self.encoder(x).tanh()

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encode(x))


script("another_method", Methods(), {"x": "float32[n,4]"}, (torch.randn(2, 4),), (torch.randn(5, 4),), method="encode")


class Nested(nn.Module):
    def forward(self, images: List[Tensor], sizes: Tuple[Tensor, int]) -> List[Tensor]:
        out: List[Tensor] = []
        for image in images:
            out.append(image[:, : sizes[1]] + sizes[0])
        return out


script("nested_inputs", Nested(), {"images.0": "float32[3,w]", "images.1": "float32[2,v]", "sizes.0": "float32[]", "sizes.1": "2"},
       ([torch.randn(3, 4), torch.randn(2, 5)], (torch.tensor(1.0), 2)),
       ([torch.randn(3, 2), torch.randn(2, 9)], (torch.tensor(1.0), 2)))


class Written(nn.Module):
    """In-place operations, views, and Python's slices."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = x.clone()
        y[:, 0] += 1
        y[-1] = 0
        y[y > 1] = 1
        row = y[1:-1:2]
        row.mul_(3)
        return y, torch.cat([r.unsqueeze(0) for r in torch.unbind(x, 1)]).flatten()


script("written_in_place", Written(), {"x": "float32[n,3]"}, (torch.randn(5, 3),), (torch.randn(8, 3),))


class Toeplitz(nn.Module):
    """A strided view of joined slices, and a constant made in the call."""

    def forward(self, x):
        few = x[:, :4] * torch.tensor([1.0, -1.0, 0.5, 2.0])
        both = torch.cat([few.flip(1), few[:, 1:]], 1)
        flipped = few[:, :3].flip(1)
        return both.as_strided((x.shape[0], 4, 4), (7, 1, 1)).flip(2), flipped.as_strided((x.shape[0], 2, 2), (3, 1, 1))


trace("traced_toeplitz", Toeplitz(), {"x": "float32[n,6]"}, (torch.randn(5, 6),), (torch.randn(8, 6),))


class ComplexNumbers(nn.Module):
    """Complex constants without dimensions count as numbers for the type of the result."""

    def forward(self, x):
        z, n, positive = torch.complex(x, x * 2), x.long(), x > 0
        filled = torch.zeros(2, dtype=torch.complex64).fill_(0.5 - 1.5j)
        made = x * 1j, z + (1 - 2j), n * 1j, n / (3 - 1j), positive + 2j, (1 + 1j) - x.double(), filled * n[:2, :2]
        return [torch.view_as_real(m) for m in made]


trace("traced_complex_numbers", ComplexNumbers(), {"x": "float32[n,3]"}, (torch.randn(5, 3),), (torch.randn(8, 3),))


class LastOfTwo(nn.Module):
    """The last of two parts, as the trace counts them."""

    def forward(self, x):
        _, last = x.split(2, -1)
        return last


trace("traced_parts", LastOfTwo(), {"x": "float32[n,m]"}, (torch.randn(5, 4),), (torch.randn(2, 3),))

trace("traced_in_place", Written(), {"x": "float32[n,3]"}, (torch.randn(5, 3),), (torch.randn(8, 3),))


class Forked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(self.layer, x)
        return torch.jit.wait(future) + x.size(0)


script("forked", Forked(), {"x": "float32[n,3]"}, (torch.randn(5, 3),), (torch.randn(8, 3),))


class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).flatten(1)


IMAGES = {"x": "float32[batch,3,H,W]"}
TWO_SIZES = (torch.randn(2, 3, 8, 8),), (torch.randn(3, 3, 10, 6),)
trace("traced_network", Old(), IMAGES, *TWO_SIZES)
script("scripted_network", Old(), IMAGES, *TWO_SIZES)
script("frozen_network", Old(), IMAGES, *TWO_SIZES)


class Lists(nn.Module):
    """Lists that a loop on sizes changes."""

    def forward(self, x: Tensor):
        rows: List[Tensor] = []
        numbers: List[int] = []
        sums: List[float] = []
        for i in range(x.size(0)):
            rows.append(x[i] * i)
            numbers.append(i * 2)
            sums.append(float(x[i].sum()))
        all_rows, wide, behind = torch.stack(rows), torch.stack(rows, 1), torch.cat(rows)
        rows.insert(0, x[1])
        last = rows.pop()
        rows[1] = x[0] * 7
        rows += [x[1], x[2]]
        del rows[0]
        total = x[0] * 0
        for row in rows:
            total = total * 2 + row
        return all_rows, wide, behind, torch.stack(rows), last, total, torch.tensor(numbers), torch.tensor(sums), numbers[-1]


ROWS = {"x": "float32[n,3]"}
FOUR_OR_SIX = (torch.randn(4, 3),), (torch.randn(6, 3),)
script("lists_in_loops", Lists(), ROWS, *FOUR_OR_SIX)


class ListsInBranches(nn.Module):
    """A list that grows by what data say, from a first element and from none."""

    def forward(self, x: Tensor):
        some: List[Tensor] = []
        more = [x[0]]
        for i in range(x.size(0)):
            if bool(x[i, 0] > 0):
                some.append(x[i])
            else:
                more.append(x[i] * 2)
        return torch.stack(more), len(some), torch.cat([x[0]] + some)


script("lists_in_branches", ListsInBranches(), ROWS, *FOUR_OR_SIX)


class Splits(nn.Module):
    """Parts whose number depends on sizes."""

    def forward(self, x: Tensor):
        pairs = torch.split(x, 2)
        total = x[:1] * 0
        for pair in pairs:
            total = total * 2 + pair.sum()
        last = x[0]
        for row in torch.unbind(x):
            last = last * 0.5 + row
        return total, pairs[0], len(pairs), torch.cat(pairs), last, torch.chunk(x, x.size(0) - 2)[1]


script("splits_of_sizes", Splits(), ROWS, (torch.randn(7, 3),), (torch.randn(6, 3),))


class WrittenInLoops(nn.Module):
    """Tensors, views and a buffer that loops and branches write into."""

    def __init__(self):
        super().__init__()
        self.register_buffer("start", torch.ones(3))
        self.count = 0

    def forward(self, x: Tensor):
        rows = torch.zeros(x.size(0), 3)
        view = rows[0]
        self.count = 0
        for i in range(x.size(0)):
            rows[i] = x[i] * 2
            rows[i, 1] += 1
            self.count += i
        sums = self.start.clone()
        for i in range(x.size(0)):
            for j in range(x.size(0)):
                sums[i % 3] += x[j, 0]
                if bool(x[i, 0] > 0):
                    sums[1] *= 0.5
        whole = x.clone()
        for i in range(x.size(0)):
            whole = whole.add_(i)
        branch = x * 1
        if bool(x.sum() > 0):
            branch.add_(1)
        else:
            branch[0] = 5
        both = x * 1
        both += 1
        for i in range(x.size(0)):
            both[i] *= i
        return rows, view, sums, whole, branch, both, self.count


POSITIVE_OR_NOT = (torch.rand(4, 3),), (-torch.rand(6, 3),)
script("written_in_loops", WrittenInLoops(), ROWS, *POSITIVE_OR_NOT)


class Unsure(nn.Module):
    """A condition on a size, slices and indices from data."""

    def forward(self, x: Tensor, n: Tensor):
        if x.size(0) > 5:
            y = x * 2
        else:
            y = x + 1
        numbers = [1, 5, 7]
        return y, x[int(n):], x[: int(n)], [x, x * 2, x * 3][int(n)], numbers[int(n)]


script("sizes_and_bounds_from_data", Unsure(), {"x": "float32[m,3]", "n": "int64[]"},
       (torch.randn(4, 3), torch.tensor(2)), (torch.randn(6, 3), torch.tensor(-2)))


class ScriptedPacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.GRU(4, 3, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor):
        packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)
        result, state = self.network(packed)
        result, lengths = pad_packed_sequence(result, total_length=x.size(0))
        return result, lengths, state


script("scripted_packed_gru", ScriptedPacked(), DYNAMIC, (torch.randn(5, 3, 4), lengths(2, 5, 1)), (torch.randn(7, 2, 4), lengths(1, 6)))


class Padded(nn.Module):
    def forward(self, a: Tensor, b: Tensor):
        return nn.utils.rnn.pad_sequence([a, b], True, 1.5), nn.utils.rnn.pad_sequence([a, b])


trace("sequences_are_padded", Padded(), {"a": "float32[n,3]", "b": "float32[m,3]"},
      (torch.randn(4, 3), torch.randn(2, 3)), (torch.randn(2, 3), torch.randn(5, 3)))


class Empty(nn.Module):
    """Asks whether there are rows."""

    def forward(self, x: Tensor):
        if x.size(0) == 0:
            y = torch.ones(2, 3)
        else:
            y = x.sum(0).expand(2, 3)
        return y * 2, x + x.size(0)


script("a_size_that_may_be_zero", Empty(), {"x": "float32[n>=0,3]"}, (torch.zeros(0, 3),), (torch.randn(4, 3),))


class Places(nn.Module):
    """Dimensions, positions and numbers of classes that data decides."""

    def forward(self, x: Tensor, labels: Tensor, at: int, numbers: Tensor):
        several = [x, x[:1], x[1:]]
        rows = [x[0], x[1], x[0] + x[1]]
        rows[at - 1] = x[1] * 2
        ints: List[int] = numbers.tolist()
        first, second = ints[0], ints[1]
        more = x.unsqueeze(at), x.unsqueeze(-at), x.unsqueeze(at).squeeze(at)
        return several[at], rows, more, F.one_hot(labels, at + 3), torch.tensor([first > 2, second > 2]), second


script("numbers_of_data_decide", Places(), {"x": "float32[2,3]", "labels": "int64[n]", "at": "int64[]", "numbers": "int64[2]"},
       (torch.randn(2, 3), torch.tensor([0, 3, 1]), 1, torch.tensor([2, 3])),
       (torch.randn(2, 3), torch.tensor([4, 2]), 2, torch.tensor([5, -1])))


CASES |= torchscript_control.CASES | torchscript_cases.CASES | torchscript_loops.CASES
CASES |= torchscript_quantized.CASES | torchscript_memory.CASES | torchscript_values.CASES | torchscript_empty.CASES


def write(folder, name, options, made, tensors):
    target = pathlib.Path(folder) / name
    target.mkdir(parents=True, exist_ok=True)
    made.save(str(target / "model.pt"))
    save_file(tensors, target / "io.safetensors")
    wider = {"atol": torchscript_quantized.QUANTA[name]} if name in torchscript_quantized.QUANTA else {}
    refused = torchscript_memory.REFUSED | torchscript_values.REFUSED | torchscript_loops.REFUSED
    if name in refused:
        wider["refused"] = refused[name]
    about = {"suite": "torchscript", "name": name, "torch": torch.__version__.split("+")[0], "options": options, **wider}
    (target / "case.json").write_text(json.dumps(about, indent=1))
    print(target)


def save_calls(folder, name):
    """A module with state: the samples are its first and its last call, with the state before and after each."""
    module, options, calls, state, attributes = torchscript_quantized.CALLS[name]
    made = torch.jit.script(module.eval())
    write_of = copy.deepcopy(made)
    tensors = {}
    for at, given in enumerate(calls):
        with torch.no_grad():
            outputs = list(leaves(made(*copy.deepcopy(given))))
        after = {key: torch.as_tensor(getattr(made, key)).detach().clone() for key in attributes}
        prefix = {0: "", len(calls) - 1: "alt."}.get(at)
        if prefix is not None:
            free = [t for t in leaves(given) if isinstance(t, torch.Tensor) and t.dim()] + list(state.values())
            tensors |= {f"{prefix}input.{i}": t.clone() for i, t in enumerate(free)}
            tensors |= {f"{prefix}output.{i}": t.clone() for i, t in enumerate(outputs + list(after.values()))}
        state = after
    write(folder, name, options, write_of, tensors)


def save(folder, name):
    if name in torchscript_quantized.CALLS:
        return save_calls(folder, name)
    how, module, options, inputs, *others = CASES[name]
    torch.manual_seed(0)
    module = module.eval()
    made = torch.jit.script(module) if how == "script" else torch.jit.trace(module, copy.deepcopy(inputs))
    made = torch.jit.freeze(made) if name.startswith("frozen") else made
    run = copy.deepcopy(made) if name in torchscript_loops.EXECUTED else module
    tensors = {}
    method = options.get("method", "forward")
    fixed = [key for key, text in options["input"].items() if "[" not in text]
    for prefix, given in zip(("", "alt."), (inputs, *others)):
        with torch.no_grad():
            outputs = getattr(run, method)(*copy.deepcopy(given))
        # Inputs that the options fix are not inputs of the model.
        free = [t for t in leaves(torchscript_quantized.parts(given))]
        if "sizes.1" in fixed:
            free.pop()
        tensors |= {f"{prefix}input.{i}": t for i, t in enumerate(free)}
        tensors |= {f"{prefix}output.{i}": t for i, t in enumerate(leaves(torchscript_quantized.parts(outputs, True)))}
    write(folder, name, options, made, tensors)

trace("packed_gru_doubles", Packed(nn.GRU(4, 3, 2, bidirectional=True).double(), sort=False), {"x": "float64[time,batch,4]", "lengths": "int64[batch]"},
      (torch.randn(5, 3, 4).double(), lengths(2, 5, 1)), (torch.randn(7, 2, 4).double(), lengths(1, 6)))


class Grouped(nn.Module):
    """Products whose types follow from their operands."""

    def forward(self, x: Tensor, weights: Tensor, ends: Tensor):
        rows = nn.functional.grouped_mm(x, weights, offs=ends)
        columns = nn.functional.grouped_mm(weights.transpose(1, 2), x.t(), offs=ends)
        sums = nn.functional.grouped_mm(x.t(), x, offs=ends)
        solved = torch.linalg.tensorsolve((x[:4, :4] + 9 * torch.eye(4)).reshape(2, 2, 2, 2), x[:2, :2])
        nothing = nn.functional.linear(x[:, None, :0], weights[0, :, :0], weights[0, :, 0])
        return rows, columns, sums, torch._chunk_cat([x, x[:, :2]], 0, 2), solved, nothing


trace("grouped_products", Grouped(), {"x": "float32[rows,8]", "weights": "float32[2,8,4]", "ends": "int32[2]"},
      (torch.randn(5, 8), torch.randn(2, 8, 4), torch.tensor([2, 5], dtype=torch.int32)), (torch.randn(8, 8), torch.randn(2, 8, 4), torch.tensor([1, 8], dtype=torch.int32)))


class Alignments(nn.Module):
    """Losses of sequences: rows of labels and labels in one row, lengths as tensors and as lists, one sequence alone."""

    def forward(self, x: Tensor, labels: Tensor, times: Tensor, lengths: Tensor):
        logs = x.log_softmax(2)
        rows = nn.functional.ctc_loss(logs, labels, times, lengths, reduction="none")
        mean = nn.functional.ctc_loss(logs, labels, times, lengths, blank=2, zero_infinity=True)
        one_row = nn.functional.ctc_loss(logs, labels.flatten()[:5], times, torch.tensor([2, 0, 3]), reduction="sum")
        lists = torch.ctc_loss(logs.double(), labels.flatten()[:5], [4, 3, 4], [1, 2, 2], 0, 0, False)
        alone = nn.functional.ctc_loss(logs[:, 0], labels[0, :3], times[0], lengths[0], reduction="none")
        return rows, mean, one_row, lists, alone


trace("alignments", Alignments(), {"x": "float32[time,3,5]", "labels": "int64[3,4]", "times": "int64[3]", "lengths": "int64[3]"},
      (torch.randn(6, 3, 5), torch.tensor([[1, 1, 3, 4], [2, 4, 1, 1], [3, 3, 3, 3]]), torch.tensor([6, 5, 4]), torch.tensor([3, 2, 4])),
      (torch.randn(9, 3, 5), torch.tensor([[1, 2, 3, 4], [4, 4, 4, -1], [3, 1, 3, 1]]), torch.tensor([9, 7, 8]), torch.tensor([3, 3, 0])))


class LeastSquares(nn.Module):
    """All of LAPACK's drivers, of matrices without full rank, vectors and batches."""

    def forward(self, x: Tensor, b: Tensor):
        low = x[:, :1] @ x[:1]
        return (torch.linalg.lstsq(x, b), torch.linalg.lstsq(x, b[:, 0], driver="gels")[0], torch.linalg.lstsq(x, b, driver="gels"),
                torch.linalg.lstsq(x.t(), b[:2], driver="gelsd"), torch.linalg.lstsq(low, b, rcond=1e-4), torch.linalg.lstsq(low, b, driver="gelss"), torch.linalg.lstsq(x, b, driver="gelsd"),
                torch.linalg.lstsq(torch.stack([x, x.flip(0)]), torch.stack([b, b]), driver="gels"), torch.linalg.lstsq(x[:0], b[:0]),
                torch.linalg.lstsq(torch.complex(x, x.flip(0)), torch.complex(b, b * 2))[0], torch.mul(x > 0, torch.tensor(True)))


trace("least_squares", LeastSquares(), {"x": "float32[4,2]", "b": "float32[4,3]"}, (torch.randn(4, 2), torch.randn(4, 3)), (torch.randn(4, 2), torch.randn(4, 3)))


class IntegersOfConstants(nn.Module):
    """Tensors that hold no data, whose elements are dimensions, sizes and counts."""

    def forward(self, x: Tensor):
        last, first, *_ = torch.arange(x.dim()).flip(0).unbind()
        order = torch.cat((torch.tensor([1, 0]), torch.arange(2, x.dim())))
        turned = x.permute(*order).permute(*torch.argsort(order))
        mean = x.mean(dim=torch.arange(1, x.dim()).tolist())
        rows = torch.tensor([[1, 2], [2, 3]])
        heights, widths = rows.unbind(1)
        areas = heights * widths
        starts = torch.cat((rows.new_zeros(1), areas.cumsum(0)))[:-1]
        parts = [x.narrow(2, start, 1).expand(-1, -1, area, -1) for start, area in zip(starts, areas)]
        large = torch.topk(areas, 1)[0]
        return turned, mean, parts, x.sum(last).sum(first - 1), x.reshape(-1, large[0] // 2, 8, 5)


trace("integers_of_constants", IntegersOfConstants(), {"x": "float32[batch,3,8,5]"}, (torch.randn(2, 3, 8, 5),), (torch.randn(4, 3, 8, 5),))


class SizesTakenApart(nn.Module):
    """Vectors of sizes that are split."""

    def forward(self, x: Tensor):
        rows, columns = torch.tensor([x.size(0), x.size(1)]).unbind()
        some = torch.tensor([1, x.size(1), x.size(0), x.size(1) * 2]).split([1, 3])
        first, _ = torch.tensor([x.size(1) - 1, x.size(0)]).chunk(2)
        return x.reshape(int(columns), int(rows)), x.reshape(int(some[0]), -1), x.new_ones(int(some[1][2]), int(some[1][0])), x[:, int(first) :]


script("sizes_taken_apart", SizesTakenApart(), {"x": "float32[rows,columns]"}, (torch.randn(3, 4),), (torch.randn(5, 2),))


class NoColumns(nn.Module):
    """Operators over a dimension that may be 0."""

    def forward(self, x: Tensor, weight: Tensor):
        plain = nn.functional.layer_norm(x, (x.shape[1],))
        scaled = nn.functional.layer_norm(x.half(), (x.shape[1],), weight.half(), weight.half(), 0.1)
        saved = torch.native_layer_norm(x.double(), (x.shape[1],), weight.double(), None, 1e-5)
        y = torch.stack([x, x + 1])
        products = (torch.einsum("bid,bjd->bij", y, y * 2), y @ y.mT, torch.baddbmm(x.new_ones(1), y, y.mT, beta=2), torch.tensordot(y, y, dims=([-1], [-1])),
                    torch.einsum("bid,cjd->bcij", y, y), torch.einsum("bid,bid->b", y, y), y @ weight, torch.einsum("bid,d->bi", y, weight),
                    weight @ x.t(), weight @ y.mT, weight @ weight, torch.einsum("d,jd->j", weight, x), torch.mv(x, weight))
        return plain, scaled, saved[0], torch.cdist(x, x.flip(0), p=float("inf")), torch.cdist(x, x + 1, p=0.0), products


trace("no_columns", NoColumns(), {"x": "float32[rows,columns>=0]", "weight": "float32[columns>=0]"}, (torch.randn(2, 4), torch.randn(4)), (torch.randn(3, 0), torch.randn(0)))


if __name__ == "__main__":
    for name in sys.argv[2:] or [*CASES, *torchscript_quantized.CALLS]:
        save(sys.argv[1], name)
