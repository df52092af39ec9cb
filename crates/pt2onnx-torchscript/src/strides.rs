//! Strides of results, where PyTorch's rules give them: they decide whether `contiguous` and
//! `reshape` are copies, which matters for writes.

use crate::eval::Evaluator;
use pt2onnx_fx::{
    Argument, MemoryFormat, Name, Node, TensorMeta, ValueMeta,
    strides::{self, contiguous},
    views::Alias,
};
use pt2onnx_symbolic::{Expr, Func};
use rustc_hash::FxHashMap;
use std::{
    cmp::Ordering,
    sync::{Arc, LazyLock},
};

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
        let order = match ORDERS.get(name) {
            Some(order) => *order,
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

    /// The strides of a new tensor whose dimensions are in the order of the operands', if it is
    /// known.
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
        Some(ordered(sizes, &order))
    }

    /// Compares the steps of two dimensions in the first operand that decides, if it is known.
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

    /// Which number is larger; `None` if that is not known. Those that may be equal differ: the
    /// dimension between them has one element then, so that its place does not matter.
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

/// The order in memory of the dimensions of a new tensor.
#[derive(Clone, Copy)]
enum Order {
    /// Contiguous.
    Own,
    /// Contiguous; images and volumes may be in the order of the operands'.
    Images,
    /// Contiguous if the dimensions of all operands are stored in their order.
    Ordered,
    /// The order of the operands, as for operators on elements.
    Operands,
}

/// The operators of each order.
const OPERATORS: &[(Order, &str)] = &[
    (
        Order::Own,
        "_softmax adaptive_avg_pool1d addbmm addmm addmv addr all amax amin any arange argmax \
         argmin baddbmm bernoulli block_diag bmm bucketize cdist combinations contiguous conv1d \
         cosine_similarity cov cross cummax cummin cumprod cumsum diag_embed embedding empty \
         eye flatten full gather hann_window histc index_add index_copy index_reduce \
         index_select inner instance_norm kthvalue layer_norm linalg_cross linalg_vander linear \
         linspace log_sigmoid log_softmax logcumsumexp logsumexp masked_fill masked_scatter \
         masked_select max_pool1d mean median mm mode mv nanmean nanmedian nanquantile nansum \
         new_empty new_full new_ones new_zeros norm one_hot ones outer prod quantile rand \
         randint randn ravel renorm repeat repeat_interleave reshape reshape_as scalar_tensor \
         scatter scatter_add scatter_reduce searchsorted softmax std sum take take_along_dim \
         tensordot tile topk trace tril tril_indices triu triu_indices vander var zeros",
    ),
    (
        Order::Images,
        "batch_norm cat column_stack concat constant_pad_nd dstack group_norm hstack pad \
         rms_norm roll row_stack stack upsample_bicubic2d upsample_bilinear2d upsample_linear1d \
         upsample_nearest1d upsample_nearest2d vstack",
    ),
    (
        Order::Ordered,
        "_adaptive_avg_pool2d _convolution adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d \
         avg_pool2d avg_pool3d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d \
         convolution diagonal_scatter isclose lift_fresh_copy max max_pool2d \
         max_pool2d_with_indices max_pool3d min pixel_shuffle reflection_pad1d reflection_pad2d \
         replication_pad1d replication_pad2d select_scatter slice_scatter",
    ),
    (
        Order::Operands,
        "__and__ __lshift__ __or__ __rshift__ __xor__ _to_copy abs absolute acos acosh add \
         addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh argsort \
         asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu \
         clamp clamp_max clamp_min clip clone complex copysign cos cosh deg2rad digamma div \
         divide dropout elu empty_like eq erf erfc erfinv exp exp2 expm1 fix flip fliplr flipud \
         float_power floor floor_divide fmax fmin fmod frac full_like gcd ge gelu greater \
         greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 \
         index_fill isfinite isinf isnan isneginf isposinf lcm ldexp le leaky_relu lerp less \
         less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not \
         logical_or logical_xor logit lt maximum minimum mish mul multiply nan_to_num ne neg \
         negative nextafter not_equal ones_like polar pow prelu rad2deg rand_like randn_like \
         reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu \
         sin sinc sinh softplus softshrink sort special_expit sqrt square sub subtract tan tanh \
         tanhshrink threshold to true_divide trunc type_as where xlogy zeros_like",
    ),
];

static ORDERS: LazyLock<FxHashMap<&str, Order>> = LazyLock::new(|| {
    let operators = |(order, names): &(Order, &'static str)| {
        let order = *order;
        names.split_whitespace().map(move |name| (name, order))
    };
    OPERATORS.iter().flat_map(operators).collect()
});
