//! Strides of results, where PyTorch's rules tell them. They say whether `contiguous` and `reshape` are copies, which matters if someone
//! writes into the result. Where they are not known, they are left out.

use super::{Interp, graph::contiguous};
use pt2onnx_fx::{Argument, MemoryFormat, Name, Node, SymArg, TensorMeta};
use pt2onnx_symbolic::Expr;

/// Operators whose results are contiguous if the dimensions of all of their arguments are stored in their order. Sorted.
const CONTIGUOUS: &[&str] = &[
    "__and__",
    "__lshift__",
    "__or__",
    "__rshift__",
    "__xor__",
    "_adaptive_avg_pool2d",
    "_convolution",
    "_softmax",
    "_to_copy",
    "abs",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "batch_norm",
    "bernoulli",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bmm",
    "cat",
    "ceil",
    "celu",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "concat",
    "constant_pad_nd",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "copysign",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "deg2rad",
    "diagonal_scatter",
    "div",
    "divide",
    "dropout",
    "elu",
    "embedding",
    "empty",
    "empty_like",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "eye",
    "flip",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "full",
    "full_like",
    "gather",
    "ge",
    "gelu",
    "greater",
    "greater_equal",
    "group_norm",
    "gt",
    "hann_window",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "instance_norm",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "layer_norm",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "lift_fresh_copy",
    "linear",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "mm",
    "mul",
    "multiply",
    "mv",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "pixel_shuffle",
    "pow",
    "prelu",
    "prod",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "reciprocal",
    "reflection_pad1d",
    "reflection_pad2d",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "replication_pad1d",
    "replication_pad2d",
    "rms_norm",
    "round",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "select_scatter",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "slice_scatter",
    "softmax",
    "softplus",
    "softshrink",
    "sort",
    "sqrt",
    "square",
    "stack",
    "std",
    "sub",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "threshold",
    "topk",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "var",
    "where",
    "xlogy",
    "zeros",
    "zeros_like",
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
        let known = CONTIGUOUS.binary_search(&name).is_ok()
            || name == "matmul" && matmul_is_contiguous(node, tensor)
            || name == "index" && from_the_front(node);
        let order = node.arg("memory_format");
        let ordered = matches!(
            order,
            None | Some(
                Argument::None
                    | Argument::MemoryFormat(MemoryFormat::Contiguous | MemoryFormat::Preserve)
            )
        );
        let plain = |name: Name| tensor(&name).is_none_or(|meta| self.is_in_order(meta));
        // Only tensors of images and volumes have other memory formats.
        let joined = matches!(name, "cat" | "concat") && !matches!(result.sizes.len(), 4 | 5);
        match joined || known && ordered && node.input_names().into_iter().all(plain) {
            true => contiguous(&result.sizes),
            false => Vec::new(),
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
                _ => unknown,
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
    use super::{CONTIGUOUS, VIEWS};

    #[test]
    fn the_lists_are_sorted() {
        assert!(CONTIGUOUS.is_sorted() && VIEWS.is_sorted());
    }
}
