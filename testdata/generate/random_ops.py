"""The calls of random programs.

A line below is one call. Before it is written into a program, each `{...}` is replaced:

    {x}          a tensor that the program has: x any, n no bools, f floats, F float32 or float64, i integers, I int64, b bools, c complex
    {f2} {n3+}   ... of rank 2, of rank 3 or more
    {n~} {x=}    ... that broadcasts with the first tensor of the line, or has its shape and dtype
    {0} {1}      the first, the second tensor of the line again
    {d}          a dimension of the first tensor
    {u}          a whole number from 0 to 3 that only the running program knows
    {num}        a number
    {w:4,C,3}    a new weight of this shape; B, C and L are the first, second and last size of the first tensor
    {a|b|c}      one of these texts

A call that PyTorch refuses does not get into the program, so that a line need not say when it is allowed.
"""

# By group: how often it is drawn, and its lines.
GROUPS = {
    "pointwise": (
        10,
        """
        torch.{abs|neg|sign|sgn|relu|positive|square|signbit|isnan|isfinite|isinf|logical_not}({x})
        torch.{floor|ceil|round|trunc|frac}({f})
        torch.{sigmoid|tanh|sin|cos|exp|log|sqrt|rsqrt|reciprocal|erf|expm1|log1p|log2|exp2|atan|asinh|sinc|lgamma|digamma}({x})
        F.{gelu|silu|softplus|elu|selu|mish|hardswish|hardsigmoid|hardtanh|leaky_relu|logsigmoid|softshrink|hardshrink|relu6}({f})
        F.{softmax|log_softmax|softmin|glu}({f}, {d})
        torch.{isneginf|isposinf|nan_to_num|rad2deg|logit}({n})
        torch.round({f}, decimals={0|1|-1|2})
        torch.clamp({n}, {-1|0|None|2}, {1|3|0.5|0})
        torch.clamp({n}, {n~}, {n~})
        F.threshold({f}, 0.3, -2)
        """,
    ),
    "arithmetic": (
        12,
        """
        {x} {+|-|*|/} {x~}
        {n} {+|-|*|/} {num}
        {num} {+|-|*|/} {n}
        {n} {//|%} {n~}
        {n} {//|%} {2|-3|0.7|-0.5|5}
        torch.{maximum|minimum|fmax|fmin|copysign|hypot|atan2}({n}, {n~})
        torch.div({n}, {n~}, rounding_mode={'floor'|'trunc'|None})
        torch.{remainder|fmod}({n}, {n~})
        torch.{add|sub}({n}, {n~}, alpha={2|-1|3})
        {f} ** {2|3|0.5|-1|0|2.0}
        {f}.abs() ** {f~}
        {i} ** {0|1|2|3}
        torch.{xlogy|logaddexp|heaviside|float_power}({f}, {f~})
        torch.addcmul({f}, {f~}, {f~}, value={1|2|-0.5})
        torch.lerp({f}, {f=}, {0.3|-1.0|0.5})
        torch.where({b}, {x}, {x})
        torch.where({n} > 0, {0}, {num})
        torch.{gcd|lcm}({i}, {i~})
        torch.{ldexp|nextafter}({F}, {F~})
        """,
    ),
    "comparison": (
        5,
        """
        {x} {==|!=|<|<=|>|>=} {x~}
        {n} {==|!=|<|<=|>|>=} {num}
        torch.logical_{and|or|xor}({x}, {x~})
        {i} {&|\\||^} {i~}
        {b} {&|\\||^} {b~}
        ~{b}
        ~{i}
        {i} {<<|>>} {0|1|3}
        torch.isclose({f}, {f~}, equal_nan={True|False})
        torch.isin({n}, torch.tensor([0, 1, 3]))
        """,
    ),
    "types": (
        6,
        """
        {x}.to(torch.{float32|float64|float16|bfloat16})
        {i}.to(torch.{int64|int32|int16|int8|uint8|bool})
        {b}.to(torch.{int64|int32|int8|uint8|float16})
        {f}.nan_to_num(0, 9, -9).clamp(-100, 100).to(torch.{int64|int32|int16|int8})
        {f}.bool()
        {x}.type_as({x})
        {f}.clamp(-400, 400).to(torch.{float8_e4m3fn|float8_e5m2}).to(torch.{float32|float16|bfloat16})
        {f}.to(torch.{float8_e4m3fn|float8_e5m2|float8_e4m3fnuz|float8_e5m2fnuz}).float()
        {F}.to(torch.float8_e5m2).view(torch.uint8)
        torch.result_type({x}, {x})
        """,
    ),
    "views": (
        12,
        """
        {x2+}.transpose({0|-1|1}, {0|-1|-2})
        {x2+}.mT
        {x}.flatten()
        {x2+}.flatten(0, 1)
        {x2+}.reshape({0}.shape[0], -1)
        {x2+}.reshape(-1, {0}.shape[-1])
        {x}.unsqueeze({0|-1})
        {x}.squeeze()
        {x}.squeeze({d})
        {x1+}[{0|-1|1:|:-1|::2|-3:|1:3|None|...|:100|2:1}]
        {x2+}[{:|...|1:|0|None}, {0|-1|1:|:-1|::2|None|1:3}]
        {x1+}.narrow({d}, 0, {1|2})
        {x1+}.select({d}, {0|-1})
        {x}.expand(2, *{0}.shape)
        {x1+}.unbind({d})
        {x1+}.split({1|2}, {d})
        {x1+}.chunk(2, {d})
        {x1+}.unfold({d}, 2, {1|2})
        {x2+}.diagonal({0|1|-1})
        {x2+}.movedim(0, -1)
        {x3}.permute({2, 0, 1|1, 0, 2|0, 2, 1})
        {F}.float().view(torch.int32)
        {F}.double().view(torch.int64)
        {i}.to(torch.int32).view(torch.float32)
        torch.broadcast_tensors({x}, {x~})
        {x}.view_as({x=})
        """,
    ),
    "movement": (
        9,
        """
        torch.cat([{x1+}, {0}], {d})
        torch.cat([{x1+}, {x}], {d})
        torch.stack([{x}, {x=}], {0|-1|1})
        torch.{hstack|vstack|dstack}([{x}, {0}])
        {x1+}.flip({d})
        {x1+}.roll({1|-1|2}, {d})
        torch.tile({x}, (2,))
        {x1+}.repeat_interleave({2|1|3}, {d})
        {x2+}.{tril|triu}({0|1|-1})
        torch.rot90({x2+})
        F.pad({x}, ({1|0|2}, {1|0|-1}), value={0|1})
        F.pad({f3}, (1, {1|2}), mode={'reflect'|'replicate'|'circular'})
        torch.meshgrid({x1}, {x1}, indexing={'ij'|'xy'})
        torch.diag_embed({x1+})
        torch.block_diag({x2}, {x2})
        torch.combinations({x1})
        F.one_hot({I}.clamp(0, 4), 5)
        F.pixel_shuffle({f4}.repeat(1, 4, 1, 1), 2)
        {x}.clone()
        {x}.contiguous()
        """,
    ),
    "reductions": (
        11,
        """
        {n}.{sum|prod|mean|amax|amin|std|var|logsumexp|nansum|nanmean}({d})
        {x}.{sum|any|all|count_nonzero}({d})
        {n}.{sum|prod|amax|amin|max|min|median|nanmedian}()
        {f}.{mean|std|var|nanmean}()
        {n2+}.{sum|amax|amin}((0, -1), keepdim=True)
        {f}.mean({d}, keepdim=True, dtype=torch.float64)
        {x}.sum(dtype=torch.{float32|int32|float64})
        {n}.{max|min|median|cummax|cummin}({d})
        {n}.{argmax|argmin}({d}, keepdim={True|False})
        {n}.{argmax|argmin}()
        {f}.norm({1|2|3|0|float('inf')}, {d})
        torch.linalg.vector_norm({f}, {2|0.5|-1|float('-inf')}, {d})
        torch.var_mean({f}, {d}, correction={0|1})
        torch.aminmax({n1+}, dim={d})
        {n1+}.{cumsum|cumprod}({d})
        {f1+}.logcumsumexp({d})
        torch.diff({n1+}, dim={d})
        torch.trapezoid({f1+}, dim={d})
        F.normalize({f1+}, dim={d})
        torch.histc({F}, 4, -2, 2)
        torch.bincount({I1}.abs() % 5, minlength=5)
        """,
    ),
    "order": (
        6,
        """
        {n1+}.sort({d}, stable=True)
        {n1+}.argsort({d}, descending=True, stable=True)
        {n1+}.topk({1|2}, {d}).values
        {n1+}.kthvalue({1|2}, {d}).values
        {n1+}.mode({d}).values
        {n1+}.msort()
        {n}.unique()
        {n}.unique(return_inverse=True, return_counts=True)
        {n2}.unique(dim=0)
        {n1}.unique_consecutive(return_inverse=True, return_counts=True)
        torch.searchsorted({n1}.nan_to_num().sort().values, {0}.flip(0), right={True|False})
        torch.bucketize({n}, torch.tensor([-1.0, 0.0, 2.0]), right={True|False})
        torch.quantile({F1+}, {0.5|0.3|1.0}, {d})
        """,
    ),
    "indexing": (
        8,
        """
        {x1+}[{I} % {0}.shape[0]]
        {x1+}[torch.tensor([0, -1, 0])]
        {x2+}[:, torch.tensor([0, 0])]
        {x2+}[torch.tensor([0]), torch.tensor([-1])]
        {x1+}.index_select({d}, torch.tensor([0, 0]))
        {x1+}.gather({d}, torch.zeros_like({0}, dtype=torch.int64))
        torch.take_along_dim({n1+}, {0}.argsort({d}, stable=True), {d})
        torch.take({x}, torch.tensor([0, -1]))
        {x1+}[{x=} != 0]
        torch.masked_select({x}, {b~})
        {x}.masked_fill({b~}, {0|1})
        torch.nonzero({x})
        {n1+}.scatter({d}, torch.zeros_like({0}, dtype=torch.int64)[:1], {0})
        {n1+}.scatter_add({d}, torch.zeros_like({0}, dtype=torch.int64), {n=})
        {n1+}.scatter_reduce({d}, torch.zeros_like({0}, dtype=torch.int64), {n=}, {'sum'|'amax'|'amin'|'mean'|'prod'}, include_self={True|False})
        {n1+}.index_add({d}, torch.tensor([0, 0]), {0}.narrow({d}, 0, 2))
        {n1+}.index_copy({d}, torch.tensor([1, 0]), {0}.narrow({d}, 0, 2))
        {n1+}.index_fill({d}, torch.tensor([0]), {1|0})
        {x1+}.index_put((torch.tensor([0, 0]),), {0}[:2], accumulate={True|False})
        torch.slice_scatter({x1+}, {0}[1:], 0, 1)
        torch.select_scatter({x2+}, {0}[0], 0, -1)
        torch.diagonal_scatter({x2}, {0}.diagonal())
        """,
    ),
    "in place": (
        7,
        """
        {n}.{add|mul|sub}_({n~})
        {f}.{relu|neg|abs|sigmoid|floor}_()
        {n}.clamp_(-1, 2)
        {x}.zero_()
        {x}.fill_({1|0})
        {x1+}[{0|-1|1:|::2|:2}] = {1|0}
        {n1+}[{0|1:|::2|:2}] += {num}
        {x1+}[{x=} == 0] = 1
        {n}.copy_({n~})
        {x2+}.t_()
        {x}.unsqueeze_(0)
        {x}.masked_fill_({b~}, 0)
        {f2+}.select(-1, 0).mul_({2|0.5})
        {n1+}.diagonal().fill_(1)
        {n1+}.view(-1)[1:] = {2|0}
        {n1+}.index_add_(0, torch.tensor([0, 0]), {0}[:2].clone())
        """,
    ),
    "matrices": (
        7,
        """
        {f} @ {f}
        {F2+} @ {0}.mT
        {i2} @ {0}.mT
        F.linear({F}, {w:3,L}, {w:3})
        {F2}[0, :1].expand(4).addmm({0}, {w:L,4}, beta={1|0.5}, alpha={1|2})
        torch.bmm({F3}, {0}.mT)
        torch.einsum({'...i,...j->...ij'|'...i,...i->...'}, {f1+}, {f=})
        torch.einsum('ij,kj->ik', {n2}, {0})
        torch.outer({n1}, {n1})
        torch.tensordot({F2+}, {0}, dims={([0], [0])|([-1], [-1])})
        torch.kron({n}, {n})
        torch.cdist({F2+}, {0}.flip(0), p={2.0|1.0|float('inf')})
        torch.linalg.{det|inv|matrix_exp}({F2+}[..., :1].tanh() * 0.1 + torch.eye(3, dtype={0}.dtype)[:, :1] @ torch.ones(1, 3, dtype={0}.dtype) * 0.1 + 2 * torch.eye(3, dtype={0}.dtype))
        torch.trace({n2})
        torch.baddbmm(torch.tensor(0.5), {F3}[:, :2].float(), {0}[:, :2].mT.float(), alpha={1|0.5})
        """,
    ),
    "layers": (
        9,
        """
        F.conv1d({F3}, {w:4,C,3}, {None|torch.ones(4)}, padding={1|2|'same'})
        F.conv1d({F3}, {w:2,C,2}, stride=2, dilation={1|2}, padding=2)
        F.conv2d({F4}, {w:3,C,2,2}, padding={1|(0, 1)}, stride={1|2})
        F.conv_transpose1d({F3}, {w:C,2,3}, stride={1|2}, padding={0|1})
        F.max_pool1d({f3}, 2, stride={1|2}, padding={0|1}, ceil_mode={True|False})
        F.max_pool2d({f4}, 2, stride={1|2}, padding={0|1}, ceil_mode={True|False})
        F.max_pool1d({f3}, 3, stride=1, padding=1, return_indices=True)
        F.max_pool2d({f4}, 2, dilation={1|2}, stride=1, return_indices=True)
        F.adaptive_max_pool1d({f3}, {1|2|3}, return_indices=True)
        F.adaptive_max_pool2d({f4}, {1|2|(2, 3)})
        F.avg_pool1d({F3}, 2, stride={1|2}, padding={0|1}, ceil_mode={True|False}, count_include_pad={True|False})
        F.avg_pool2d({F4}, 2, padding=1, count_include_pad={True|False})
        F.adaptive_avg_pool1d({F3}, {1|2|3})
        F.lp_pool1d({F3}, 2, 2)
        F.layer_norm({f}, ({0}.shape[-1],))
        F.layer_norm({F}, [{0}.shape[-1]], {w:L}, {w:L})
        F.rms_norm({F}, ({0}.shape[-1],), {w:L})
        F.batch_norm({F3}, {w:C}, {w:C}.abs() + 0.5, {w:C}, None)
        F.instance_norm({F3})
        F.group_norm({F3}, 1)
        F.interpolate({f3}, scale_factor={2|0.5|1.5}, mode={'nearest'|'linear'})
        F.interpolate({F4}, size=(3, 2), mode={'nearest'|'bilinear'|'area'}, align_corners=None)
        F.embedding({I} % 5, {w:5,3})
        F.embedding_bag(torch.zeros_like({I1}), {w:5,3}, torch.tensor([0]), mode={'sum'|'mean'|'max'})
        F.scaled_dot_product_attention({F3}, {0}, {0}, is_causal={True|False})
        F.scaled_dot_product_attention({F4}, {0}, {0} * 2, attn_mask={0} @ {0}.mT > 0)
        F.dropout({f}, 0.5, False)
        F.prelu({F}, {w:1})
        F.{mse_loss|l1_loss|huber_loss|smooth_l1_loss}({f}, {f=}, reduction={'mean'|'sum'|'none'})
        F.cross_entropy({F2}, torch.arange({0}.shape[0]) % {0}.shape[1])
        F.cosine_similarity({F}, {F=}, {d})
        F.unfold({F4}, 2, padding=1)
        F.grid_sample({F4}[:1], torch.linspace(-1.1, 1.2, 12, dtype={0}.dtype).reshape(1, 2, 3, 2), mode={'nearest'|'bilinear'}, padding_mode={'zeros'|'border'|'reflection'}, align_corners={True|False})
        """,
    ),
    "creation": (
        5,
        """
        torch.{zeros|ones}_like({x})
        torch.full_like({n}, {2|-1})
        torch.{zeros|ones}({x1+}.shape[0], 2)
        torch.arange({x1+}.shape[0])
        torch.arange({x1+}.shape[0], dtype=torch.float32)
        torch.arange({x1+}.shape[-1], 0, -1)
        torch.eye({x1+}.shape[0])
        torch.linspace(-1, 1, {x1+}.shape[0] + 1)
        torch.tensor([float('nan'), float('inf'), -float('inf'), -0.0, 1.0])
        torch.tensor([3, -1, 2])
        torch.tensor(2.5)
        torch.full((), {True|7|1.5})
        {x}.new_full((2,), 1)
        torch.tril_indices(3, 3)
        torch.scalar_tensor({x1+}.shape[0])
        """,
    ),
    "complex": (
        4,
        """
        torch.complex({F}, {0}.flip(0))
        torch.fft.{fft|rfft|ifft}({F1+}, dim={d}, norm={None|'ortho'})
        torch.view_as_complex({F}.unsqueeze(-1).expand(*{0}.shape, 2).contiguous())
        {c}.{abs|angle|conj}()
        torch.view_as_real({c}.resolve_conj())
        {c} {+|-|*} {c}
        {c} * {2|1.5|(1-2j)}
        {c1+}.sum({d})
        torch.{exp|sin|reciprocal|sqrt}({c})
        {c2+} @ {0}.mT
        torch.fft.irfft({c1+}, dim={d}, n={4|5})
        {c}.{real|imag}
        """,
    ),
    "control": (
        4,
        """
        cond({b}.any(), lambda a, b: a + b, lambda a, b: a - b * 2, ({n}, {n=}))
        cond({n}.sum() > {0|1e9}, lambda a: (a.sum(), a * 2), lambda a: (a.amax(), a.clone()), ({n},))
        cond({x1+}.shape[0] > 3, lambda a: a.cos(), lambda a: a.sin(), ({F},))
        while_loop(lambda i, a: i < {0|1|3}, lambda i, a: (i + 1, a * 2 - 1), (torch.tensor(0), {F}))
        scan(lambda c, a: (c + a, c * a), {F1+}[0], {0})
        map(lambda a: a.flip(0) * 2, {n2+})
        torch.vmap(lambda a: a.cumsum(0) - a.sum())({F2+})
        """,
    ),
    "sizes": (
        4,
        """
        whole({I1+})
        torch.arange({u})
        torch.arange({u} + 1) * 2
        torch.ones({u}, 2)
        torch.full(({u} + 1,), 0.5)
        {n} {+|*} {u}
        torch.arange(8)[{u}:]
        torch.arange(8).narrow(0, {u}, 2)
        {x1+}.shape[0] * {n}
        {n} / {x1+}.shape[-1]
        {x1+}.new_ones({0}.numel())
        torch.zeros({u}, 3).{sum|mean|prod|any|all}({0|1})
        """,
    ),
}

# ATen ops whose result the operands determine to the last bit. Other results are moved a little to find what depends on rounding.
EXACT = set(
    """abs add amax amin aminmax any all arange argmax argmin argsort bitwise_and bitwise_not bitwise_or bitwise_xor cat ceil clamp clamp_max
    clamp_min clone constant_pad_nd copy copysign count_nonzero cummax cummin div embedding empty eq eye fill flip floor floor_divide fmax fmin
    fmod frac full gather ge gt heaviside hardtanh index index_copy index_fill index_put index_select isin isnan kthvalue le leaky_relu logical_and logical_not
    logical_or logical_xor lt masked_fill masked_scatter masked_select max max_pool2d_with_indices maximum median min minimum mode mul nan_to_num
    nanmedian ne neg nextafter nonzero ones relu remainder repeat roll round rsub scalar_tensor scatter searchsorted sgn sign signbit slice_scatter
    select_scatter sort sub threshold topk tril triu trunc unique_consecutive unique_dim where zero zeros adaptive_max_pool2d max_pool1d""".split()
)
