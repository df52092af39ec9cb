//! How PyTorch's operators store what they make.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The order in memory of the dimensions of a new tensor.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// Contiguous.
    Own,
    /// Contiguous; images and volumes may be in the order of the operands'.
    Images,
    /// Contiguous if the dimensions of all operands are stored in their order.
    Ordered,
    /// The order of the operands, as for operators on elements.
    Operands,
}

use Order::{Images, Operands, Ordered, Own};

/// The operators of each order.
const OPERATORS: &[(Order, &str)] = &[
    (
        Own,
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
        Images,
        "batch_norm cat column_stack concat constant_pad_nd dstack group_norm hstack pad \
         rms_norm roll row_stack stack upsample_bicubic2d upsample_bilinear2d upsample_linear1d \
         upsample_nearest1d upsample_nearest2d vstack",
    ),
    (
        Ordered,
        "_adaptive_avg_pool2d _convolution adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d \
         avg_pool2d avg_pool3d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d \
         convolution diagonal_scatter isclose lift_fresh_copy max max_pool2d \
         max_pool2d_with_indices max_pool3d min pixel_shuffle reflection_pad1d reflection_pad2d \
         replication_pad1d replication_pad2d select_scatter slice_scatter",
    ),
    (
        Operands,
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

/// The order of what an operator makes, if it is known.
pub(super) fn order_of(operator: &str) -> Option<Order> {
    ORDERS.get(operator).copied()
}
