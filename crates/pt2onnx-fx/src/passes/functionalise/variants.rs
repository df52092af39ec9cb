//! Operators that write into an argument, and their functional variants.

use crate::graph::{Argument, Node, OpName};
use pt2onnx_schemas::{Variant, Writes, functional_name};

/// The effect of a node on its arguments.
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

/// Operators of other libraries, and the argument that they write into and may return.
static WRITING: &[(&str, &str, usize)] = &[("torchaudio", "_lfilter_core_loop", 2)];

/// The effect of a node, and its functional variant.
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
    if let Some(write) = special(op) {
        return write;
    }
    let target = |v: &Variant| {
        let overload = if v.overload.is_empty() { "default" } else { v.overload };
        OpName::new("aten", v.name, overload)
    };
    let into_tensor = matches!(node.args.first().map(|a| &a.value), Some(Argument::Tensor(_)));
    let writes = pt2onnx_schemas::writes(op.schema_name());
    if let Some(Writes::Out(Some(variant))) = writes {
        return Write::Outs(target(&variant));
    }
    if let Some(write) = statistics(node) {
        return write;
    }
    match writes {
        Some(Writes::First(Some(variant))) if variant.is_view => Write::View(target(&variant)),
        Some(Writes::First(Some(variant))) if into_tensor => Write::First(target(&variant)),
        Some(Writes::First(_) | Writes::Out(_)) => Write::Unknown,
        Some(Writes::Other) => Write::None,
        // An op of another version of PyTorch may be in place by its name.
        None => match functional_name(&op.name) {
            Some(name) if into_tensor => Write::First(OpName::new("aten", &name, &op.overload)),
            Some(_) => Write::Unknown,
            None => Write::None,
        },
    }
}

/// Effects that schemas do not declare.
fn special(op: &OpName) -> Option<Write> {
    let aten = |name: &str| OpName::new("aten", name, "default");
    Some(match (&*op.name, &*op.overload) {
        ("detach_", _) => Write::Same(aten("detach")),
        ("requires_grad_", _) => Write::Same(aten("alias")),
        ("fill_diagonal_", _) => Write::FillDiagonal,
        ("resize_" | "resize_as_", _) => Write::Resize,
        ("set_data" | "shallow_copy_data_", _) | ("set_", "source_Tensor") => Write::Replace,
        ("normal_", _) => Write::First(aten("normal_functional")),
        ("normal", "out") => Write::Outs(aten("normal_functional")),
        // Their variants are of sparse tensors, or return something else.
        (
            "_coalesced_"
            | "_index_put_impl_"
            | "_resize_output_"
            | "copy_sparse_to_sparse_"
            | "resize_as_sparse_"
            | "set_"
            | "sparse_resize_"
            | "sparse_resize_and_clear_",
            _,
        ) => Write::Unknown,
        _ => return None,
    })
}

/// The effect of an op with running statistics: it writes them in training. `None` for other ops.
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
