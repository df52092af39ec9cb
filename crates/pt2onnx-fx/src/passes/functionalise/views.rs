//! ATen's operators whose result may be the memory of an argument.

use crate::graph::{Argument, Graph, Node};

/// How a result relates to the argument it may share memory with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alias {
    /// The very same tensor: same sizes, strides and memory.
    Same,
    /// A view of it, or, depending on strides or types, a copy.
    View,
}
use Alias::{Same, View};

/// By name, whatever the overload. The tensor aliased is the first argument; where that is a list, each result
/// aliases its own member. Sorted.
static ALIASING: &[(&str, Alias)] = &[
    ("_reshape_alias", View),
    ("_reshape_copy", View),
    ("_unsafe_view", View),
    ("adjoint", View),
    ("alias", Same),
    ("alpha_dropout", View),
    ("as_strided", View),
    ("atleast_1d", View),
    ("atleast_2d", View),
    ("atleast_3d", View),
    ("broadcast_tensors", View),
    ("broadcast_to", View),
    ("ccol_indices", View),
    ("chunk", View),
    ("col_indices", View),
    ("conj", View),
    ("contiguous", View),
    ("crow_indices", View),
    ("detach", Same),
    ("diagonal", View),
    ("dropout", View),
    ("dsplit", View),
    ("einsum", View),
    ("expand", View),
    ("expand_as", View),
    ("feature_alpha_dropout", View),
    ("feature_dropout", View),
    ("flatten", View),
    ("hsplit", View),
    ("imag", View),
    ("indices", View),
    ("lift", Same),
    ("lift_fresh", Same),
    ("linalg_diagonal", View),
    ("mH", View),
    ("mT", View),
    ("matrix_H", View),
    ("meshgrid", View),
    ("moveaxis", View),
    ("movedim", View),
    ("narrow", View),
    ("numpy_T", View),
    ("permute", View),
    ("pin_memory", View),
    ("positive", Same),
    ("ravel", View),
    ("real", View),
    ("reshape", View),
    ("reshape_as", View),
    ("resolve_conj", View),
    ("resolve_neg", View),
    ("row_indices", View),
    ("select", View),
    ("slice", View),
    ("slice_inverse", View),
    ("split", View),
    ("split_with_sizes", View),
    ("squeeze", View),
    ("sum_to_size", View),
    ("swapaxes", View),
    ("swapdims", View),
    ("t", View),
    ("tensor_split", View),
    ("to", View),
    ("transpose", View),
    ("type_as", View),
    ("unbind", View),
    ("unflatten", View),
    ("unfold", View),
    ("unsafe_chunk", View),
    ("unsafe_split", View),
    ("unsafe_split_with_sizes", View),
    ("unsqueeze", View),
    ("values", View),
    ("view", View),
    ("view_as", View),
    ("view_as_complex", View),
    ("view_as_real", View),
    ("vsplit", View),
];

/// Whether results of `node` may share memory with its first argument.
pub(super) fn aliasing(node: &Node, graph: &Graph) -> Option<Alias> {
    if &*node.target.namespace != "aten" {
        return None;
    }
    let at = ALIASING.binary_search_by(|(name, _)| name.cmp(&&*node.target.name));
    let (_, alias) = ALIASING.get(at.ok()?)?;
    let converts = matches!(&*node.target.name, "to" | "type_as") && is_conversion(node, graph);
    (!converts).then_some(*alias)
}

/// Whether a cast or move certainly copies: another type, another device, or `copy=True`.
fn is_conversion(node: &Node, graph: &Graph) -> bool {
    let meta = |arg: Option<&Argument>| graph.tensor(arg?.name()?);
    let from = meta(node.args.first().map(|a| &a.value));
    let to = meta(node.outputs.first());
    let differ = from
        .zip(to)
        .is_some_and(|(from, to)| from.dtype != to.dtype || from.device != to.device);
    differ || node.arg("copy") == Some(&Argument::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::ALIASING;

    #[test]
    fn the_table_is_sorted() {
        assert!(ALIASING.is_sorted_by_key(|(name, _)| name));
    }
}
