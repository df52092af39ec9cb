#!/usr/bin/env python3
"""Makes a case for each overload that neither real models nor PyTorch's own op samples call.

    venv/bin/python testdata/generate/overloads.py FOLDER [NAME...]

A table below gives each overload its arguments (`ARGS`), or none where the schema alone suggests them. A program is one call
of the overload on the tensors among its arguments. Each is exported with fixed sizes, and, where PyTorch finds that sizes
may vary, with every size dynamic (the folder's name then ends in `.dynamic`). Overloads that do not survive torch.export, or
that PyTorch cannot run, are printed with the reason.
"""
from __future__ import annotations

import argparse
import io
import json
import logging
import pathlib
import shutil
import warnings
from inspect import isfunction

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from safetensors.torch import save_file

from make import leaves


# Short names for the tensors of the table.
def f(*shape):
    """Float32."""
    return torch.randn(shape)


def p(*shape):
    """Float32 between 0.1 and 0.9: probabilities, variances, positive numbers."""
    return torch.rand(shape) * 0.8 + 0.1


def ints(*shape, low=0, high=6, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def i8(*shape):
    return ints(*shape, low=-9, high=9, dtype=torch.int8)


def h(*shape):
    """Float16."""
    return torch.randn(shape).half()


def c(*shape):
    """Complex64."""
    return torch.randn(shape, dtype=torch.complex64)


def t(*values, dtype=None):
    """A vector of these values, or the only one without dimensions."""
    return torch.tensor(values if len(values) > 1 else values[0], dtype=dtype)


def well(n):
    """A matrix that is far from singular."""
    return torch.randn(n, n) * 0.3 + torch.eye(n) * 2


def symmetric(n):
    return well(n) + well(n).T


def kw(**kwargs):
    return kwargs


def reflectors():
    return torch.geqrf(f(4, 3))


def bag(mode):
    return f(6, 3), t(1, 2, 4, 5, 4, 3), t(0, 2, 4), False, mode


def norm(*rest):
    return f(2, 3, 4), f(3), f(3), f(3), p(3), *rest


def conv(*rest):
    return f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), *rest


def slow(rank, *rest):
    return f(1, 2, *[5] * rank), f(3, 2, *[3] * rank), (3,) * rank, f(3), *rest


def gates(n, bidirectional=False):
    return [x for _ in range(1 + bidirectional) for x in (f(3 * n, 4), f(3 * n, 3), f(3 * n), f(3 * n))]


def rnn(n, bidirectional=False, pair=False):
    state = f(1 + bidirectional, 2, 3)
    return f(5, 2, 4), [state, state + 1] if pair else state, gates(n, bidirectional), True, 1, 0.0, False, bidirectional, False


def cell(n, pair=False):
    return f(2, 4), [f(2, 3), f(2, 3)] if pair else f(2, 3), f(3 * n, 4), f(3 * n, 3), f(3 * n), f(3 * n)


def attention(*rest):
    return f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4), *rest


def layer():
    return f(2, 3, 4), 4, 2, f(12, 4), f(12), f(4, 4), f(4)


def attributes(**ints):
    """Integer attributes of an ONNX operator as `onnx_symbolic` takes them."""
    names = list(ints)
    spans = [[i, i + 1] for i in range(len(names))]
    none = {f"attr_{kind}": [] for kind in ("floats", "strs")} | {f"metadata_props_{what}": [] for what in ("keys", "values")}
    return dict(attr_keys=names, attr_types=["i"] * len(names), attr_pos=spans, attr_ints=list(ints.values()), **none)


def pooled3d():
    x = f(1, 2, 4, 4, 4)
    out, indices = F.max_pool3d(x, 2, return_indices=True)
    return torch.randn_like(out), x, (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False, indices


CONVOLUTION = [(1, 1), (1, 1), (1, 1), False, (0, 0), 1], [(2, 2), (1, 1), (1, 1), True, (1, 1), 1]
AXES = f(4, 5), t(0.0, 1.0, 2.5, 3.0), t(0.0, 2.0, 3.0, 4.5, 5.0)
BITS = "__and__ __or__ __xor__ bitwise_and bitwise_or bitwise_xor".split()
SHIFTS = "__lshift__ __rshift__ bitwise_left_shift bitwise_right_shift".split()
SHIFT_SCALARS = "Scalar Scalar Tensor_Scalar Tensor_Scalar".split()
POLYNOMIALS = [
    f"special_{kind}"
    for kind in "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w".split()
]

# Calls of each overload; a trailing dict holds keyword arguments, a function makes a tensor inside the program. None: the
# arguments follow from the schema (`guess`).
ARGS = {
    **{f"{op}.Scalar": lambda: [(ints(2, 3), 3), (ints(2, 3, dtype=torch.int32), 6)] for op in BITS},
    **{f"{op}.Tensor": lambda: [(ints(2, 3), ints(2, 3)), (t(True, False), t(True, True))] for op in BITS},
    **{f"{op}.Scalar_Tensor": lambda: [(3, ints(2, 3)), (6, ints(2, 3, dtype=torch.int32))] for op in BITS if op[0] == "b"},
    **{f"{op}.{o}": lambda: [(i8(2, 3).long(), 2), (i8(2, 3), 1)] for op, o in zip(SHIFTS, SHIFT_SCALARS)},
    **{f"{op}.Tensor": lambda: [(i8(2, 3).int(), ints(2, 3, dtype=torch.int32))] for op in SHIFTS},
    **{f"{op}.Scalar_Tensor": lambda: [(-90, ints(2, 3))] for op in SHIFTS[2:]},
    **{f"{op}.n_scalar": lambda: [(p(2, 3), 3), (f(2, 3), 0)] for op in POLYNOMIALS},
    **{f"{op}.x_scalar": lambda: [(0.4, ints(2, 3).float())] for op in POLYNOMIALS},
    "_adaptive_avg_pool2d": lambda: [(f(1, 2, 6, 4), (3, 2))],
    "_adaptive_avg_pool3d": lambda: [(f(1, 2, 4, 6, 4), (2, 3, 2))],
    "_add_relu.Scalar": lambda: [(f(2, 3), 0.5), (f(2, 3), 0.5, 2)],
    "_add_relu.Tensor": lambda: [(f(2, 3), f(2, 3), kw(alpha=2))],
    "_aminmax": None,
    "_aminmax.dim": lambda: [(f(2, 3), 1), (f(2, 3), 0, True)],
    "_batch_norm_impl_index": lambda: [norm(False, 0.1, 1e-5, False)],
    "_batch_norm_no_update": lambda: [norm(0.1, 1e-5)],
    "_batch_norm_with_update_functional": lambda: [norm(0.1, 1e-5)],
    "_cast_Byte": None,
    "_cast_Char": lambda: [(f(2, 3) * 10,)],
    "_cast_Double": None,
    "_cast_Float": lambda: [(ints(2, 3),)],
    "_cast_Half": None,
    "_cast_Int": lambda: [(f(2, 3) * 10,)],
    "_cast_Long": lambda: [(f(2, 3) * 10,)],
    "_cast_Short": lambda: [(f(2, 3) * 10,)],
    "_cdist_forward": lambda: [(f(3, 2), f(4, 2), q, None) for q in (1.0, 2.0)],
    "_cholesky_solve_helper": lambda: [(f(3, 2), torch.linalg.cholesky(well(3) @ well(3).T + torch.eye(3)), False)],
    "_conj_copy": lambda: [(c(2, 3),)],
    "_conj_physical": lambda: [(c(2, 3),)],
    "_convolution": lambda: [conv(*CONVOLUTION[0], False, False, False, False)],
    "_convolution.deprecated": lambda: [conv(*CONVOLUTION[0], False, False, False)],
    "_convolution_mode": lambda: [conv((1, 1), how, (1, 1), 1) for how in ("same", "valid")],
    "_embedding_bag": lambda: [bag(0), bag(1)],
    "_embedding_bag_forward_only": lambda: [bag(0), bag(2)],
    "_euclidean_dist": lambda: [(f(3, 2), f(4, 2))],
    "_fake_quantize_learnable_per_channel_affine": lambda: [(f(2, 3) * 4, p(2), t(0.0, 1.0), 0, -8, 7)],
    "_fake_quantize_learnable_per_tensor_affine": lambda: [(f(2, 3) * 4, t([0.3]), t([1.0]), -8, 7)],
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": lambda: [
        (f(2, 3) * 4, t(0.3), t(1, dtype=torch.int32), t(on), -8, 7) for on in (1, 0)
    ],
    "_fft_c2c": lambda: [(c(2, 4), [1], 0, True), (c(2, 4), [0, 1], 2, False)],
    "_fft_c2r": lambda: [(c(2, 3), [1], 0, 4)],
    "_fft_r2c": lambda: [(f(2, 4), [1], 0, True), (f(2, 4), [1], 1, False)],
    "_foreach_max": lambda: [([f(2, 3), f(4)],)],
    "_foreach_norm.Scalar": lambda: [([f(2, 3), f(4)],), ([f(2, 3), f(4)], 1), ([f(2, 3), f(4)], float("inf"))],
    "_fused_rms_norm": lambda: [(f(2, 3, 4), [4], f(4), 1e-5)],
    "_fw_primal": lambda: [(f(2, 3), 0)],
    "_grid_sampler_2d_cpu_fallback": lambda: [(f(1, 2, 4, 4), p(1, 3, 3, 2) * 2 - 1, 0, 0, False)],
    "_histogramdd_bin_edges": lambda: [(f(5, 2), [3, 2]), (f(5, 2), [2, 2], kw(range=[-1.0, 1.0, 0.0, 2.0]))],
    "_histogramdd_from_bin_cts": lambda: [(f(5, 2), [3, 2]), (f(5, 2), [2, 3], kw(weight=p(5), density=True))],
    "_histogramdd_from_bin_tensors": lambda: [(f(5, 2), [t(-1.0, 0.0, 2.0), t(-2.0, 0.5)])],
    "_index_put_impl": lambda: [(f(4, 3), [t(0, 2)], f(2, 3)), (f(4, 3), [t(2, 2)], f(2, 3), True)],
    "_int_mm": lambda: [(i8(18, 8), i8(8, 16))],
    "_lazy_clone": None,
    "_linalg_det": lambda: [(well(3),)],
    "_linalg_eigvals": lambda: [(t([1.0, 2.0, 0.5], [0.0, 2.0, 1.0], [0.0, 0.0, 3.0]),)],
    "_linalg_eigh": lambda: [(symmetric(3),)],
    "_linalg_slogdet": lambda: [(well(3),)],
    "_linalg_solve_ex": lambda: [(well(3), f(3, 2))],
    "_linalg_svd": lambda: [(f(3, 2),)],
    "_local_scalar_dense": lambda: [(t(3),)],
    "_log_softmax": lambda: [(f(2, 3), 1, False)],
    "_log_softmax_backward_data": lambda: [(f(2, 3), f(2, 3).log_softmax(1), 1, torch.float32)],
    "_logcumsumexp": lambda: [(f(2, 3), 1)],
    "_native_batch_norm_legit.no_stats": lambda: [(f(2, 3, 4), f(3), f(3), True, 0.1, 1e-5)],
    "_native_batch_norm_legit_functional": lambda: [norm(True, 0.1, 1e-5), norm(False, 0.1, 1e-5)],
    "_native_batch_norm_legit_no_training": lambda: [norm(0.1, 1e-5)],
    "_native_multi_head_attention": lambda: [(*[f(2, 3, 4)] * 3, *layer()[1:])],
    "_neg_view": None,
    "_neg_view_copy": None,
    "_pad_circular": lambda: [(f(1, 2, 4), (1, 2))],
    "_pad_enum": lambda: [(f(1, 2, 4), (1, 2), mode) for mode in (0, 1, 2)] + [(f(1, 2, 4), (1, 2), 3, 0.5)],
    "_pdist_forward": lambda: [(f(4, 3), 2.0)],
    "_prelu_kernel": lambda: [(f(2, 3), f(1, 3))],
    "_prelu_kernel_backward": lambda: [(f(2, 3), f(2, 3), f(2, 3))],
    "_reshape_alias": lambda: [(f(2, 3), (3, 2), (2, 1))],
    "_reshape_alias_copy": lambda: [(f(2, 3), (3, 2), (2, 1))],
    "_reshape_copy": lambda: [(f(2, 3), (3, 2))],
    "_scaled_dot_product_attention_math": lambda: [attention(), attention(f(3, 5)), attention(None, 0.0, True)],
    "_scaled_dot_product_attention_math_for_mps": lambda: [attention(), attention(f(3, 5))],
    "_scaled_dot_product_cudnn_attention": lambda: [attention(None, False)],
    "_scaled_dot_product_efficient_attention": lambda: [attention(None, False), attention(f(1, 2, 3, 5), False)],
    "_scaled_dot_product_flash_attention": lambda: [attention()],
    "_scaled_dot_product_fused_attention_overrideable": lambda: [attention(), attention(f(1, 2, 3, 5))],
    "_slow_conv2d_forward": lambda: [slow(2, (1, 1), (1, 1))],
    "_softmax": lambda: [(f(2, 3), 1, False)],
    "_stack": lambda: [([f(2, 3), f(2, 3)], 1)],
    "_thnn_fused_gru_cell": lambda: [(f(2, 9), f(2, 9), f(2, 3)), (f(2, 9), f(2, 9), f(2, 3), f(9), f(9))],
    "_thnn_fused_lstm_cell": lambda: [(f(2, 12), f(2, 12), f(2, 3)), (f(2, 12), f(2, 12), f(2, 3), f(12), f(12))],
    "_to_copy": lambda: [(f(2, 3), kw(dtype=torch.float64)), (f(2, 3),)],
    "_to_cpu": None,
    "_transformer_encoder_layer_fwd": lambda: [
        (*layer(), gelu, first, 1e-5, f(4), f(4), f(4), f(4), f(8, 4), f(8), f(4, 8), f(4))
        for gelu, first in ((False, False), (True, True))
    ],
    "_unsafe_index.Tensor": lambda: [(f(4, 3), [t(0, 2)]), (f(4, 3), [None, t(0, 2)])],
    "_unsafe_index_put": lambda: [(f(4, 3), [t(0, 2)], f(2, 3)), (f(4, 3), [None, t(2, 2)], f(4, 2), True)],
    "_unsafe_view": lambda: [(f(2, 3), (3, 2))],
    "_upsample_bicubic2d_aa": lambda: [(f(1, 2, 6, 4), (3, 3), False)],
    "_upsample_bicubic2d_aa.vec": lambda: [(f(1, 2, 6, 4), (3, 3), False, None), (f(1, 2, 6, 4), None, False, [0.5, 0.5])],
    **{f"_upsample_nearest_exact{n}d": lambda n=n: [(f(1, 2, *[4] * n), (7, 3, 6)[:n])] for n in (1, 2, 3)},
    "_upsample_nearest_exact2d.vec": lambda: [(f(1, 2, 4, 4), (7, 3), None), (f(1, 2, 4, 4), None, [2.0, 1.5])],
    "_weight_int8pack_mm": lambda: [(f(3, 16), i8(8, 16), f(8))],
    "_weight_norm_interface": lambda: [(f(3, 4), p(3, 1), 0)],
    "absolute": lambda: [(f(2, 3),), (i8(2, 3),)],
    "affine_grid_generator": lambda: [(f(1, 2, 3), (1, 2, 3, 4), corners) for corners in (False, True)],
    "arccos": None,
    "arccosh": lambda: [(p(2, 3) + 1,)],
    "arcsin": None,
    "arcsinh": None,
    "arctan": None,
    "arctan2": lambda: [(f(2, 3), f(2, 3))],
    "arctanh": None,
    "bartlett_window": lambda: [(6,)],
    "bartlett_window.periodic": lambda: [(6, False)],
    "bernoulli.Tensor": lambda: [(f(2, 3), p(2, 3))],
    "bernoulli.p": lambda: [(f(2, 3), 0.3)],
    "blackman_window": lambda: [(6,)],
    "blackman_window.periodic": lambda: [(6, False)],
    "bmm.dtype": lambda: [(h(2, 3, 4), h(2, 4, 5), torch.float32)],
    "bucketize.Scalar": lambda: [(2.5, t(1.0, 2.0, 3.0)), (2, t(1, 2, 3), kw(right=True, out_int32=True))],
    "chain_matmul": lambda: [([f(2, 3), f(3, 4), f(4, 2)],)],
    "clip": lambda: [(f(2, 3), -0.5, 0.5), (ints(2, 3), 2)],
    "clip.Tensor": lambda: [(f(2, 3), t(-0.5), t(0.5)), (f(2, 3), None, f(2, 3))],
    "col2im": lambda: [(f(1, 8, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))],
    "concat": lambda: [([f(2, 3), f(2, 3)], 1)],
    "concatenate": lambda: [([f(2, 3), ints(2, 3)], -1)],
    "conj": lambda: [(c(2, 3),), (f(2, 3),)],
    "conv_tbc": lambda: [(f(5, 2, 3), f(3, 3, 4), f(4), 1)],
    "convolution": lambda: [conv(*CONVOLUTION[0]), (f(1, 3, 5, 5), f(3, 2, 3, 3), f(2), *CONVOLUTION[1])],
    "copysign.Scalar": lambda: [(f(2, 3), -2.0), (ints(2, 3), -0.0)],
    "det": lambda: [(well(3),)],
    "detach_copy": None,
    "div.Scalar": lambda: [(f(2, 3), 3), (ints(2, 3), 4)],
    "div.Scalar_mode": lambda: [(i8(2, 3).long(), 4, kw(rounding_mode=m)) for m in ("trunc", "floor", None)]
    + [(f(2, 3) * 9, -2.5, kw(rounding_mode=m)) for m in ("trunc", "floor")],
    "divide.Scalar": lambda: [(f(2, 3), 3)],
    "divide.Scalar_mode": lambda: [(f(2, 3) * 9, 2.5, kw(rounding_mode="floor"))],
    "divide.Tensor_mode": lambda: [(f(2, 3) * 9, f(2, 3), kw(rounding_mode=m)) for m in ("trunc", "floor")],
    "elu_backward": lambda: [(f(2, 3), 1.5, 1.1, 0.9, result, f(2, 3)) for result in (False, True)],
    "embedding_bag": lambda: [bag(0), bag(1), bag(2)],
    "fake_quantize_per_channel_affine": lambda: [(f(2, 3) * 4, p(2), t(0, 1, dtype=torch.int32), 0, -8, 7)],
    "fake_quantize_per_channel_affine_cachemask": lambda: [(f(2, 3) * 4, p(2), t(0, 1, dtype=torch.int32), 0, -8, 7)],
    "fake_quantize_per_tensor_affine": lambda: [(f(2, 3) * 4, 0.3, 1, -8, 7)],
    "fake_quantize_per_tensor_affine.tensor_qparams": lambda: [(f(2, 3) * 4, t(0.3), t(1, dtype=torch.int32), -8, 7)],
    "fake_quantize_per_tensor_affine_cachemask": lambda: [(f(2, 3) * 4, 0.3, 1, -8, 7)],
    "fft_fftfreq": lambda: [(5, 0.5), (6,)],
    "fft_rfftfreq": lambda: [(5, 0.5), (6,)],
    "fill.Tensor": lambda: [(f(2, 3), t(2.0)), (f(2, 3), t(2))],
    "fill_diagonal": lambda: [(f(3, 3), 2.0), (f(5, 2), 2.0, True)],
    "fix": lambda: [(f(2, 3) * 5,)],
    "flatten_dense_tensors": lambda: [([f(2, 3), f(4)],)],
    "float_power.Scalar": lambda: [(2, f(2, 3)), (2.5, ints(2, 3))],
    "float_power.Tensor_Scalar": lambda: [(p(2, 3), 2.5), (ints(2, 3), 3)],
    "floor_divide.Scalar": lambda: [(f(2, 3) * 9, 2), (i8(2, 3).long(), 4)],
    "fmod.Scalar": lambda: [(f(2, 3) * 9, 2.5), (i8(2, 3).long(), -4)],
    "frobenius_norm.dim": lambda: [(f(2, 3), [1]), (f(2, 3), [0, 1], True)],
    "gelu_backward": lambda: [(f(2, 3), f(2, 3)), (f(2, 3), f(2, 3), kw(approximate="tanh"))],
    "ger": lambda: [(f(2), f(3))],
    "glu_backward": lambda: [(f(2, 2), f(2, 4), 1)],
    "gradient.array": lambda: [(AXES[0], kw(dim=[0, 1])), (AXES[0], kw(dim=[1], edge_order=2))],
    "gradient.scalararray": lambda: [(AXES[0], kw(spacing=2.0, dim=[0, 1]))],
    "gradient.scalarrayint": lambda: [(AXES[0], kw(spacing=[2.0, 0.5]))],
    "gradient.tensorarrayint": lambda: [(AXES[0], kw(spacing=list(AXES[1:])))],
    "greater.Scalar": lambda: [(f(2, 3), 0.2), (ints(2, 3), 2)],
    "greater.Tensor": lambda: [(f(2, 3), f(2, 3))],
    "greater_equal.Scalar": lambda: [(ints(2, 3), 2.5)],
    "greater_equal.Tensor": lambda: [(ints(2, 3), ints(2, 3))],
    "gru.input": lambda: [rnn(3), rnn(3, True)],
    "gru_cell": lambda: [cell(3)],
    "hamming_window": lambda: [(6,)],
    "hamming_window.periodic": lambda: [(6, False)],
    "hamming_window.periodic_alpha": lambda: [(6, True, 0.6)],
    "hamming_window.periodic_alpha_beta": lambda: [(6, True, 0.6, 0.3)],
    "hann_window": lambda: [(6,)],
    "hann_window.periodic": lambda: [(6, False)],
    "hardshrink_backward": lambda: [(f(2, 3), f(2, 3), 0.5)],
    "hardsigmoid_backward": lambda: [(f(2, 3), f(2, 3) * 4)],
    "hardswish_backward": lambda: [(f(2, 3), f(2, 3) * 4)],
    "hardtanh_backward": lambda: [(f(2, 3), f(2, 3), -0.5, 1.0)],
    "histogramdd.int_bins": lambda: [(f(5, 2), 3)],
    "infinitely_differentiable_gelu_backward": lambda: [(f(2, 3), f(2, 3))],
    "inverse": lambda: [(well(3),)],
    "isin.Scalar_Tensor": lambda: [(2, t(1, 2, 3)), (4, t(1, 2, 3), kw(invert=True))],
    "isin.Tensor_Scalar": lambda: [(ints(2, 3), 2), (ints(2, 3), 2, kw(invert=True))],
    "kaiser_window": lambda: [(6,)],
    "kaiser_window.beta": lambda: [(6, True, 5.0)],
    "kaiser_window.periodic": lambda: [(6, False)],
    "leaky_relu_backward": lambda: [(f(2, 3), f(2, 3), 0.1, False)],
    "less.Scalar": lambda: [(f(2, 3), 0.2)],
    "less.Tensor": lambda: [(f(2, 3), f(2, 3))],
    "less_equal.Scalar": lambda: [(ints(2, 3), 2)],
    "less_equal.Tensor": lambda: [(ints(2, 3), f(2, 3))],
    "lift": None,
    "linalg_matmul": lambda: [(f(2, 3), f(3, 4)), (f(3), f(3))],
    "linalg_matrix_exp": lambda: [(well(3),)],
    "linalg_matrix_rank": lambda: [(well(3), 0.1), (torch.ones(3, 3), 0.1)],
    "linalg_matrix_rank.tol_tensor": lambda: [(well(3), t(0.1)), (torch.ones(3, 3), t(0.1))],
    "linalg_norm.ord_str": lambda: [(f(3, 4), "fro"), (f(2, 3, 4), "fro", [0, 2], True), (f(3, 4), "nuc")],
    "linalg_pinv": lambda: [(f(3, 2), 1e-5)],
    "linalg_pinv.atol_rtol_float": lambda: [(f(3, 2), kw(rtol=1e-5)), (f(3, 2),)],
    "linalg_pinv.rcond_tensor": lambda: [(f(3, 2), t(1e-5))],
    "log_sigmoid_backward": lambda: [(f(2, 3), *(lambda x: (x, torch.exp(-x.abs())))(f(2, 3)))],
    "log_sigmoid_forward": lambda: [(f(2, 3),)],
    "logit_backward": lambda: [(f(2, 3), p(2, 3)), (f(2, 3), torch.rand(2, 3), 0.2)],
    "lstm.input": lambda: [rnn(4, pair=True), rnn(4, True, True)],
    "lstm_cell": lambda: [cell(4, True)],
    "matrix_power": lambda: [(well(3), n) for n in (0, 3, -2)],
    "max_pool3d_with_indices_backward": lambda: [pooled3d()],
    "meshgrid": lambda: [([f(2), f(3)],)],
    "mish_backward": lambda: [(f(2, 3), f(2, 3))],
    "mkldnn_rnn_layer": lambda: [
        (f(5, 2, 4), *gates(4), f(1, 2, 3), f(1, 2, 3), reverse, [], 2, 3, 1, True, False, False, False)
        for reverse in (False, True)
    ],
    "mm.dtype": lambda: [(h(3, 4), h(4, 5), torch.float32)],
    "moveaxis.int": lambda: [(f(2, 3, 4), 0, 2)],
    "moveaxis.intlist": lambda: [(f(2, 3, 4), [0, 1], [2, 0])],
    "mul.Scalar": lambda: [(f(2, 3), 3), (ints(2, 3), 2.5), (ints(2, 3), 3)],
    "multilabel_margin_loss_forward": lambda: [(f(2, 4), t([1, 2, -1, 0], [0, -1, 1, 2]), r) for r in (0, 1)],
    "multiply.Scalar": lambda: [(f(2, 3), 3)],
    "narrow.Tensor": lambda: [(f(4, 3), 0, lambda: t(1), 2)],
    "native_channel_shuffle": lambda: [(f(1, 4, 2, 2), 2)],
    "native_dropout": lambda: [(f(2, 3), 0.5, False)],
    "negative": lambda: [(f(2, 3),), (i8(2, 3),)],
    "nll_loss": lambda: [(f(3, 4), t(1, 0, 3)), (f(3, 4), t(1, -100, 3), p(4), 2)],
    "nll_loss2d": lambda: [(f(2, 4, 3, 3), ints(2, 3, 3, high=4)), (f(2, 4, 3, 3), ints(2, 3, 3, high=4), p(4), 0, 2)],
    "nll_loss2d_forward": lambda: [(f(2, 4, 3, 3), ints(2, 3, 3, high=4), p(4), 1, 2)],
    "nll_loss_forward": lambda: [(f(3, 4), t(1, 0, 3), p(4), r, 0) for r in (1, 2)],
    "norm.Scalar": lambda: [(f(2, 3),), (f(2, 3), 1.5)],
    "norm.ScalarOpt_dim": lambda: [(f(2, 3), None, [1]), (f(2, 3), 1, [0, 1], True)],
    "norm.ScalarOpt_dim_dtype": lambda: [(f(2, 3), 3, [1], True, kw(dtype=torch.float64))],
    "norm.ScalarOpt_dtype": lambda: [(f(2, 3), float("inf"), kw(dtype=torch.float64)), (f(2, 3), None, kw(dtype=torch.float64))],
    "norm_except_dim": lambda: [(f(3, 4), 2, 0), (f(3, 4, 2), 2, 1), (f(3, 4), 1, -1)],
    "normal.float_Tensor": lambda: [(0.5, p(2, 3))],
    "not_equal.Scalar": lambda: [(ints(2, 3), 2)],
    "not_equal.Tensor": lambda: [(ints(2, 3), ints(2, 3).float())],
    "orgqr": lambda: [reflectors()],
    "rand.generator": lambda: [((2, 3), kw(generator=None))],
    "rand_like.generator": lambda: [(f(2, 3), kw(generator=None))],
    "randint.generator": lambda: [(5, (2, 3), kw(generator=None))],
    "randint.low_generator": lambda: [(2, 5, (2, 3), kw(generator=None))],
    "randint_like.generator": lambda: [(f(2, 3), 5, kw(generator=None))],
    "randint_like.low_generator_dtype": lambda: [(f(2, 3), 2, 5, kw(generator=None, dtype=torch.int64))],
    "randn.generator": lambda: [((2, 3), kw(generator=None))],
    "randn_like.generator": lambda: [(f(2, 3), kw(generator=None))],
    "random": lambda: [(f(2, 3),), (ints(2, 3),)],
    "random.to": lambda: [(ints(2, 3), 9)],
    "randperm": lambda: [(6,)],
    "randperm.generator": lambda: [(6, kw(generator=None))],
    **{f"reflection_pad{n}d": lambda n=n: [(f(1, 2, *[4] * n), (1, 2, 2, 1, 3, 0)[: 2 * n])] for n in (1, 2, 3)},
    **{f"replication_pad{n}d": lambda n=n: [(f(1, 2, *[4] * n), (1, 2, 2, 1, 3, 0)[: 2 * n])] for n in (1, 2, 3)},
    "remainder.Scalar_Tensor": lambda: [(5, f(2, 3)), (-7, ints(2, 3, low=1))],
    "repeat_interleave.Tensor": lambda: [(t(1, 0, 3),), (t(1, 2, 3), kw(output_size=6))],
    "resize": lambda: [(f(2, 3), (3, 2)), (f(2, 3), (2, 2))],
    "resize_as": lambda: [(f(2, 3), f(3, 2))],
    "rnn_relu.input": lambda: [rnn(1), rnn(1, True)],
    "rnn_relu_cell": lambda: [cell(1)],
    "rnn_tanh.input": lambda: [rnn(1), rnn(1, True)],
    "rnn_tanh_cell": lambda: [cell(1)],
    "row_stack": lambda: [([f(3), f(3)],), ([f(2, 3), f(4, 3)],)],
    "rrelu_with_noise_backward": lambda: [(f(2, 3), f(2, 3), p(2, 3), 0.1, 0.3, train, False) for train in (False, True)],
    "rrelu_with_noise_functional": lambda: [(f(2, 3), torch.zeros(2, 3))],
    "scatter.value_reduce": lambda: [(f(2, 3), 1, t([0, 2], [1, 1]), 2.0, kw(reduce=r)) for r in ("add", "multiply")],
    "select_copy.int": lambda: [(f(2, 3), 1, -1)],
    "sigmoid_backward": None,
    "silu_backward": lambda: [(f(2, 3), f(2, 3))],
    "slice_copy.Tensor": lambda: [(f(4, 3), 0, 1, 3), (f(4, 3), 0, None, None, 2)],
    "slogdet": lambda: [(well(3),)],
    "slow_conv3d": lambda: [slow(3), slow(3, (1, 2, 1), (1, 0, 1))],
    "slow_conv3d_forward": lambda: [slow(3, (1, 1, 1), (1, 0, 1))],
    "slow_conv_dilated2d": lambda: [slow(2, (1, 1), (1, 1), (2, 2))],
    "slow_conv_dilated3d": lambda: [slow(3, (1, 1, 1), (1, 1, 1), (2, 2, 2))],
    "slow_conv_transpose2d": lambda: [(f(1, 2, 4, 4), f(2, 3, 3, 3), (3, 3), f(3), (2, 2), (1, 1), (1, 1))],
    "slow_conv_transpose3d": lambda: [(f(1, 2, 3, 3, 3), f(2, 3, 3, 3, 3), (3, 3, 3), f(3), (2, 2, 2))],
    "softplus_backward": lambda: [(f(2, 3), f(2, 3), 2.0, 0.5)],
    "softshrink_backward": lambda: [(f(2, 3), f(2, 3), 0.5)],
    "special_digamma": None,
    "special_erf": lambda: [(f(2, 3),), (ints(2, 3),)],
    "special_erfc": None,
    "special_erfinv": None,
    "special_exp2": lambda: [(f(2, 3),), (ints(2, 3),)],
    "special_expit": lambda: [(f(2, 3),)],
    "special_expm1": None,
    "special_gammainc": None,
    "special_gammaincc": None,
    "special_gammaln": None,
    "special_i0": lambda: [(f(2, 3) * 5,)],
    "special_log1p": None,
    "special_log_softmax": lambda: [(f(2, 3), 1), (f(2, 3), 0, kw(dtype=torch.float64))],
    "special_logit": lambda: [(p(2, 3),), (torch.rand(2, 3), 0.2)],
    "special_logsumexp": lambda: [(f(2, 3), [1]), (f(2, 3), [0, 1], True)],
    "special_multigammaln": lambda: [(p(2, 3) + 2, 3)],
    "special_psi": lambda: [(p(2, 3),), (f(2, 3),)],
    "special_round": lambda: [(f(2, 3) * 9,), (f(2, 3) * 9, kw(decimals=1)), (f(2, 3) * 99, kw(decimals=-1))],
    "special_sinc": lambda: [(f(2, 3),), (ints(2, 3),)],
    "special_softmax": lambda: [(f(2, 3), 1), (f(2, 3), 0, torch.float64)],
    "special_xlog1py.other_scalar": lambda: [(f(2, 3), 0.5), (ints(2, 3), 2)],
    "special_xlog1py.self_scalar": lambda: [(2, p(2, 3)), (0, t(-1.0, 0.5, float("nan")))],
    "special_xlogy": lambda: [(f(2, 3), p(2, 3)), (t(0.0, 0.0, 1.0), t(0.0, float("nan"), 2.0))],
    "special_xlogy.other_scalar": lambda: [(f(2, 3), 0.5)],
    "special_xlogy.self_scalar": lambda: [(2, p(2, 3))],
    "special_zeta.other_scalar": lambda: [(p(2, 3) + 1.5, 2.0)],
    "special_zeta.self_scalar": lambda: [(3.0, p(2, 3))],
    "split.sizes": lambda: [(f(4, 3), [1, 3]), (f(4, 3), [1, 2], 1)],
    "split_copy.Tensor": lambda: [(f(4, 3), 2), (f(4, 3), 2, 1)],
    "squeeze_copy.dims": lambda: [(f(1, 3, 1), [0, 2]), (f(2, 3, 1), [0, -1])],
    "stft.center": lambda: [(f(2, 16), 4, None, None, torch.hann_window(4), how, kw(return_complex=True)) for how in (True, False)],
    "sub.Scalar": lambda: [(f(2, 3), 3), (ints(2, 3), 2.5, 3)],
    "subtract.Scalar": lambda: [(f(2, 3), 3)],
    "swapdims": lambda: [(f(2, 3, 4), 0, -1)],
    "tanh_backward": None,
    "thnn_conv2d": lambda: [slow(2), slow(2, (2, 1), (1, 1))],
    "threshold_backward": lambda: [(f(2, 3), f(2, 3), 0.2)],
    "to.other": lambda: [(f(2, 3), ints(1)), (ints(2, 3), torch.zeros(1, dtype=torch.float64))],
    "true_divide.Scalar": lambda: [(ints(2, 3), 4)],
    "unflatten_dense_tensors": lambda: [(f(10), [f(2, 3), f(4)])],
    "unsafe_split_with_sizes": lambda: [(f(4, 3), [1, 3])],
    "upsample_bicubic2d": lambda: [(f(1, 2, 4, 4), (7, 3), corners) for corners in (False, True)],
    "upsample_bilinear2d": lambda: [(f(1, 2, 4, 4), (7, 3), corners) for corners in (False, True)],
    "upsample_linear1d": lambda: [(f(1, 2, 4), (7,), corners) for corners in (False, True)],
    **{f"upsample_nearest{n}d": lambda n=n: [(f(1, 2, *[4] * n), (7, 3, 6)[:n])] for n in (1, 2, 3)},
    "upsample_trilinear3d": lambda: [(f(1, 2, 4, 4, 4), (7, 3, 6), False)],
    "vander": lambda: [(f(3),), (f(3), 4, True)],
    "view_as_complex_copy": lambda: [(f(3, 2),)],
    "view_as_real_copy": lambda: [(c(2, 3),)],
    "view_copy.dtype": lambda: [(i8(2, 3), torch.uint8)],
    "vsplit.array": lambda: [(f(4, 3), [1, 3])],
    "where": lambda: [(ints(2, 3) > 2,)],
    "where.ScalarSelf": lambda: [(ints(2, 3) > 2, 2.0, f(2, 3))],
    "xlogy.Scalar_Other": lambda: [(f(2, 3), 0.5), (ints(2, 3), 2)],
    "xlogy.Scalar_Self": lambda: [(2, p(2, 3)), (0, t(0.0, float("nan")))],
    "onnx_symbolic::_symbolic_multi_out": lambda: [
        ([f(2, 3), t([2])], "TopK", [1, 7], kw(shapes=[[2, 2], [2, 2]], **attributes(largest=1), version=24)),
    ],
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl": lambda: [(f(2, 3), torch.int8)],
    "quantized_decomposed::choose_qparams.tensor": lambda: [(f(2, 3), -128, 127, 1e-5, torch.int8)],
    "quantized_decomposed::choose_qparams_per_token": lambda: [(f(2, 3), torch.int8)],
    "quantized_decomposed::choose_qparams_per_token_asymmetric": lambda: [(f(2, 3), torch.int8)],
    "quantized_decomposed::choose_qparams_symmetric.tensor": lambda: [(f(2, 3), -127, 127, 1e-5, torch.int8)],
    "quantized_decomposed::convert_element_type.no_fuse": lambda: [(f(2, 3), torch.float64)],
    "quantized_decomposed::dequantize_per_channel_group": lambda: [
        (i8(2, 4), p(2, 2), zero, -8, 7, torch.int8, 2, torch.float32) for zero in (t([0, 1], [2, 3]), None)
    ],
    "quantized_decomposed::dequantize_per_tensor": lambda: [(i8(2, 3), 0.3, 1, -128, 127, torch.int8)],
    "quantized_decomposed::dequantize_per_tensor.tensor": lambda: [(i8(2, 3), t(0.3), t(1), -128, 127, torch.int8)],
    "quantized_decomposed::dequantize_per_tensor.tensor2": lambda: [(i8(2, 3), t(0.3), t(1), t(-128), t(127), torch.int8)],
    "quantized_decomposed::dequantize_per_token": lambda: [
        (i8(2, 3), p(2, 1), t([0], [1]), -128, 127, torch.int8, torch.float32)
    ],
    "quantized_decomposed::fake_quant_per_channel": lambda: [(f(2, 3) * 4, p(2), t(0, 1), 0, -8, 7)],
    "quantized_decomposed::quantize_per_channel_group": lambda: [
        (f(2, 4) * 4, p(2, 2), t([0, 1], [2, 3]), -8, 7, torch.int8, 2)
    ],
    "quantized_decomposed::quantize_per_tensor": lambda: [(f(2, 3) * 4, 0.3, 1, -8, 7, torch.int8)],
    "quantized_decomposed::quantize_per_tensor.tensor": lambda: [(f(2, 3) * 4, t(0.3), t(1), -8, 7, torch.int8)],
    "quantized_decomposed::quantize_per_tensor.tensor2": lambda: [(f(2, 3) * 4, t(0.3), t(1), t(-8), t(7), torch.int8)],
    "quantized_decomposed::quantize_per_token": lambda: [(f(2, 3) * 4, p(2, 1), t([0], [1]), -8, 7, torch.int8)],
}

# Only these of several results are returned: the others are unspecified, or unique up to signs only.
RESULTS = {
    "_batch_norm_impl_index": [0],
    "_embedding_bag": [0],
    "_embedding_bag_forward_only": [0],
    "_linalg_det": [0],
    "_linalg_eigh": [0],
    "_linalg_slogdet": [0, 1],
    "_linalg_svd": [1],
    "_scaled_dot_product_cudnn_attention": [0],
    "_scaled_dot_product_efficient_attention": [0],
    "_scaled_dot_product_flash_attention": [0],
    "_scaled_dot_product_fused_attention_overrideable": [0],
    "_thnn_fused_gru_cell": [0],
    "_thnn_fused_lstm_cell": [0, 1],
    "embedding_bag": [0],
    "mkldnn_rnn_layer": [0, 1, 2],
}

# Only the shapes of results are compared.
RANDOM = {name for name in ARGS if name.startswith(("bernoulli", "normal", "rand"))}

# Other sizes would need other arguments, or values of another order, or are refused (hidden sizes).
STATIC = {"_reshape_alias", "_reshape_alias_copy", "bucketize.Scalar", "lstm.input", "rnn_relu.input", "rnn_tanh.input", "mkldnn_rnn_layer"}

# Overloads that PyTorch has in place only; the programs write into clones.
IN_PLACE = {"fill_diagonal": "fill_diagonal_"}


def sdpa(q, k, v, mask=None, *rest, **options):
    return (F.scaled_dot_product_attention(q, k, v, mask if isinstance(mask, torch.Tensor) else None),)


def gru(ig, hg, hx, ib=None, hb=None):
    ir, iz, inew = (ig + (0 if ib is None else ib)).unflatten(1, (3, -1)).unbind(1)
    hr, hz, hnew = (hg + (0 if hb is None else hb)).unflatten(1, (3, -1)).unbind(1)
    z, new = (iz + hz).sigmoid(), (inew + (ir + hr).sigmoid() * hnew).tanh()
    return ((hx - new) * z + new,)


def lstm(ig, hg, cx, ib=None, hb=None):
    i, forget, g, o = (ig + hg + (0 if ib is None else ib + hb)).unflatten(1, (4, -1)).unbind(1)
    cy = forget.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * cy.tanh(), cy


# The numbers for overloads that PyTorch computes on other devices only.
REFERENCES = {
    # PyTorch records other results than it computes.
    "quantized_decomposed::choose_qparams_per_token": lambda *a: [
        x.to(d)
        for x, d in zip(torch.ops.quantized_decomposed.choose_qparams_per_token(*a), (torch.float64, torch.int64))
    ],
    "_scaled_dot_product_attention_math_for_mps": lambda *a: torch.ops.aten._scaled_dot_product_attention_math(*a),
    "_scaled_dot_product_cudnn_attention": sdpa,
    "_scaled_dot_product_efficient_attention": sdpa,
    "_scaled_dot_product_flash_attention": sdpa,
    "_scaled_dot_product_fused_attention_overrideable": sdpa,
    "_thnn_fused_gru_cell": gru,
    "_thnn_fused_lstm_cell": lstm,
    "bmm.dtype": lambda a, b, dtype: a.to(dtype) @ b.to(dtype),
    "onnx_symbolic::_symbolic_multi_out": lambda inputs, *_, **__: torch.topk(inputs[0], 2),
    "mm.dtype": lambda a, b, dtype: a.to(dtype) @ b.to(dtype),
}


def overload(name):
    namespace, _, op = name.rpartition("::")
    op, _, which = IN_PLACE.get(op, op).partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), op), which or "default")


def guess(op):
    """Arguments for the parameters that have no default."""
    kinds = {"Tensor": lambda: p(2, 3), "List[Tensor]": lambda: [p(2, 3), p(2, 3)]}
    return [tuple(kinds[str(a.type)]() for a in op._schema.arguments if not a.has_default_value())]


class Call(torch.nn.Module):
    """One call with the given arguments; tensors among them are the program's inputs."""

    def __init__(self, op, args, results):
        super().__init__()
        args, kwargs = (args[:-1], args[-1]) if args and isinstance(args[-1], dict) else (args, {})
        self.leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.op, self.results = op, results
        self.copies = op._schema.is_mutable

    def inputs(self):
        return tuple(x for x in self.leaves if isinstance(x, torch.Tensor))

    def run(self, op, tensors):
        tensors = iter(tensors)
        filled = [x() if isfunction(x) else next(tensors) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        args, kwargs = pytree.tree_unflatten(filled, self.spec)
        if self.copies:
            args = (args[0].clone(), *args[1:])
        out = op(*args, **kwargs)
        return out if self.results is None else tuple(out[i] for i in self.results)

    def forward(self, *tensors):
        return self.run(self.op, tensors)


def grown(program, inputs):
    """Inputs with every dynamic size one larger, of the same values; None if there is none."""
    holders = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]

    def varies(size):
        return isinstance(size, torch.SymInt) and bool(size.node.expr.free_symbols)

    if not any(varies(d) for x in holders for d in x.shape):
        return None
    new = []
    for x, meta in zip(inputs, holders):
        shape = [n + varies(d) for n, d in zip(x.shape, meta.shape)]
        count = torch.Size(shape).numel()
        new.append(x.reshape(-1).repeat(-(-count // max(x.numel(), 1)))[:count].reshape(shape))
    return tuple(new)


def save(folder, name, args, number, dynamic):
    op = overload(name)
    call = Call(op, args, RESULTS.get(name))
    inputs = call.inputs()
    shapes = tuple({d: torch.export.Dim.AUTO for d in range(x.dim())} for x in inputs)
    program = torch.export.export(call, inputs, dynamic_shapes=(shapes,) if dynamic else None, strict=False)
    if not any(n.target is op for n in program.graph.nodes):
        return f"exported as {[str(n.target) for n in program.graph.nodes if n.op == 'call_function']}"
    other = grown(program, inputs) if dynamic else None
    if dynamic and other is None:
        return None
    tensors = {}
    for prefix, given in (("", inputs), ("alt.", other)):
        if given is not None:
            with torch.no_grad():
                reference = REFERENCES.get(name)
                copies = [x.clone() for x in given]
                out = call.run(reference, copies) if reference else program.module()(*copies)
            tensors |= {f"{prefix}input.{i}": x for i, x in enumerate(leaves(given))}
            tensors |= {f"{prefix}output.{i}": x for i, x in enumerate(leaves(out))}
    archive = io.BytesIO()
    torch.export.save(program, archive)
    case = name.replace("::", ".") + (f".{number}" if number else "") + (".dynamic" if dynamic else "")
    target = pathlib.Path(folder) / case
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "model.pt2").write_bytes(archive.getvalue())
    save_file(tensors, target / "io.safetensors")
    about = {"suite": "overloads", "name": case, "torch": torch.__version__.split("+")[0], "dynamic": dynamic}
    about |= {"compare": "shape"} if name in RANDOM else {}
    (target / "case.json").write_text(json.dumps(about, indent=1))
    return None


def main():
    import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
    import torch.onnx.ops  # registers onnx_symbolic

    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    for name in given.names or ARGS:
        try:
            torch.manual_seed(0)
            calls = ARGS[name]() if ARGS[name] else guess(overload(name))
        except Exception as e:
            print(f"{name}: no arguments: {type(e).__name__}: {str(e).strip()[:200]}")
            continue
        for number, args in enumerate(calls):
            for dynamic in (False, True)[: 1 + (number == 0 and name not in STATIC)]:
                try:
                    why = save(given.folder, name, args, number, dynamic)
                except Exception as e:
                    why = f"{type(e).__name__}: {str(e).strip().splitlines()[0][:200] if str(e).strip() else ''}"
                if why and not dynamic:
                    print(f"{name} {number}: {why}")


if __name__ == "__main__":
    main()
