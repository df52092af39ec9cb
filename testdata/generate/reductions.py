"""Programs for the families of reductions, norms, order, searches, losses and windows: overloads and corners (NaN,
infinities, empty and 0-d tensors) that OpInfo's samples leave out. `make.py` saves them as cases.
"""

import torch
import torch.nn.functional as F

T, A = torch, torch.ops.aten
nan, inf = float("nan"), float("inf")
D = torch.export.Dim.AUTO


class Program(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y=None, z=None):
        return self.function(*(v for v in (x, y, z) if v is not None))


def programs():
    """By name, functions that make (module, args, dynamic shapes, args of other sizes)."""
    torch.manual_seed(0)
    R = torch.randn
    made = {}

    def c(name, function, *args, dyn=None):
        shapes = dyn and tuple(dyn.get(n) for n, _ in zip("xyz", args))
        made["reductions_" + name] = lambda: (Program(function), args, shapes, None)

    X = R(3, 4, 5)
    XN = X.clone()
    XN[0, 1, 2] = nan
    XN[2, 0] = nan
    XI = XN.clone()
    XI[1, 1, 1] = inf
    XI[1, 2, 1] = -inf
    I = torch.randint(-5, 5, (3, 4, 5))
    B = X > 0
    Y = R(6, 5)
    tgt = torch.tensor([0, 2, -100, 4, 1, 1])
    for n, a in [("amax", XI), ("amin", XI)]:
        c(n + "_nan", lambda x, n=n: (getattr(T, n)(x, 1), getattr(T, n)(x, (0, 2), True), getattr(T, n)(x)), a)
    c("aminmax", lambda x: (*T.aminmax(x, dim=1, keepdim=True), *T.aminmax(x)), XI)
    c("max_nan", lambda x: (x.max(), x.min(), *x.max(1), *x.min(2, True)), XN)
    c(
        "max_bool",
        lambda x: (
            x.max(),
            x.min(),
            *x.max(1),
            *x.min(2, True),
            x.amax(1),
            x.any(1),
            x.all((0, 1)),
            x.all(),
            x.sum(1),
            x.prod(1),
        ),
        B,
    )
    c("argm", lambda x: (x.argmax(), x.argmin(1), x.argmax(-1, True), x.argmin()), X)
    c("argm_int", lambda x: (x.argmax(), x.argmin(1), x.argmax(-1, True)), I)
    c(
        "zero_d",
        lambda x: (
            x.sum(0),
            x.mean(),
            x.max(0)[0],
            x.argmax(0),
            x.cumsum(0),
            x.sort()[1],
            x.std(correction=0),
            x.logsumexp(0),
            x.amax(0),
            x.prod(0),
            x.cumprod(0),
            x.cummax(0)[1],
            x.any(0),
            x.norm(),
            x.kthvalue(1, 0)[0],
            x.topk(1, 0)[1],
            x.median(0)[0],
            x.mode(0)[0],
        ),
        torch.tensor(1.5),
    )
    c(
        "empty",
        lambda x: (
            x.sum(),
            x.sum(0),
            x.prod(0),
            x.mean(0),
            x.logsumexp(0),
            x.any(0),
            x.all(0),
            x.std(0),
            x.norm(dim=0),
            x.var(0),
            x.cumsum(0),
            x.sort(0)[0],
            x.count_nonzero(0),
            x.nansum(0),
            x.cumprod(0),
            x.norm(p=1, dim=0),
        ),
        torch.zeros(0, 3),
    )
    c(
        "empty1",
        lambda x: (x.amax(1), x.max(1)[1], x.argmax(1), x.cummax(1)[0], x.logcumsumexp(1), x.sum(1)),
        torch.zeros(0, 3),
    )
    c(
        "var",
        lambda x: (
            x.var(),
            x.var(1),
            x.var((0, 2), correction=2),
            x.std(correction=0),
            x.std(1, False),
            x.std((0, 1), True),
            *T.var_mean(x, 1),
            *T.std_mean(x),
            *T.var_mean(x, (0, 1), correction=0, keepdim=True),
        ),
        X,
        dyn={"x": {0: D, 1: D, 2: D}},
    )
    c("var1", lambda x: (x.var(0), x.std(0), x.var(0, correction=3)), R(1, 4))
    for p in [0, 1, 2, 3, 2.5, inf, -inf, -1, 0.5]:
        c(
            f"vnorm_{p}",
            lambda x, p=p: (
                T.linalg.vector_norm(x, p),
                T.linalg.vector_norm(x, p, dim=1),
                T.linalg.vector_norm(x, p, dim=(0, 2), keepdim=True),
                T.norm(x, p, dim=1),
                T.dist(x, x * 2 + 1, p),
            ),
            X,
        )
    for p in ["fro", 1, -1, inf, -inf, 2, -2, "nuc"]:
        c(
            f"mnorm_{p}",
            lambda x, p=p: (
                T.linalg.matrix_norm(x, p),
                T.linalg.matrix_norm(x, p, dim=(0, 2), keepdim=True),
                T.linalg.norm(x, p, dim=(0, 1)),
            ),
            X,
        )
    c(
        "cnorm",
        lambda x: (
            T.linalg.vector_norm(x, 3, dim=1),
            T.norm(x),
            T.linalg.matrix_norm(x, 1),
            x.sum(),
            x.prod(1),
            x.cumprod(1),
            x.var(1),
            x.mean(0),
            x.logsumexp(1),
        ),
        T.complex(R(3, 4), R(3, 4)),
    )
    c(
        "cdist",
        lambda a, b: (
            T.cdist(a, b),
            T.cdist(a, b, 1.0),
            T.cdist(a, b, inf),
            T.cdist(a, b, 0.0),
            T.cdist(a, b, 3.0),
            F.pdist(a[0], 2.0),
        ),
        R(2, 3, 4),
        R(2, 5, 4),
    )
    c("pdist_dyn", lambda a: (F.pdist(a), F.pdist(a, 1.0)), R(5, 4), dyn={"x": {0: D}})
    c(
        "cos",
        lambda a, b: (
            F.cosine_similarity(a, b),
            F.cosine_similarity(a, b, dim=0),
            F.cosine_similarity(a, b[0], dim=-1),
            F.pairwise_distance(a, b, 3.0, keepdim=True),
            F.pairwise_distance(a, b[0]),
        ),
        R(3, 4),
        R(3, 4),
    )
    c("renorm", lambda x: (T.renorm(x, 2, 0, 1.0), T.renorm(x, 1, -1, 3.0), T.renorm(x, inf, 1, 0.5)), X)
    c(
        "sorts",
        lambda x: (
            *x.sort(1),
            *x.sort(0, True),
            x.argsort(-1),
            x.argsort(dim=1, descending=True, stable=True),
            x.msort(),
            *x.topk(2, 1),
            *x.topk(3, 0, False),
            *x.kthvalue(2, 1, True),
        ),
        X,
        dyn={"x": {0: D, 1: D}},
    )
    c("sort_nan", lambda x: (x.sort(1)[0], x.sort(1)[1], x.sort(1, True)[0], x.msort()), XN)
    c(
        "sort_int",
        lambda x: (
            *x.sort(dim=1, stable=True),
            *x.sort(dim=0, descending=True, stable=True),
            x.argsort(dim=1, descending=True, stable=True),
        ),
        I,
    )
    c("sort_bool", lambda x: (*x.sort(dim=1, stable=True), *x.sort(dim=0, descending=True, stable=True)), B)
    c(
        "median",
        lambda x: (
            x.median(),
            x.median(1)[0],
            x.nanmedian(),
            *x.nanmedian(1),
            x.nanmedian(2, True)[0],
            x.median(0, True)[0],
        ),
        XN,
        dyn={"x": {0: D, 1: D}},
    )
    c("median2", lambda x: (x.median(), *x.median(1), *x.nanmedian(1)), X)
    c("mode", lambda x: (*x.mode(1), *x.mode(0, True), *x.mode()), I)
    q = torch.tensor([0.1, 0.5, 1.0, 0.0])
    for how in ["linear", "lower", "higher", "midpoint", "nearest"]:
        c(
            "quantile_" + how,
            lambda x, q, how=how: (
                x.quantile(0.3, interpolation=how),
                x.quantile(q, 1, interpolation=how),
                x.quantile(q, 0, True, interpolation=how),
                x.quantile(0.5, -1, True, interpolation=how),
                x.nanquantile(q, 1, interpolation=how),
                x.nanquantile(q, interpolation=how, keepdim=True),
                x.nanquantile(0.4, 2, interpolation=how),
            ),
            XN,
            q,
        )
    c(
        "quantile_dyn",
        lambda x, q: (x.quantile(q, 1), x.nanquantile(q, 0, True)),
        X,
        q,
        dyn={"x": {0: D, 1: D}, "y": {0: D}},
    )
    s = torch.tensor([1.0, 2.0, 2.0, 4.0, 7.0])
    v = torch.tensor([[0.0, 1.0, 2.0], [4.0, 8.0, nan]])
    c(
        "search",
        lambda s, v: (
            T.searchsorted(s, v),
            T.searchsorted(s, v, right=True),
            T.searchsorted(s, v, side="right", out_int32=True),
            T.bucketize(v, s),
            T.bucketize(v, s, right=True),
            T.searchsorted(s, 3.0),
            T.bucketize(2.0, s),
            T.searchsorted(s, v.long(), sorter=T.arange(5)),
        ),
        s,
        v,
    )
    c("search2", lambda s, v: (T.searchsorted(s, v), T.searchsorted(s, v, right=True)), X.sort(-1)[0], R(3, 4, 7))
    w = torch.rand(20)
    c(
        "hist",
        lambda x, w: (
            T.histc(x, 7),
            T.histc(x, 5, -1.0, 1.0),
            *T.histogram(x, 4),
            *T.histogram(x, 5, range=(-1.0, 1.0), weight=w, density=True),
            *T.histogram(x, T.tensor([-1.0, 0.0, 0.5, 2.0])),
        ),
        R(20),
        w,
    )
    c(
        "histdd",
        lambda x: (lambda h: (h[0], *h[1]))(T.histogramdd(x, [3, 4], range=[-1.0, 1.0, -2.0, 2.0], density=True)),
        R(20, 2),
    )
    c("histdd2", lambda x: (lambda h: (h[0], *h[1]))(T.histogramdd(x, 3)), R(20, 2))
    c(
        "bincount",
        lambda x, w: (T.bincount(x), T.bincount(x, minlength=12), T.bincount(x, weights=w)),
        torch.randint(0, 6, (20,)),
        w,
    )
    c(
        "unique",
        lambda x: (
            *T.unique(x, return_inverse=True, return_counts=True),
            *T.unique_consecutive(x, return_inverse=True, return_counts=True),
        ),
        torch.randint(0, 4, (4, 5)),
    )
    c(
        "unique_dim",
        lambda x: (
            *T.unique(x, dim=0, return_inverse=True, return_counts=True),
            *T.unique_consecutive(x, return_inverse=True, return_counts=True, dim=0),
        ),
        torch.randint(0, 2, (7, 2)),
    )
    c("unique_bool", lambda x: (*T.unique(x, return_inverse=True, return_counts=True), T.unique_consecutive(x)), B)
    c(
        "isin",
        lambda x: (
            T.isin(x, T.tensor([1, 2, -3])),
            T.isin(x, 2),
            T.isin(x, T.tensor([1, 2]), invert=True),
            T.isin(3, x),
        ),
        I,
    )
    c("cums", lambda x: (x.cumsum(1), x.cumprod(0), *x.cummax(1), *x.cummin(2), x.logcumsumexp(1)), XI)
    c(
        "cums_dyn",
        lambda x: (x.cumsum(1), x.cumprod(0), *x.cummax(1), *x.cummin(2), x.logcumsumexp(1)),
        X,
        dyn={"x": {0: D, 1: D, 2: D}},
    )
    c("cums_int", lambda x: (x.cumsum(1), x.cumprod(0), *x.cummax(1), *x.cummin(2)), I)
    c(
        "lse_inf",
        lambda x: (x.logsumexp(1), x.logcumsumexp(1)),
        torch.tensor(
            [[-inf, -inf, 1.0, 2.0], [inf, 1.0, 2.0, 3.0], [1000.0, 1000.0, -1000.0, 0.0], [-inf, -inf, -inf, -inf]]
        ),
    )
    c(
        "trap",
        lambda y, x: (
            T.trapezoid(y),
            T.trapezoid(y, dx=0.5, dim=0),
            T.trapezoid(y, x),
            T.cumulative_trapezoid(y, x),
            T.cumulative_trapezoid(y, dim=1),
            T.trapz(y, x),
        ),
        X,
        R(5),
    )
    c(
        "grad",
        lambda y, x: (
            *T.gradient(y),
            *T.gradient(y, spacing=0.5, dim=1, edge_order=2),
            *T.gradient(y, spacing=(x,), dim=2),
            *T.gradient(y, spacing=(x,), dim=2, edge_order=2),
            *T.gradient(y, dim=(0, 2)),
            *T.gradient(y, spacing=[2.0, 3.0], dim=(0, 1)),
        ),
        X,
        R(5).sort()[0],
    )
    c("diff", lambda x: (x.diff(), x.diff(2, 1), x.diff(1, 0, x[:1], x), x.diff(9)), X)
    c(
        "nan",
        lambda x: (
            x.nansum(),
            x.nansum(1),
            x.nanmean(),
            x.nanmean((0, 2), True),
            x.nan_to_num().count_nonzero(1),
            x.nan_to_num().count_nonzero(),
        ),
        XN,
    )
    for r in ["none", "mean", "sum"]:
        c(
            "ce_" + r,
            lambda x, t, w, r=r: (
                F.cross_entropy(x, t, reduction=r),
                F.cross_entropy(x, t, w, reduction=r, label_smoothing=0.1),
                F.cross_entropy(x, t.clamp(0), ignore_index=1, reduction=r, label_smoothing=0.2),
                F.nll_loss(x, t, w, reduction=r),
                F.cross_entropy(x, x.softmax(1), w, reduction=r, label_smoothing=0.1),
                F.cross_entropy(x[0], t[0], reduction=r),
                F.nll_loss(x[0], t[1], reduction=r),
            ),
            Y,
            tgt,
            torch.rand(5),
        )
        c(
            "ce2d_" + r,
            lambda x, t, r=r: (
                F.cross_entropy(x, t, reduction=r, ignore_index=3),
                F.nll_loss(x, t, reduction=r),
                F.cross_entropy(x, t, reduction=r, label_smoothing=0.3),
            ),
            R(2, 5, 3, 4),
            torch.randint(0, 5, (2, 3, 4)),
        )
        c(
            "losses_" + r,
            lambda x, y, r=r: (
                F.mse_loss(x, y, reduction=r),
                F.l1_loss(x, y, reduction=r),
                F.smooth_l1_loss(x, y, reduction=r, beta=0.5),
                F.huber_loss(x, y, reduction=r, delta=0.7),
                F.kl_div(x, y.softmax(1), reduction=r),
                F.kl_div(x, y, reduction=r, log_target=True),
                F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=r),
                F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=y[0].exp(), weight=y.exp(), reduction=r),
                F.soft_margin_loss(x, y.sign(), reduction=r),
                F.hinge_embedding_loss(x, y.sign(), reduction=r),
                F.poisson_nll_loss(x, y.exp(), reduction=r, full=True),
                F.margin_ranking_loss(x, y, x.sign(), 0.3, reduction=r),
                F.triplet_margin_loss(x, y, x * y, swap=True, reduction=r),
                F.cosine_embedding_loss(x, y, T.tensor([1, -1, 1, -1, 1, 1]), 0.1, reduction=r),
                F.multi_margin_loss(x, T.tensor([0, 1, 2, 3, 4, 0]), 2, 0.5, y[0].exp(), reduction=r),
                F.multilabel_margin_loss(x, T.tensor([[0, 2, -1, 0, 1]] * 5 + [[-1, 2, 3, 1, 1]]), reduction=r),
                F.multilabel_soft_margin_loss(x, y.gt(0).float(), reduction=r),
            ),
            Y,
            R(6, 5),
        )
    c("kl_batch", lambda x, y: F.kl_div(x, y, reduction="batchmean"), Y, R(6, 5).softmax(1))

    def wins():
        o = []
        for n in (1, 2, 5, 8):
            for p in (True, False):
                o += [
                    T.hann_window(n, periodic=p),
                    T.hamming_window(n, periodic=p),
                    T.hamming_window(n, periodic=p, alpha=0.6, beta=0.3),
                    T.blackman_window(n, periodic=p),
                    T.bartlett_window(n, periodic=p),
                    T.kaiser_window(n, periodic=p),
                    T.kaiser_window(n, periodic=p, beta=5.0),
                ]
        return o + [T.hann_window(0), T.hann_window(7, dtype=T.float64)]

    c("windows", lambda x: [x.sum() + w for w in wins()], R(1))
    c(
        "create",
        lambda x: (
            x.sum() + T.linspace(0, 1, 7),
            x.sum() + T.linspace(3, -2, 1),
            x.sum().long() + T.linspace(0, 10, 4, dtype=T.int64),
            T.logspace(0, 2, 5) + x.sum(),
            T.eye(3) + x.sum(),
            T.eye(2, 4) + x.sum(),
            T.tril_indices(3, 4, -1) + x.sum().long(),
            T.triu_indices(3, 4, 1) + x.sum().long(),
            T.arange(1, 2.5, 0.3) + x.sum(),
            T.vander(x),
            T.vander(x, 2, True),
            T.vander(x.long(), 3),
        ),
        R(3),
    )
    c(
        "eye_dyn",
        lambda x: (
            T.eye(x.shape[0]) + x.sum(),
            T.full((x.shape[0], 2), 3.0) + x.sum(),
            T.ones_like(x),
            T.arange(x.shape[0]) * 2,
        ),
        R(3, 4),
        dyn={"x": {0: D, 1: D}},
    )
    c("trace", lambda x: (x.trace(), x.T.trace()), R(3, 5))
    c("trace_dyn", lambda x: (x.trace(), x.T.trace()), R(3, 5), dyn={"x": {0: D, 1: D}})
    c("sts", lambda x: (x.sum_to_size(1, 5), x.sum_to_size(5), x.sum_to_size(3, 1, 5)), X)
    c(
        "hash",
        lambda x, y: (T.hash_tensor(x), T.hash_tensor(y, 1), T.hash_tensor(x.double(), 0, keepdim=True)),
        torch.tensor([[1.5, -0.0, 0.0, 3e-40], [inf, -inf, 1e38, -7.25]]),
        I,
    )
    S = torch.randint(0, 300, (200,)).sort()[0]
    c(
        "bisect",
        lambda s, v: (T.searchsorted(s, v), T.searchsorted(s, v, right=True), T.bucketize(v, s), T.searchsorted(s, 3)),
        S,
        torch.randint(-5, 310, (3, 40)),
    )
    c(
        "bisect_f",
        lambda s, v: (T.searchsorted(s, v), T.searchsorted(s, v, right=True)),
        torch.randn(2, 100).sort(-1)[0],
        torch.cat([torch.randn(2, 40), torch.full((2, 1), nan)], 1),
    )
    c(
        "bisect_dyn",
        lambda s, v: (T.searchsorted(s, v), T.searchsorted(s, v, right=True)),
        torch.randn(2, 7).sort(-1)[0],
        torch.randn(2, 40),
        dyn={"x": {1: D}, "y": {1: D}},
    )
    A = torch.ops.aten
    c(
        "direct1",
        lambda x: (
            *A._aminmax(x),
            *A._aminmax.dim(x, 1),
            A._euclidean_dist(x[0], x[1]),
            A._logcumsumexp(x, 1),
            A.fill.Tensor(x, x[0, 0, 0]),
            A.frobenius_norm.dim(x, [0, 1]),
            A.norm.Scalar(x, 3),
            A.norm.ScalarOpt_dim(x, 2, [1]),
            A.norm.ScalarOpt_dim_dtype(x, 1, [1], True, dtype=T.float64),
            A.norm.ScalarOpt_dtype(x, 2, dtype=T.float64),
            A.norm_except_dim(x, 2, 0),
            A.norm_except_dim(x, 2, -1),
            A.nuclear_norm(x[0]),
            A.nuclear_norm.dim(x, [0, 1]),
            A.special_logsumexp(x, [1]),
        ),
        X,
    )
    c(
        "direct2",
        lambda y, x: (
            *A.gradient.scalararray(y, spacing=0.5, dim=[0, 1]),
            *A.gradient.scalarrayint(y, spacing=[0.5], dim=1),
            *A.gradient.tensorarrayint(y, spacing=[x], dim=2),
        ),
        X,
        R(5).sort()[0],
    )
    c(
        "direct3",
        lambda x, t: (*A.multilabel_margin_loss_forward(x, t, 1), *A.multilabel_margin_loss_forward(x, t, 0)),
        Y,
        torch.tensor([[0, 2, -1, 0, 1]] * 5 + [[-1, 2, 3, 1, 1]]),
    )
    c(
        "direct4",
        lambda x, t, w: (
            A.nll_loss(x, t, w),
            *A.nll_loss_forward(x, t, w, 1, -100),
            *A.nll_loss_forward(x, t, None, 2, -100),
            *A.nll_loss_forward(x, t, None, 0, -100),
        ),
        Y,
        tgt,
        torch.rand(5),
    )
    c(
        "direct5",
        lambda x, t: (A.nll_loss2d(x, t), *A.nll_loss2d_forward(x, t, None, 1, 2)),
        R(2, 5, 3, 4),
        torch.randint(0, 5, (2, 3, 4)),
    )
    c(
        "direct7",
        lambda x: (
            x.sum() + A.bartlett_window(5),
            x.sum() + A.blackman_window(5),
            x.sum() + A.hamming_window(5),
            x.sum() + A.hamming_window.periodic_alpha(5, True, 0.6),
            x.sum() + A.kaiser_window(6),
        ),
        R(1),
    )
    # Elements that lie at the edges of bins, and ranks that are whole numbers but for rounding.
    tenths, ranges = (
        T.arange(-60, 61, dtype=T.float64) / 20,
        ((7, -2.0, 1.5), (10, -3.0, 3.0), (13, -1.3, 2.9), (9, 0, 0)),
    )
    for name, dtype in ("edges", T.float32), ("edges_double", T.float64):
        c(
            name,
            lambda x: (
                *(T.histc(x, *given) for given in ranges),
                *(T.histogram(x, n, range=ends)[0] for n, *ends in ranges[:3]),
                T.histogramdd(T.stack([x, x.flip(0)], 1), [7, 8], range=[-3.0, 3.0, -2.0, 2.5])[0],
            ),
            tenths.to(dtype),
        )
    c(
        "edges_half",
        lambda x: tuple(T.histc(x, *given) for given in ranges),
        tenths.half(),
    )
    rank = T.arange(21) / 20
    for name, dyn in ("ranks", None), ("ranks_dyn", {"x": {0: D}}):
        c(
            name,
            lambda x, q: tuple(
                f
                for how in ("lower", "higher", "nearest")
                for f in (
                    x.quantile(q, interpolation=how),
                    x.nanquantile(q, interpolation=how),
                    T.where(x > 9, nan, x).nanquantile(q, interpolation=how),
                    *(x.quantile(n / 20, interpolation=how) for n in (3, 6, 7, 12)),
                )
            ),
            T.arange(21.0),
            rank,
            dyn=dyn,
        )
    return made
