//! The casts of `torch.autocast`, which the graph does not show.
//!
//! The operators are those that have a kernel for the dispatch keys `AutocastCPU` and
//! `AutocastCUDA` in PyTorch 2.15.

use super::{names::Taken, problem::problem};
use crate::error::{PassProblem, Result};
use crate::graph::{
    ArgKind, Argument, ExportedProgram, Graph, Name, NamedArg, Node, NodeMeta, OpName,
};
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// The type that autocast converts the tensors of an operator to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// The type that autocast was given.
    Lower,
    /// float32.
    Single,
    /// float32 if one of them is, else the type that autocast was given.
    Widest,
}

/// Operators that run in the lower type on a CPU; `default` overloads by name alone. Sorted.
static CPU_LOWER: &[&str] = &[
    "_addmm_activation",
    "_convolution.deprecated",
    "_native_multi_head_attention",
    "addbmm",
    "addmm",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv1d.padding",
    "conv2d",
    "conv2d.padding",
    "conv3d",
    "conv3d.padding",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "linalg_vecdot",
    "linear",
    "matmul",
    "mkldnn_rnn_layer",
    "mm",
    "prelu",
    "scaled_dot_product_attention",
];

static CPU_WIDEST: &[&str] = &["cat", "index_copy", "stack"];

static CPU_SINGLE: &[&str] = &[
    "_grid_sampler_2d_cpu_fallback",
    "_lu_with_info",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cholesky_inverse",
    "cholesky_solve",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "ctc_loss.IntList",
    "ctc_loss.Tensor",
    "fake_quantize_per_tensor_affine",
    "fft_fft",
    "fft_fft2",
    "fft_fftn",
    "fft_hfft",
    "fft_ifft",
    "fft_ifft2",
    "fft_ifftn",
    "fft_ihfft",
    "fft_irfft",
    "fft_irfft2",
    "fft_irfftn",
    "fft_rfft",
    "fft_rfft2",
    "fft_rfftn",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "geqrf",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "hinge_embedding_loss",
    "huber_loss",
    "inverse",
    "kl_div",
    "l1_loss",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_cond",
    "linalg_cond.p_str",
    "linalg_eig",
    "linalg_eigh",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_householder_product",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_matrix_rank",
    "linalg_matrix_rank.atol_rtol_float",
    "linalg_matrix_rank.atol_rtol_tensor",
    "linalg_matrix_rank.tol_tensor",
    "linalg_matrix_sqrth",
    "linalg_qr",
    "linalg_solve",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "lu_solve",
    "margin_ranking_loss",
    "max_pool3d",
    "max_unpool2d",
    "max_unpool3d",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_margin_loss_forward",
    "nanquantile",
    "nanquantile.scalar",
    "nll_loss",
    "nll_loss2d",
    "orgqr",
    "ormqr",
    "pinverse",
    "poisson_nll_loss",
    "polar",
    "prod",
    "prod.dim_int",
    "quantile",
    "quantile.scalar",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "smooth_l1_loss",
    "soft_margin_loss",
    "stft",
    "stft.center",
    "svd",
    "trace",
    "triangular_solve",
    "triplet_margin_loss",
    "view_as_complex",
];

static CUDA_LOWER: &[&str] = &[
    "_convolution",
    "_convolution.deprecated",
    "_cudnn_rnn",
    "_scaled_dot_product_flash_attention",
    "_thnn_fused_gru_cell",
    "_thnn_fused_lstm_cell",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "cudnn_convolution",
    "cudnn_convolution_transpose",
    "einsum",
    "gru_cell",
    "linalg_multi_dot",
    "linalg_vecdot",
    "linear",
    "lstm_cell",
    "matmul",
    "mm",
    "mv",
    "prelu",
    "rnn_relu_cell",
    "rnn_tanh_cell",
    "scaled_dot_product_attention",
];

static CUDA_WIDEST: &[&str] = &[
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "grid_sampler",
    "index_put",
    "scatter_add",
    "tensordot",
    "vdot",
];

static CUDA_SINGLE: &[&str] = &[
    "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "acos",
    "asin",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cumprod",
    "cumsum",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "frobenius_norm.dim",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linalg_matrix_norm",
    "linalg_matrix_norm.str_ord",
    "linalg_matrix_sqrth",
    "linalg_vector_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax.int",
    "logsumexp",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "native_layer_norm",
    "nll_loss",
    "nll_loss2d",
    "norm.Scalar",
    "norm.ScalarOpt_dim",
    "nuclear_norm",
    "nuclear_norm.dim",
    "pdist",
    "poisson_nll_loss",
    "pow.Scalar",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "prod",
    "prod.dim_int",
    "reciprocal",
    "renorm",
    "rms_norm",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax.int",
    "softplus",
    "sum",
    "sum.dim_IntList",
    "tan",
    "triplet_margin_loss",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
];

/// Operators that convert types themselves: autocast leaves them alone.
static CONVERSIONS: &[&str] = &["_to_copy", "to", "type_as"];

/// Autocast for the devices of one kind.
#[derive(Clone, Debug)]
struct Autocast {
    device: Name,
    dtype: DType,
}

/// Adds the casts of autocast to the bodies of `wrap_with_autocast`, as `_to_copy` nodes. The ops
/// themselves stay.
pub(super) fn write_casts(program: &mut ExportedProgram) -> Result<()> {
    write(&mut program.graph, &[])
}

fn write(graph: &mut Graph, within: &[Autocast]) -> Result<()> {
    for node in graph.nodes.iter_mut().filter(|n| n.target.is_higher_order()) {
        let node = Arc::make_mut(node);
        let inside = match &*node.target.name {
            "wrap_with_autocast" => entered(node, within),
            _ => within.to_vec(),
        };
        node.bodies_mut().try_for_each(|body| write(body, &inside))?;
    }
    if within.is_empty() || !graph.nodes.iter().any(|n| &*n.target.namespace == "aten") {
        return Ok(());
    }
    let mut taken = Taken::by(graph);
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        for autocast in within {
            cast(Arc::make_mut(&mut node), autocast, graph, &mut taken, &mut nodes)?;
        }
        nodes.push(node);
    }
    graph.nodes = nodes;
    Ok(())
}

/// The state of autocast within `wrap_with_autocast(device, dtype, enabled, cache_enabled, body,
/// ...)`.
fn entered(node: &Node, within: &[Autocast]) -> Vec<Autocast> {
    let mut inside = within.to_vec();
    let arg = |i: usize| node.args.get(i).map(|a| &a.value);
    let Some(Argument::String(device)) = arg(0) else {
        return inside;
    };
    inside.retain(|a| a.device != *device);
    if arg(2) == Some(&Argument::Bool(true)) {
        let dtype = match arg(1) {
            Some(Argument::DType(dtype)) => *dtype,
            _ if &**device == "cpu" => DType::BF16,
            _ => DType::F16,
        };
        let device = device.clone();
        inside.push(Autocast { device, dtype });
    }
    inside
}

fn policy(node: &Node, autocast: &Autocast, types: &[DType], graph: &Graph) -> Option<Policy> {
    let op = &node.target;
    if &*op.namespace != "aten" {
        return None;
    }
    let full = match &*op.overload {
        "default" => op.name.to_string(),
        overload => format!("{}.{overload}", op.name),
    };
    let lists = match &*autocast.device {
        "cpu" => [CPU_LOWER, CPU_SINGLE, CPU_WIDEST],
        _ => [CUDA_LOWER, CUDA_SINGLE, CUDA_WIDEST],
    };
    let policies = [Policy::Lower, Policy::Single, Policy::Widest];
    let listed = lists.iter().zip(policies);
    let mut listed = listed.filter(|(list, _)| list.binary_search(&full.as_str()).is_ok());
    // `sum(x, dtype=...)` says itself what it wants.
    let own = matches!(node.arg("dtype"), Some(Argument::DType(_)));
    if let Some((_, policy)) = listed.next() {
        return (!own).then_some(policy);
    }
    // An operator that calls one of those (`einsum` on a CPU, `lstm`) shows by its recorded type.
    let calls = recorded(node, graph) == Some(autocast.dtype)
        && !own
        && !CONVERSIONS.contains(&&*op.name)
        && !op.name.ends_with('_')
        && !types.is_empty()
        && !types.contains(&autocast.dtype);
    calls.then_some(Policy::Lower)
}

/// Casts the operands of a node as autocast does, by nodes that it appends to `nodes`.
///
/// # Errors
/// [`PassProblem::WithoutAutocast`]: the recorded types are those without autocast.
fn cast(
    node: &mut Node,
    autocast: &Autocast,
    graph: &mut Graph,
    taken: &mut Taken,
    nodes: &mut Vec<Arc<Node>>,
) -> Result<()> {
    // 64-bit floats are left alone.
    let eligible = |name: &Name, graph: &Graph| {
        let meta = graph.tensor(name)?;
        let float = matches!(meta.dtype, DType::F32 | DType::F16 | DType::BF16);
        (float && meta.device.kind == autocast.device).then_some(meta.dtype)
    };
    let names = node.input_names();
    let types: Vec<DType> = names.iter().filter_map(|n| eligible(n, graph)).collect();
    let Some(policy) = policy(node, autocast, &types, graph) else {
        return Ok(());
    };
    let dtype = match policy {
        Policy::Lower => autocast.dtype,
        Policy::Single => DType::F32,
        Policy::Widest if types.contains(&DType::F32) => DType::F32,
        Policy::Widest => autocast.dtype,
    };
    // The types of the operands are then wrong, too, and those of all that follows.
    let recorded = recorded(node, graph);
    if policy == Policy::Lower
        && !types.is_empty()
        && recorded == Some(DType::F32)
        && dtype != DType::F32
    {
        return Err(problem(node, PassProblem::WithoutAutocast));
    }
    let meta = node.meta.clone();
    for arg in &mut node.args {
        arg.value.for_each_name_mut(&mut |name| {
            if eligible(name, graph).is_none_or(|from| from == dtype) {
                return;
            }
            let Some(mut to) = graph.tensor(name).cloned() else {
                return;
            };
            to.dtype = dtype;
            let new = taken.unique(&"_to_copy".into());
            graph.values_mut().insert(new.clone(), to.into());
            nodes.push(to_copy(name, &new, dtype, meta.clone()).into());
            *name = new;
        });
    }
    Ok(())
}

/// `new = _to_copy(of, dtype=dtype)`
fn to_copy(of: &Name, new: &Name, dtype: DType, meta: Arc<NodeMeta>) -> Node {
    let arg = |name: &str, kind, value| NamedArg { name: name.into(), kind, value };
    Node {
        name: new.clone(),
        target: OpName::new("aten", "_to_copy", "default"),
        args: vec![
            arg("self", ArgKind::Positional, Argument::Tensor(of.clone())),
            arg("dtype", ArgKind::Keyword, Argument::DType(dtype)),
        ],
        outputs: vec![Argument::Tensor(new.clone())],
        single_return: None,
        meta,
    }
}

/// The recorded type of the first result.
fn recorded(node: &Node, graph: &Graph) -> Option<DType> {
    node.output_names().into_iter().find_map(|n| graph.tensor(&n).map(|m| m.dtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        for list in [CPU_LOWER, CPU_SINGLE, CPU_WIDEST, CUDA_LOWER, CUDA_SINGLE, CUDA_WIDEST] {
            assert!(list.is_sorted());
        }
    }
}
