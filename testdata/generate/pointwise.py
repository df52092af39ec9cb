#!/usr/bin/env python3
"""Makes the cases of ops that work element by element, on the numbers where they are hard: signed zeros, infinities, NaN,
poles, ends of integer ranges, branch cuts.

    venv/bin/python testdata/generate/pointwise.py FOLDER
    venv/bin/python testdata/generate/make.py bundle FOLDER testdata/cases/pointwise.tar.zst

A line below is one program: a name, the element types, and expressions in x (and y), one output each. Left out is where
PyTorch's own kernels disagree with each other or with the mathematics (fmod of huge float32, sign of NaN), and int64
beyond 32 bits, whose upper half ONNX Runtime 1.31's Min, Max, Clip and Sign do not see.
"""
import sys

import make
import torch
from torch import special as S  # noqa: F401, the expressions use it
from torch.nn import functional as F  # noqa: F401, the expressions use it

FLOATS = "f32 f64 f16"
REAL = "f32 f64"
INTS = "i64 i32 u8"
UNARY = [
    ("rounding", FLOATS, "x.ceil() x.floor() x.round() x.trunc() x.frac() x.abs() -x x.signbit() torch.round(x,decimals=1) torch.round(x,decimals=-1)"),
    ("kinds", FLOATS, "x.isfinite() x.isinf() x.isnan() x.isposinf() x.isneginf() x.isreal() x.logical_not() x.nan_to_num() x.nan_to_num(1.,2.,-3.) x.nan_to_num(posinf=7.) x.angle() x.bool()"),
    ("integers", INTS, "x.ceil() x.round() x.abs() -x x.sign() x.sgn() x.signbit() x*x x**3 x.bitwise_not() x.isfinite() x.isinf() x.angle() x.exp() x.sqrt() x.sigmoid() x.clamp(1,2) x.clamp(2,1) F.relu(x)"),
    ("powers", REAL, "x.square() x.sqrt() x.rsqrt() x.reciprocal() x**3 x**-2 x**2.5 2**x 0.3**x x.exp() x.exp2() x.expm1() x.log() x.log2() x.log10() x.log1p() x.logit() x.logit(0.1)"),
    ("angles", "f32", "x.clamp(-1e3,1e3).sin() x.clamp(-1e3,1e3).cos() x.asin() x.acos() x.atan() x.sinh() x.cosh() x.tanh() x.asinh() x.acosh() x.atanh() x.sinc() x.deg2rad() x.rad2deg()"),
    ("bounds", FLOATS, "x.clamp(-1,2) x.clamp(2,-1) x.clamp(min=.5) x.clamp(max=.5) F.relu(x) F.relu6(x) F.hardtanh(x) F.threshold(x,.5,9.) F.hardshrink(x) F.softshrink(x)"),
    ("activations", "f32 f64", "x.sigmoid() F.elu(x,2.) F.selu(x) F.celu(x,2.) F.silu(x) F.mish(x) F.softplus(x) F.softplus(x,2.,5.) F.softsign(x) F.leaky_relu(x,.2) F.logsigmoid(x) F.hardsigmoid(x) F.gelu(x.clamp(-1e3,1e3)) F.gelu(x.clamp(-1e3,1e3),approximate='tanh')"),
    ("errors", REAL, "x.erfc() x.erfinv() S.erfcx(x) S.ndtr(x) S.ndtri(x) S.log_ndtr(x) S.entr(x)"),
    ("gamma", REAL, "x.lgamma() x.digamma() x.polygamma(2).nan_to_num() x.polygamma(3).nan_to_num()"),
    ("bessel", REAL, "x.i0() S.i0e(x) S.i1(x) S.i1e(x) S.bessel_j0(x) S.bessel_j1(x) S.bessel_y0(x) S.bessel_y1(x) S.modified_bessel_k0(x) S.modified_bessel_k1(x) S.scaled_modified_bessel_k0(x) S.scaled_modified_bessel_k1(x) S.spherical_bessel_j0(x) S.airy_ai(x.clamp(-8,8))"),
    ("parts", "c64", "x.abs() x.angle() x.sgn() -x x.conj().resolve_conj() x.real x.imag x.isfinite() x.logical_not() x*x x.sqrt() x.rsqrt() x.reciprocal() x+1 2j*x x-(1+2j) 1/x x==x.conj() x**2 x**(.5+1j)"),
    ("complex", "c64", "x.exp() x.exp2() x.expm1() x.log() x.log10() x.log1p() x.sin() x.cos() x.tan() x.asin() x.acos() x.atan() x.sinh() x.cosh() x.tanh() x.asinh() x.acosh() x.atanh() x.sigmoid() x.sinc()"),
]
BINARY = [
    ("arithmetic", REAL, "x+y x-y x*y x/y x.maximum(y) x.minimum(y) x.fmax(y) x.fmin(y) x.heaviside(y) x.copysign(y) x.nextafter(y) x.atan2(y) torch.xlogy(x,y) S.xlog1py(x,y) x.logaddexp(y) x.logaddexp2(y) x.isclose(y) x.isclose(y,.1,.5,True)"),
    ("orders", "f32 i64 u8 bool", "x==y x!=y x<y x<=y x>y x>=y x.logical_and(y) x.logical_or(y) x.logical_xor(y)"),
    ("division", "i64 i32 i8 u8", "x//y x%y x.fmod(y) x/y torch.div(x,y,rounding_mode='trunc') x//3 x%3 x//-7 x%-7"),
    ("bits", "i64 i32 u8", "x&y x|y x^y x<<y x>>y x<<3 x>>3 x.gcd(y) x.lcm(y) x**y.abs()"),
    ("remainders", "f64", "x.clamp(-9,9).fmod(y.clamp(.3,9)) x.clamp(-9,9)%y.clamp(.3,9) x.clamp(-9,9)//y.clamp(.3,9) x.clamp(-9,9)//-2.5 x.clamp(-9,9)%-2.5"),
    ("incomplete", REAL, "x.nan_to_num(posinf=50.).clamp(max=1e3).igamma(y.nan_to_num().clamp(max=1e3)) x.nan_to_num().clamp(max=1e3).igammac(y.nan_to_num().clamp(max=1e3)) S.zeta(x.clamp(-2,20),y.clamp(-20,20))"),
    ("polynomials", REAL, " ".join(f"S.{p}(x.clamp(-2,3),y.nan_to_num().clamp(-2,12))" for p in "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t".split())),
]
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool, "c64": torch.complex64}
HARD = [0.0, -0.0, 1e-40, 1e-20, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.75, 0.9999, 1.0, 1.4616, 1.5, 2.0, 2.5, 3.5, 5.0, 5.5, 7.9, 8.1, 20.0, 33.3, 60.0, 1e4, 1e10, 1e30]
SOME = [0.0, -0.0, 1e-20, 0.3, -0.3, 1.0, -1.0, 2.0, 3.0, -3.0, 7.5, -7.5, 1e30, -1e30]
ENDS = [0, 1, 2, 3, 5, 7, 9, 33, 64, 100, 127]
BOTH = [float("inf"), float("-inf"), float("nan")]


def numbers(kind, pairs):
    """One tensor of hard numbers, or two that hold all pairs of some."""
    dtype = TYPES[kind]
    if dtype.is_complex:
        grid = torch.tensor([-3.0, -1.0, -0.5, 0.25, 1.0, 2.0, 5.0])
        return [torch.complex(*torch.meshgrid(grid, grid, indexing="ij")).flatten() + (0.01 + 0.02j)]
    if dtype.is_floating_point:
        values = SOME + BOTH if pairs else HARD + [-v for v in HARD] + BOTH
        if dtype == torch.float16:
            values = [v for v in values if not 6e4 < abs(v) < 1e99]
    elif dtype == torch.bool:
        values = [True, False]
    elif pairs:
        values = [1, 2, 3, 5, 7, 9, 33, 100] if kind == "u8" else [-100, -9, -7, -3, -2, -1, 1, 2, 3, 5, 7, 9, 33, 100]
    else:
        info = torch.iinfo(dtype)
        values = ENDS + ([255] if kind == "u8" else [-v for v in ENDS] + [-128, 1000, max(info.min + 1, -(2**31)), 2**31 - 1])
    x = torch.tensor(values, dtype=dtype)
    return [t.flatten() for t in torch.meshgrid(x, x, indexing="ij")] if pairs else [x]


def program(expressions, count):
    functions = [eval(f"lambda {','.join('xy'[:count])}: {e}") for e in expressions]

    class Pointwise(torch.nn.Module):
        def forward(self, *args):
            return tuple(f(*args) for f in functions)

    return Pointwise()


def cases():
    for group, pairs in ((UNARY, False), (BINARY, True)):
        for name, kinds, expressions in group:
            for kind in kinds.split():

                def one(kind=kind, expressions=expressions.split(), pairs=pairs):
                    args = numbers(kind, pairs)
                    size = torch.export.Dim("n", min=2)
                    # Other sizes of the dynamic dimension: one number twice.
                    other = tuple(torch.cat([t, t[:1]]) for t in args)
                    return program(expressions, len(args)), tuple(args), (({0: size},) * len(args),), other

                yield f"pointwise_{name}_{kind}", one


if __name__ == "__main__":
    make.CASES = dict(cases())
    make.make(sys.argv[1], sys.argv[2:])
