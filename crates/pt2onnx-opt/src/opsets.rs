//! The opsets that models can be written for and optimised at.

use pt2onnx_ir::schema::{CANONICAL_OPSET, NEWEST_OPSET};
use std::ops::RangeInclusive;

/// The opsets that [`legalise`](crate::legalise) can write.
pub const OPSETS: RangeInclusive<u32> = 7..=CANONICAL_OPSET;

/// The opsets that the optimiser supports. Before 7, operators broadcast in another way; newer ones are not known yet.
pub const OPTIMISED_OPSETS: RangeInclusive<u32> = 7..=NEWEST_OPSET;
