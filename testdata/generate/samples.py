#!/usr/bin/env python3
"""Makes the cases that PyTorch's own samples of ops (`op_db`) found: sums in float64, rounded bytes, empty matrices,
factors of images that do not give the sizes.

    venv/bin/python testdata/generate/samples.py FOLDER
    venv/bin/python testdata/generate/make.py bundle FOLDER testdata/cases/samples.tar.zst

A line below is one program: a name, the element types, the sizes of the tensors x, y, z, the dimensions of x whose size may vary
(None if none may), and expressions, one output each.
"""
import sys

import make
import torch
from torch.nn import functional as F

TYPES = {"f32": torch.float32, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "u8": torch.uint8}
PROGRAMS = [
    ("conv", "f64 c128", [(2, 4, 9, 8), (6, 2, 3, 2), (6,)], (0, 2), "F.conv2d(x,y,z,stride=(2,1),padding=(1,2),dilation=(1,2),groups=2) F.conv2d(x,y,padding='same',groups=2) F.conv1d(x[:,:2,:,0],y[...,0],z)"),
    ("depthwise", "f64", [(2, 4, 5, 6, 7), (4, 1, 1, 2, 3)], (0, 3), "F.conv3d(x,y,groups=4) F.conv3d(x[0],y,groups=4,stride=2,padding=1)"),
    ("transposed", "f64 c128", [(2, 4, 5, 6), (4, 3, 3, 2), (6,)], (0, 2), "F.conv_transpose2d(x,y,z,stride=(2,3),padding=1,output_padding=(1,2),groups=2) F.conv_transpose2d(x,y,dilation=2,groups=2) F.conv_transpose1d(x[...,0],y[...,0],padding=2)"),
    ("pools", "f64", [(2, 3, 9, 8)], (0, 2), "F.avg_pool2d(x,3) F.avg_pool2d(x,(3,2),stride=2,padding=1) F.avg_pool2d(x,3,stride=2,padding=1,ceil_mode=True) F.avg_pool2d(x,3,stride=2,padding=1,ceil_mode=True,count_include_pad=False) F.avg_pool2d(x,3,stride=2,divisor_override=2) F.avg_pool1d(x[...,0],4,ceil_mode=True) F.avg_pool3d(x[None],2) F.adaptive_avg_pool2d(x,(3,4)) F.adaptive_avg_pool2d(x,(2,3))"),
    ("norms", "f64", [(2, 6, 5, 4), (6,), (6,)], (0, 2), "F.instance_norm(x,weight=y,bias=z) F.group_norm(x,3,y,z) F.batch_norm(x[:1],None,None,y,z,training=True)"),
    ("signals", "f64", [(2, 64)], None, "torch.istft(torch.stft(x,16,4,window=torch.hann_window(16,dtype=x.dtype),return_complex=True),16,4,window=torch.hann_window(16,dtype=x.dtype))"),
    ("windows", "c64", [(2, 40), (16,)], None, "torch.stft(x,16,4,window=y,return_complex=True) torch.stft(x.real,16,window=y,return_complex=True)"),
    ("inverses", "c64", [(2, 40), (16,)], None, "torch.istft(torch.stft(x,16,4,window=y,return_complex=True),16,4,window=y,return_complex=True)"),
    ("deviations", "c128", [(4, 5, 3)], (0, 1), "torch.std_mean(x,dim=(0,1),correction=0.5,keepdim=True)"),
    ("arcs", "f64", [(40,)], (0,), "x.atan() (x/9).asin() (x/9).acos() x.asinh() (x.abs()+1).acosh() (x/9).atanh() torch.atan2(x,x.flip(0)) F.softplus(x) F.logsigmoid(x) torch.logaddexp(x,x.flip(0)) F.mish(x) torch.atan(torch.tensor([-0.,0.,torch.inf,-torch.inf,torch.nan,1e300,-1e-300],dtype=x.dtype)*(x[:1]*0+1)) F.binary_cross_entropy_with_logits(x,(x>0).to(x.dtype))"),
    ("arcs", "c128", [(40,)], (0,), "x.angle() x.log() x.asin() x.acos() x.acosh() x.atan() torch.pow(x,x.flip(0)/4) torch.logaddexp(x,x.flip(0)) x.logcumsumexp(0) x.logcumsumexp(0).exp()"),
    ("images", "f64", [(1, 3, 8, 9)], (2, 3), "F.interpolate(x,(5,12),mode='bilinear') F.interpolate(x,(12,4),mode='bilinear',align_corners=True) F.interpolate(x,(5,12),mode='bicubic') F.interpolate(x,(11,6),mode='bicubic',align_corners=True) F.interpolate(x,(5,12),mode='bilinear',antialias=True) F.interpolate(x,(3,4),mode='bicubic',antialias=True) F.interpolate(x,scale_factor=1.7,mode='bilinear') F.interpolate(x,(1,1),mode='bilinear',align_corners=True)"),
    ("images", "u8", [(1, 3, 8, 9)], (2, 3), "F.interpolate(x,(5,12),mode='bilinear') F.interpolate(x,(12,4),mode='bilinear',align_corners=True) F.interpolate(x,(5,12),mode='bicubic') F.interpolate(x,(11,6),mode='bicubic',align_corners=True)"),
    ("smoothed", "u8", [(1, 3, 8, 9)], (2, 3), "F.interpolate(x,(5,12),mode='bilinear',antialias=True) F.interpolate(x,(3,4),mode='bicubic',antialias=True)"),
    ("factors", "f32 u8", [(1, 3, 5, 8)], (2, 3), "torch.ops.aten.upsample_bilinear2d(x,[6,14],False,1.7,0.6) torch.ops.aten.upsample_bicubic2d(x,[6,14],False,1.7,0.6) torch.ops.aten._upsample_bilinear2d_aa(x,[3,3],False,1.7,0.9) torch.ops.aten.upsample_nearest2d(x,[6,4],1.7,0.6) torch.ops.aten._upsample_nearest_exact2d(x,[9,4],2.0,0.3)"),
    ("factors_known", "f32 f64 u8", [(1, 3, 6, 7)], None, "torch.ops.aten.upsample_bicubic2d(x,[6,14],False,1.7,0.6) torch.ops.aten._upsample_bicubic2d_aa(x,[6,14],False,1.7,0.6) torch.ops.aten._upsample_bilinear2d_aa(x,[3,9],False,1.7,0.6) torch.ops.aten.upsample_nearest2d(x,[6,4],1.7,0.6)"),
    ("lanczos", "f32 u8", [(1, 3, 8, 9)], (2, 3), "F.interpolate(x,(5,12),mode='lanczos',antialias=True)"),
    ("sizes", "f64", [(1, 3, 8, 9)], None, "F.interpolate(x,(5,12),mode='bilinear') F.interpolate(x,(5,12),mode='bicubic',antialias=True) F.interpolate(x[...,0],5,mode='linear') F.interpolate(x[None],(2,4,5),mode='trilinear')"),
    ("sizes", "u8", [(1, 3, 8, 9)], None, "F.interpolate(x,(5,12),mode='bilinear') F.interpolate(x,(5,12),mode='bicubic',antialias=True) F.interpolate(x,(20,30),mode='bilinear') F.interpolate(x,(3,30),mode='bilinear',antialias=True)"),
    ("empty", "f32 c64", [(2, 0, 0)], (0,), "torch.linalg.cholesky(x) torch.linalg.cholesky(x,upper=True)"),
    ("nothing", "f32 c64", [(0, 0)], None, "torch.linalg.norm(x,torch.inf) torch.linalg.norm(x,1,keepdim=True) torch.linalg.cond(x)"),
    ("hollow", "f32 c64", [(2, 0, 0)], (0,), "torch.linalg.det(x) torch.linalg.slogdet(x) torch.logdet(x)"),
    ("mixed", "c64", [(3, 4), (3, 4)], (0,), "torch.broadcast_tensors(x[:1],y.real.double()) F.l1_loss(x,y.real.double()) F.l1_loss(y.real,x)"),
    ("scattered", "c64", [(3, 5), (3, 2)], (0,), "torch.scatter(x,1,torch.tensor([[0,3]]).expand(y.shape[0],-1),y,reduce='add')"),
    ("infinite", "c128", [(3, 4)], (0,), "torch.logsumexp(torch.where(torch.tensor([True,False,True,False]),x,-torch.inf),0)"),
    ("runs", "f32", [(3, 4, 6)], None, "torch.unique_consecutive(x.round().clamp(-1,1)[...,:1].expand(3,4,6),return_counts=True,dim=-1)"),
    ("losses", "f64", [(5, 4)], (0,), "F.multi_margin_loss(torch.where(x>5,torch.nan,x),torch.zeros(x.shape[0],dtype=torch.int64)) F.hinge_embedding_loss(x,x.sign()*(x.abs()>2))"),
]


def program(expressions, names):
    functions = [eval(f"lambda {','.join(names)}: {e}", {"torch": torch, "F": F}) for e in expressions]

    class Samples(torch.nn.Module):
        def forward(self, *args):
            return tuple(f(*args) for f in functions)

    return Samples()


def values(sizes, kind):
    dtype = TYPES[kind]
    if kind == "u8":
        return torch.randint(0, 256, sizes, dtype=dtype)
    return torch.testing.make_tensor(sizes, dtype=dtype, device="cpu", low=-9, high=9)


def cases():
    for name, kinds, sizes, dims, expressions in PROGRAMS:
        for kind in kinds.split():

            def one(name=name, kind=kind, sizes=sizes, dims=dims, expressions=expressions.split()):
                module = program(expressions, "xyz"[: len(sizes)])
                args = tuple(values(s, kind) for s in sizes)
                if dims is None:
                    return module, args, None, None
                # A second tensor of the same rank has the sizes of the first.
                paired = len(sizes) == 2 and len(sizes[0]) == len(sizes[1]) and sizes[0][0] == sizes[1][0] and len(sizes[0]) == 2
                varying = [dict.fromkeys(dims, torch.export.Dim.AUTO)] + [dict.fromkeys(dims, torch.export.Dim.AUTO) if paired else {}] * (len(sizes) - 1)
                larger = [tuple(n + 2 * (d in dims) for d, n in enumerate(s)) if i == 0 or paired else s for i, s in enumerate(sizes)]
                other = (values(larger[0], kind), *(values(s, kind) if paired else a for s, a in zip(larger[1:], args[1:])))
                # PyTorch's kernel of complex deviations guards on the number of elements.
                return module, args, (tuple(varying),), None if name == "deviations" else other

            yield f"samples_{name}_{kind}", one


if __name__ == "__main__":
    make.CASES = dict(cases())
    make.make(sys.argv[1], sys.argv[2:] or list(make.CASES))
