//! Strides of results, where PyTorch's rules tell them. They say whether `contiguous` and `reshape` are copies, which matters if someone
//! writes into the result. Where they are not known, they are left out.

use super::{Interp, graph::contiguous};
use pt2onnx_fx::{Argument, MemoryFormat, Name, Node, SymArg, TensorMeta};
use pt2onnx_symbolic::Expr;
use std::cmp::Ordering;

/// The order in memory of the dimensions of a new tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Contiguous.
    Own,
    /// Contiguous; images and volumes may be in the order of the operands'.
    Images,
    /// Contiguous if the dimensions of all operands are stored in their order.
    Ordered,
    /// That of the operands', as for operators on elements.
    Operands,
}

use Order::{Images, Operands, Ordered, Own};

/// Sorted by operator.
const ORDERS: &[(&str, Order)] = &[
    ("__and__", Operands),
    ("__lshift__", Operands),
    ("__or__", Operands),
    ("__rshift__", Operands),
    ("__xor__", Operands),
    ("_adaptive_avg_pool2d", Ordered),
    ("_convolution", Ordered),
    ("_softmax", Own),
    ("_to_copy", Operands),
    ("abs", Operands),
    ("acos", Operands),
    ("acosh", Operands),
    ("adaptive_avg_pool1d", Own),
    ("adaptive_avg_pool2d", Ordered),
    ("adaptive_avg_pool3d", Ordered),
    ("add", Operands),
    ("addbmm", Own),
    ("addcdiv", Operands),
    ("addcmul", Operands),
    ("addmm", Own),
    ("all", Own),
    ("amax", Own),
    ("amin", Own),
    ("any", Own),
    ("arange", Own),
    ("argmax", Own),
    ("argmin", Own),
    ("argsort", Ordered),
    ("asin", Operands),
    ("asinh", Operands),
    ("atan", Operands),
    ("atan2", Operands),
    ("atanh", Operands),
    ("avg_pool1d", Ordered),
    ("avg_pool2d", Ordered),
    ("avg_pool3d", Ordered),
    ("baddbmm", Own),
    ("batch_norm", Images),
    ("bernoulli", Own),
    ("bitwise_and", Operands),
    ("bitwise_not", Operands),
    ("bitwise_or", Operands),
    ("bitwise_xor", Operands),
    ("bmm", Own),
    ("cat", Images),
    ("ceil", Operands),
    ("celu", Operands),
    ("clamp", Operands),
    ("clamp_max", Operands),
    ("clamp_min", Operands),
    ("clip", Operands),
    ("clone", Operands),
    ("concat", Images),
    ("constant_pad_nd", Images),
    ("conv1d", Own),
    ("conv2d", Ordered),
    ("conv3d", Ordered),
    ("conv_transpose1d", Ordered),
    ("conv_transpose2d", Ordered),
    ("conv_transpose3d", Ordered),
    ("convolution", Ordered),
    ("copysign", Operands),
    ("cos", Operands),
    ("cosh", Operands),
    ("cumprod", Own),
    ("cumsum", Own),
    ("deg2rad", Operands),
    ("diagonal_scatter", Ordered),
    ("div", Operands),
    ("divide", Operands),
    ("dropout", Operands),
    ("elu", Operands),
    ("embedding", Own),
    ("empty", Own),
    ("empty_like", Operands),
    ("eq", Operands),
    ("erf", Operands),
    ("erfc", Operands),
    ("exp", Operands),
    ("exp2", Operands),
    ("expm1", Operands),
    ("eye", Own),
    ("flip", Ordered),
    ("float_power", Operands),
    ("floor", Operands),
    ("floor_divide", Operands),
    ("fmax", Operands),
    ("fmin", Operands),
    ("fmod", Operands),
    ("frac", Operands),
    ("full", Own),
    ("full_like", Operands),
    ("gather", Own),
    ("ge", Operands),
    ("gelu", Operands),
    ("greater", Operands),
    ("greater_equal", Operands),
    ("group_norm", Images),
    ("gt", Operands),
    ("hann_window", Own),
    ("hardshrink", Operands),
    ("hardsigmoid", Operands),
    ("hardswish", Operands),
    ("hardtanh", Operands),
    ("hypot", Operands),
    ("index_add", Own),
    ("index_copy", Own),
    ("index_fill", Ordered),
    ("index_select", Own),
    ("instance_norm", Own),
    ("isclose", Ordered),
    ("isfinite", Operands),
    ("isinf", Operands),
    ("isnan", Operands),
    ("layer_norm", Own),
    ("le", Operands),
    ("leaky_relu", Operands),
    ("lerp", Operands),
    ("less", Operands),
    ("less_equal", Operands),
    ("lift_fresh_copy", Ordered),
    ("linear", Own),
    ("linspace", Own),
    ("log", Operands),
    ("log10", Operands),
    ("log1p", Operands),
    ("log2", Operands),
    ("log_sigmoid", Own),
    ("log_softmax", Own),
    ("logaddexp", Operands),
    ("logical_and", Operands),
    ("logical_not", Operands),
    ("logical_or", Operands),
    ("logical_xor", Operands),
    ("logit", Ordered),
    ("logsumexp", Own),
    ("lt", Operands),
    ("masked_fill", Own),
    ("masked_scatter", Ordered),
    ("masked_select", Own),
    ("max", Ordered),
    ("max_pool1d", Own),
    ("max_pool2d", Ordered),
    ("max_pool2d_with_indices", Ordered),
    ("max_pool3d", Ordered),
    ("maximum", Operands),
    ("mean", Own),
    ("min", Ordered),
    ("minimum", Operands),
    ("mish", Operands),
    ("mm", Own),
    ("mul", Operands),
    ("multiply", Operands),
    ("mv", Own),
    ("nan_to_num", Operands),
    ("ne", Operands),
    ("neg", Operands),
    ("negative", Operands),
    ("new_empty", Own),
    ("new_full", Own),
    ("new_ones", Own),
    ("new_zeros", Own),
    ("norm", Own),
    ("not_equal", Operands),
    ("one_hot", Own),
    ("ones", Own),
    ("ones_like", Operands),
    ("outer", Own),
    ("pad", Images),
    ("pixel_shuffle", Ordered),
    ("pow", Operands),
    ("prelu", Operands),
    ("prod", Own),
    ("rad2deg", Operands),
    ("rand", Own),
    ("rand_like", Operands),
    ("randint", Own),
    ("randn", Own),
    ("randn_like", Operands),
    ("reciprocal", Operands),
    ("reflection_pad1d", Ordered),
    ("reflection_pad2d", Ordered),
    ("relu", Operands),
    ("relu6", Operands),
    ("remainder", Operands),
    ("repeat", Own),
    ("replication_pad1d", Ordered),
    ("replication_pad2d", Ordered),
    ("rms_norm", Images),
    ("round", Operands),
    ("rsqrt", Operands),
    ("rsub", Operands),
    ("scalar_tensor", Own),
    ("scatter", Own),
    ("scatter_add", Own),
    ("select_scatter", Ordered),
    ("selu", Operands),
    ("sigmoid", Operands),
    ("sign", Operands),
    ("silu", Operands),
    ("sin", Operands),
    ("sinh", Operands),
    ("slice_scatter", Ordered),
    ("softmax", Own),
    ("softplus", Operands),
    ("softshrink", Operands),
    ("sort", Ordered),
    ("sqrt", Operands),
    ("square", Operands),
    ("stack", Images),
    ("std", Own),
    ("sub", Operands),
    ("subtract", Operands),
    ("sum", Own),
    ("tan", Operands),
    ("tanh", Operands),
    ("threshold", Operands),
    ("to", Operands),
    ("topk", Own),
    ("tril", Own),
    ("tril_indices", Own),
    ("triu", Own),
    ("triu_indices", Own),
    ("true_divide", Operands),
    ("trunc", Operands),
    ("type_as", Operands),
    ("upsample_bicubic2d", Images),
    ("upsample_bilinear2d", Images),
    ("upsample_linear1d", Images),
    ("upsample_nearest1d", Images),
    ("upsample_nearest2d", Images),
    ("var", Own),
    ("where", Operands),
    ("xlogy", Operands),
    ("zeros", Own),
    ("zeros_like", Operands),
];

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

    /// The strides of a result of a node; none if they are not known. `whole` is the tensor that the node writes into, if the result is it.
    pub(super) fn strides_of(
        &self,
        node: &Node,
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
        let base = match node.args.first().map(|arg| &arg.value) {
            Some(Argument::Tensor(name)) => tensor(name),
            _ => None,
        };
        if let Some(base) = base
            && let Some(strides) = self.view_strides(node, base, result)
        {
            return strides;
        }
        let name = &*node.target.name;
        let order = match ORDERS.binary_search_by_key(&name, |(op, _)| op) {
            Ok(at) => ORDERS[at].1,
            _ if name == "matmul" && matmul_is_contiguous(node, tensor) => Own,
            _ if name == "index" && from_the_front(node) => Ordered,
            _ => return Vec::new(),
        };
        let order = match node.arg("memory_format") {
            None | Some(Argument::None | Argument::MemoryFormat(MemoryFormat::Preserve)) => order,
            Some(Argument::MemoryFormat(MemoryFormat::Contiguous)) => Own,
            _ => return Vec::new(),
        };
        let named = node.input_names();
        let operands: Vec<&TensorMeta> = named.iter().filter_map(tensor).collect();
        let in_order = || operands.iter().all(|meta| self.is_in_order(meta));
        match order {
            Own => contiguous(&result.sizes),
            Images if !matches!(result.sizes.len(), 4 | 5) => contiguous(&result.sizes),
            _ if in_order() => contiguous(&result.sizes),
            Operands => self.pointwise_strides(&operands, &result.sizes).unwrap_or_default(),
            Images | Ordered => Vec::new(),
        }
    }

    /// The strides of a new tensor of `sizes` whose dimensions are in the order of the operands', as PyTorch's `TensorIterator` finds
    /// it; `None` if that is not known.
    fn pointwise_strides(&self, operands: &[&TensorMeta], sizes: &[Expr]) -> Option<Vec<Expr>> {
        let broadcast = |operand: &&TensorMeta| {
            let lead = sizes.len().checked_sub(operand.sizes.len())?;
            let mut strides = vec![Expr::ZERO; lead];
            for ((size, stride), wide) in
                operand.sizes.iter().zip(&operand.strides).zip(&sizes[lead..])
            {
                let repeated = size.as_int() == Some(1) && wide.as_int() != Some(1);
                strides.push(if repeated { Expr::ZERO } else { stride.clone() });
            }
            (strides.len() == sizes.len()).then_some(strides)
        };
        let operands: Vec<Vec<Expr>> = operands.iter().map(broadcast).collect::<Option<_>>()?;
        // From the dimension with the smallest steps on.
        let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
        for next in 1..order.len() {
            let mut moved = next;
            for at in (0..next).rev() {
                match self.by_steps(&operands, sizes, order[at], order[moved])? {
                    Ordering::Greater => {
                        order.swap(at, moved);
                        moved = at;
                    }
                    Ordering::Less => break,
                    Ordering::Equal => {}
                }
            }
        }
        let mut strides = sizes.to_vec();
        let mut step = Expr::ONE;
        for dim in order {
            strides[dim] = step.clone();
            step = step * &sizes[dim];
        }
        Some(strides)
    }

    /// Which of two dimensions has the smaller steps in the first operand that tells; `None` if that is not known.
    fn by_steps(
        &self,
        operands: &[Vec<Expr>],
        sizes: &[Expr],
        a: usize,
        b: usize,
    ) -> Option<Ordering> {
        for strides in operands {
            let (x, y) = (&strides[a], &strides[b]);
            if x == &Expr::ZERO || y == &Expr::ZERO {
                continue;
            }
            match self.ordering(x, y)? {
                Ordering::Equal if self.ordering(&sizes[a], &sizes[b])? == Ordering::Greater => {
                    return Some(Ordering::Greater);
                }
                Ordering::Equal => {}
                unequal => return Some(unequal),
            }
        }
        Some(Ordering::Equal)
    }

    /// Which number is larger; `None` if that is not known. Those that may be equal differ: the dimension between them has one element then,
    /// so that its place does not matter.
    fn ordering(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let known = self.constraints();
        if known.prove_eq(a, b) == Some(true) {
            Some(Ordering::Equal)
        } else if known.prove_ge(a, b) {
            Some(Ordering::Greater)
        } else {
            known.prove_ge(b, a).then_some(Ordering::Less)
        }
    }

    /// The strides of what may be a view of `base`; `None` if the operator makes no view.
    fn view_strides(
        &self,
        node: &Node,
        base: &TensorMeta,
        result: &TensorMeta,
    ) -> Option<Vec<Expr>> {
        let plain = self.is_contiguous(base);
        let unknown = Some(Vec::new());
        let rank = base.sizes.len();
        let number = |name: &str, default: i64| match node.arg(name) {
            None => Some(default),
            Some(Argument::Int(i) | Argument::SymInt(SymArg::Value(i))) => Some(*i),
            _ => None,
        };
        let axis = |name: &str, default: i64, rank: usize| counted(number(name, default)?, rank);
        let place = |dim: i64| counted(dim, rank);
        let order = node.arg("memory_format");
        let mut strides = base.strides.clone();
        if strides.len() != rank {
            return VIEWS.binary_search(&&*node.target.name).is_ok().then(Vec::new);
        }
        match &*node.target.name {
            "alias" | "detach" | "lift_fresh" | "positive" | "split" | "split_with_sizes"
            | "chunk" | "tensor_split" | "narrow" => Some(strides),
            "contiguous"
                if matches!(
                    order,
                    None | Some(Argument::MemoryFormat(MemoryFormat::Contiguous))
                ) =>
            {
                // The stride of a dimension of one element says nothing.
                Some(contiguous(&result.sizes))
            }
            "to" | "type_as" if order.is_none() => match plain {
                _ if base.dtype == result.dtype => Some(strides),
                Some(true) => Some(strides),
                _ => None,
            },
            "contiguous" | "to" | "type_as" => unknown,
            "view" if &*node.target.overload == "dtype" => unknown,
            "view" | "reshape" | "flatten" | "unflatten" | "squeeze" | "view_as" | "reshape_as"
            | "ravel"
                if plain == Some(true) =>
            {
                Some(contiguous(&result.sizes))
            }
            "unsqueeze" => {
                let dim = axis("dim", 0, rank + 1)?;
                let new = match (base.sizes.get(dim), base.strides.get(dim)) {
                    (Some(size), Some(stride)) => stride.clone() * size,
                    _ => Expr::ONE,
                };
                strides.insert(dim, new);
                Some(strides)
            }
            "t" | "numpy_T" => Some(strides.into_iter().rev().collect()),
            "mT" | "mH" | "adjoint" | "matrix_H" => {
                strides.swap(rank.checked_sub(2)?, rank.checked_sub(1)?);
                Some(strides)
            }
            "transpose" | "swapaxes" | "swapdims" => {
                let given = |at: usize| match node.args.get(at).map(|arg| &arg.value) {
                    Some(&Argument::Int(dim)) => place(dim),
                    _ => None,
                };
                let (Some(a), Some(b)) = (given(1), given(2)) else { return unknown };
                strides.swap(a, b);
                Some(strides)
            }
            "movedim" | "moveaxis" => {
                let given = |name: &str| match node.arg(name) {
                    Some(&Argument::Int(dim)) => Some(vec![place(dim)?]),
                    Some(Argument::Ints(dims)) => dims.iter().map(|&dim| place(dim)).collect(),
                    _ => None,
                };
                let (Some(from), Some(to)) = (given("source"), given("destination")) else {
                    return unknown;
                };
                let mut others = (0..rank).filter(|dim| !from.contains(dim));
                let source = |dim| match to.iter().position(|&t| t == dim) {
                    Some(at) => from.get(at).copied(),
                    None => others.next(),
                };
                let order: Option<Vec<usize>> = (0..rank).map(source).collect();
                Some(order?.into_iter().filter_map(|dim| strides.get(dim).cloned()).collect())
            }
            "permute" => {
                let Some(Argument::Ints(dims)) = node.arg("dims") else { return unknown };
                let stride = |&dim: &i64| strides.get(place(dim)?).cloned();
                dims.iter().map(stride).collect::<Option<_>>().or(unknown)
            }
            "squeeze" => {
                let among = match node.arg("dim") {
                    None | Some(Argument::None) => (0..rank).collect(),
                    Some(&Argument::Int(dim)) => vec![place(dim)?],
                    Some(Argument::Ints(dims)) => {
                        dims.iter().map(|&dim| place(dim)).collect::<Option<_>>()?
                    }
                    _ => return unknown,
                };
                let left = |dim: &usize| !among.contains(dim) || base.sizes[*dim] != Expr::ONE;
                Some((0..rank).filter(left).map(|dim| strides[dim].clone()).collect())
            }
            "unflatten" => {
                let dim = axis("dim", 0, rank)?;
                let parts =
                    result.sizes.get(dim..(result.sizes.len() + dim + 1).checked_sub(rank)?)?;
                let stride = strides.remove(dim);
                let parts = contiguous(parts).into_iter().map(|step| step * &stride);
                strides.splice(dim..dim, parts);
                Some(strides)
            }
            "diagonal" => {
                let (a, b) = (axis("dim1", 0, rank)?, axis("dim2", 1, rank)?);
                let both = &strides[a] + &strides[b];
                strides.remove(a.max(b));
                strides.remove(a.min(b));
                strides.push(both);
                Some(strides)
            }
            "unfold" => {
                let (dim, step) = (axis("dimension", 0, rank)?, number("step", 1)?);
                let stride = strides.get(dim)?.clone();
                strides[dim] = &stride * step;
                strides.push(stride);
                Some(strides)
            }
            "select" => {
                strides.remove(axis("dim", 0, rank)?);
                Some(strides)
            }
            "unbind" => {
                strides.remove(axis("dim", 0, rank)?);
                Some(strides)
            }
            "slice" => match (axis("dim", 0, rank), number("step", 1)) {
                (Some(dim), Some(step)) => {
                    if let Some(stride) = strides.get_mut(dim) {
                        *stride = &*stride * step;
                    }
                    Some(strides)
                }
                _ => unknown,
            },
            "expand" | "expand_as" | "broadcast_to" => {
                let new = result.sizes.len().checked_sub(rank)?;
                let kept = result.sizes.iter().skip(new).zip(base.sizes.iter().zip(&strides));
                let mut found = vec![Expr::ZERO; new];
                for (size, (old, stride)) in kept {
                    found.push(match self.constraints().prove_eq(size, old) {
                        Some(true) => stride.clone(),
                        _ if old.as_int() == Some(1) => Expr::ZERO,
                        _ => return unknown,
                    });
                }
                Some(found)
            }
            name => VIEWS.binary_search(&name).is_ok().then(Vec::new),
        }
    }
}

/// The number of a dimension, of which a negative one counts from the last.
fn counted(dim: i64, rank: usize) -> Option<usize> {
    let dim = if dim < 0 { dim + i64::try_from(rank).ok()? } else { dim };
    usize::try_from(dim).ok().filter(|&dim| dim < rank)
}

/// Other operators whose results may be views. Sorted.
const VIEWS: &[&str] = &[
    "_reshape_alias",
    "adjoint",
    "alias",
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "broadcast_to",
    "chunk",
    "conj",
    "contiguous",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "imag",
    "lift_fresh",
    "mH",
    "mT",
    "matrix_H",
    "moveaxis",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "positive",
    "ravel",
    "real",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
];

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
    use super::{ORDERS, VIEWS};

    #[test]
    fn the_lists_are_sorted() {
        assert!(ORDERS.is_sorted_by_key(|(op, _)| op) && VIEWS.is_sorted());
    }
}
