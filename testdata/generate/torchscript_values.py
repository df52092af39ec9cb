"""TorchScript programs about plain values: strings, texts of numbers, lists of numbers, arguments and bounds that data or sizes decide."""
from __future__ import annotations

import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}
# Programs that are refused, and a part of the message.
REFUSED = {}


def script(name, module, inputs, *samples):
    CASES[name] = ("script", module, {"input": inputs, "method": "forward"}, *samples)


def codes(texts: List[str]) -> Tensor:
    result: List[int] = []
    for text in texts:
        for c in text:
            result.append(ord(c))
        result.append(-1)
    return torch.tensor(result)


class MethodsOfStrings(nn.Module):
    """Each method of strings, with the results of PyTorch's interpreter, which are not always Python's."""

    def texts(self, x: str) -> List[str]:
        a = [x.upper(), x.lower(), x.title(), x.capitalize(), x.swapcase(), x.strip(), x.strip("ab"), x.lstrip("a"), x.rstrip("c"), x.center(9, "*"), x.ljust(7, "."),
             x.rjust(7), x.zfill(7), x.expandtabs(3), x.replace("b", "ZZ", 1), x.replace("", "-", 2), x[1:], x[:-1], x[::-1], x[-9:2], hex(len(x)), bin(-len(x)), oct(9), chr(65)]
        b = [str(x.split()), str(x.split("b", 1)), str(x.split(None, 1)), str(x.rsplit("b", 1)), str(x.splitlines(True)), str(x.partition("b")), str(x.rpartition("b"))]
        c = [x.islower(), x.isupper(), x.isspace(), x.isalnum(), x.isalpha(), x.isdigit(), x.istitle(), x.isprintable(), x.isidentifier(), x.startswith("a", 0, 1),
             x.endswith("b", -2), "b" in x, x < "b"]
        d = [x.find("b", 2), x.find("", 9), x.rfind("b", 0, -2), x.count("b", 1), x.rindex(""), len(x)]
        return a + b + [str(c), str(d)]

    def forward(self, x: Tensor):
        return x, codes(self.texts("") + self.texts("abcabc") + self.texts("a b\tC 1\n") + self.texts("Hello World") + self.texts("abc_1") + self.texts("-5"))


class TextsOfNumbers(nn.Module):
    """Floats have 17 digits, and integers among them a point."""

    def __init__(self):
        super().__init__()
        self.floats = [0.0, -0.0, 2.0, 0.1, 1 / 3, 1e-7, 1e-4, 1e15, 1e17, 1e20, 1e100, -2.5, 1e-300, 123456.789, float("inf")]

    def forward(self, x: Tensor):
        texts = [str(self.floats), str((1, 2.0)), str((1,)), str({"a": 1.0}), str([True]), str(None), str(1 - 2j), "{}|{}".format("a", 0.25), f"{{{0.5}}}"]
        for f in self.floats:
            texts.append("%s %f %e" % (f, f, f))
        return x, codes(texts + ["%d%% %i %s %c" % (3, 4, [1.5], 65), "%s" % ((1, 2),)])


class KeysByFormats(nn.Module):
    """Keys of dicts that formats make."""

    def __init__(self):
        super().__init__()
        self.scales = {"k_1": 2.0, "k_2.": 5.0, "k/3": 7.0}

    def forward(self, x: Tensor):
        return x * self.scales["k_%d" % 1], x * self.scales["k_{}".format(2.0)], x * self.scales[f"k/{3}"], x * len("é"), "é".find("x")


class MessagesOfSizes(nn.Module):
    """Texts of sizes that only messages show."""

    def forward(self, x: Tensor):
        assert x.size(0) > 0, f"no rows: {x.size()}"
        message = "rows " + str(x.size(0))
        if bool(x[0, 0] > 0):
            message = ",".join([message, "%d" % x.size(0)])
        if x.size(1) != 4:
            raise ValueError(message)
        return x * 2


class ListsOfNumbers(nn.Module):
    """Numbers at positions from data, and lists whose length a size says."""

    def forward(self, x: Tensor, at: int):
        floats, counts, seen = [0.0, 0.0, 0.0], [0, 0, 0], [False, False]
        floats[at - 3] = 2.5
        zeros = [0.0] * x.size(0)
        for i in range(x.size(0)):
            counts[i % 3] += 1
            seen[i % 2] = bool(x[i, 0] > 0)
            zeros[i] = float(x[i, 1])
        pair = [1, 2]
        pair *= 2
        rows = [(2, "b", 1.5), (1, "z", 0.0), (2, "a", 7.0)]
        rows.sort(reverse=True)
        return torch.tensor(floats), torch.tensor(counts), torch.tensor(seen), torch.tensor(zeros), torch.tensor(pair), x * sorted(rows)[0][2] + rows[0][2]


class TruthsOfLists(nn.Module):
    """Values that sizes and data decide, and sizes as a list."""

    def forward(self, x: Tensor):
        y = x + 1 if any([s < 3 for s in x.shape]) else x * 2
        z = y if all([bool(x[0, 0] > 0), bool(x[0, 1] > 0)]) else -y
        return y, z, x.reshape(torch.Size([4, x.size(0)])), any([x.size(0)])


class FunctionsOfNumbers(nn.Module):
    """Functions of known numbers."""

    def __init__(self):
        super().__init__()
        self.count, self.f = 5, -5.5

    def forward(self, x: Tensor):
        f, n = self.f, self.count
        numbers = [math.ldexp(f, -2), math.remainder(f, 2.0), math.remainder(n, 2), math.copysign(3.0, f), math.log(8.0, 2.0), abs(complex(3.0, 4.0)), math.modf(f)[0], math.modf(f)[1],
                   math.frexp(f)[0]]
        return x * math.factorial(n), torch.tensor(numbers), math.frexp(f)[1]


class TextOfASize(nn.Module):
    """The text of a dynamic size decides."""

    def forward(self, x: Tensor):
        return x * 2 if str(x.size(0)) == "3" else x


SAMPLES = (torch.rand(2, 4),), (-torch.rand(5, 4),)
REFUSED["text_of_a_size"] = "the text of a value that is not known"
script("text_of_a_size", TextOfASize(), {"x": "float32[n,4]"}, *SAMPLES)
# Python's results are others.
script("methods_of_strings", torch.jit.script(MethodsOfStrings()), {"x": "float32[n]"}, (torch.randn(2),))
script("texts_of_numbers", torch.jit.script(TextsOfNumbers()), {"x": "float32[n]"}, (torch.randn(2),))
script("keys_by_formats", torch.jit.script(KeysByFormats()), {"x": "float32[n]"}, (torch.randn(2),))
script("messages_of_sizes", MessagesOfSizes(), {"x": "float32[n,4]"}, *SAMPLES)
script("lists_of_numbers", ListsOfNumbers(), {"x": "float32[n,4]", "at": "int64[]"}, (torch.rand(2, 4), 1), (-torch.rand(5, 4), 2))
script("truths_of_lists", TruthsOfLists(), {"x": "float32[n,4]"}, *SAMPLES)
script("functions_of_numbers", FunctionsOfNumbers(), {"x": "float32[n]"}, (torch.randn(2),))


class ArgumentsByData(nn.Module):
    """Arguments that data or sizes decide: a truth value, and what may be None."""

    def forward(self, x: Tensor, bias: Tensor, flag: bool):
        maybe: Optional[Tensor] = None
        if flag:
            maybe = bias
        attention = F.scaled_dot_product_attention(x, x, x, is_causal=flag)
        largest = torch.topk(x, 2, dim=-1, largest=x.size(0) > 1)
        return attention, largest, F.layer_norm(x, [8], bias, maybe), F.linear(x, x[0], maybe)


script("arguments_by_data", ArgumentsByData(), {"x": "float32[n,8,8]", "bias": "float32[8]", "flag": "bool[]"}, (torch.randn(2, 8, 8), torch.randn(8), True),
       (torch.randn(1, 8, 8), torch.randn(8), False))


class Decoder(nn.Module):
    """A decoder asks of its mask whether it is causal."""

    def __init__(self):
        super().__init__()
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)

    def forward(self, x: Tensor, y: Tensor, mask: Tensor):
        return self.layers(y, x, tgt_mask=mask)


script("decoder_with_a_mask", Decoder(), {"x": "float32[b,4,8]", "y": "float32[b,3,8]", "mask": "float32[3,3]"}, (torch.randn(2, 4, 8), torch.randn(2, 3, 8), torch.zeros(3, 3)),
       (torch.randn(1, 4, 8), torch.randn(1, 3, 8), torch.full((3, 3), float("-inf")).triu(1)))


class OptionalState(nn.Module):
    """Attributes and tuples that are None until a trip of a loop gives them a value."""

    def __init__(self):
        super().__init__()
        self.state = torch.jit.Attribute(None, Optional[Tensor])
        self.pair = torch.jit.Attribute((0, None), Tuple[int, Optional[Tensor]])

    def step(self, x: Tensor):
        state = self.state
        self.state = x if state is None else state * 0.5 + x
        self.pair = (self.pair[0] + 1, x * 2 if self.pair[0] == 2 else self.pair[1])

    def forward(self, x: Tensor):
        self.state, self.pair = None, (0, None)
        both: Optional[Tuple[Tensor, Tensor]] = None
        for i in range(x.size(0)):
            self.step(x[i])
            if both is None:
                both = (x[i], x[i] * 2)
            else:
                both = (both[0] + x[i], both[1])
        state, last = self.state, self.pair[1]
        assert state is not None
        assert both is not None
        return state, self.pair[0], both, x if last is None else x + last


script("optional_state", torch.jit.script(OptionalState()), {"x": "float32[n,4]"}, (torch.randn(2, 4),), (torch.randn(5, 4),))


class WritesByBounds(nn.Module):
    """Writes into slices whose bounds may count from either end."""

    def forward(self, x: Tensor, k: int):
        a, b, c, d = x + 0, x + 0, x + 0, x + 0
        a[k:] = 0.0
        b[:, :k] = x[:, :k] * 2
        c[k - 1 : k + 1].fill_(7.0)
        shift = 0 if x.size(0) > 3 else 1
        d[-shift:] = x[-shift:] + 1
        return a, b, c, d


script("writes_by_bounds", WritesByBounds(), {"x": "float32[n,4]", "k": "int64[]"}, (torch.rand(3, 4), -1), (torch.rand(6, 4), 2))


class NumbersTakenApart(nn.Module):
    """Functions of numbers that data and sizes decide."""

    def forward(self, x: Tensor, n: int):
        f = float(x.sum().item()) * 10
        (a, b), (c, d), (e, g) = math.modf(f), math.modf(x.size(0) / 2), math.frexp(f)
        quotient, rest = divmod(f, 3.0)
        floats = [a, b, c, d, e, math.frexp(-f)[0], math.tan(f), math.atan(f), math.ldexp(f, n), math.log(float(n) + 3.0, 2.5), quotient, rest]
        return torch.tensor(floats, dtype=torch.float64), g, math.factorial(n), math.factorial(x.size(0))


script("numbers_taken_apart", NumbersTakenApart(), {"x": "float32[n]", "n": "int64[]"}, (torch.rand(3), 5), (-torch.rand(4), 0))


class ComplexNumbers(nn.Module):
    """Arithmetic on complex numbers."""

    def __init__(self):
        super().__init__()
        self.r = 1.5

    def forward(self, x: Tensor):
        z = complex(self.r, 2.0)
        numbers = torch.tensor([z, z * 2.0, z / complex(1.0, -3.0), z / complex(-3.0, 1.0), z - 1, 1 + z, -z])
        return x * z, x * (z * z), numbers, torch.tensor(z - 1.0, dtype=torch.complex128), x * abs(z), z == complex(1.5, 2.0), z != 1.5, complex(self.r, 0.0) == 1.5


script("complex_numbers", ComplexNumbers(), {"x": "complex64[n]"}, (torch.randn(3, dtype=torch.complex64),), (torch.randn(4, dtype=torch.complex64),))
