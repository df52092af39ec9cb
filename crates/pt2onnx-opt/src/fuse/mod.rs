//! Fusions, and passes that restructure layers: each file has the static of its pass.

pub(crate) mod attention;
mod attention_cache;
pub(crate) mod batch_norm;
pub(crate) mod branchwise_rms_norm;
mod broadcast;
pub(crate) mod causal_conv;
pub(crate) mod clip;
pub(crate) mod commute_reshape_transpose;
mod concat_columns;
pub(crate) mod conv1d_to_conv2d;
pub(crate) mod decoder_attention;
#[cfg(test)]
pub(crate) mod double_relu;
pub(crate) mod floor_division;
pub(crate) mod fold_input_scale;
pub(crate) mod fold_scale_into_weight;
pub(crate) mod gather_quantized;
pub(crate) mod gather_rows;
pub(crate) mod gelu;
pub(crate) mod gemm;
pub(crate) mod grid;
pub(crate) mod group_query_attention;
pub(crate) mod hard_swish;
pub(crate) mod instance_norm;
pub(crate) mod layer_norm;
mod lazy_scale;
pub(crate) mod linear_attention;
pub(crate) mod merge_linears;
pub(crate) mod multi_head;
mod normalization;
pub(crate) mod packed_qkv;
pub(crate) mod pad;
mod per_channel;
pub(crate) mod projections;
pub(crate) mod reassociate;
pub(crate) mod reduce_stack;
pub(crate) mod reduce_sum_square;
pub(crate) mod rms_norm;
pub(crate) mod rotary;
mod rotary_tables;
pub(crate) mod simplified_layer_norm;
mod sink_attention;
pub(crate) mod skip_rms_norm;
pub(crate) mod softmax_before_transpose;
pub(crate) mod split;
pub(crate) mod split_linears;

use crate::{
    Match, Measure,
    fusion::{Because, Fusion, Fusions, NoFusion, Patterns},
    pass::{Pass, Phase, Run},
    slices,
};
