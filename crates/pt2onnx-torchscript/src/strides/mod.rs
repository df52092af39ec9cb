//! Strides of results, where PyTorch's rules give them: they decide whether `contiguous` and
//! `reshape` are copies, which matters for writes.

mod orders;
mod pointwise;

use crate::{
    eval::Evaluator,
    strides::orders::{Order, order_of},
};
use pt2onnx_fx::{
    Argument, MemoryFormat, Name, Node, TensorMeta, ValueMeta,
    strides::{self, contiguous},
    views::Alias,
};
use pt2onnx_symbolic::{Expr, Func};
use std::sync::Arc;

impl Evaluator<'_> {
    /// Whether all elements of a tensor follow each other in order; `None` if that is not known.
    pub(crate) fn is_contiguous(&self, meta: &TensorMeta) -> Option<bool> {
        strides::is_contiguous(meta, self.constraints())
    }

    /// Whether a tensor is in the order of a memory format, as a condition on its sizes; `None` if
    /// its strides are not known.
    pub(crate) fn is_in_format(&self, meta: &TensorMeta, format: i64) -> Option<Expr> {
        if !strides::has_strides(meta) {
            return None;
        }
        let Some(order) = order_in_memory(format, meta.sizes.len()) else {
            return Some(Expr::bool(false));
        };
        let is = |e: &Expr, value: &Expr| Expr::call(Func::Eq, vec![e.clone(), value.clone()]);
        let (mut next, mut all) = (Expr::ONE, Vec::with_capacity(order.len()));
        for (size, stride) in
            order.iter().filter_map(|&d| meta.sizes.get(d).zip(meta.strides.get(d)))
        {
            // The stride of a dimension of one element says nothing.
            all.push(Expr::call(Func::Or, vec![is(size, &Expr::ONE), is(stride, &next)]));
            next = &next * size;
        }
        let in_order = Expr::call(Func::And, all);
        // The sizes of a tensor in the plain order that has no elements do not matter.
        Some(match format {
            CHANNELS_LAST | CHANNELS_LAST_3D => in_order,
            _ if self.constraints().prove_ge(&next, &Expr::ONE) => in_order,
            _ => Expr::call(Func::Or, vec![is(&next, &Expr::ZERO), in_order]),
        })
    }

    /// Adds the known strides of the results of a node. `shared` says which of them are views.
    pub(crate) fn lay_out(&mut self, node: &Node, shared: &[Alias]) {
        // In the order of the results.
        let mut shared = shared.iter().peekable();
        for name in node.output_names() {
            let view = shared.next_if(|shared| shared.result == name);
            let Ok(meta) = self.meta(&name) else { continue };
            if strides::has_strides(meta) {
                continue;
            }
            let strides = self.strides_of(node, &name, meta, view);
            if let Some(ValueMeta::Tensor(meta)) = self.state.facts.values.get_mut(&name) {
                Arc::make_mut(meta).strides = strides;
            }
        }
    }

    /// Whether dimensions are stored in their order, maybe with gaps, as in a slice.
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

    /// The strides of a result of a node; none if they are not known.
    fn strides_of(
        &self,
        node: &Node,
        result: &Name,
        meta: &TensorMeta,
        view: Option<&Alias>,
    ) -> Vec<Expr> {
        let tensor = |name: &Name| self.meta(name).ok();
        if let Some(written) = self.memory.write_base.get(result).and_then(tensor) {
            return written.strides.clone();
        }
        if &*node.target.namespace != "aten" {
            return Vec::new();
        }
        let name = &*node.target.name;
        // The result of `contiguous` is in order, be it a view or not.
        if let Some(shared) = view.filter(|_| name != "contiguous") {
            let strides = |base| shared.view.strides(base, meta, self.constraints());
            return tensor(&shared.base).and_then(strides).unwrap_or_default();
        }
        let order = match order_of(name) {
            Some(order) => order,
            _ if name == "matmul" && matmul_is_contiguous(node, tensor) => Order::Own,
            _ if name == "index" && from_the_front(node) => Order::Ordered,
            _ => return Vec::new(),
        };
        let order = match node.arg("memory_format") {
            None | Some(Argument::None | Argument::MemoryFormat(MemoryFormat::Preserve)) => order,
            Some(Argument::MemoryFormat(MemoryFormat::Contiguous)) => Order::Own,
            Some(Argument::MemoryFormat(format)) => {
                let is_last = *format == MemoryFormat::ChannelsLast;
                let format = if is_last { CHANNELS_LAST } else { CHANNELS_LAST_3D };
                let order = order_in_memory(format, meta.sizes.len());
                return order.map(|order| ordered(&meta.sizes, &order)).unwrap_or_default();
            }
            _ => return Vec::new(),
        };
        let named = node.input_names();
        let operands: Vec<&TensorMeta> = named.iter().filter_map(tensor).collect();
        let in_order = || operands.iter().all(|operand| self.is_in_order(operand));
        match order {
            Order::Own => contiguous(&meta.sizes),
            Order::Images if !matches!(meta.sizes.len(), 4 | 5) => contiguous(&meta.sizes),
            _ if in_order() => contiguous(&meta.sizes),
            Order::Operands => self.pointwise_strides(&operands, &meta.sizes).unwrap_or_default(),
            Order::Images | Order::Ordered => Vec::new(),
        }
    }
}

/// `torch.channels_last` and `torch.channels_last_3d`, as numbers.
const CHANNELS_LAST: i64 = 2;
const CHANNELS_LAST_3D: i64 = 3;

/// The dimensions in the order of a memory format, innermost first, if it has one.
fn order_in_memory(format: i64, rank: usize) -> Option<Vec<usize>> {
    match (format, rank) {
        (CHANNELS_LAST, 4) => Some(vec![1, 3, 2, 0]),
        (CHANNELS_LAST_3D, 5) => Some(vec![1, 4, 3, 2, 0]),
        (CHANNELS_LAST | CHANNELS_LAST_3D, _) => None,
        _ => Some((0..rank).rev().collect()),
    }
}

/// The strides of a new tensor in this order of dimensions, the innermost one first.
fn ordered(sizes: &[Expr], order: &[usize]) -> Vec<Expr> {
    let mut strides = sizes.to_vec();
    let mut step = Expr::ONE;
    for &dim in order {
        strides[dim] = step.clone();
        step = step * &sizes[dim];
    }
    strides
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
