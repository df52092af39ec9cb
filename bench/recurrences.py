"""Forms of recurrent layers in ONNX Runtime: a Scan over tokens beside those without a loop over tokens.

    OMP_NUM_THREADS=1 python bench/recurrences.py [--runs 15]

Needs onnx and onnxruntime. Printed are medians of milliseconds of CPU, one thread, of one layer:

- the gated recurrence of RecurrentGemma, whose state is one number for each channel: as Scan, as com.microsoft.LinearAttention with a
  head for each channel, and in the associative form (pairs of tokens, of pairs, ...: as many steps as the logarithm of the tokens);
- that of RWKV 4, whose state is a quotient of sums with a common exponent: as Scan, and in the associative form;
- a convolution of four tokens with a state: Concat, Conv and Slice, and com.microsoft.CausalConvWithState.

The last column is one product of all tokens with a square matrix: such layers have several.
"""

import argparse
import re
import statistics
import time

import numpy
import onnx.parser
import onnxruntime

HEAD = '<ir_version: 9, opset_import: ["" : 18, "com.microsoft" : 1]>\n'
#: The pairs of a recurrence, whose distance doubles; `d` is the distance.
DOUBLING = """
  n = Shape <start: int = 1, end: int = 2> (b) nf = Cast <to: int = 1> (n) ln = Log (nf) steps = Div (ln, log2) whole = Ceil (steps)
  counts = Cast <to: int = 7> (whole) count = Squeeze (counts)
"""
CONSTANTS = """int64[1] zero = {0}, int64[1] one = {1}, int64 two = {2}, int64[1] last = {-1}, int64[1] end = {4611686018427387904},
  int64[2] axes = {2, 3}, float single = {1}, float none = {0}, float low = {-1e30}, bool yes = {1}, float log2 = {0.6931472},
  int64[1] minus = {-3}, int64[1] twos = {2}"""

GATED = {
    "Scan": """g (float[B,S,C] a, float[B,S,C] b, float[B,C] s, int64[S] i) => (float[B,C] state, float[S,B,C] rows)
{ state, rows = Scan <num_scan_inputs: int = 1, body: graph = body (float[B,C] x, int64 t) => (float[B,C] y, float[B,C] z) {
  at = Gather <axis: int = 1> (a, t) p = Mul (at, x) bt = Gather <axis: int = 1> (b, t) y = Add (p, bt) z = Identity (y) }> (s, i) }""",
    "LinearAttention": """g (float[B,S,C] a, float[B,S,C] b, float[B,C] s) => (float[B,C,1,1] state, float[B,S,C] rows)
{ decay = Log (a) sizes = Shape (b) k = Expand (single, sizes) first = Unsqueeze (s, axes)
  rows, state = com.microsoft.LinearAttention <q_num_heads: int = C, kv_num_heads: int = C, update_rule: string = "gated",
    scale: float = 1.0> (k, k, b, first, decay) }""",
    "associative": """g (float[B,S,C] a, float[B,S,C] b, float[B,C] s) => (float[B,1,C] state, float[B,S,C] rows)
{ DOUBLING s1 = Unsqueeze (s, one) a0 = Slice (a, zero, one, one) b0 = Slice (b, zero, one, one) as = Mul (a0, s1) with = Add (as, b0)
  others = Slice (b, one, end, one) all = Concat <axis: int = 1> (with, others)
  products, rows, distance = Loop <body: graph = body (int64 i, bool go, float[B,S,C] x, float[B,S,C] y, int64[1] d) =>
    (bool on, float[B,S,C] x2, float[B,S,C] y2, int64[1] d2) { on = Identity (go) nd = Neg (d) pads = Concat <axis: int = 0> (d, zero)
    xs = Slice (x, zero, nd, one) ys = Slice (y, zero, nd, one) xp = Pad (xs, pads, single, one) yp = Pad (ys, pads, none, one)
    x2 = Mul (x, xp) t = Mul (x, yp) y2 = Add (t, y) d2 = Mul (d, two) }> (count, yes, a, all, one)
  state = Slice (rows, last, end, one) }""",
}
RWKV = {
    "Scan": """g (float[B,S,C] b, float[B,S,C] v, float[C] w, float[C] u, float[B,C] n0, float[B,C] d0, float[B,C] m0, int64[S] i) =>
  (float[B,C] n, float[B,C] d, float[B,C] m, float[S,B,C] rows)
{ n, d, m, rows = Scan <num_scan_inputs: int = 1, body: graph = body (float[B,C] nx, float[B,C] dx, float[B,C] mx, int64 t) =>
    (float[B,C] ny, float[B,C] dy, float[B,C] my, float[B,C] o) { kt = Gather <axis: int = 1> (b, t) vt = Gather <axis: int = 1> (v, t)
    ku = Add (kt, u) mo = Max (mx, ku) s1 = Sub (mx, mo) e1 = Exp (s1) s2 = Sub (ku, mo) e2 = Exp (s2) p1 = Mul (e1, nx) p2 = Mul (e2, vt)
    no = Add (p1, p2) q1 = Mul (e1, dx) do = Add (q1, e2) o = Div (no, do) mw = Add (mx, w) my = Max (mw, kt) s3 = Sub (mw, my)
    e3 = Exp (s3) s4 = Sub (kt, my) e4 = Exp (s4) r1 = Mul (e3, nx) r2 = Mul (e4, vt) ny = Add (r1, r2) t1 = Mul (e3, dx)
    dy = Add (t1, e4) }> (n0, d0, m0, i) }""",
    # The states after all tokens; the results then come from those before, with `u`. The first state is that without tokens.
    "associative": """g (float[B,S,C] b, float[B,S,C] v, float[C] w, float[C] u) => (float[B,S,C] rows)
{ DOUBLING sizes = Shape (b) ones = Expand (single, sizes)
  m, n1, d1, distance = Loop <body: graph = body (int64 i, bool go, float[B,S,C] mx, float[B,S,C] nx, float[B,S,C] dx, int64[1] d) =>
    (bool on, float[B,S,C] my, float[B,S,C] ny, float[B,S,C] dy, int64[1] d2) { on = Identity (go) nd = Neg (d)
    pads = Concat <axis: int = 0> (d, zero) df = Cast <to: int = 1> (d) far = Mul (df, w)
    ms = Slice (mx, zero, nd, one) ns = Slice (nx, zero, nd, one) ds = Slice (dx, zero, nd, one)
    mf = Add (ms, far) mp = Pad (mf, pads, low, one) np = Pad (ns, pads, none, one) dp = Pad (ds, pads, none, one)
    my = Max (mx, mp) s1 = Sub (mx, my) e1 = Exp (s1) s2 = Sub (mp, my) e2 = Exp (s2) p1 = Mul (e1, nx) p2 = Mul (e2, np) ny = Add (p1, p2)
    q1 = Mul (e1, dx) q2 = Mul (e2, dp) dy = Add (q1, q2) d2 = Mul (d, two) }> (count, yes, b, v, ones, one)
  pads1 = Concat <axis: int = 0> (one, zero) mc = Slice (m, zero, last, one) nc = Slice (n1, zero, last, one) dc = Slice (d1, zero, last, one)
  mb = Pad (mc, pads1, low, one) nb = Pad (nc, pads1, none, one) db = Pad (dc, pads1, none, one)
  ku = Add (b, u) mo = Max (mb, ku) s5 = Sub (mb, mo) e5 = Exp (s5) s6 = Sub (ku, mo) e6 = Exp (s6) r1 = Mul (e5, nb) r2 = Mul (e6, v)
  no = Add (r1, r2) t1 = Mul (e5, db) do = Add (t1, e6) rows = Div (no, do) }""",
}
CONVOLUTION = {
    "Conv": """g (float[B,C,S] x, float[C,1,4] w, float[C] c, float[B,C,3] p) => (float[B,C,3] state, float[B,C,S] rows)
{ all = Concat <axis: int = 2> (p, x) y = Conv <group: int = C> (all, w, c) sig = Sigmoid (y) rows = Mul (y, sig)
  state = Slice (all, minus, end, twos) }""",
    "CausalConvWithState": """g (float[B,C,S] x, float[C,1,4] w, float[C] c, float[B,C,3] p) => (float[B,C,3] state, float[B,C,S] rows)
{ rows, state = com.microsoft.CausalConvWithState <activation: string = "silu"> (x, w, c, p) }""",
}


def session(text, channels):
    """A session of one thread."""
    signature, body = text.split("\n{", 1)
    text = f"{HEAD}{signature}\n<{CONSTANTS}>\n{{{body}".replace("DOUBLING", DOUBLING)
    text = re.sub(r"\bC\b", str(channels), text)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    model = onnx.parser.parse_model(text).SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def measured(forms, given, channels, runs):
    """The medians of milliseconds of CPU of forms, whose results are compared."""
    sessions = [session(text, channels) for text in forms.values()]
    times = [[] for _ in sessions]
    rows = []
    for run in range(runs + 1):
        for one, found in zip(sessions, times, strict=True):
            inputs = {value.name: given[value.name] for value in one.get_inputs()}
            start = time.process_time()
            out = one.run(["rows"], inputs)[0]
            if run:
                found.append(1e3 * (time.process_time() - start))
            else:
                rows.append(out if out.shape[0] == 1 else out.swapaxes(0, 1))
    for other in rows[1:]:
        numpy.testing.assert_allclose(other, rows[0], rtol=1e-3, atol=1e-4)
    return [statistics.median(found) for found in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    print("| layer | channels | tokens | as exported, ms | kernel, ms | associative, ms | a product, ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for channels in (512, 2560):
        for tokens in (1, 16, 512):
            numbers = numpy.random.default_rng(0)
            product = measured_product(channels, tokens, runs)

            def normal(*sizes, numbers=numbers):
                return numbers.standard_normal(sizes, numpy.float32)

            state = numpy.zeros((1, channels), numpy.float32)
            of_tokens = {"b": normal(1, tokens, channels), "i": numpy.arange(tokens), "s": state}
            of_tokens["a"] = numbers.uniform(0.5, 1, (1, tokens, channels)).astype(numpy.float32)
            of_tokens |= {"v": normal(1, tokens, channels), "w": -numpy.abs(normal(channels)), "u": normal(channels)}
            of_tokens |= {"n0": state, "d0": state, "m0": state - 1e30}
            of_convolution = {"x": normal(1, channels, tokens), "w": normal(channels, 1, 4), "c": normal(channels)}
            of_convolution["p"] = normal(1, channels, 3)
            for layer, forms, inputs in (
                ("RecurrentGemma", GATED, of_tokens),
                ("RWKV 4", RWKV, of_tokens),
                ("convolution", CONVOLUTION, of_convolution),
            ):
                found = dict(zip(forms, measured(forms, inputs, channels, runs), strict=True))
                names = (("Scan", "Conv"), ("LinearAttention", "CausalConvWithState"), ("associative",))
                cells = ["".join(f"{found[name]:.3f}" for name in group if name in found) for group in names]
                print(f"| {layer} | {channels} | {tokens} | {' | '.join(cells)} | {product:.3f} |", flush=True)


def measured_product(channels, tokens, runs):
    """The milliseconds of a product of tokens with a matrix."""
    text = f"g (float[1,S,{channels}] x, float[{channels},{channels}] w) => (float[1,S,{channels}] rows)\n{{ rows = MatMul (x, w) }}"
    numbers = numpy.random.default_rng(0)
    sizes = {"x": (1, tokens, channels), "w": (channels, channels)}
    given = {name: numbers.standard_normal(size, numpy.float32) for name, size in sizes.items()}
    return measured({"product": text}, given, channels, runs)[0]


if __name__ == "__main__":
    main()
