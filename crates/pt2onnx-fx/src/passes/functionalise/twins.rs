//! Operators that write into an argument, and their out-of-place twins.

use crate::graph::{Argument, Node, OpName};

/// What a node does to its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Nothing, as far as is known.
    None,
    /// It changes no data, only what autograd knows: the result is its argument. `detach_` becomes `detach`.
    Same(OpName),
    /// It writes into its first argument and returns it; the operator that returns the new value instead.
    First(OpName),
    /// It writes, but there is no twin that is known.
    Unknown,
}

/// What `node` writes. Batch normalisation in training mode updates its running statistics, which its schema does
/// not say: it is not seen as a write, and the statistics are not followed.
pub(super) fn write(node: &Node) -> Write {
    let op = &node.target;
    if &*op.namespace != "aten" || !op.is_operator() {
        return Write::None;
    }
    let out = &*op.overload == "out" || op.overload.ends_with("_out");
    if out || node.arg("out").is_some() {
        return Write::Unknown;
    }
    let Some(twin) = twin(&op.name) else {
        return Write::None;
    };
    match &*op.name {
        // Sizes and storages are replaced: no value would say that.
        "resize_" | "resize_as_" | "resize_as_sparse_" | "set_" | "as_strided_" | "swap_" => {
            Write::Unknown
        }
        "detach_" => Write::Same(OpName::new("aten", "detach", "default")),
        "requires_grad_" | "retain_grad" => Write::Same(OpName::new("aten", "alias", "default")),
        _ if !matches!(
            node.args.first().map(|a| &a.value),
            Some(Argument::Tensor(_))
        ) =>
        {
            Write::Unknown
        }
        "normal_" => Write::First(OpName::new("aten", "normal_functional", "default")),
        _ => Write::First(OpName::new("aten", &twin, &op.overload)),
    }
}

/// `add` of `add_`, `__and__` of `__iand__`; none for names that say nothing of writing.
fn twin(name: &str) -> Option<String> {
    if name.ends_with("__") {
        let bitwise = [
            "__iand__",
            "__ior__",
            "__ixor__",
            "__ilshift__",
            "__irshift__",
        ];
        let of = name.strip_prefix("__i")?;
        return bitwise.contains(&name).then(|| format!("__{of}"));
    }
    name.strip_suffix('_').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::twin;

    #[test]
    fn twins() {
        for (name, expected) in [
            ("add_", Some("add")),
            ("index_put_", Some("index_put")),
            ("__iand__", Some("__and__")),
            ("__and__", None),
            ("__invert__", None),
            ("add", None),
        ] {
            assert_eq!(twin(name).as_deref(), expected);
        }
    }
}
