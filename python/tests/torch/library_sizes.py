"""Functions whose branches on sizes, or numbers of pieces, lie in torch's own code.

Each takes a tensor ``x`` of ``[b, t, 4]``. Sizes at which PyTorch raises are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

Tensor = torch.Tensor


def _each(pieces: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    return torch.cat([piece.cumsum(1) * (at + 1) for at, piece in enumerate(pieces)], 1)


def tensor_split(x: Tensor) -> Tensor:
    return _each(x.tensor_split(5, dim=1))


def array_split(x: Tensor) -> Tensor:
    return _each(torch.tensor_split(x, 3, 1))


def tensor_split_at(x: Tensor) -> Tensor:
    return _each(x.tensor_split([2, 5, 9], dim=1))


def hsplit(x: Tensor) -> Tensor:
    return _each(torch.hsplit(x, 2))


def chunk(x: Tensor) -> Tensor:
    return _each(x.chunk(4, dim=1))


def chunk_two(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=1)
    return torch.cat([b, a], 1)


def split(x: Tensor) -> Tensor:
    return _each(x.split(4, dim=1))


def split_sizes(x: Tensor) -> Tensor:
    return _each(x.split([2, x.shape[1] - 2], dim=1))


def split_half(x: Tensor) -> Tensor:
    return _each(x.split(x.shape[1] // 2, dim=1))


def unbind(x: Tensor) -> Tensor:
    return torch.stack([row * at for at, row in enumerate(x.unbind(1))])


def unflatten(x: Tensor) -> Tensor:
    return x.unflatten(1, (-1, 2)).flip(1).flatten(1, 2)


def unflatten_three(x: Tensor) -> Tensor:
    return x.unflatten(1, (3, -1)).sum(1)


def unfold_tensor(x: Tensor) -> Tensor:
    return x.unfold(1, 3, 2).sum(-1)


def unfold(x: Tensor) -> Tensor:
    return F.unfold(x[:, None], (3, 2), padding=(1, 0), stride=(2, 1))


def fold(x: Tensor) -> Tensor:
    t = x.shape[1]
    columns = x[:, :, :1].expand(-1, -1, 4).transpose(1, 2)
    return F.fold(columns.contiguous(), (2, t + 1), (2, 2))


def adaptive_average(x: Tensor) -> Tensor:
    return F.adaptive_avg_pool1d(x.transpose(1, 2), 3)


def adaptive_average_2d(x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(x, (5, 2))


def adaptive_maximum(x: Tensor) -> Tensor:
    return F.adaptive_max_pool1d(x.transpose(1, 2), 4)


def adaptive_one(x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(x[:, None], (1, None))


def pool(x: Tensor) -> Tensor:
    return F.max_pool1d(x.transpose(1, 2), 3, 2, padding=1, ceil_mode=True)


def average_pool(x: Tensor) -> Tensor:
    y = x.transpose(1, 2)
    return F.avg_pool1d(y, 3, 2, padding=1, ceil_mode=True, count_include_pad=False)


def interpolate(x: Tensor) -> Tensor:
    return F.interpolate(x.transpose(1, 2), scale_factor=1.5, mode="linear")


def interpolate_size(x: Tensor) -> Tensor:
    return F.interpolate(x[:, None], size=(8, 8), mode="bilinear", align_corners=True)


def interpolate_nearest(x: Tensor) -> Tensor:
    return F.interpolate(x.transpose(1, 2), size=x.shape[1] * 2 // 3 + 1, mode="nearest")


def interpolate_area(x: Tensor) -> Tensor:
    return F.interpolate(x[:, None], size=(x.shape[1] // 2 + 1, 2), mode="area")


def interpolate_bicubic(x: Tensor) -> Tensor:
    size = (x.shape[1] + 3, 6)
    return F.interpolate(x[:, None], size=size, mode="bicubic", antialias=True)


def grid_sample(x: Tensor) -> Tensor:
    grid = torch.stack([x[..., 0].tanh(), x[..., 1].tanh()], -1)[:, None]
    return F.grid_sample(x[:, None], grid, align_corners=False)


def affine_grid(x: Tensor) -> Tensor:
    theta = torch.tensor([[[1.0, 0.2, 0.0], [0.1, 1.0, 0.0]]]).expand(x.shape[0], 2, 3)
    return F.affine_grid(theta, [x.shape[0], 1, x.shape[1], 4], align_corners=True)


def attention(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x.flip(1))


def attention_causal(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None].flip(1))


def attention_is_causal(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x.flip(1), is_causal=x.shape[1] > 1)


def attention_mask(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def cdist(x: Tensor) -> Tensor:
    return torch.cdist(x, x.flip(1) * 2)


def cdist_one(x: Tensor) -> Tensor:
    return torch.cdist(x, x * 2, p=1.0)


def pairwise(x: Tensor) -> Tensor:
    return F.pairwise_distance(x[:, :1], x)


def einsum(x: Tensor) -> Tensor:
    return torch.einsum("bti,bsi->bts", x, x) + torch.einsum("bti->b", x)[:, None, None]


def einsum_outer(x: Tensor) -> Tensor:
    return torch.einsum("bti,bsj->tsij", x, x)


def tensordot(x: Tensor) -> Tensor:
    return torch.tensordot(x, x, dims=([0, 1], [0, 1]))


def chain(x: Tensor) -> Tensor:
    return torch.linalg.multi_dot([x[0], x[0].T, x[0], x[0].T])


def bucketize(x: Tensor) -> Tensor:
    return torch.bucketize(x, torch.arange(x.shape[1]).float() / 4)


def histogram(x: Tensor) -> Tensor:
    return torch.histc(x.flatten().abs(), bins=5, min=0.0, max=2.0)


def logcumsumexp(x: Tensor) -> Tensor:
    return x.logcumsumexp(1)


def difference(x: Tensor) -> Tensor:
    return x.diff(n=2, dim=1)


def gradient(x: Tensor) -> Tensor:
    return torch.gradient(x, dim=1)[0]


def trapezoid(x: Tensor) -> Tensor:
    return torch.trapezoid(x, dim=1)


def meshgrid(x: Tensor) -> Tensor:
    t = x.shape[1]
    a, b = torch.meshgrid(torch.arange(t), torch.arange(t), indexing="ij")
    return (a - b) * x[:, :, :1]


def cartesian(x: Tensor) -> Tensor:
    return torch.cartesian_prod(x[0, :, 0], x[0, :, 1])


def combinations(x: Tensor) -> Tensor:
    return torch.combinations(x[0, :, 0], 2)


def vander(x: Tensor) -> Tensor:
    return torch.vander(x[0, :, 0].tanh(), 4)


def block_diag(x: Tensor) -> Tensor:
    return torch.block_diag(x[0], x[0].T)


def pad_circular(x: Tensor) -> Tensor:
    return F.pad(x.transpose(1, 2), (3, 2), mode="circular")


def pad_reflect(x: Tensor) -> Tensor:
    return F.pad(x.transpose(1, 2), (2, 1), mode="reflect")


def pad_replicate(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, 2, 1), mode="replicate")


def pad_negative(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, -2, 1))


def one_hot(x: Tensor) -> Tensor:
    return F.one_hot(torch.arange(x.shape[1]) % 3, 3) * x.sum((0, 2))[:, None]


def one_hot_size(x: Tensor) -> Tensor:
    return F.one_hot(torch.arange(x.shape[1]) // 2, x.shape[1])


def repeat_interleave(x: Tensor) -> Tensor:
    return x.repeat_interleave(3, dim=1)


def tile(x: Tensor) -> Tensor:
    return torch.tile(x, (2, 3, 1))


def pixel_shuffle(x: Tensor) -> Tensor:
    return F.pixel_shuffle(x.permute(0, 2, 1)[..., None], 2)


def pixel_unshuffle(x: Tensor) -> Tensor:
    return F.pixel_unshuffle(x[:, None], 2)


def channel_shuffle(x: Tensor) -> Tensor:
    return F.channel_shuffle(x[..., None], 2)


def group_norm(x: Tensor) -> Tensor:
    return F.group_norm(x, 2)


def instance_norm(x: Tensor) -> Tensor:
    return F.instance_norm(x.transpose(1, 2))


def batch_norm(x: Tensor) -> Tensor:
    return F.batch_norm(x.transpose(1, 2), torch.zeros(4), torch.ones(4))


def local_response(x: Tensor) -> Tensor:
    return F.local_response_norm(x, 3)


def glu(x: Tensor) -> Tensor:
    return F.glu(x, 1)


def top(x: Tensor) -> Tensor:
    return x.topk(3, 1).values


def kth(x: Tensor) -> Tensor:
    return x.kthvalue((x.shape[1] + 1) // 2, 1).values


def median(x: Tensor) -> Tensor:
    return x.median(1).values


def quantile(x: Tensor) -> Tensor:
    return x.quantile(0.3, 1)


def deviation(x: Tensor) -> Tensor:
    return x.std(1, correction=0) + x.var((1, 2), correction=0)[:, None]


def covariance(x: Tensor) -> Tensor:
    return torch.cov(x[0].T, correction=0)


def window(x: Tensor) -> Tensor:
    return torch.hann_window(x.shape[1])[:, None] * x


def frames(x: Tensor) -> Tensor:
    found = torch.stft(x[:, :, 0], 4, 2, window=torch.ones(4), return_complex=True)
    return torch.view_as_real(found)


def spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x, dim=1).abs()


def roll(x: Tensor) -> Tensor:
    return x.roll(3, 1) + x.roll((1, 2), (0, 1))


def rot90(x: Tensor) -> Tensor:
    return x.rot90(1, (1, 2))


def linspace(x: Tensor) -> Tensor:
    return torch.linspace(0, 1, x.shape[1])[:, None] * x


def triangle(x: Tensor) -> Tensor:
    rows, columns = torch.tril_indices(x.shape[1], x.shape[1])
    return x[:, rows] - x[:, columns]


def diagonals(x: Tensor) -> Tensor:
    return torch.diag_embed(x[..., 0]) + (x @ x.transpose(1, 2)).diagonal(0, 1, 2)[:, None]


def kron(x: Tensor) -> Tensor:
    return torch.kron(x[0], torch.ones(2, 2))


def take_along(x: Tensor) -> Tensor:
    return x.take_along_dim(x.argsort(1), 1)


def squeeze(x: Tensor) -> Tensor:
    return x.squeeze(1)


def squeezed_sum(x: Tensor) -> Tensor:
    return x.squeeze().sum()


def broadcast(x: Tensor) -> Tensor:
    return x + torch.ones(1, 6, 1)


def matmul_folded(x: Tensor) -> Tensor:
    return torch.matmul(x, torch.ones(4, 3)) + torch.matmul(x[:, 0], torch.ones(4))[:, None, None]


def bilinear(x: Tensor) -> Tensor:
    return F.bilinear(x, x.flip(1), torch.ones(3, 4, 4))


def cosine(x: Tensor) -> Tensor:
    return F.cosine_similarity(x[:, :, None], x[:, None], dim=-1)


def conv_same(x: Tensor) -> Tensor:
    weight = torch.ones(4, 4, 4)
    return F.conv1d(x.transpose(1, 2), weight, padding="same", dilation=2)


def conv_transposed(x: Tensor) -> Tensor:
    return F.conv_transpose1d(x.transpose(1, 2), torch.ones(4, 2, 3), stride=2, output_padding=1)


def embedding_bag(x: Tensor) -> Tensor:
    ids = torch.arange(x.shape[1])[None].expand(x.shape[0], -1) % 5
    return F.embedding_bag(ids, torch.arange(20.0).view(5, 4), mode="mean")


def _functions() -> list[Callable[[Tensor], Tensor]]:
    found = [value for name, value in globals().items() if name.islower() and name[0] != "_"]
    return [value for value in found if getattr(value, "__module__", "") == __name__]


FUNCTIONS = _functions()


class Attention(nn.Module):
    """The layers of attention have fast paths."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x, x, x, average_attn_weights=x.shape[1] > 0)[0]
        return found


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        found: Tensor = self.inner(x, src_mask=mask, is_causal=True)
        return found


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.GRU(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)[0]
        return found


class Unpool(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pooled, at = F.max_pool1d(x.transpose(1, 2), 2, return_indices=True)
        return F.max_unpool1d(pooled, at, 2, output_size=[x.shape[1]])


MODULES: list[type[nn.Module]] = [Attention, Encoder, Recurrent, Unpool]
