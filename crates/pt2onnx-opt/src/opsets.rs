//! The opsets that models can be written for and optimised at.

use pt2onnx_ir::schema::{CANONICAL_OPSET, NEWEST_OPSET};
use std::ops::RangeInclusive;

/// The opsets that [`legalise`](crate::legalise) can write.
pub const OPSETS: RangeInclusive<u32> = 7..=CANONICAL_OPSET;

/// The opsets that the optimiser supports. Before 7, operators broadcast in another way.
pub const OPTIMISED_OPSETS: RangeInclusive<u32> = 7..=NEWEST_OPSET;

/// The opsets that [`convert`](crate::convert) can read: all of them.
pub const CONVERTED_OPSETS: RangeInclusive<u32> = 1..=NEWEST_OPSET;

/// The first opset whose `Split` and `Unsqueeze` take sizes and axes as inputs.
pub(crate) const SIZES_AS_INPUTS: u32 = 13;
