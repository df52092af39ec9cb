//! Lists the fusions that the standard passes run.

mod activation;
mod attention;
mod batch_norm;
mod broadcast;
mod cache;
mod channels;
mod grid;
mod joined;
mod linear;
mod multi_head;
mod normalization;
mod padding;
mod projections;
mod quotients;
mod rotary;
mod scalars;
mod scaled;
mod split;
mod squares;

pub(crate) use activation::{clip_fusions, gelu_fusions, hard_swish_fusions};
pub(crate) use attention::attention_fusions;
pub(crate) use batch_norm::batch_norm_fusions;
pub(crate) use cache::cache;
pub(crate) use channels::{channel_fusions, factor_fusions};
pub(crate) use grid::grid_fusions;
pub(crate) use joined::run as join;
pub(crate) use linear::gemm_fusions;
pub(crate) use multi_head::multi_head_fusions;
pub(crate) use normalization::{instance_norm_fusions, layer_norm_fusions, rms_norm_fusions};
pub(crate) use padding::pad_fusions;
pub(crate) use projections::run as projections;
pub(crate) use quotients::quotient_fusions;
pub(crate) use rotary::rotary_fusions;
pub(crate) use scalars::scalar_fusions;
pub(crate) use split::run as split;
pub(crate) use squares::square_fusions;
