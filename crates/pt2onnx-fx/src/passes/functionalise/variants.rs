//! Operators that write into an argument, and their functional variants.

use crate::graph::{Argument, Node, OpName};

/// What a node does to its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Nothing.
    None,
    /// It changes only autograd's state, and the result is its argument: `detach_` becomes
    /// `detach`.
    Same(OpName),
    /// It writes into its first argument and returns it. The functional variant returns the new
    /// value.
    First(OpName),
    /// `out=`: it writes into its last arguments, as many as it has results, and returns them.
    Outs(OpName),
    /// It turns its first argument into a view of itself: `unsqueeze_` is `x = x.unsqueeze()`.
    View(OpName),
    /// It changes the sizes of its first argument: `resize_`, `resize_as_`.
    Resize,
    /// Its first argument becomes its second: `set_`, `set_data`.
    Replace,
    /// `fill_diagonal_`, which has no functional variant in PyTorch.
    FillDiagonal,
    /// An operator that updates running statistics, even if its schema does not mark them as
    /// written.
    Statistics(Statistics),
    /// It is an operator of another library that writes into the argument of this number.
    Argument(usize),
    /// It writes, and no functional variant is known.
    Unknown,
    /// It is an operator of another library and returns nothing, so it must write into a tensor.
    Custom,
}

/// The running statistics that an operator updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistics {
    /// Mean and variance over the whole batch, per channel.
    Batch,
    /// Mean and variance of each instance, averaged over the batch, per channel.
    Instance,
    /// The range that an observer of quantisation-aware training has seen, and the scale and zero
    /// point for it.
    Observer,
}

/// In-place overloads whose functional variant has another name or overload than dropping the
/// underscore gives. Sorted.
static RENAMED: &[(&str, &str)] = &[
    ("bernoulli_.float", "bernoulli.p"),
    ("float_power_.Scalar", "float_power.Tensor_Scalar"),
    ("float_power_.Tensor", "float_power.Tensor_Tensor"),
    ("floor_divide_.Tensor", "floor_divide.default"),
    ("ldexp_.default", "ldexp.Tensor"),
    ("normal_.default", "normal_functional.default"),
    ("pow_.Scalar", "pow.Tensor_Scalar"),
    ("pow_.Tensor", "pow.Tensor_Tensor"),
];

/// In-place operators that only change sizes and strides of a tensor. Sorted.
static VIEWING: &[&str] = &[
    "as_strided_",
    "moveaxis_",
    "movedim_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
];

/// Operators of other libraries, and the argument that they write into and may return.
static WRITING: &[(&str, &str, usize)] = &[("torchaudio", "_lfilter_core_loop", 2)];

/// In-place operators without a functional variant. Sorted.
static NO_VARIANT: &[&str] = &[
    "_amp_foreach_non_finite_check_and_unscale_",
    "_amp_update_scale_",
    "_coalesced_",
    "_fill_mem_eff_dropout_mask_",
    "_index_put_impl_",
    "_resize_output_",
    "_sobol_engine_ff_",
    "_sobol_engine_initialize_state_",
    "_sobol_engine_scramble_",
    "copy_sparse_to_sparse_",
    "resize_as_sparse_",
    "rrelu_with_noise_",
    "sparse_resize_",
    "sparse_resize_and_clear_",
];

/// `out=` overloads whose functional variant has another overload than dropping `_out` gives.
/// Sorted.
static OUT: &[(&str, &str)] = &[
    ("_add_relu.out", "_add_relu.Tensor"),
    ("_linalg_det.result", "_linalg_det.default"),
    ("_linalg_eigh.eigenvalues", "_linalg_eigh.default"),
    ("_linalg_slogdet.sign", "_linalg_slogdet.default"),
    ("_linalg_solve_ex.result", "_linalg_solve_ex.default"),
    ("_linalg_svd.U", "_linalg_svd.default"),
    ("_slow_conv2d_forward.output", "_slow_conv2d_forward.default"),
    ("add.out", "add.Tensor"),
    ("all.all_out", "all.default"),
    ("all.out", "all.dim"),
    ("any.all_out", "any.default"),
    ("any.out", "any.dim"),
    ("bernoulli.float_out", "bernoulli.p"),
    ("copysign.out", "copysign.Tensor"),
    ("div.out", "div.Tensor"),
    ("div.out_mode", "div.Tensor_mode"),
    ("divide.out", "divide.Tensor"),
    ("divide.out_mode", "divide.Tensor_mode"),
    ("fractional_max_pool2d.output", "fractional_max_pool2d.default"),
    ("fractional_max_pool3d.output", "fractional_max_pool3d.default"),
    ("frobenius_norm.out", "frobenius_norm.dim"),
    ("geqrf.a", "geqrf.default"),
    ("kthvalue.values", "kthvalue.default"),
    ("ldexp.out", "ldexp.Tensor"),
    ("linalg_cholesky_ex.L", "linalg_cholesky_ex.default"),
    ("linalg_eigh.eigvals", "linalg_eigh.default"),
    ("linalg_inv_ex.inverse", "linalg_inv_ex.default"),
    ("linalg_matrix_rank.out_tol_tensor", "linalg_matrix_rank.tol_tensor"),
    ("linalg_pinv.out_rcond_tensor", "linalg_pinv.rcond_tensor"),
    ("linalg_svd.U", "linalg_svd.default"),
    ("log_sigmoid_forward.output", "log_sigmoid_forward.default"),
    ("max.dim_max", "max.dim"),
    ("max.out", "max.other"),
    ("max.unary_out", "max.default"),
    ("mean.dtype_out", "mean.default"),
    ("mean.out", "mean.dim"),
    ("median.dim_values", "median.dim"),
    ("min.dim_min", "min.dim"),
    ("min.out", "min.other"),
    ("min.unary_out", "min.default"),
    ("mode.values", "mode.default"),
    ("mul.out", "mul.Tensor"),
    ("multilabel_margin_loss_forward.output", "multilabel_margin_loss_forward.default"),
    ("multiply.out", "multiply.Tensor"),
    ("nanmedian.dim_values", "nanmedian.dim"),
    ("nll_loss2d_forward.output", "nll_loss2d_forward.default"),
    ("nll_loss_forward.output", "nll_loss_forward.default"),
    ("norm.dtype_out", "norm.ScalarOpt_dim_dtype"),
    ("norm.out", "norm.ScalarOpt_dim"),
    ("normal.out", "normal_functional.default"),
    ("prod.int_out", "prod.dim_int"),
    ("rrelu_with_noise.out", "rrelu_with_noise_functional.default"),
    ("slow_conv3d_forward.output", "slow_conv3d_forward.default"),
    ("sort.values", "sort.default"),
    ("sort.values_stable", "sort.stable"),
    ("std.out", "std.dim"),
    ("sub.out", "sub.Tensor"),
    ("subtract.out", "subtract.Tensor"),
    ("sum.IntList_out", "sum.dim_IntList"),
    ("svd.U", "svd.default"),
    ("topk.values", "topk.default"),
    ("triangular_solve.X", "triangular_solve.default"),
    ("true_divide.out", "true_divide.Tensor"),
    ("var.out", "var.dim"),
    ("xlogy.OutScalar_Other", "xlogy.Scalar_Other"),
    ("xlogy.OutScalar_Self", "xlogy.Scalar_Self"),
    ("xlogy.OutTensor", "xlogy.Tensor"),
];

/// What a node writes into, and its functional variant.
pub(super) fn write(node: &Node) -> Write {
    let op = &node.target;
    if !op.is_operator() {
        return Write::None;
    }
    let is = |namespace: &str, name: &str| &*op.namespace == namespace && &*op.name == name;
    if let Some((.., argument)) = WRITING.iter().find(|(library, name, _)| is(library, name)) {
        return Write::Argument(*argument);
    }
    if &*op.namespace != "aten" {
        return if returns_nothing(node) { Write::Custom } else { Write::None };
    }
    if let Some(variant) = out_variant(op) {
        return Write::Outs(variant);
    }
    if let Some(write) = statistics(node) {
        return write;
    }
    if &*op.name == "set_data" {
        return Write::Replace;
    }
    let Some(variant) = variant(&op.name) else {
        return Write::None;
    };
    match &*op.name {
        "resize_" | "resize_as_" => Write::Resize,
        "set_" if &*op.overload == "source_Tensor" => Write::Replace,
        "shallow_copy_data_" => Write::Replace,
        "set_" => Write::Unknown,
        "fill_diagonal_" => Write::FillDiagonal,
        "detach_" => Write::Same(OpName::new("aten", "detach", "default")),
        "requires_grad_" => Write::Same(OpName::new("aten", "alias", "default")),
        // The name and overload of the views are those without the underscore, or nearly.
        name if VIEWING.binary_search(&name).is_ok() => {
            let overload = match &*variant {
                "transpose" | "movedim" | "moveaxis" => "int",
                _ => &op.overload,
            };
            Write::View(OpName::new("aten", &variant, overload))
        }
        name if NO_VARIANT.binary_search(&name).is_ok() => Write::Unknown,
        _ if !matches!(node.args.first().map(|a| &a.value), Some(Argument::Tensor(_))) => {
            Write::Unknown
        }
        _ => Write::First(
            lookup(RENAMED, op).unwrap_or_else(|| OpName::new("aten", &variant, &op.overload)),
        ),
    }
}

/// What an op with statistics of earlier inputs writes into: these in training, nothing otherwise.
/// `None` for other ops.
fn statistics(node: &Node) -> Option<Write> {
    let name = &*node.target.name;
    let statistics = match name {
        "batch_norm"
        | "native_batch_norm"
        | "_native_batch_norm_legit"
        | "_batch_norm_with_update"
        | "cudnn_batch_norm"
        | "miopen_batch_norm" => Statistics::Batch,
        "instance_norm" => Statistics::Instance,
        "fused_moving_avg_obs_fake_quant" | "_fused_moving_avg_obs_fq_helper" => {
            return Some(Write::Statistics(Statistics::Observer));
        }
        _ => return None,
    };
    let training = ["training", "use_input_stats"].iter().find_map(|a| node.arg(a));
    let kept = node.arg("running_mean").and_then(Argument::name).is_some();
    Some(match training {
        Some(Argument::Bool(true)) if kept => Write::Statistics(statistics),
        None if kept && name == "_batch_norm_with_update" => Write::Statistics(statistics),
        _ => Write::None,
    })
}

/// Whether a node has tensors and no result at all.
fn returns_nothing(node: &Node) -> bool {
    let tensor = |a: &Argument| matches!(a, Argument::Tensor(_) | Argument::Tensors(_));
    node.output_names().is_empty() && node.args.iter().any(|a| tensor(&a.value))
}

/// What a table has for `NAME.OVERLOAD`.
fn lookup(table: &[(&str, &str)], op: &OpName) -> Option<OpName> {
    let full = || op.name.bytes().chain([b'.']).chain(op.overload.bytes());
    let at = table.binary_search_by(|(from, _)| from.bytes().cmp(full())).ok()?;
    let (name, overload) = table.get(at)?.1.split_once('.')?;
    Some(OpName::new("aten", name, overload))
}

fn out_variant(op: &OpName) -> Option<OpName> {
    lookup(OUT, op).or_else(|| {
        let overload = match &*op.overload {
            "out" => "default",
            overload => overload.strip_suffix("_out")?,
        };
        Some(OpName::new("aten", &op.name, overload))
    })
}

/// The functional name of an in-place operator: `add` for `add_`, `__and__` for `__iand__`. `None`
/// for other names.
fn variant(name: &str) -> Option<String> {
    if name.ends_with("__") {
        let bitwise = ["__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"];
        let of = name.strip_prefix("__i")?;
        return bitwise.contains(&name).then(|| format!("__{of}"));
    }
    name.strip_suffix('_').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functional_variant_has_the_name_without_its_mark() {
        for (name, expected) in [
            ("add_", Some("add")),
            ("index_put_", Some("index_put")),
            ("__iand__", Some("__and__")),
            ("__and__", None),
            ("__invert__", None),
            ("add", None),
        ] {
            assert_eq!(variant(name).as_deref(), expected);
        }
    }

    #[test]
    fn overloads() {
        for (target, expected) in [
            ("torch.ops.aten.mm.out", "aten.mm.default"),
            ("torch.ops.aten.add.out", "aten.add.Tensor"),
            ("torch.ops.aten.where.self_out", "aten.where.self"),
            ("torch.ops.aten.max.dim_max", "aten.max.dim"),
        ] {
            let variant = out_variant(&OpName::parse(target));
            assert_eq!(variant.map(|t| t.to_string()).as_deref(), Some(expected));
        }
        assert_eq!(out_variant(&OpName::parse("torch.ops.aten.max.dim")), None);
    }

    #[test]
    fn the_tables_are_sorted() {
        assert!(RENAMED.is_sorted() && OUT.is_sorted());
        assert!(VIEWING.is_sorted() && NO_VARIANT.is_sorted());
    }
}
