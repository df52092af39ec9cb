"""TorchScript programs with loops over dynamic sizes that change lists and dicts, and with contexts around operators."""
from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}

# Programs that give something else in TorchScript than in Python: TorchScript computes the outputs.
EXECUTED = {"autocast_of_scripts"}


def script(name, module, inputs, *samples):
    CASES[name] = ("script", module, {"input": inputs, "method": "forward"}, *samples)


class StackedCells(nn.Module):
    """The states of layers in a list of tuples, which each step replaces."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.LSTMCell(4, 2)])

    def forward(self, x: Tensor, states: Optional[List[Tuple[Tensor, Tensor]]] = None):
        if states is None:
            states = [(torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)), (torch.zeros(x.size(1), 2), torch.zeros(x.size(1), 2))]
        steps: List[Tensor] = []
        for t in range(x.size(0)):
            y = x[t]
            for i, cell in enumerate(self.cells):
                states[i] = cell(y, states[i])
                y = states[i][0]
            steps.append(y)
        return torch.stack(steps), states


script("states_in_a_list", StackedCells(), {"x": "float32[time,batch,3]", "states": "none"}, (torch.randn(5, 2, 3), None), (torch.randn(3, 4, 3), None))


class Elements(nn.Module):
    """Elements of lists and dicts that steps replace, exchange, count and write into."""

    def sums(self, x: Tensor):
        first = torch.zeros(2)
        pair = [first, torch.ones(2)]
        same = pair
        for t in range(x.size(0)):
            pair[0] += x[t]
            pair[1] = pair[0] * 2
        return first, same[0], same[1]

    def exchanged(self, x: Tensor):
        pair = [torch.zeros(2), torch.ones(2)]
        for t in range(x.size(0)):
            pair[0], pair[1] = pair[1], pair[0] + x[t]
        return pair

    def window(self, x: Tensor):
        last = [torch.zeros(2), torch.zeros(2), torch.zeros(2)]
        means: List[Tensor] = []
        for t in range(x.size(0)):
            last.append(x[t])
            last.pop(0)
            means.append(torch.stack(last).mean(0))
        return torch.stack(means), last

    def counted(self, x: Tensor):
        counts, totals = [0, 0, 0], [0.0, 1.0]
        for t in range(x.size(0)):
            if bool(x[t, 0] > 0):
                counts[0] += 1
            elif bool(x[t, 0] < -1):
                counts[2] += 1
            else:
                counts[1] += 1
            totals[0] += float(x[t, 0])
        return counts, torch.tensor(totals)

    def placed(self, x: Tensor):
        rows = [torch.zeros(2), torch.zeros(2), torch.zeros(2)]
        n = 0
        for t in range(x.size(0)):
            rows[0] = rows[0] + 1
            rows[n % 3] = rows[n % 3] + x[t]
            n += 1
        return rows[0], rows[1], rows[2]

    def named(self, x: Tensor) -> Tuple[Tensor, Tensor, int]:
        state: Dict[str, Tensor] = {"h": torch.zeros(2), "sum": torch.zeros(2)}
        same = state
        i = 0
        while i < x.size(0) and bool(state["sum"].sum() < 2):
            state["h"] = torch.tanh(x[i] + state["h"])
            state["sum"] = state["sum"] + state["h"].abs()
            i += 1
        return same["h"], same["sum"], i

    def nested(self, x: Tensor):
        grid = [[torch.zeros(2), torch.zeros(2)], [torch.ones(2), torch.ones(2)]]
        best: List[Tuple[Tensor, float]] = [(torch.zeros(2), -9.0), (torch.zeros(2), -8.0)]
        held: List[Optional[Tensor]] = [None]
        for t in range(x.size(0)):
            grid[0][1] = grid[1][0] + x[t]
            grid[1][0] = grid[0][1] * 0.5
            total = float(x[t].sum())
            if total > best[0][1]:
                best[1] = best[0]
                best[0] = (x[t], total)
            before = held[0]
            held[0] = x[t] if before is None else x[t] - before
        last = held[0]
        return grid, best[0][0], best[1][0], torch.tensor([best[0][1], best[1][1]]), x[0] if last is None else last

    def forward(self, x: Tensor):
        return self.sums(x), self.exchanged(x), self.window(x), self.counted(x), self.placed(x), self.named(x), self.nested(x)


script("elements_that_loops_change", Elements(), {"x": "float32[n,2]"}, (torch.randn(4, 2),), (torch.randn(7, 2),))


class Replaced(nn.Module):
    """Variables that each step gives another list or dict."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(2, 4), nn.GRUCell(4, 3)])

    def layers(self, x: Tensor):
        states = [torch.zeros(1, 4), torch.zeros(1, 3)]
        for t in range(x.size(0)):
            after: List[Tensor] = []
            y = x[t : t + 1]
            for i, cell in enumerate(self.cells):
                y = cell(y, states[i])
                after.append(y)
            states = after
        return states

    def step(self, x: Tensor, states: List[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, List[Tuple[Tensor, Tensor]]]:
        after: List[Tuple[Tensor, Tensor]] = []
        for h, c in states:
            h = torch.tanh(h + x)
            c = c + h
            after.append((h, c))
            x = h
        return x, after

    def steps(self, x: Tensor):
        states = [(torch.zeros(2), torch.zeros(2)), (torch.ones(2), torch.zeros(2))]
        found: List[Tensor] = []
        for t in range(x.size(0)):
            y, states = self.step(x[t], states)
            found = found + [y]
        return torch.stack(found), states

    def written(self, x: Tensor):
        pair = [x[0].clone(), x[0].clone()]
        for t in range(x.size(0)):
            first = pair[0]
            pair = [first + x[t], first]
            pair[0].add_(1)
            if bool(x[t].sum() > 0):
                pair = [pair[1], pair[0]]
            else:
                other = [x[t]]
                other.append(pair[1])
                pair = other
        return pair

    def named(self, x: Tensor):
        state: Dict[str, Tensor] = {"h": x[0], "n": torch.zeros((), dtype=torch.long)}
        while bool(state["h"].abs().max() < 10):
            state = {"h": state["h"] * 1.7 + 0.1, "n": state["n"] + 1}
        return state

    def rows(self, x: Tensor):
        kept: List[Tensor] = []
        total = [torch.zeros(2)]
        for i in range(x.size(0)):
            row = [torch.zeros(2)]
            for t in range(x.size(0)):
                row = [row[0] + x[t] * i]
            total = [torch.tanh(total[0] + row[0])]
            kept.append(total[0])
        return torch.stack(kept), total

    def forward(self, x: Tensor):
        return self.layers(x), self.steps(x), self.written(x), self.named(x), self.rows(x)


script("lists_that_loops_replace", Replaced(), {"x": "float32[n,2]"}, (torch.randn(4, 2),), (torch.randn(7, 2),))


class Shared(nn.Module):
    """Another name has the list that each step replaces."""

    def forward(self, x: Tensor):
        pair = [x[0], x[0]]
        last = pair
        for t in range(x.size(0)):
            last = pair
            pair = [x[t], pair[0]]
        return last[0], last[1], pair[0], pair[1]


script("a_list_by_two_names_in_a_loop", Shared(), {"x": "float32[n,2]"}, (torch.randn(4, 2),), (torch.randn(7, 2),))


class WrittenBefore(nn.Module):
    """The list of another name is changed in the first step, and then replaced."""

    def forward(self, x: Tensor):
        pair = [x[0], x[0]]
        same = pair
        for t in range(x.size(0)):
            pair[0] = pair[0] + 1
            pair = [x[t], pair[0]]
        return same[0], pair[0], pair[1]


script("a_list_changed_before_it_is_replaced", WrittenBefore(), {"x": "float32[n,2]"}, (torch.randn(4, 2),), (torch.randn(7, 2),))

# Programs that are refused, and a part of the message.
REFUSED = {"a_list_by_two_names_in_a_loop": "which it changes, is List", "a_list_changed_before_it_is_replaced": "changed by another name"}


class Candidates(nn.Module):
    """Tuples that data choose from a list."""

    def forward(self, x: Tensor):
        found: List[Tuple[Tensor, float, int]] = []
        for i in range(3):
            found.append((x * i, float(x[i].sum()), i * 2))
        best = 0
        for i in range(len(found)):
            if found[i][1] > found[best][1]:
                best = i
        rows, total, number = found[best]
        return rows, torch.tensor(total), number, found[int(x.sum() > 0) - 1][0]


script("tuples_by_data", Candidates(), {"x": "float32[n>=3,2]"}, (torch.randn(4, 2),), (torch.randn(7, 2),))


class Backwards(nn.Module):
    """Lists of unknown length that are read from behind and in steps."""

    def forward(self, scores: Tensor, between: Tensor):
        best = scores[0]
        history: List[Tensor] = []
        for i in range(1, scores.size(0)):
            best, at = (best.unsqueeze(1) + between + scores[i].unsqueeze(0)).max(0)
            history.append(at)
        last = best.argmax()
        path = [last]
        for at in history[::-1]:
            last = at[last]
            path.append(last)
        path.reverse()
        rows = scores.unbind(0)
        return torch.stack(path), torch.stack(rows[::-1]), torch.stack(rows[::2]), torch.stack(rows[::-2]), torch.stack(rows[1:3:2]), torch.stack(rows)


script("lists_from_behind", Backwards(), {"scores": "float32[n>=3,4]", "between": "float32[4,4]"},
       (torch.randn(5, 4), torch.randn(4, 4)), (torch.randn(8, 4), torch.randn(4, 4)))


class Autocast(nn.Module):
    """Regions of autocast on the CPU, on another device, switched off and profiled."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x: Tensor):
        with torch.autocast("cpu"):
            y = self.linear(x)
            both = torch.cat([y, torch.relu(y)])
            product = torch.matmul(y, both.t())
            full = y + y, y.exp(), self.norm(y), y.sum(), y * 2.0, y.log_softmax(-1), torch.pow(y, 2)
            with torch.autocast("cpu", enabled=False):
                plain = self.linear(x)
            kept = y.mean(), y.softmax(-1), torch.sigmoid(y)
        with torch.autocast("cuda", dtype=torch.float16), torch.profiler.record_function("linear"):
            other = self.linear(x)
        kinds = torch.tensor([y.dtype == torch.bfloat16, product.dtype == torch.bfloat16, kept[0].dtype == torch.bfloat16, kept[1].dtype == torch.bfloat16])
        return y.float(), both.float(), product.float(), full, plain, kept[0].float(), kept[1].float(), kept[2].float(), other, kinds


script("autocast_of_scripts", Autocast(), {"x": "float32[n,4]"}, (torch.randn(2, 4),), (torch.randn(5, 4),))


class Spectrum(nn.Module):
    """The inverse of a spectrum, as long as the signal."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x: Tensor):
        spectrum = torch.stft(x, 16, 4, 16, self.window, return_complex=True)
        same = torch.istft(spectrum, 16, 4, 16, self.window, length=x.size(-1))
        return same, torch.istft(spectrum, 16, 4, 16, self.window, length=x.size(-1) + 6), torch.istft(spectrum, 16, 4, length=x.size(-1) // 2)


script("signals_of_dynamic_length", Spectrum(), {"x": "float32[batch,samples]"}, (torch.randn(1, 64),), (torch.randn(2, 83),))


class Rates(nn.Module):
    """Numbers that functions of known numbers give, where they must be known."""

    def __init__(self):
        super().__init__()
        self.old, self.new = 16000, 24000

    def forward(self, x: Tensor):
        divisor = math.gcd(self.old, self.new)
        old, new = self.old // divisor, self.new // divisor
        width = math.ceil(6 * old / min(old, new))
        taps = torch.arange(-width, width + old, dtype=torch.float32)[None, None] / old
        taps = (torch.arange(0, -new, -1, dtype=torch.float32)[:, None, None] / new + taps).clamp(-6, 6)
        y = nn.functional.conv1d(nn.functional.pad(x, (width, width + old))[:, None], torch.cos(taps * math.pi / 12), stride=old)
        groups = int(math.log10(1000.0) + 0.5) + int(math.degrees(math.acos(0.0)) / 89) + int(math.fmod(7.5, 4.0)) + int(math.isnan(0.5))
        power = math.sinh(0.5) + math.asinh(2.0) + math.atan2(1.0, 2.0) + math.expm1(0.25) + math.log1p(0.5) + math.radians(30.0) + math.acosh(2.0)
        return y.transpose(1, 2).flatten(1), x.reshape(x.size(0), groups + 1, -1), x * (power + math.cosh(0.5) + math.asin(0.5) + math.atanh(0.5))


script("functions_of_known_numbers", Rates(), {"x": "float32[batch,64]"}, (torch.randn(1, 64),), (torch.randn(3, 64),))


class PaddedEncoder(nn.Module):
    """An encoder that has a fast path for padded batches. Its results for padded steps depend on the path."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x: Tensor, padded: Tensor):
        return self.encoder(x, src_key_padding_mask=padded).masked_fill(padded.unsqueeze(-1), 0.0)


def padding(length, *lengths):
    return torch.arange(length)[None] >= torch.tensor(lengths)[:, None]


script("padded_encoder", PaddedEncoder(), {"x": "float32[batch,time,8]", "padded": "bool[batch,time]"},
       (torch.randn(2, 5, 8), padding(5, 5, 3)), (torch.randn(3, 6, 8), padding(6, 6, 2, 4)))


class RowsAppended(nn.Module):
    """Lists that each iteration of a loop makes longer; there may be no iteration."""

    def forward(self, x: Tensor):
        rows, numbers, both = [x.sum(0)], torch.jit.annotate(List[int], []), [x.mean(), x.sum()]
        lengths = torch.jit.annotate(List[int], [])
        for i in range(x.size(0)):
            rows.append(rows[0] * i + x[i])
            numbers.append(i * 2)
            both.append(x[i, 0, 0])
            both.append(x[i, 0, 1])
            for j in range(x.size(1)):
                lengths.append(i + j)
            lengths.append(len(lengths))
        return torch.stack(rows), torch.tensor(numbers, dtype=torch.int64), torch.stack(both), torch.tensor(lengths, dtype=torch.int64), rows[-1], len(numbers)


script("rows_appended", RowsAppended(), {"x": "float32[n>=0,b,4]"}, (torch.rand(3, 2, 4),), (torch.rand(0, 3, 4),))


class Hypothesis(NamedTuple):
    tokens: List[int]
    state: Tensor


class NestedStates(nn.Module):
    """Lists and dicts within lists, dicts and tuples, which each trip of a loop replaces."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(4, 4) for _ in range(2)])

    def step(self, x: Tensor, state: Tuple[Tensor, List[Tuple[Tensor, Tensor]]]) -> Tuple[Tensor, Tuple[Tensor, List[Tuple[Tensor, Tensor]]]]:
        total, old = state
        new: List[Tuple[Tensor, Tensor]] = []
        for i, cell in enumerate(self.cells):
            h, c = cell(x, old[i])
            new.append((h, c))
            x = h
        return x, (total + x, new)

    def forward(self, x: Tensor):
        zero = torch.zeros(2, 4)
        state = (zero, [(zero, zero), (zero, zero)])
        lists: List[List[Tensor]] = [[zero, zero + 1], [zero + 2]]
        dicts: Dict[str, Dict[str, Tensor]] = {"a": {"k": zero, "v": zero + 1}}
        best = Hypothesis([0], zero)
        pair = ([1, 2], zero)
        for t in range(x.size(0)):
            y, state = self.step(x[t], state)
            if bool(x[t].sum() > 0):
                lists = [[lists[0][1] + x[t], y], [lists[1][0] * 0.5]]
            else:
                lists = [[y * 1.5, lists[0][0]], [lists[1][0] - x[t]]]
            lists[0][0].add_(1)
            dicts["a"] = {"k": dicts["a"]["k"] + x[t], "v": dicts["a"]["v"] * y}
            best = Hypothesis(best.tokens + [int(x[t].argmax())], best.state + y)
            pair = ([pair[0][1], pair[0][0] + pair[0][1]], pair[1] + x[t] * pair[0][0])
        tokens = torch.tensor(best.tokens, dtype=torch.int64)
        return state, lists[0][0], lists[0][1], lists[1][0], dicts["a"]["k"], dicts["a"]["v"], tokens, best.state, pair[0][0], pair[1]


script("nested_states", NestedStates(), {"x": "float32[n,2,4]"}, (torch.randn(4, 2, 4),), (torch.randn(1, 2, 4),))


class StateInTwoPlaces(nn.Module):
    """A loop replaces a value that is in another place as well."""

    def forward(self, x: Tensor):
        states = [[x[0]], [x[0] + 1]]
        for t in range(x.size(0)):
            states = [states[1], [states[0][0] + x[t]]]
        return states[0][0], states[1][0]


script("state_in_two_places", StateInTwoPlaces(), {"x": "float32[n,2,4]"}, (torch.randn(4, 2, 4),), (torch.randn(1, 2, 4),))
REFUSED["state_in_two_places"] = "which it changes, is List"


class WrittenAndReplaced(nn.Module):
    """Tensors that each trip writes into, and then gives another value."""

    def cells(self, x: Tensor):
        h, kept = torch.zeros(3), torch.jit.annotate(List[Tensor], [])
        for t in range(x.size(0)):
            h += x[t]
            kept.append(h)
            h = torch.tanh(h)
        return h, torch.stack(kept)

    def sometimes(self, x: Tensor):
        h, n = torch.zeros(3), 0
        while bool(h.sum() < 3) and n < x.size(0):
            h.add_(x[n].abs())
            if n > 1:
                h = h / 2
            n += 1
        h += 1
        return h, n

    def rows(self, x: Tensor):
        buffer, mask = torch.zeros(4, 3), torch.ones(x.size(0), dtype=torch.bool)
        for t in range(x.size(0)):
            buffer[t % 4] = x[t]
            buffer = torch.roll(buffer, 1, 0)
            mask[int(x[:, 0].masked_fill(~mask, -9.0).argmax())] = False
            mask = mask & (x[:, 1] > -3)
        return buffer, mask

    def exchanged(self, x: Tensor):
        a, b = torch.zeros(3), torch.ones(3)
        for t in range(x.size(0)):
            a += x[t]
            b += a
            a, b = b, a
        return a, b

    def longer(self, x: Tensor):
        rows = torch.zeros(1, 3)
        for t in range(x.size(0)):
            rows[-1] += 1
            rows = torch.cat([rows, x[t : t + 1]])
        return rows

    def forward(self, x: Tensor):
        return self.cells(x), self.sometimes(x), self.rows(x), self.exchanged(x), self.longer(x)


script("written_and_replaced", WrittenAndReplaced(), {"x": "float32[n,3]"}, (torch.randn(5, 3),), (torch.randn(1, 3),))


class ReadsWhatWasReplaced(nn.Module):
    """Another name has the tensor that the first trip writes into."""

    def forward(self, x: Tensor):
        h = torch.zeros(3)
        first = h
        for t in range(x.size(0)):
            h += x[t]
            h = torch.tanh(h)
        return h, first


class KeepsWhatItReplaces(nn.Module):
    """The next trip writes into what this one keeps by another name."""

    def forward(self, x: Tensor):
        h, best, total = torch.zeros(3), torch.ones(3), torch.zeros(3)
        for t in range(x.size(0)):
            total = total + best
            h += x[t]
            if bool(x[t, 0] > 0):
                h = torch.tanh(h)
            best = h
        return h, best, total


class ReplacedWithin(nn.Module):
    """An inner loop writes into what the outer one keeps by another name."""

    def forward(self, x: Tensor):
        h, best, total = torch.zeros(3), torch.ones(3), torch.zeros(3)
        for _ in range(x.size(0)):
            total = total + best
            for t in range(x.size(0)):
                h += x[t]
                h = torch.tanh(h)
            best = h
        return h, best, total


script("reads_what_was_replaced", ReadsWhatWasReplaced(), {"x": "float32[n,3]"}, (torch.randn(5, 3),))
script("keeps_what_it_replaces", KeepsWhatItReplaces(), {"x": "float32[n,3]"}, (torch.randn(5, 3),))
script("replaced_within", ReplacedWithin(), {"x": "float32[n,3]"}, (torch.randn(5, 3),))
REFUSED["reads_what_was_replaced"] = "a tensor, after a write into one that data decide to be the same or another ("
REFUSED["keeps_what_it_replaces"] = "it writes into a tensor that it keeps in `best"
REFUSED["replaced_within"] = "it writes into a tensor that it also replaces"
