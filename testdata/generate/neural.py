"""Programs of neural network operators that the corpus of single operators does not hold: recurrent layers, quantisation,
torchvision's regions, ONNX's own operators, fused attention. Registered with `make.case` on import."""
from __future__ import annotations


def register(case):
    import torch
    import torch.nn.functional as F
    import torch.ao.quantization.fx._decomposed  # noqa: F401  (defines quantized_decomposed)
    from torch.export import Dim

    def program(name, function, args, dynamic=None, other=None, **about):
        """A case whose module runs `function` (or is it, if a module); `other` are arguments of other sizes, `about` what
        case.json is to say besides."""
        module = function
        if not isinstance(function, torch.nn.Module):
            class Program(torch.nn.Module):
                def forward(self, *xs):
                    return function(*xs)
            module = Program()
            dynamic = dynamic and (dynamic,)

        module.about = about

        def make():
            return module, args, dynamic, other
        make.__name__ = name
        case(make)

    def r(*shape):
        generator = torch.Generator().manual_seed(sum(shape) + len(shape))
        return torch.randn(*shape, generator=generator)

    dyn = Dim.DYNAMIC
    torch.manual_seed(1)
    # Recurrent layers.
    for kind in ("LSTM", "GRU", "RNN"):
        layer = getattr(torch.nn, kind)
        name = kind.lower()
        program(f"{name}", layer(5, 7), (r(4, 2, 5),), ({1: dyn},), (r(4, 3, 5),))
        program(f"{name}_deep", layer(5, 7, 2, bidirectional=True, batch_first=True), (r(2, 4, 5),), ({0: dyn},), (r(3, 4, 5),))
        program(f"{name}_no_bias_unbatched", layer(5, 7, bias=False), (r(4, 5),))
        cell = getattr(torch.nn, kind + "Cell")(5, 7)
        program(f"{name}_cell", cell, (r(3, 5),), ({0: dyn},), (r(4, 5),))
    program("rnn_relu", torch.nn.RNN(5, 7, nonlinearity="relu"), (r(4, 2, 5),))
    program("lstm_states", torch.nn.LSTM(5, 7, 2), (r(4, 2, 5), (r(2, 2, 7), r(2, 2, 7))))

    # Quantisation.
    q = torch.ops.quantized_decomposed
    per_tensor = (0.1, 3)
    for name, (low, high), dtype in (("int8", (-128, 127), torch.int8), ("uint8", (0, 255), torch.uint8), ("int8_narrow", (-127, 127), torch.int8), ("int16", (-32768, 32767), torch.int16), ("int32", (-2**31 + 1, 2**31 - 128), torch.int32)):
        program(f"quantize_{name}", lambda x, l=low, h=high, d=dtype: q.quantize_per_tensor(x, *per_tensor, l, h, d), (9 * r(4, 5),), ({0: dyn},), (9 * r(3, 5),))
        program(f"dequantize_{name}", lambda x, l=low, h=high, d=dtype: q.dequantize_per_tensor(x, *per_tensor, l, h, d), ((20 * r(4, 5)).abs().to(dtype),))
    scales, zeros = r(4).abs() + 0.05, torch.tensor([0, 1, -3, 5])
    program("quantize_per_channel", lambda x: q.dequantize_per_channel(q.quantize_per_channel(x, scales, zeros, 1, -128, 127, torch.int8), scales, zeros, 1, -128, 127, torch.int8), (r(2, 4, 3),))
    def token(x):
        s, z = q.choose_qparams_per_token_asymmetric(x, torch.int8)
        return q.dequantize_per_token(q.quantize_per_token(x, s, z, -128, 127, torch.int8), s, z, -128, 127, torch.int8, torch.float32), s, z
    program("quantize_per_token", token, (r(3, 2, 8),))
    def chosen(x):
        s, z = q.choose_qparams.tensor(x, -128, 127, 1e-6, torch.int8)
        levels = q.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)
        return q.dequantize_per_tensor.tensor(levels, s, z, -128, 127, torch.int8)
    program("choose_qparams", chosen, (r(3, 8),))
    program("fake_quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127), (9 * r(4, 5),))
    program("fake_quantize_4_bits", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.5, 3, 0, 15), (3 * r(4, 5),))
    halves = torch.arange(-24, 24).reshape(2, 24) / 2
    program("fake_quantize_halves", lambda x, s, z: (*(torch.fake_quantize_per_tensor_affine(x, 1.0, k, -8, 7) for k in (0, 1, -3)), torch.fake_quantize_per_channel_affine(x, s, z.int(), 0, -8, 7), torch.fake_quantize_per_channel_affine(x, s, z, 0, -8, 7), torch._fake_quantize_learnable_per_channel_affine(x, s, z, 0, -8, 7, 1.0)), (halves, torch.tensor([1.0, 0.5]), torch.tensor([1.0, -2.0])))
    program("fake_quantize_per_channel", lambda x: torch.fake_quantize_per_channel_affine(x, scales, zeros.int(), 1, -8, 7), (r(2, 4, 3),))

    # Observers: flags and ranges are inputs, or buffers of a module prepared for quantisation-aware training.
    I, on, off = torch.inf, torch.tensor([1]), torch.tensor([0])
    observe = torch.ops.aten._fused_moving_avg_obs_fq_helper_functional
    rows = [[0.5, -1.0, 2.0, 0.1], [3.0, 1.0, 2.0, 4.0], [-3.0, -1.0, -2.0, -0.25], [0.0, 0.0, 0.0, 0.0], [1e-6, -3e-6, 0.0, 2e-6], [1e-40, 0.0, 0.0, 0.0]]
    rows = torch.tensor(rows)
    whole = torch.tensor([-0.5]), torch.tensor([1.25]), torch.ones(1), torch.zeros(1, dtype=torch.int32)
    each = torch.full((6,), I), torch.full((6,), -I), torch.ones(6), torch.zeros(6, dtype=torch.int32)
    for low, high in ((-128, 127), (0, 127), (0, 255)):
        program(f"observer_{low}_{high}", lambda x, a, b, c=low, d=high: (*observe(x, a, b, *whole, 0.01, c, d, -1), *observe(x - 5, a, b, *whole, 0.5, c, d, -1, False, True)), (rows, on, on))
        program(f"observer_of_rows_{low}_{high}", lambda x, a, b, c=low, d=high: (*observe(x, a, b, *each, 0.01, c, d, 0, True), *observe(x, a, b, *each, 0.01, c, d, 0, True, True)), (rows, on, on))
    seen = rows.amin(1), rows.amax(1), *each[2:]
    for name, flags in (("observing", (on, off)), ("fixed", (off, on)), ("idle", (off, off))):
        program(f"observer_{name}", lambda x, a, b: (*observe(x, a, b, *seen, 0.3, -128, 127, 0, True, True), *observe(x[:, :, None], a, b, *seen, 0.3, -8, 7, 0, True)), (rows * 2, *flags))
    from torch.ao import quantization as ao
    for name in ("observing", "fixed"):
        module = torch.nn.Sequential(ao.QuantStub(), torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 5), ao.DeQuantStub()).train()
        module.qconfig = ao.get_default_qat_qconfig("fbgemm")
        ao.prepare_qat(module, inplace=True)
        module(r(2, 2, 6, 6))
        module.eval()
        if name == "fixed":
            module.apply(ao.disable_observer)
        program(f"quantisation_aware_{name}", module, (2 * r(3, 2, 6, 6),))

    # torchvision.
    try:
        import torchvision.ops as tv
    except ImportError:
        tv = None
    if tv:
        image = r(2, 8, 16, 16)
        rois = torch.tensor([[0, 1.0, 2, 9, 11], [1, 0, 0, 15, 7], [1, 3.5, 4.2, 6.1, 5.9]])
        for aligned in (False, True):
            program(f"roi_align_{aligned}", lambda x, b, a=aligned: tv.roi_align(x, b, (3, 2), 0.7, 2, a), (image, rois), ({0: dyn}, {0: dyn}), (r(3, 8, 16, 16), rois[:2]))
        program("roi_pool", lambda x, b: tv.roi_pool(x, b, (2, 2), 1.0), (image, rois))
        program("ps_roi_align", lambda x, b: tv.ps_roi_align(x, b, (2, 2), 0.9, 2), (image, rois))
        program("ps_roi_pool", lambda x, b: tv.ps_roi_pool(x, b, (2, 2), 0.9), (image, rois))
        corners = r(12, 2).abs() * 10
        boxes = torch.cat([corners, corners + 8], 1)
        program("nms", lambda b, s: b[tv.nms(b, s, 0.3)], (boxes, torch.linspace(0, 1, 12)[torch.randperm(12)]))
        program("deform_conv2d", lambda x, w, o, m: tv.deform_conv2d(x, o, w, padding=1, mask=m), (r(1, 4, 5, 5), r(6, 4, 3, 3), r(1, 18, 5, 5), r(1, 9, 5, 5).sigmoid()))

    # ONNX's own operators; `symbolic` gives zeros in PyTorch.
    program("onnx_symbolic", lambda x, y: torch.onnx.ops.symbolic("Add", (x, y), dtype=x.dtype, shape=x.shape, version=20) * 1.0, (r(3, 4), r(3, 4)), ({0: dyn}, {0: dyn}), (r(2, 4), r(2, 4)), compare="shape")
    program("onnx_symbolic_attributes", lambda x: torch.onnx.ops.symbolic("HardSigmoid", (x,), attrs={"alpha": 0.25, "beta": 0.5}, dtype=x.dtype, shape=x.shape, version=20), (r(3, 4),), compare="shape")
    program("onnx_rotary_embedding", lambda x, c, s: torch.onnx.ops.rotary_embedding(x, c, s), (r(1, 2, 3, 8), r(1, 3, 4), r(1, 3, 4)))
    program("onnx_attention", lambda a, b, c: torch.onnx.ops.attention(a, b, c)[0], (r(1, 2, 3, 8), r(1, 2, 5, 8), r(1, 2, 5, 8)))

    # Attention.
    a = torch.ops.aten
    program("attention_gqa", lambda x, k, v: F.scaled_dot_product_attention(x, k, v, enable_gqa=True, is_causal=True), (r(2, 4, 3, 8), r(2, 2, 5, 8), r(2, 2, 5, 8)))
    mask = torch.ones(3, 5, dtype=torch.bool).tril()
    mask[1] = False
    program("attention_masked_row", lambda x, k, v: F.scaled_dot_product_attention(x, k, v, attn_mask=mask), (r(2, 4, 3, 8), r(2, 4, 5, 8), r(2, 4, 5, 8)))
    program("attention_half", lambda x, k, v: F.scaled_dot_product_attention(x, k, v, is_causal=True), (r(2, 4, 3, 8).half(), r(2, 4, 3, 8).half(), r(2, 4, 3, 8).half()))
    program("attention_math", lambda x, k, v: a._scaled_dot_product_attention_math(x, k, v, None, 0.0, True), (r(2, 4, 3, 8), r(2, 4, 3, 8), r(2, 4, 3, 8)))
    program("native_attention", lambda x, w, b, p, c: a._native_multi_head_attention(x, x, x, 8, 2, w, b, p, c), (r(2, 3, 8), r(24, 8), r(24), r(8, 8), r(8)))
    program("encoder_layer", torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (r(2, 3, 8),))

    # The rest.
    program("conv_tbc", lambda x, w, b: torch.conv_tbc(x, w, b, 1), (r(6, 2, 3), r(3, 3, 4), r(4)))
    program("convolution", lambda x, w: torch.convolution(x, w, None, [2], [1], [1], True, [1], 2), (r(2, 4, 5), r(4, 3, 3)), ({0: dyn, 2: dyn}, None), (r(3, 4, 6), r(4, 3, 3)))
    program("fold", lambda x: F.fold(x, (6, 5), (3, 2), stride=(2, 1), padding=1), (r(2, 12, 18),))
    program("affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), (r(2, 2, 3),))
    program("affine_grid_line", lambda t: F.affine_grid(t, [2, 3, 4, 1], align_corners=True), (r(2, 2, 3),))
    program("affine_grid_volume", lambda t: F.affine_grid(t, [2, 3, 1, 4, 5], align_corners=True), (r(2, 3, 4),))
    program("complex_truth", lambda x: (x.to(torch.bool), torch.zeros_like(x.real, dtype=torch.bool).copy_(x), x.any(), x.logical_not()), (torch.complex(r(3, 4).relu(), r(4, 3).T.relu()),), ({0: dyn},), (torch.complex(r(5, 4).relu(), r(4, 5).T.relu()),))
    program("instance_norm_running", torch.nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (r(2, 3, 4, 5),))
    def apart(x, w=None, b=None):
        n, c, *spatial = x.shape
        w, b = (v if v is None else v.repeat(n) for v in (w, b))
        return a._native_batch_norm_legit.no_stats(x.reshape(1, n * c, *spatial), w, b, True, 0.1, 1e-3)[0].reshape(x.shape)
    program("instance_norm_apart", apart, (r(2, 3, 4, 5), r(3), r(3)), ({0: dyn}, None, None), (r(3, 3, 4, 5), r(3), r(3)))
    program("instance_norm_apart_plain", apart, (r(2, 3, 4),), ({0: dyn},), (r(3, 3, 4),))
    program("batch_norm_of_one", lambda x, w, b: a._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-3), (r(1, 3, 4), r(3), r(3)))
    program("batch_norm_functional", lambda x, w, b, m, v: a._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.1, 1e-5), (r(2, 3, 4), r(3), r(3), r(3), r(3).abs()))
    program("fused_rms_norm", lambda x, w: a._fused_rms_norm(x, [4], w, None), (r(2, 3, 4), r(4)))
    program("lp_pool", lambda x: F.lp_pool2d(x, 2.0, 2), (r(1, 2, 6, 6),))
    program("trilinear", lambda x, y, z: a._trilinear(x, y, z, [1, 3], [0], [1, 2], [2, 3]), (r(2, 4), r(5, 4, 6), r(2, 6)))
    program("embedding_bag_max", lambda w, i, o: F.embedding_bag(i, w, o, mode="max"), (r(5, 3), torch.tensor([0, 2, 4, 1]), torch.tensor([0, 1, 1])))
    program("embedding_bag_mean", lambda w, i, o: F.embedding_bag(i, w, o, mode="mean", padding_idx=2, include_last_offset=True), (r(5, 3), torch.tensor([0, 2, 4, 1]), torch.tensor([0, 2, 2, 4])))
    program("upsample_cubic_widened", lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), (r(1, 2, 7, 9),))
    # ONNX Runtime moves the first Transpose through the Resize.
    for name, given in (("sizes", {"size": (9, 12)}), ("ratios", {"size": (14, 9)}), ("factors", {"scale_factor": 1.7}), ("cubic", {"size": (4, 3), "mode": "bicubic"})):
        def last(x, given={"mode": "bilinear"} | given):
            return F.interpolate(x.permute(0, 3, 1, 2), **given).permute(0, 2, 3, 1)
        program(f"upsample_channels_last_{name}", last, (r(2, 7, 6, 3),), ({0: dyn},), (r(3, 7, 6, 3),))
    # It would merge these pads with the pools.
    program("pad_channels_last_max_pool", lambda x: F.max_pool2d(F.pad(x.permute(0, 2, 3, 1), (0, 0, 1, 1, 1, 1)).permute(0, 3, 1, 2), 3), (-r(2, 3, 5, 4).abs(),), ({0: dyn},), (-r(3, 3, 5, 4).abs(),))
    program("wide_pad_avg_pool", lambda x: F.avg_pool2d(F.pad(x, (2, 2, 3, 3)), 3, 1, 1), (r(2, 3, 5, 4),), ({0: dyn, 2: dyn},), (r(3, 3, 6, 4),))
    program("grouped_mm", lambda x, w, o: torch._grouped_mm(x.bfloat16(), w.bfloat16(), offs=o).float(), (r(8, 16), r(3, 16, 8), torch.tensor([2, 2, 8], dtype=torch.int32)))

    # Groups that only the runtime counts.
    def transposed(x, w, b):
        return F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1, groups=x.shape[1] // 2)
    program("conv_transpose_symbolic_groups", transposed, (r(2, 4, 5), r(4, 3, 4), r(6)), ({1: 2 * Dim("g", min=2, max=9), 2: dyn}, {0: 2 * Dim("g", min=2, max=9)}, {0: 3 * Dim("g", min=2, max=9)}), (r(2, 6, 6), r(6, 3, 4), r(9)))
    def transposed2(x, w):
        return F.conv_transpose2d(x, w, None, stride=(1, 2), padding=(2, 0), dilation=(2, 1), groups=x.shape[1])
    program("conv_transpose2d_symbolic_groups", transposed2, (r(2, 4, 5, 3), r(4, 2, 2, 3)), ({1: dyn}, {0: dyn}), (r(2, 5, 5, 3), r(5, 2, 2, 3)))

    # torchaudio's recursive filter, as its extension declares it.
    library = torch.library.Library("torchaudio", "DEF")
    library.define("_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> Tensor(a!)")
    def loop(x, a, y):
        n = a.shape[1]
        for t in range(x.shape[2]):
            y[:, :, t + n - 1] = x[:, :, t] - (y[:, :, t : t + n] * a).sum(-1)
        return y
    library.impl("_lfilter_core_loop", loop, "CPU")
    library.impl("_lfilter_core_loop", lambda x, a, y: y, "Meta")
    register.library = library  # It lives as long as its ops are used.
    def lfilter(x, a):
        n = a.shape[1]
        y = torch.zeros(*x.shape[:2], x.shape[2] + n - 1)
        torch.ops.torchaudio._lfilter_core_loop(x, a.flip(1), y)
        return y[:, :, n - 1 :]
    def lfilter_returned(x, a):
        y = torch.ones(*x.shape[:2], x.shape[2] + a.shape[1] - 1)
        return torch.ops.torchaudio._lfilter_core_loop(x, a, y) * 2, y
    stable = torch.tensor([[1, 0.3, -0.2], [1, -0.5, 0.1]])
    program("lfilter", lfilter, (r(2, 2, 7), stable), ({0: dyn, 2: dyn}, None), (r(3, 2, 9), stable))
    program("lfilter_returned", lfilter_returned, (r(2, 2, 7), stable.flip(1)))
    program("lfilter_without_memory", lfilter, (r(2, 1, 4), torch.tensor([[1.0]])))

    # Dimensions that the runtime leaves out if they are 1.
    batch = Dim("batch", min=0)
    program("squeeze_all_of_one", lambda x: (x.squeeze(), x.squeeze(1)), (r(3, 1, 4),), ({0: batch},), (r(1, 1, 4),))
    program("squeeze_batch_of_one", lambda x: (x.squeeze(0), x.squeeze((0, 2)), x.squeeze(0).sum()), (r(3, 2, 4),), ({0: batch, 2: Dim("width")},), (r(1, 2, 1),))
    program("squeeze_batch_of_none", lambda x: x.squeeze(0), (r(3, 2, 4),), ({0: batch},), (r(0, 2, 4),))

    # Pivots of one and two rows.
    hard = torch.tensor([[0.0, 1, 2, 0], [1, 0, 3, 0], [2, 3, 0, 0], [0, 0, 0, 0]])
    program("ldl_factor", lambda x: torch.linalg.ldl_factor_ex(x), (torch.stack([hard, torch.zeros(4, 4), torch.eye(4), r(4, 4)]),), ({0: dyn},), (torch.stack([hard + 1, hard * 1e15]),))
    program("ldl_factor_hermitian", lambda x: torch.linalg.ldl_factor(x, hermitian=True), (torch.complex(r(3, 5, 5), r(3, 5, 5).mT),))
    program("ldl_factor_empty", lambda x: torch.linalg.ldl_factor_ex(x), (r(2, 0, 0),))

    # Nothing at all.
    program("unique_consecutive_of_none", lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), (torch.tensor([1.0, 3, 3, -1]),), ({0: batch},), (r(0),))
    program("float8_of_none", lambda x: x.to(torch.float8_e4m3fn).float(), (r(4, 0),))

    def scaled_mm(a, b, rows, columns, bias):
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
        halves = torch._scaled_mm(a, b, torch.tensor(0.5), torch.tensor(2.0), out_dtype=torch.bfloat16)
        return halves.float(), torch._scaled_mm(a, b, rows, columns, bias, out_dtype=torch.float32)

    def scaled_mm_recipes(a, b, rows, columns):
        from torch.nn.functional import ScalingType, SwizzleType

        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
        whole, each = ScalingType.TensorWise, ScalingType.RowWise
        halves = torch.nn.functional.scaled_mm(a, b, rows[0], whole, columns[0, :1], whole, SwizzleType.NO_SWIZZLE, SwizzleType.NO_SWIZZLE)
        return halves.float(), torch.nn.functional.scaled_mm(a, b, rows, each, columns, each, output_dtype=torch.float32)

    program("scaled_mm_recipes", scaled_mm_recipes, (r(4, 16), r(8, 16), r(4, 1).abs(), r(1, 8).abs()))
    program("scaled_mm", scaled_mm, (r(4, 16), r(8, 16), r(4, 1).abs(), r(1, 8).abs(), r(8)))
