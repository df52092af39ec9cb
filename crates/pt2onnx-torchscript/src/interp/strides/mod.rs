//! Strides of results, where PyTorch's rules tell them. They say whether `contiguous` and `reshape` are copies, which matters if someone
//! writes into the result. Where they are not known, they are left out.

mod orders;
mod pointwise;
mod views;

use super::{Interp, graph::contiguous};
use orders::{ORDERS, Order};
use pt2onnx_fx::{Argument, MemoryFormat, Name, Node, TensorMeta};
use pt2onnx_symbolic::Expr;

impl Interp<'_> {
    /// Whether all elements of a tensor follow each other in order; `None` if that is not known.
    pub(super) fn is_contiguous(&self, meta: &TensorMeta) -> Option<bool> {
        if meta.strides.len() != meta.sizes.len() {
            return None;
        }
        let (mut next, mut all) = (Expr::ONE, Some(true));
        for (size, stride) in meta.sizes.iter().zip(&meta.strides).rev() {
            // The stride of a dimension of one element says nothing.
            if size.as_int() == Some(1) {
                continue;
            }
            match self.constraints().prove_eq(stride, &next) {
                Some(true) => {}
                Some(false) if self.constraints().prove_gt(size, &Expr::ONE) => return Some(false),
                _ => all = None,
            }
            next = next * size;
        }
        all
    }

    /// Whether the dimensions of a tensor are stored in their order, with or without gaps, as those of a slice of a contiguous tensor.
    fn is_in_order(&self, meta: &TensorMeta) -> bool {
        let mut next = Expr::ONE;
        let long =
            meta.sizes.iter().zip(&meta.strides).rev().filter(|(n, _)| n.as_int() != Some(1));
        meta.strides.len() == meta.sizes.len()
            && long.into_iter().all(|(size, stride)| {
                let fits = self.constraints().prove_ge(stride, &next);
                next = stride * size;
                fits
            })
    }

    /// The strides of the result of a node with the number `at`; none if they are not known. `whole` is the tensor that the node writes into, if the result is it.
    pub(super) fn strides_of(
        &self,
        node: &Node,
        at: usize,
        result: &TensorMeta,
        whole: Option<&Name>,
    ) -> Vec<Expr> {
        let tensor = |name: &Name| self.meta(name).ok();
        if let Some(written) = whole.and_then(tensor) {
            return written.strides.clone();
        }
        if &*node.target.namespace != "aten" {
            return Vec::new();
        }
        let viewed = match node.args.first().map(|arg| &arg.value) {
            Some(Argument::Tensor(name)) => {
                tensor(name).and_then(|base| self.view_strides(node, base, result))
            }
            Some(Argument::Tensors(names)) => {
                let base = names.get(at).and_then(tensor);
                base.and_then(|base| self.view_strides_of_list(node, at, base, result))
            }
            _ => None,
        };
        if let Some(strides) = viewed {
            return strides;
        }
        let name = &*node.target.name;
        let order = match ORDERS.binary_search_by_key(&name, |(op, _)| op) {
            Ok(at) => ORDERS[at].1,
            _ if name == "matmul" && matmul_is_contiguous(node, tensor) => Order::Own,
            _ if name == "index" && from_the_front(node) => Order::Ordered,
            _ => return Vec::new(),
        };
        let order = match node.arg("memory_format") {
            None | Some(Argument::None | Argument::MemoryFormat(MemoryFormat::Preserve)) => order,
            Some(Argument::MemoryFormat(MemoryFormat::Contiguous)) => Order::Own,
            _ => return Vec::new(),
        };
        let named = node.input_names();
        let operands: Vec<&TensorMeta> = named.iter().filter_map(tensor).collect();
        let in_order = || operands.iter().all(|meta| self.is_in_order(meta));
        match order {
            Order::Own => contiguous(&result.sizes),
            Order::Images if !matches!(result.sizes.len(), 4 | 5) => contiguous(&result.sizes),
            _ if in_order() => contiguous(&result.sizes),
            Order::Operands => self.pointwise_strides(&operands, &result.sizes).unwrap_or_default(),
            Order::Images | Order::Ordered => Vec::new(),
        }
    }
}

/// Whether `matmul` does not compute the transposed product.
fn matmul_is_contiguous<'m>(node: &Node, tensor: impl Fn(&Name) -> Option<&'m TensorMeta>) -> bool {
    let rank = |name: &str| match node.arg(name) {
        Some(Argument::Tensor(name)) => tensor(name).map(|meta| meta.sizes.len()),
        _ => None,
    };
    rank("self").zip(rank("other")).is_some_and(|(a, b)| a >= b)
}

/// Whether an index has its tensors before all dimensions that it takes whole.
fn from_the_front(node: &Node) -> bool {
    match node.arg("indices") {
        Some(Argument::Tensors(_)) => true,
        Some(Argument::OptionalTensors(items)) => {
            let leading = items.iter().take_while(|item| item.is_some()).count();
            items.iter().skip(leading).all(Option::is_none)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{ORDERS, views::VIEWS};

    #[test]
    fn the_lists_are_sorted() {
        assert!(ORDERS.is_sorted_by_key(|(op, _)| op) && VIEWS.is_sorted());
    }
}
