//! A method of the exporter for each option.

use super::Exporter;
#[cfg(doc)]
use crate::options::Options;
use crate::{
    options::{DefaultDtype, DynamicAxes, InputNames, KvNames, OutputNames},
    training::Training,
};
use pt2onnx_aten::{Detail, Operators, State};
use pt2onnx_compress::{Calibration, CastWeights, Precision, Quantize};
use pt2onnx_opt::{Level, Pass, Target};
use pt2onnx_writer::Weights;
use std::path::PathBuf;

/// Setters that take the value of an option, what is inside of its `Some`, or one more element of
/// its list.
macro_rules! setters {
    (
        values { $($name:ident: $ty:ty,)* }
        inside { $($inside:ident: $of:ty,)* }
        one_more { $($list:ident: $($item:ident: $item_ty:ty),+;)* }
    ) => {
        impl Exporter {
            $(
                #[doc = concat!("Sets [`Options::", stringify!($name), "`].")]
                pub fn $name(mut self, $name: $ty) -> Self {
                    self.options.$name = $name.into();
                    self
                }
            )*
            $(
                #[doc = concat!("Sets [`Options::", stringify!($inside), "`].")]
                pub fn $inside(mut self, $inside: $of) -> Self {
                    self.options.$inside = Some($inside.into());
                    self
                }
            )*
            $(
                #[doc = concat!("Adds to [`Options::", stringify!($list), "`]. Can be called several times.")]
                pub fn $list(mut self, $($item: $item_ty),+) -> Self {
                    self.options.$list.push(($($item.into()),+));
                    self
                }
            )*
        }
    };
}

setters! {
    values {
        method: impl Into<String>,
        default_dtype: DefaultDtype,
        opset: u32,
        target: Target,
        mutations: State,
        training: Training,
        unsupported_ops: Operators,
        aten_nodes: bool,
        inline: bool,
        assume_finite: bool,
        warnings_as_errors: bool,
        output_names: OutputNames,
        dynamic_axes: DynamicAxes,
        weights: Weights,
        external_threshold: u64,
        alignment: u64,
        allow_external_paths: bool,
        keep_initializers_as_inputs: bool,
        optimize: Level,
        fold_limit: u64,
        dedup_weights: bool,
        precision: Precision,
        cast_io: bool,
        zero_points: bool,
        signed: bool,
        min_elements: usize,
        calibration_method: Calibration,
        provenance: Detail,
        strip_paths: bool,
        node_docs: bool,
    }
    inside {
        program: impl Into<String>,
        ir_version: u32,
        seed: u32,
        kv_names: KvNames,
        weights_file: impl Into<String>,
        shard_size: u64,
        cast_weights: CastWeights,
        quantize: Quantize,
        block_size: usize,
        accuracy_level: u8,
        model_doc: impl Into<String>,
        model_version: i64,
        producer: impl Into<String>,
    }
    one_more {
        input: name: impl Into<String>, given: impl Into<String>;
        rules: path: impl Into<PathBuf>;
        custom_opset: domain: impl Into<String>, version: u32;
        rename: old: impl Into<String>, new: impl Into<String>;
        rename_dim: target: impl Into<String>, name: impl Into<String>;
        fix_dim: target: impl Into<String>, size: i64;
        input_shape: input: impl Into<String>, sizes: impl Into<String>;
        compress_include: pattern: impl Into<String>;
        compress_exclude: pattern: impl Into<String>;
        calibration_data: path: impl Into<PathBuf>;
    }
}

impl Exporter {
    /// Adds to [`Options::skip_pass`]. Can be called several times.
    pub fn skip_pass(mut self, pass: &Pass) -> Self {
        self.options.skip_pass.push(pass.name.to_owned());
        self
    }

    /// Sets [`Options::module_functions`].
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().module_functions(["Linear"]).export(archive)?;
    /// assert!(program.model().functions.iter().all(|f| f.domain == "torch.nn.modules.linear"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn module_functions(
        mut self,
        modules: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.options.module_functions = modules.into_iter().map(Into::into).collect();
        self
    }

    /// Adds to [`Options::metadata_prop`]. If a key is given twice, the last value is used.
    pub fn metadata_prop(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.options.metadata_prop.retain(|(k, _)| *k != key);
        self.options.metadata_prop.push((key, value));
        self
    }

    /// Sets names of the inputs, in order ([`Options::input_names`]). Inputs after the last name
    /// keep the program's.
    pub fn input_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.input_names = InputNames::List(names.into_iter().map(Into::into).collect());
        self
    }

    /// Names inputs after the parameters, keys and fields that lead to them in the program's
    /// arguments, and the tensors of caches by the templates of [`KvNames`].
    pub fn input_names_from_tree(mut self) -> Self {
        self.options.input_names = InputNames::FromTree;
        self
    }
}
