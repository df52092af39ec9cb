#!/usr/bin/env python3
"""Makes the cases of NaN, infinities and empty dimensions in ops that order, divide, reduce or pool.

    venv/bin/python testdata/generate/edges.py FOLDER
    venv/bin/python testdata/generate/make.py bundle FOLDER testdata/cases/edges.tar.zst

A line below is one program: a name, the element types, and expressions in x (and y, i), one output each. Random programs
found most of them.
"""
import itertools
import sys

import make
import torch
from torch.nn import functional as F

N, I = float("nan"), float("inf")
FLOATS = "f32 f64 f16 bf16"
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i16": torch.int16, "u8": torch.uint8}
ROWS = [[2.0, N, -I, 1.0, N, 2.0, I, 0.0], [N, N, N, N, N, N, N, N], [I, N, I, -0.0, 0.0, 2.0, -I, -I], [3.0, 1.0, 2.0, 2.0, I, -1.0, 0.5, 3.0], [5.0, -I, N, 5.0, 0.0, N, 5.0, 1.0]]
PAIRS = [-I, -7.5, -3.0, -0.3, -0.0, 0.0, 0.1, 0.7, 2.0, 3.0, 17.0, I, N]
LIMITS = [-I, -2.5, -0.0, 0.0, 1.0, I]
Z = torch.complex
PROGRAMS = [
    ("sort", FLOATS, ROWS, "x.sort(dim=1,stable=True) x.sort(dim=0,descending=True,stable=True) x.msort() x.argsort(dim=1,descending=True,stable=True)"),
    ("topk", FLOATS, ROWS, "x.topk(3,1).values x.topk(5,1,largest=False).values x.topk(2,0).values x.kthvalue(2,1).values x.kthvalue(7,1).values"),
    ("extremes", FLOATS, ROWS, "x.argmax() x.argmin() x.argmax(1) x.argmin(1) x.argmin(0,keepdim=True) x.max(1) x.min(1) x.amax(0) x.amin((0,1)) x.aminmax(dim=1) x.cummax(1) x.cummin(1)"),
    ("medians", FLOATS, ROWS, "x.median(1) x.nanmedian(1).values x.median() x.nanmedian() x.mode(1).values x.mode(0).values"),
    ("unique", REAL := "f32 f64", ROWS, "x.unique(return_counts=True) x[2].unique(return_inverse=True,return_counts=True) x[3].unique() x.flatten().unique_consecutive(return_inverse=True,return_counts=True)"),
    ("search", REAL, ROWS, "torch.searchsorted(x.sort(1).values,x) torch.searchsorted(x.sort(1).values,x,right=True) torch.bucketize(x,x[0].sort().values) torch.bucketize(x,torch.tensor([-1.,0.,2.]),right=True)"),
    ("floors", FLOATS, (PAIRS, PAIRS), "x//y x//.1 x//2 x//-3 x//torch.tensor(.3,dtype=torch.float64) torch.div(x,.1,rounding_mode='trunc') 5//y -.7//y x%y torch.sign(x) x.sgn() torch.hypot(x,y)"),
    ("many_floors", FLOATS, (torch.linspace(-30, 30, 601).tolist(), torch.linspace(0.1, 1.7, 601).tolist()), "x//y x//.1 x//.3 x//3 torch.div(x,.1,rounding_mode='trunc')"),
    ("steps", "f32", torch.linspace(-1, 1, 20000).tolist(), "x.cumsum(0)[-3:] (1+x*1e-3).cumprod(0)[-3:] x.logcumsumexp(0)[-3:]"),
    ("integers", "i64", [2**53+1, 2**40+3, 1083834954698, -2**61-7], "x.prod() x.prod(0,keepdim=True) x.cumsum(0) x//7 x%7 x[:,None].expand(-1,2).prod(0)"),
    ("orders_of_infinity", REAL, ROWS, "x.logcumsumexp(0) x[:,0].logcumsumexp(0) x[:,2].logcumsumexp(0) x[2].flip(0).logcumsumexp(0) x[:,3:5].quantile(.5,1) x[:,6:].nanquantile(torch.tensor([.1,.4,.5,.9],dtype=x.dtype),1) x[:,2].nanquantile(.5,interpolation='midpoint') x[3].quantile(torch.tensor([.8,.9],dtype=x.dtype))"),
    ("halves", "f16 bf16", ROWS, "F.glu(x) F.silu(x) F.softmax(x,1)"),
    ("reductions", FLOATS, ROWS, "x.sum(1) x.mean(0) x.var(1) x.std(0,correction=0) x.nansum(1) x.nanmean(1) x.logsumexp(1) x.softmax(1) x.prod(1) x.any(1) x.all(1) x.count_nonzero(1) x.norm(dim=1) x.norm(1,dim=1) x.norm(I,dim=1) x.norm(-I,dim=1)"),
    ("means", FLOATS, [[2.0, I, 1.0], [I, I, 0.0], [3.0, 1.0, I], [3.0, 1.0, -2.0], [1.0, N, I]], "torch.var_mean(x,1) torch.std_mean(x[2:4],correction=0) torch.std_mean(x[1:3].T,[0,1]) torch.std_mean(x[:3].T,[0]) torch.var_mean(x[0],correction=2) torch.std_mean(x[2:3],dim=(0,1),keepdim=True)"),
    ("wide_attention", "f64", [[.1, .7, -.3, .4], [.9, -.5, .2, .6], [-.8, .3, .5, -.1], [.4, .2, -.6, .8]], "F.scaled_dot_product_attention(x[None,None,:,:2],x[None,None,:,2:],x[None,None]) F.scaled_dot_product_attention(x[None,None,:,:3],x[None,None,:,1:],x[None,None],scale=.3) F.scaled_dot_product_attention(x[None,None,:,:2],x[None,None,:,2:],x[None,None],x*-.3)"),
    ("pieces", REAL, ROWS, "F.glu(x) F.glu(-x,1) torch.cdist(x,x,p=I) torch.cdist(x,x,p=1.) torch.cdist(x,x,p=0.) torch.cdist(x,x,p=3.) F.relu(x) x.clamp(-1,2) x.nan_to_num() x.logcumsumexp(1) x.cumsum(1) x.cumprod(1) x.maximum(x.flip(1)) x.fmax(x.flip(1)) F.leaky_relu(x) F.hardswish(x) F.softplus(x) F.elu(x) F.normalize(x) F.layer_norm(x,[8]) x.round() torch.lerp(x,x.flip(1),.3) x.logaddexp(x.flip(1)) x.atan2(x.flip(1)) torch.xlogy(x,x.flip(1)) x.copysign(x.flip(1)) x.isclose(x.flip(1)) x.heaviside(x.flip(1)) x.frac() x.trunc()"),
    ("pools", REAL, ROWS, "F.adaptive_max_pool1d(x[None],3,return_indices=True) F.adaptive_max_pool1d(x[None],4) F.adaptive_max_pool2d(x[None,None],1,return_indices=True) F.adaptive_avg_pool1d(x[None],3) F.adaptive_avg_pool1d(x[None],4) F.adaptive_avg_pool2d(x[None,:4],(3,5)) F.adaptive_avg_pool2d(x[None],1) F.avg_pool1d(x[None],3,stride=2,padding=1) F.lp_pool1d(x[None],2,2)"),
    ("scatters", REAL, ROWS, "torch.scatter_reduce(x,1,torch.arange(8).expand_as(x)//2,x.flip(1),'amax') torch.scatter_reduce(x,1,torch.arange(8).expand_as(x)//2,x.flip(1),'amin',include_self=False) torch.index_reduce(x,1,torch.tensor([0,0,1]),x[:,2:5],'amax') torch.index_reduce(x,1,torch.tensor([0,0,1]),x[:,2:5],'amin',include_self=False) torch.scatter_reduce(x,1,torch.arange(8).expand_as(x)//2,x.flip(1),'mean') torch.scatter_reduce(x,1,torch.arange(8).expand_as(x)//2,x.flip(1),'prod')"),
    ("quotients", "f32 f64 bf16", (PAIRS, PAIRS), "torch.div(x,y,rounding_mode='trunc')"),
    ("empties", REAL, ROWS, "x[x[:,7]>99].mean(0) x[x[:,7]>99].var(0) x[x[:,7]>99].std(0,correction=0) x[x[:,7]>99].any() x[x[:,7]>99].all(0) x[x[:,7]>99].sum() x[x[:,7]>2].mean(0) x[x[:,7]>2].all(0)"),
    ("slices", "f32", ROWS, "torch.slice_scatter(x,x[:,:4]*2,1,-100,-1,2) torch.slice_scatter(x,x[:2]*2,0,-100,4,2) torch.slice_scatter(x,x[:,:2]*2,1,-3,100,2)"),
    ("weights", "f32", ROWS, "F.binary_cross_entropy_with_logits(x,(x>0).to(x.dtype),torch.arange(8)) F.binary_cross_entropy_with_logits(x,(x>0).to(x.dtype),torch.arange(8).double(),pos_weight=torch.arange(8),reduction='none')"),
    ("sums", "i16", [[30000, 30000, -7], [1, 2, 3], [4, 5, 6], [7, 8, 9]], "torch.einsum('ij->',x) torch.einsum('ij,ij->i',x,x) torch.einsum('ij->j',x)"),
    ("bags", "f32", ROWS, "F.embedding_bag(torch.tensor([[0,1,2,3],[3,2,0,0],[3,3,2,2]]),x,mode='max') F.embedding_bag(torch.tensor([[0,1,2,3],[3,2,0,0],[3,3,2,2]]),x,mode='max',padding_idx=0) F.embedding_bag(torch.tensor([0,1,2,3,3,2]),x,torch.tensor([0,2,2,4]),mode='sum',include_last_offset=True) F.embedding_bag(torch.tensor([0,1,2,3,3,2]),x,torch.tensor([0,2,2,4]),mode='max',include_last_offset=True) F.embedding_bag(torch.tensor([0,1,2,3,3,2]),x,torch.tensor([0,2,2,4]),mode='mean',include_last_offset=True)"),
    ("products", REAL, ROWS, "x[2:].T[:3].mv(x[2:5,3]) x[3:].T@x[3:,5] x[:,:0].mv(x[0,:0]) torch.einsum('ij,kj->ik',x[:,:0],x[:3,:0]) torch.tensordot(x[:,:0],x[:3,:0],([1],[1])) (x[:,None,:0]@x[0,:0]) torch.addmm(x[:4,:4],x[:4],x[:4].T,alpha=0) torch.addmm(x[:4,:4],x[:4],x[:4].T,beta=0) torch.addmv(x[:4,0],x[:4],x[0],alpha=0) torch.linalg.solve_triangular(x[:3,1:4].triu(),x[:3,:3],upper=True) torch.linalg.solve_triangular((x[2:5,1:4].tril()+torch.eye(3,dtype=x.dtype)),x[2:5,:3],upper=False) torch.linalg.inv(x[2:4,2:4]) torch.linalg.det(x[2:4,2:4]) torch.linalg.solve(x[2:4,2:4],x[2:4])"),
    ("reflections", REAL, [[3.0, 0.5, 0.25, N], [-1.0, 2.0, I, 1.0], [0.5, 0.25, 4.0, 2.0], [1.0, 0.5, -0.5, 5.0]], "torch.linalg.qr(x[:3,1:4],'r')[1].abs() torch.linalg.qr(x[:,[0,1,3]],'r')[1].abs()[:,:2] torch.linalg.qr(x[2:,:3],'r')[1].abs() torch.linalg.qr(x[[1,0,2]][:,[0,1,3]],'r')[1].abs()[:,:2] torch.linalg.qr(x[[0,0]][:,[3,3,0]]*torch.tensor([[1.],[0]],dtype=x.dtype).nan_to_num(),'r')[1].abs() torch.linalg.qr(x[:1,[3,0]],'r')[1].abs()"),
    ("factors", REAL, ROWS, "torch.linalg.lu_factor(x[:3,:3]) torch.linalg.lu_factor(x[2:5,:3]) torch.linalg.lu_factor(x[1:,4:]) torch.linalg.lu_factor(x[:,4:7]) torch.linalg.lu_factor(torch.stack([x[2:4,3:5],x[3:,6:]])) torch.linalg.lu_solve(*torch.linalg.lu_factor(x[2:5,3:6]),x[2:5,:2]) torch.linalg.lu_solve(*torch.linalg.lu_factor(x[3:,2:4]),x[3:,:2]) torch.linalg.lu_solve(*torch.linalg.lu_factor(x[3:,2:4]),x[3:,:2],adjoint=True) torch.linalg.lu_solve(*torch.linalg.lu_factor(x[3:,2:4]),x[:,:2],left=False) torch.linalg.slogdet(x[2:4,3:5]) torch.linalg.slogdet(x[3:,2:4])"),
    ("attention", REAL, ROWS, "F.scaled_dot_product_attention(x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,2:6]) F.scaled_dot_product_attention(x[None,None,:,3:6],x[None,None,:,3:6],x[None,None,:,2:5],is_causal=True) F.scaled_dot_product_attention(x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,3:6]) F.scaled_dot_product_attention(x[:,None,3:6],x[3,None,3:6].expand(5,20,3),x[3,None,3:6].expand(5,20,3))"),
    ("masks", REAL, ROWS, " ".join(f"F.scaled_dot_product_attention({a})" for a in [
        "x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,2:6],attn_mask=x<2", "x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,3:6],attn_mask=(x<2)[:,:5]",
        "x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,2:6],attn_mask=(x<2)[:,:5]", "x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,2:6],attn_mask=(x[:,:5]>0)&(x[:,:5]<1)",
        "x[3:,None,3:6],x[3:,None,3:6],x[3:,None,2:4],is_causal=True", "x[None,None,:,:4],x[None,None,:,4:],x[None,None,:,2:5],is_causal=True"])
        .replace("attn_mask=x<2", "attn_mask=(x[:,:1]<2)")),
    ("gammas", REAL, [[1.0, 2.0, 0.5, 3.0], [-I, I, N, -1.0], [-0.5, 0.0, 7.5, 20.0], [1.0, 2.0, 1.0, 2.0]], "torch.lgamma(x) torch.lgamma(x)[[0,3]].abs()*I torch.addmv(torch.lgamma(x[3]),torch.lgamma(x[[3,3,3,3]]),torch.tensor([I,I,1,1],dtype=x.dtype))"),
    ("large", "i64", [2294884728, 2**31, 2**31-1, 2**32+5, 0, -7, -2**31-1, -2294884728, 2**62, 2**62, -2**63+3], "x.clamp(-1,1) x.clamp(min=0) x.clamp(max=3) torch.minimum(x,x.flip(0)) torch.maximum(x,x.flip(0)) x.clamp(x.flip(0),x*0+5) x.sign() x.sum() x.sum(0,keepdim=True) x[:,None].expand(-1,3).sum(0) x[8:].sum() x.prod() F.relu(x)"),
    ("floors_of_integers", "i64", [-6162211365588018816, 5435547305835997084, -2**63, -2**63+3, 2**63-1, 7, -7, 0, 6], "x//x.flip(0).where(x.flip(0)!=0,torch.tensor(2)) x//x.roll(2).where(x.roll(2)!=0,torch.tensor(-3)) x//7 x//-7 x//1 x//2**40 x//torch.tensor([3,5,7,1,2,3,4,5,2**62]) x.div(-2**61,rounding_mode='floor') x.argsort()//3 torch.arange(9)//(x*0+4)"),
    ("floors_of_shorts", "i16", [-32768, -32767, 32767, 7, -7, 0, 6, -1, 200], "x//x.flip(0).where(x.flip(0)!=0,2) x//x.roll(2).where(x.roll(2)!=0,-3) x//7 x//-7 x//1 x//300 x.int()//7 x.int()//x.roll(2).where(x.roll(2)!=0,-3) (x//256).to(torch.int8)//(x//256*0-3).to(torch.int8)"),
    ("bytes", "u8", [[65, 234, 194, 255], [69, 21, 2, 9], [200, 199, 3, 1]], "x.prod(dtype=torch.int32) x.prod(1,dtype=torch.int32) x.prod(0) x.prod(0,keepdim=True,dtype=torch.int16) x.sum(dtype=torch.int32) (x.int()*20000000).sum(1,dtype=torch.int32)"),
    ("norms", "f64", [[1e30, 2e30, -3e30, 1e25], [1.0, 2.0, 3.0, 5.0], [1e-30, 2e-30, 0.0, 1.0], [I, 1.0, 2.0, N]], "F.group_norm(x[None],2) F.group_norm(x[:,:,None],2,x[1],x[1]) F.instance_norm(x[None]) F.instance_norm(x[None],weight=x[1],bias=x[1]) torch.logsumexp(F.group_norm(x[None],2)[:,1:2],0)"),
    ("norms_of_small_numbers", "f64", [[1e-4, 2e-4, -3e-4, 1e-5], [1e-4, 3e-4, 2e-4, 1e-4], [1e-6, 2e-6, 0.0, 1e-6], [1.0, 2.0, 3.0, 5.0]], "(F.layer_norm(x,(4,))*2**20).frac() (F.layer_norm(-x.exp(),(4,))*2**20).frac() (F.layer_norm(x,(4,),x[3],x[0],eps=5e-8)*2**20).frac() F.layer_norm(x[:2],(4,),eps=1e-50) (F.batch_norm(x,x[0],x[1].abs(),x[3],eps=5e-8)*2**20).frac() (F.batch_norm(x.T[:,:,None],None,None,training=True)*2**20).frac() (F.group_norm(x.T[None],2,eps=5e-8)*2**20).frac() (F.rms_norm(x,(4,),eps=5e-8)*2**20).frac()"),
    ("gaps", "f32 f64", ROWS, "F.max_pool2d(x[None,2:,:4].nan_to_num(),2,3,0,(1,2),ceil_mode=True) F.max_pool2d(x[None,2:,:4].int(),2,3,0,(1,2),ceil_mode=True) F.max_pool1d(x[None].nan_to_num(),2,3,0,4,ceil_mode=True)"),
    ("transforms", REAL, ROWS, "torch.view_as_real(torch.fft.rfft(x)) torch.view_as_real(torch.fft.fft(x[:,3:6])) torch.view_as_real(torch.fft.fft(x,n=5,dim=1)) torch.view_as_real(torch.fft.fft(x,n=4,dim=0)) torch.view_as_real(torch.fft.ifft(torch.complex(x[:,:7],x[:,1:]))) torch.fft.irfft(torch.complex(x[:,4:],x[:,:4])) torch.fft.irfft(torch.complex(x[:,4:],x[:,:4]),n=5) torch.fft.hfft(torch.complex(x[:,4:],x[:,:4])) torch.view_as_real(torch.fft.rfft(x,n=11,norm='ortho')) torch.angle(torch.fft.fft(x.nan_to_num(0.5,-1,-2)[:,:2])) torch.view_as_real(torch.stft(x,4,2,window=torch.ones(4,dtype=x.dtype),return_complex=True)) torch.view_as_real(torch.stft(x,4,2,window=torch.ones(4,dtype=x.dtype),onesided=False,return_complex=True))"),
    ("sigmoids", REAL, [-120.0, -80.0, -27.25, -18.5, -15.0, -9.0, -1.0, 0.0, 3.0, 30.0], "x.sigmoid().log() x.sigmoid().log2() x.sigmoid().log10() torch.xlogy(x,x.sigmoid()) F.binary_cross_entropy(x.sigmoid(),x.flip(0).sigmoid(),reduction='none') F.binary_cross_entropy(x.sigmoid(),x.flip(0).sigmoid())"),
    ("sigmoids_near_one", "f32", [9.7, 10.3, 11.9, 12.67, 13.81, 14.65, 15.4, 16.2, 16.5, 17.1], "F.binary_cross_entropy(x.sigmoid(),x.flip(0).sigmoid()*.3,reduction='none') F.binary_cross_entropy(x.sigmoid(),x*0) torch.log1p(-x.sigmoid())"),
    ("sigmoids_of_halves", "f16 bf16", [-9.0, 3.0, 6.3, 7.9, 8.5, 9.7, 12.0], "F.binary_cross_entropy(x.sigmoid(),x.flip(0).sigmoid()*.3,reduction='none') F.binary_cross_entropy(x.sigmoid(),x*0,reduction='sum') torch.log1p(-x.sigmoid()) torch.log1p(-x.sigmoid().float())"),
    ("exponents", FLOATS, [[I, N, 1.0], [N, I, 1.0], [-I, N, -I], [1.0, I, N], [N, -I, 2.0], [-I, -I, -I], [I, -I, 0.0]], "torch.logsumexp(x,1) torch.logsumexp(x,0,keepdim=True) torch.logsumexp(x,(0,1)) torch.logsumexp(x[4:],0) x.log_softmax(1) x.log_softmax(0) F.cross_entropy(x,x[:,0].isnan().long(),reduction='none')"),
    ("nothing_times", "f16 bf16 f32", ROWS, "torch.addmm(x[:4,:4],x[:4],x[:4].T,alpha=0) torch.addmm(x[2:,:3],x[2:],x[2:].T,alpha=0,beta=2) torch.addmv(x[:4,0],x[:4],x[0],alpha=0)"),
    ("quotients_of_bytes", "u8 i16", [[4, 3, 200], [7, 0, 255]], "torch.true_divide(x,-3) x/-3 x/70000 torch.div(x,1000) -3/(x+1) torch.div(-2,x+1)"),
    ("areas", REAL, ROWS, "torch.trapezoid(x,dim=1) torch.trapezoid(x[:,:1],dim=1) torch.trapezoid(x[:,2:],dx=2.,dim=1) torch.cumulative_trapezoid(x,dim=1)"),
    ("integer_areas", "u8 i16", [[250, 3, 200], [100, 9, 100], [7, 250, 8], [200, 90, 3]], "torch.trapezoid(x,dim=0) torch.trapezoid(x,dx=2.,dim=1) torch.cumulative_trapezoid(x,dim=0)"),
    ("products_of_nothing", "f32 f64 i64", [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 0, 2]], "x[:,:0]@x[:,:0].T torch.mv(x[:,:0],x[0,:0]) x[:2,None,:0]@x[:2,:0,None] torch.baddbmm(x[:2,:2],x[:2,None,:0].expand(2,2,0),x[:2,:0,None].expand(2,0,2),beta=2) torch.addbmm(x[:2,:2],x[:2,None,:0].expand(2,2,0),x[:2,:0,None].expand(2,0,2)) torch.addmv(x[0],x.T[:,:0],x[:0,0]) torch.einsum('ij,kj->ki',x[:,:0],x[:,:0]) torch.einsum('ij,kj,lj->kil',x[:,:0],x[:,:0],x[:,:0]) torch.tensordot(x[:,:0],x[:,:0].T,1)"),
    ("nothing", "i64 i16 f32", [[1.0], [2.0], [3.0], [4.0]], "x[:0].median() x[:0].nanmedian() x[:0].int().median() (x+1).expand(-1,0).neg() (x+1).masked_scatter(x[:,:0]>0,x.flip(0)).abs() x.T[1:2].cummin(0) x.T[1:2].cummax(0)"),
    ("blends", REAL, ROWS, "torch.lerp(x,x.flip(1),x[0]) torch.lerp(x,x.flip(1),x.flip(0)) torch.lerp(x,x.flip(1),-2) torch.lerp(x,x.flip(1),-.3) torch.lerp(x.nan_to_num(0,5,-5).long(),x.nan_to_num(7,5,-5).long(),x[3,6].half())"),
    ("complex_by_real", REAL, ROWS, "torch.view_as_real(torch.complex(x,x.flip(1))*2) torch.view_as_real(torch.complex(x,x.flip(1))/-4) torch.view_as_real(torch.complex(x,x.flip(1))*x[0]) torch.view_as_real(x[3]*torch.complex(x,x.flip(0))) torch.view_as_real(torch.complex(x,x.flip(1))/x[3,:4].repeat(2)) torch.view_as_real(torch.complex(x,x.flip(1)).mean(1)) torch.view_as_real(torch.complex(x[:3],x[:3].flip(1)).mean())"),
    ("wraps", REAL, ROWS, "F.pad(x[x[:,7]>99],(1,2),mode='circular') F.pad(x[x[:,7]>2],(1,0),mode='circular') F.pad(x[x[:,7]>2],(0,3),mode='circular')"),
    ("powers_of_two", "f32 f64 f16", [[0.0, 1.0, -3.0, 1e-30, 1e30, I, N, -0.5]] * 4, "torch.ldexp(x,torch.tensor([400,-140,127,200,-230,-500,1,2**33+1])) torch.ldexp(x,torch.tensor([7,-3,1,0,2,-2,1,2],dtype=torch.int8))"),
    ("places", REAL, [[N, 0.1], [0.1, N], [N, N], [I, 0.1], [0.1, -I], [0.2, 0.3], [1e20, 0.1], [-0.9, 0.8]], "F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x.reshape(1,2,4,2)) F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x.reshape(1,2,4,2),align_corners=True) F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x.reshape(1,2,4,2),'nearest') F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x.reshape(1,2,4,2),'bicubic') F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x[:6].reshape(1,2,3,2),'bicubic','border') F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,2,5,4),x[:6].reshape(1,2,3,2),'bicubic','reflection') F.grid_sample(torch.arange(40.,dtype=x.dtype).reshape(1,1,2,5,4),torch.cat([x,x[:,:1]],1).reshape(1,2,2,2,3))"),
    ("long_transforms", "f32", [1.5, -0.75, 2.0, 3.0], "torch.view_as_real(torch.fft.rfft(((torch.arange(15000)*7919)%101-50)*x[0])[::997]) torch.view_as_real(torch.fft.fft((torch.arange(12000)*7919%101-50).reshape(4,3000)*x[:4,None])[:,::331]) torch.view_as_real(torch.fft.fft2((torch.arange(9000)*7919%103-50).reshape(9,1000)*x[1])[::4,::97]) torch.fft.irfft(torch.complex((torch.arange(3001)*7919%101-50)*x[0],(torch.arange(3001)*31%101-50)*x[1]))[::331] torch.view_as_real(torch.fft.ifft(torch.complex((torch.arange(5000)*7919%101-50)*x[0],(torch.arange(5000)*31%101-50)*x[1]))[::331]) torch.fft.hfft(torch.complex((torch.arange(3001)*7919%101-50)*x[0],(torch.arange(3001)*31%101-50)*x[1]))[::331] torch.fft.irfft2(torch.fft.rfft2((torch.arange(9000)*7919%103-50).reshape(9,1000)*x[1]),s=(9,1000))[::4,::97] torch.view_as_real(torch.fft.fft((torch.arange(4096)*7919%101-50)*x[0])[::331])"),
    ("exact_frames", REAL, [0.0, 7.0, -3.0, 0.0, 5.0, 0.0, 0.0, 9.0, -8.0, 0.0, 0.0, 3.0], "torch.istft(torch.stft(x,4,1,window=torch.ones(4,dtype=x.dtype),return_complex=True),4,1,window=torch.ones(4,dtype=x.dtype))<0"),
    ("resampling", REAL, ROWS, "F.interpolate(x[None,None],size=(3,4),mode='bilinear',align_corners=True,antialias=True) F.interpolate(x[None,None],size=(7,3),mode='bicubic',align_corners=True,antialias=True) F.interpolate(x[None,None].double(),size=(3,11),mode='bilinear',antialias=True) F.interpolate(x[None,None].double(),size=(7,3),mode='bilinear') F.interpolate(x[None,None].double(),scale_factor=1.7,mode='bilinear',align_corners=True)"),
    ("nearest", REAL, ROWS, "F.interpolate(x[None,:,:3],scale_factor=2.3) F.interpolate(x[None,:,:3],scale_factor=1.3) F.interpolate(x[None,None,:3,:4],scale_factor=2.3) F.interpolate(x[None,None,:3,:3],scale_factor=1.3) F.interpolate(x[None,:2,:3,None,None].expand(1,2,3,2,3).transpose(2,4),scale_factor=2.3) F.interpolate(x[None,:,:3],scale_factor=2.3,mode='nearest-exact') F.interpolate(x[None,:,:3],size=6)"),
    ("kept_sizes", "f32", [[1.0, 2.0, 4.0, 8.0], [3.0, -1.0, 0.5, 2.0], [5.0, 7.0, -2.0, 1.0]], "F.interpolate(x[None,None],scale_factor=1.3,mode='bilinear') F.interpolate(x[None,:,:3],scale_factor=1.3,mode='linear') F.interpolate(x[None,None,:,:3],scale_factor=1.3,mode='nearest-exact')"),
    ("dynamic_ceilings", REAL, ROWS, "F.max_pool2d(x[None,:,:2].nan_to_num(),[2,1],3,(1,0),(1,2),ceil_mode=True,return_indices=True) F.max_pool2d(x[None,:,:2].nan_to_num(),[2,1],3,(1,0),(1,2),ceil_mode=True) F.avg_pool2d(x[None,:,:2].nan_to_num().clamp(-9,9),[2,1],3,(1,0),ceil_mode=True)"),
    ("means_of_slices", "i64 i16 u8", [[5, 120, 127], [7, 2, 128], [1, 3, 200], [8, 0, 127]], "torch.index_reduce(x.to(torch.int8),1,torch.tensor([0,0,1]),x.to(torch.int8),'mean') torch.index_reduce(-x,0,torch.tensor([1,1,0,2]),x,'mean',include_self=False) torch.scatter_reduce(x.to(torch.int8),1,torch.tensor([[0,0,0]]*4),x[:4].to(torch.int8),'mean')"),
    ("windows_over_the_end", "f32 f64", ROWS, "F.max_pool2d(x[None,:3,:3].nan_to_num(),[3,2],3,(0,1),2,ceil_mode=True) F.max_pool2d(x[None,:3,:3].nan_to_num(),[3,2],3,(0,1),2,ceil_mode=True,return_indices=True) F.max_pool1d(x[None,:,:3].nan_to_num(),3,3,0,2,ceil_mode=True) F.avg_pool1d(x[None,:,:3],4,3,ceil_mode=True)"),
    ("ceilings", REAL, ROWS, "F.avg_pool2d(x[None,:3,:3],[3,2],(3,3),(1,0),ceil_mode=True) F.avg_pool2d(x[None,:,:7],[2,3],(4,4),(1,1),ceil_mode=True) F.avg_pool2d(x[None,:,:7],[2,3],(4,4),(1,1),ceil_mode=True,count_include_pad=False) F.max_pool2d(x[None,:3,:3].nan_to_num(),[3,2],(3,3),(1,0),ceil_mode=True)"),
    ("zeros", REAL, [-0.0, 0.0, -0.3, 0.3, -1.0, 2.0, 1.0], "1/x.trunc() 1/x.frac() 1/x.log1p() 1/x.asin() 1/x.atan() 1/x.asinh() 1/x.atanh() 1/x.erfinv() 1/x.copysign(x.flip(0)) 1/torch.heaviside(x,-x) 1/torch.diag_embed(x) 1/x.diagflat(1) 1/x.div(-3,rounding_mode='trunc') 1/(x//2.5) 1/(x//x.flip(0)) 1/torch.atan2(x,x.flip(0)) 1/torch.complex(x,x).sqrt().imag 1/torch.complex(x-5,x).sqrt().imag 1/x.clamp(min=0) 1/x.clamp(max=-0.) 1/x.clamp(max=0).clamp(min=-.5) 1/x.clamp(min=0).clamp(max=.5) 1/F.hardtanh(x,0,1) 1/F.celu(x) 1/x.fmax(x.abs()) 1/x.fmin(x.abs())"),
    ("eight_bits", FLOATS, [I, -I, N, 448.0, 470.0, -500.0, 1e6, -0.0, 1e-9, 240.0, 249.0, 57344.0], "x.to(torch.float8_e4m3fn).float() x.to(torch.float8_e4m3fnuz).float() x.to(torch.float8_e5m2).float() x.to(torch.float8_e5m2fnuz).float() x.to(torch.float8_e5m2).to(torch.float8_e4m3fnuz).float()"),
    ("zeros_of_halves", "f16 bf16", [-0.0, 0.0, -0.3, 0.3, -1.0, 2.0, 1.0], "1/x.trunc() 1/x.frac() 1/x.copysign(x.flip(0)) 1/x.div(-3,rounding_mode='trunc') 1/x.clamp(min=0) 1/x.clamp(max=0) 1/F.celu(x)"),
    ("powers_of_integers", "i64", [1, -2, 3, 40], "torch.ldexp(x*0,torch.tensor([140,1,-140,2**31-1],dtype=torch.int32)) torch.ldexp(x>1,torch.tensor(140)) torch.ldexp(x,x)"),
    ("complex_limits", REAL, tuple(zip(*itertools.product(LIMITS, LIMITS))), "Z(x,y).sqrt() Z(x,y).rsqrt() Z(x,y).reciprocal() (1-2j)/Z(x,y) Z(y,x)/Z(x,y+1) Z(x,y).tanh() Z(x,y).asin() Z(x,y).acos() Z(x,y).atan() Z(x,y).asinh() Z(x,y).acosh() Z(x,y).atanh() Z(x,y).sigmoid()"),
    ("roots", "f16 bf16 f32", [-0.0, 0.0, 4.0, -1.0, 0.25, I, -I, N], "x**.5 x**-.5 1/x**.5 x.sqrt() x.rsqrt()"),
    ("complex_powers", REAL, tuple(zip(*itertools.product(LIMITS, [-3.0, -0.0, 0.0, 1.0, 2.5]))), "Z(x,y).exp() Z(x,y).exp2() Z(x,y).sinh() Z(x,y).cosh() Z(y,x).sin() Z(y,x).cos() Z(-I*y.sign().abs(),x).exp()"),
    ("beside_complex", "i64 u8 f64", [1, 2, 3, 0, 6], "torch.where(x>1,x,Z(x.float(),x.float()+1)) torch.where(x>1,Z(x.float(),x.float()+1),x) Z(x.float(),x.float()+1).copy_(x) Z(x.float(),x.float()+1).slice_scatter(x[:2],0,0,2) Z(x.float(),x.float()+1).select_scatter(x[0],0,1) Z(x.float(),x.float()+1).masked_fill(x>2,x[1]) torch.fill(Z(x.float(),x.float()+1),x[0]) Z(x.float(),x.float()+1).index_fill(0,torch.tensor([0]),x[1]) torch.cat([x,Z(x.float(),x.float()+1)]) torch.diff(x,append=Z(x.float(),x.float()+1)) x.cumsum(0,dtype=torch.complex64) x.sum(0,dtype=torch.complex64) torch.gradient(Z(x.float(),x.float()+1),spacing=(torch.arange(x.shape[0])*2.,))[0]"),
    ("areas_of_bytes", "u8 i16", ([4, 200, 7, 130, 255], [1, 9, 200, 3, 250]), "torch.trapezoid(x,y) torch.cumulative_trapezoid(x,y) torch.trapezoid(torch.stack([x,y]),y) torch.diff(x,n=0,prepend=y)"),
    ("factors_for_many", REAL, [[[4.0, 1.0, 2.0], [1.0, -3.0, 0.5], [2.0, 0.5, 3.0]], [[1.0, 5.0, 0.0], [5.0, 2.0, 1.0], [0.0, 1.0, 3.0]]], "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x),x[0]) torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x[1]),x)"),
    ("repeated_writes", "f32", [1.0, -2.0, 3.0, 0.5, -1.0], "(v:=x*1,w:=v.expand(2,x.shape[0]),w[-1].mul_(3),v,w)[3:] (v:=x*1,w:=v.unfold(0,3,1),w[1].zero_(),v,w)[3:] (v:=x*1,w:=torch.meshgrid(v,v,indexing='ij')[0],w[:,1].neg_(),v,w)[3:] (v:=x*1,w:=v[:,None].expand(-1,3),w[1:,2].exp_(),v,w)[3:] (v:=x*1,w:=v.expand(3,x.shape[0]),w[0][1:3].add_(2),w[1].sub_(v),w)[4:] (v:=x*1,w:=v.as_strided((3,2),(1,1)),w[0].zero_(),v,w)[3:] (v:=x*1,v.expand(2,x.shape[0]).fill_(4))[1:] (v:=x*1,w:=v.unfold(0,3,1),w[:2].fill_(2),v,w)[3:] (v:=x*1,w:=v.unfold(0,3,1)[:2,1:].zero_(),v)[2:] (v:=x*1,w:=v.as_strided((3,2),(1,1)),w[1:].fill_(7),v)[3:]"),
    ("zeros_before_a_pool", "f32 f64 f16", [[-1.0, -2.0, -0.5, -4.0, 3.0], [-3.0, -1.5, -2.5, 0.5, -1.0], [-2.0, -4.0, -1.0, -3.0, -0.5], [-0.5, -1.0, -3.5, -2.0, -1.0]], "F.max_pool2d(F.pad(x[None,None],(1,1,1,1)),3) F.max_pool2d(F.pad(x[None],(0,1,0,1)),3,2,1) F.max_pool2d(F.pad(x[None],(1,1,0,0)),2,2,ceil_mode=True) F.max_pool1d(F.pad(x[None],(2,1)),2) F.max_pool2d(F.pad(F.relu(x)[None],(1,1,1,1)),3,2) F.max_pool2d(F.pad(F.relu(x)[None],(2,0,2,0)),2,2) F.max_pool2d(F.pad(x.sigmoid()[None],(0,1,0,1),value=.0),2,1,1) F.avg_pool2d(F.pad(x[None],(0,2,0,2)),2,2,ceil_mode=True) F.avg_pool1d(F.pad(x,(0,2)),3,3,1,ceil_mode=True)"),
    ("samples_of_pools", REAL, torch.linspace(-3, 2, 81).remainder(0.83).reshape(9, 9).tolist(), "torch.ops.aten.fractional_max_pool2d(x[None],(2,2),(4,4),x[:2,None,:2].abs()) torch.ops.aten.fractional_max_pool2d(x[None,None],(2,3),(3,4),x[:3,None,:2].abs()) torch.ops.aten.fractional_max_pool3d(x.reshape(1,3,3,9),(2,2,2),(1,1,4),x[:2,None,:3].abs())"),
    ("signs_beside_bytes", "u8", [1, 4, 0, 255, 3], "torch.copysign(torch.tensor(-3),x) torch.copysign(x,torch.tensor(-3)) torch.copysign(x,-3) torch.div(torch.tensor(-3),x) torch.atan2(torch.tensor(-3),x) torch.special.xlog1py(torch.tensor(-3),x) torch.xlogy(torch.tensor(-3),x) torch.float_power(torch.tensor(-3),x) torch.ldexp(torch.tensor(-3),x) torch.hypot(torch.tensor(-3),x*1.) torch.special.zeta(torch.tensor(3),x) torch.logaddexp(torch.tensor(-3.),x*1.) torch.lerp(x*1.,x*1.,torch.tensor(.5))"),
    ("rows_with_nan", REAL, [[1.0, N], [1.0, N], [2.0, 0.0], [2.0, 0.0], [N, 1.0], [2.0, 0.0]], "torch.ones_like(x.unique(dim=0)) x.unique(dim=0).isnan().sum(0) x.unique(dim=0).nan_to_num(0).sum(0) x.unique(dim=0,return_counts=True)[1].sum() x.unique(dim=1).nan_to_num(5).sum(1) x.unique(dim=0,return_inverse=True)[1].shape[0]+x[0] torch.stack([x,x],1).unique(dim=0).nan_to_num(3).sum(0)"),
    ("networks_of_doubles", "f64", torch.linspace(-1, 1, 64).mul(37).sin().reshape(8, 8).tolist(), " ".join(e.replace("$L", "x[:,:3],x[:,3:5],x[:,5],x[:,6]").replace("$G", "x[1:7,:3],x[1:7,3:5],x[1:7,5],x[1:7,6]").replace("$R", "x[2:4,:3],x[2:4,3:5],x[2:4,5],x[2:4,6]").replace("$S", "x.reshape(4,2,8)[:,:,4:7]") for e in [
        "torch.lstm($S,(x[None,:2,:2],x[None,2:4,:2]),[$L],True,1,0.,False,False,False)", "torch.lstm($S,(x[:4,:4].reshape(2,4,2)[:,:2],x[4:,:4].reshape(2,4,2)[:,:2]),[$L,$L],True,1,0.,False,True,False)",
        "torch.gru($S,x[None,:2,:2],[$G],True,1,0.,False,False,False)", "torch.gru($S,x[:4,:4].reshape(2,4,2),[x[:6,:3],x[:6,3:5],x[2:,:3],x[2:,3:5]],False,1,0.,False,True,True)",
        "torch.rnn_tanh($S,x[None,:2,:2],[$R],True,1,0.,False,False,False)", "torch.rnn_relu($S,x[:4,:4].reshape(2,4,2)[:,:2],[$R,$R],True,1,0.,False,True,False)"])),
]
# Programs that need their sizes.
FIXED = ("means_of_slices", "nearest", "kept_sizes", "orders_of_infinity", "products", "pools", "bags", "factors", "attention", "wide_attention", "reflections", "transforms", "masks", "gaps", "gammas", "norms", "large", "bytes", "exponents", "nothing_times", "quotients_of_bytes", "places", "exact_frames", "resampling", "ceilings", "powers_of_integers", "long_transforms", "floors_of_integers", "complex_limits", "complex_powers", "beside_complex", "factors_for_many", "floors_of_shorts", "samples_of_pools", "networks_of_doubles", "zeros_before_a_pool")


def program(expressions, names):
    functions = [eval(f"lambda {','.join(names)}: {e}", {"torch": torch, "F": F, "I": I, "Z": Z}) for e in expressions]

    class Edges(torch.nn.Module):
        def forward(self, *args):
            return tuple(f(*args) for f in functions)

    return Edges()


def cases():
    for name, kinds, numbers, expressions in PROGRAMS:
        for kind in kinds.split():

            def one(name=name, kind=kind, numbers=numbers, expressions=expressions.split()):
                if isinstance(numbers, tuple) and len(numbers[0]) == len(PAIRS):
                    args = [t.flatten() for t in torch.meshgrid(*(torch.tensor(n).to(TYPES[kind]) for n in numbers), indexing="ij")]
                else:
                    given = numbers if isinstance(numbers, tuple) else (numbers,)
                    args = [torch.tensor(n, dtype=None if kind[0] in "iu" else torch.float64).to(TYPES[kind]) for n in given]
                if name in FIXED:
                    return program(expressions, "xyz"[: len(args)]), tuple(args), None, None
                # Sizes of windows with `ceil_mode` depend on the remainder.
                ceilings = name == "dynamic_ceilings"
                size = torch.export.Dim.AUTO if ceilings else torch.export.Dim("n", min=4)
                other = tuple(torch.cat([t, t[: 3 if ceilings else 1]]) for t in args)
                return program(expressions, "xyz"[: len(args)]), tuple(args), (({0: size},) * len(args),), other

            yield f"edges_{name}_{kind}", one


if __name__ == "__main__":
    make.CASES = dict(cases())
    make.make(sys.argv[1], sys.argv[2:] or list(make.CASES))
