//! Compresses the weights of ONNX graphs.
//!
//! Layer 3. [`compress`] replaces weights by smaller ones and the nodes that restore them. The new
//! weights are tensors that are computed when they are written ([`pt2onnx_tensor::Compute`]): block
//! by block, on all cores, from the mapped file. [`Compressed::weights`] then has the error of each
//! weight.
//!
//! ```
//! use pt2onnx_compress::{CastWeights, Options, compress};
//! use pt2onnx_ir::Model;
//!
//! let text = r#"<ir_version: 9, opset_import: ["" : 20]>
//! main_graph (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, 2, 3, 4}>
//! { y = MatMul (x, w) }"#;
//! let mut model: Model = text.parse()?;
//! let cast_weights = Some(CastWeights::Float16);
//! compress(&mut model, &Options { cast_weights, min_elements: 1, ..Options::default() })?;
//! assert!(model.to_string().contains("Cast"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_debug_implementations)]

mod activations;
mod balance;
mod block_ops;
mod blocks;
mod bytes;
mod calibration;
mod cast;
mod channel_moments;
mod context;
mod dequantize;
mod dynamic;
mod edit;
mod error;
mod feedback;
mod float16_graph;
mod float32_nodes;
mod float8;
mod histogram;
mod least_squares;
mod mixed;
mod moments;
mod no_effect;
mod numbers;
mod option_text;
mod options;
mod product_inputs;
mod quantise;
mod ranges;
mod recurrent;
mod scheme;
mod static_int8;
mod summary;
mod weight_selection;

pub use activations::activations;
pub use calibration::Observer;
pub use channel_moments::channel_moments;
pub use error::Error;
pub use moments::{ChannelMoments, Moments};
pub use option_text::{OptionText, Spelling};
pub use options::{Calibrated, Calibration, CastWeights, Options, Precision, Quantize};
pub use product_inputs::moments;
pub use pt2onnx_ir as ir;
pub use summary::{Compressed, CompressedWeight};

use blocks::Quantised;
use context::Cx;
use edit::{Edit, NewNode, with_dtype};
use pt2onnx_ir::Model;
use rustc_hash::{FxHashMap, FxHashSet};
use scheme::{Format, Param, Scheme};
use weight_selection::{Axes, Weight};

/// The first opset whose `Cast` has the element type as a number.
const CAST_TO_NUMBER: u32 = 6;

/// Compresses a model of any opset. Functions are left alone.
///
/// # Errors
/// The opset lacks what is asked for (float16 needs opset 6), a name or operator that is given does
/// not occur, or options do not fit together. The model is then partly changed.
pub fn compress(model: &mut Model, options: &Options) -> Result<Compressed, Error> {
    options.check()?;
    options.check_together()?;
    let mut done = Compressed::default();
    if options.is_off() {
        return Ok(done);
    }
    weight_selection::check_patterns(model, options)?;
    let casts = options.precision == Precision::Float16
        || options.cast_weights == Some(CastWeights::Float16);
    if casts && model.opset < CAST_TO_NUMBER {
        let (what, needs, opset) = ("casts".to_owned(), CAST_TO_NUMBER, model.opset);
        return Err(Error::Opset { what, needs, opset });
    }
    let originals = match options.precision {
        Precision::Float16 => float16_graph::convert(model, options)?,
        Precision::Keep => FxHashMap::default(),
    };
    // Constants that quantisation adds, such as scales, do not count.
    let given: FxHashSet<_> = model.values().map(|(value, _)| value).collect();
    if let Some(quantize) = options.quantize {
        match quantize {
            Quantize::StaticInt8 => static_int8::convert(model, options, &mut done)?,
            _ => {
                let least = FxHashMap::default();
                quantise::quantise(model, options, quantize, &originals, least, &mut done)?;
            }
        }
        // Activations may be quantised without any weight.
        if options.calibrated.ranges.is_empty() {
            let option = format!("`quantize` `{quantize}`");
            no_effect::note(model, options, &option, &given, 0, &mut done);
        }
    }
    if let Some(to) = options.cast_weights {
        let before = done.weights.len();
        cast::cast_weights(model, options, to, &given, &mut done)?;
        let option = options.spelling.text("{cast-weights}").to_string();
        no_effect::note(model, options, &option, &given, before, &mut done);
    }
    Ok(done)
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
