//! Options of compression.

use crate::{ChannelMoments, Error, Moments, Spelling, scheme::BLOCKS};
use pt2onnx_ir::Value;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{EnumMessage, VariantArray};

/// The type that weights are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumMessage, VariantArray)]
#[non_exhaustive]
pub enum CastWeights {
    /// IEEE's half.
    Float16,
    /// The upper half of a float32.
    Bfloat16,
}

serde_plain::derive_display_from_serialize!(CastWeights);
serde_plain::derive_fromstr_from_deserialize!(CastWeights);

impl CastWeights {
    /// The element type.
    pub fn dtype(self) -> DType {
        match self {
            Self::Float16 => DType::F16,
            Self::Bfloat16 => DType::BF16,
        }
    }
}

/// The element type that a graph computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumMessage, VariantArray)]
#[non_exhaustive]
pub enum Precision {
    /// The element type of the program.
    #[default]
    Keep,
    /// float16, but for operators that need float32.
    Float16,
}

serde_plain::derive_display_from_serialize!(Precision);
serde_plain::derive_fromstr_from_deserialize!(Precision);

/// How weights are quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumMessage, VariantArray)]
#[non_exhaustive]
pub enum Quantize {
    /// 8 bits, restored by DequantizeLinear.
    Int8,
    /// 4 bits, restored by DequantizeLinear; for target `ort`, MatMulNBits, GatherBlockQuantized.
    ///
    /// With samples (`calibration-data`), weights make up for the errors of others (GPTQ).
    Int4,
    /// float8 (E4M3FN), restored by DequantizeLinear.
    Float8,
    /// 8 bits, and products of integers.
    ///
    /// Inputs of matrix products are quantised when the model runs.
    DynamicInt8,
    /// 8 bits, also for activations, with scales from samples (`calibration-data`).
    StaticInt8,
}

serde_plain::derive_display_from_serialize!(Quantize);
serde_plain::derive_fromstr_from_deserialize!(Quantize);

/// How the range of an activation is found from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(EnumMessage, VariantArray)]
#[non_exhaustive]
pub enum Calibration {
    /// From the smallest to the largest number.
    #[default]
    MinMax,
    /// Without the 0.005 % of the numbers other than 0 at each end.
    Percentile,
    /// The codes carry most information about the distribution of the numbers.
    Entropy,
}

serde_plain::derive_display_from_serialize!(Calibration);
serde_plain::derive_fromstr_from_deserialize!(Calibration);

/// The numbers of activations: on samples, and those that the graph says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibrated {
    /// The smallest and the largest of each, for [`Quantize::StaticInt8`].
    pub ranges: FxHashMap<Value, (f32, f32)>,
    /// The second moments of each, for [`Quantize::Int4`].
    pub moments: FxHashMap<Value, Moments>,
    /// For weights, the means and variances that the graph had for their inputs before it was
    /// optimised ([`channel_moments`](crate::channel_moments)), for [`Quantize::Int4`].
    pub channels: FxHashMap<Value, Arc<ChannelMoments>>,
}

/// Options of [`compress`](crate::compress). By default, it does nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// A smaller type to store weights in; a `Cast` restores them.
    pub cast_weights: Option<CastWeights>,
    /// The element type to compute in.
    pub precision: Precision,
    /// Whether inputs and outputs of the graph get the type of [`precision`](Self::precision), too.
    pub cast_io: bool,
    /// How to quantise weights.
    pub quantize: Option<Quantize>,
    /// Elements that share a scale; without, those of a channel do.
    pub block_size: Option<usize>,
    /// Whether [`Quantize::Int4`] keeps 8 bits for weights that 4 bits harm most: those of the last
    /// products, and those with a few large numbers.
    pub mixed: bool,
    /// Whether zero points move the range of a channel or block to where its values are.
    pub zero_points: bool,
    /// Whether the codes of [`Quantize::DynamicInt8`] and [`Quantize::StaticInt8`] have a sign.
    /// ONNX Runtime's products of them are faster on processors with VNNI, and wrong on other x86
    /// processors, where they saturate.
    pub signed: bool,
    /// Whether operators of ONNX Runtime may be used: `MatMulNBits` and `GatherBlockQuantized`.
    pub ort: bool,
    /// `accuracy_level` of `MatMulNBits`: 0 to 4.
    pub accuracy_level: Option<u8>,
    /// Only these: names of weights (`encoder.*`) and operators that use them (`MatMul`).
    pub include: Vec<String>,
    /// None of these.
    pub exclude: Vec<String>,
    /// Weights of fewer elements are left alone.
    pub min_elements: usize,
    /// The numbers of the values that [`activations`](crate::activations) returns:
    /// [`Quantize::StaticInt8`] needs their ranges, [`Quantize::Int4`] may have their moments.
    pub calibrated: Calibrated,
    /// Whether quantised activations have no zero points, and sums stay floats: TensorRT needs it.
    pub symmetric_activations: bool,
    /// Whether a table of int8 is restored before rows of it are looked up: TensorRT has no
    /// `Gather` of int8.
    pub restored_tables: bool,
    /// How messages spell options.
    pub spelling: Spelling,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cast_weights: None,
            precision: Precision::Keep,
            cast_io: false,
            quantize: None,
            block_size: None,
            mixed: false,
            zero_points: false,
            signed: false,
            ort: false,
            accuracy_level: None,
            include: Vec::new(),
            exclude: Vec::new(),
            min_elements: 1024,
            calibrated: Calibrated::default(),
            symmetric_activations: false,
            restored_tables: false,
            spelling: Spelling::default(),
        }
    }
}

impl Options {
    /// Whether nothing is asked for.
    pub fn is_off(&self) -> bool {
        self.cast_weights.is_none() && self.quantize.is_none() && self.precision == Precision::Keep
    }

    /// Checks values that the types allow.
    ///
    /// # Errors
    /// The first that does not exist.
    pub fn check(&self) -> Result<(), Error> {
        let fits = |b: &usize| b.is_power_of_two() && BLOCKS.contains(b);
        if let Some(block) = self.block_size.filter(|b| !fits(b)) {
            return Err(Error::Block(block));
        }
        match self.accuracy_level.filter(|level| *level > 4) {
            Some(level) => Err(Error::AccuracyLevel(level)),
            None => Ok(()),
        }
    }

    /// Checks that options fit together. [`compress`](crate::compress) does so, too.
    ///
    /// # Errors
    /// The first that has no meaning without another.
    pub fn check_together(&self) -> Result<(), Error> {
        const COMPRESS: &str = "{cast-weights}, {quantize} or {precision}";
        const CODES: &str = "{quantize} `int8` or `int4`";
        let is = |any: &[Quantize]| self.quantize.is_some_and(|q| any.contains(&q));
        let codes = is(&[Quantize::Int8, Quantize::Int4]);
        let products = is(&[Quantize::DynamicInt8, Quantize::StaticInt8]);
        let bits = self.ort && is(&[Quantize::Int4]);
        let (keep, off) = (self.precision == Precision::Keep, self.is_off());
        let weights = self.cast_weights.is_some() || self.quantize.is_some();
        let fewer = self.min_elements != Self::default().min_elements;
        let is_static = is(&[Quantize::StaticInt8]);
        let needs = [
            (!keep && is_static, "{quantize} `static-int8`", "{precision} `keep`"),
            (!keep && products, "{quantize} `dynamic-int8`", "{precision} `keep`"),
            (self.block_size.is_some() && !codes, "{block-size}", CODES),
            (self.mixed && !is(&[Quantize::Int4]), "{mixed}", "{quantize} `int4`"),
            (self.zero_points && !codes, "{zero-points}", CODES),
            (self.signed && !products, "{signed}", "{quantize} `dynamic-int8` or `static-int8`"),
            (self.cast_io && keep, "{cast-io}", "{precision} `float16`"),
            (
                self.accuracy_level.is_some() && !bits,
                "{accuracy-level}",
                "{quantize} `int4` and {target} `ort`",
            ),
            (off && !self.include.is_empty(), "{compress-include}", COMPRESS),
            (off && !self.exclude.is_empty(), "{compress-exclude}", COMPRESS),
            (fewer && !weights, "{min-elements}", "{cast-weights} or {quantize}"),
        ];
        match needs.into_iter().find(|(unmet, ..)| *unmet) {
            Some((_, option, with)) => Err(Error::Needs {
                option: self.spelling.text(option),
                with: self.spelling.text(with),
            }),
            None => Ok(()),
        }
    }
}
