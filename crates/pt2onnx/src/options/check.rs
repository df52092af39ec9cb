//! Checks of options, and the options of single steps that they hold.

use super::{OptionError, Options};
use crate::ir_version::IR_VERSIONS;
use pt2onnx_aten::UnsupportedOps;
use pt2onnx_compress::{Calibrated, Calibration, Precision, Quantize};
use pt2onnx_opt::{OPSETS, Pass, Passes, Rules, Target};
use pt2onnx_writer::{SaveOptions, Weights, is_alignment};
use std::path::{Path, PathBuf};

/// The first opset whose file format has functions.
const FUNCTIONS_SINCE: u32 = 15;

impl Options {
    /// Checks values that the types allow and an export does not. Reads no files.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        if !OPSETS.contains(&self.opset) {
            return Err(OptionError::Opset(self.opset));
        }
        self.target.reads(self.opset).map_err(OptionError::Target)?;
        if let Some(version) = self.ir_version.filter(|v| !IR_VERSIONS.contains(v)) {
            return Err(OptionError::IrVersion(version));
        }
        if let Some((domain, _)) = self.custom_opset.iter().find(|(_, version)| *version == 0) {
            return Err(OptionError::Version(domain.clone()));
        }
        if !self.module_functions.is_empty() && self.opset < FUNCTIONS_SINCE {
            return Err(OptionError::FunctionsOf(self.opset));
        }
        if !is_alignment(self.alignment) {
            return Err(OptionError::Alignment(self.alignment));
        }
        self.compression().check().map_err(OptionError::Compress)?;
        self.standard_passes().map(|_| ())
    }

    /// Checks that no option is without effect, as another one is missing or says otherwise.
    ///
    /// # Errors
    /// The first that is.
    pub fn check_together(&self) -> Result<(), OptionError> {
        let text = |text| self.spelling.text(text);
        let needs = |option, with| Err(OptionError::needs(text(option), text(with)));
        if self.allow_external_paths && self.weights != Weights::Link {
            return needs("{allow-external-paths}", "{weights} `link`");
        }
        if self.aten_nodes && self.unsupported_ops == UnsupportedOps::Onnx {
            return needs(
                "{aten-nodes}",
                "{unsupported-ops} `aten`, `aten-fallback` or `fallthrough`",
            );
        }
        if self.max_positions.is_some() && self.target != Target::OrtGenai {
            return needs("{max-positions}", "{target} `ort-genai`");
        }
        if self.shard_size == Some(0) {
            return Err(OptionError::NoShard(text("{shard-size}")));
        }
        for (option, names) in
            [("{input-names}", &self.input_names), ("{output-names}", &self.output_names)]
        {
            if names.listed().iter().any(|name| name == "from-tree") {
                return Err(OptionError::FromTree(text(option)));
            }
        }
        OptionError::once(text("{metadata-prop}"), &self.metadata_prop)?;
        OptionError::once(text("{fix-dim}"), &self.fix_dim)?;
        OptionError::once(text("{input-shape}"), &self.input_shape)?;
        OptionError::once(text("{custom-opset}"), &self.custom_opset)
    }

    /// Checks that options fit together: those that [`check_together`](Self::check_together) is
    /// about, and those of compression.
    ///
    /// # Errors
    /// The first that has no meaning without another.
    pub fn check_compression(&self) -> Result<(), OptionError> {
        self.check_together()?;
        let compression = self.compression();
        compression.check_together().map_err(OptionError::Compress)?;
        let text = |text| self.spelling.text(text);
        let needs = |option, with| Err(OptionError::needs(text(option), text(with)));
        if self.signed && self.target.is_ort() {
            // These are for all processors.
            return needs("{signed}", "{target} `standard`");
        }
        let is_static = compression.quantize == Some(Quantize::StaticInt8);
        let of_blocks = compression.quantize == Some(Quantize::Int4)
            && (compression.ort || compression.block_size.is_some());
        let has_method = self.calibration_method != Calibration::default();
        match self.calibration_data.is_empty() {
            true if is_static => return needs("{quantize} `static-int8`", "{calibration-data}"),
            true if has_method => return needs("{calibration-method}", "{calibration-data}"),
            false if !is_static && !of_blocks => {
                return needs(
                    "{calibration-data}",
                    "{quantize} `static-int8`, or `int4` with {block-size}",
                );
            }
            false if has_method && !is_static => {
                return needs("{calibration-method}", "{quantize} `static-int8`");
            }
            _ => {}
        }
        match compression.is_off() {
            true => Ok(()),
            false if self.weights == Weights::None => {
                Err(OptionError::NothingToCompress(text("{weights}")))
            }
            false if self.keep_initializers_as_inputs => {
                Err(OptionError::NothingToCompress(text("{keep-initializers-as-inputs}")))
            }
            false => Ok(()),
        }
    }

    /// Options of compression, for [`OnnxProgram::compress`](crate::OnnxProgram::compress).
    pub fn compression(&self) -> pt2onnx_compress::Options {
        // As onnxruntime-genai's own builder.
        let int4 = self.quantize == Some(Quantize::Int4);
        let faster = (int4 && self.target == Target::OrtGenai).then_some(4);
        pt2onnx_compress::Options {
            cast_weights: self.cast_weights,
            precision: self.precision,
            cast_io: self.cast_io,
            quantize: self.quantize,
            block_size: self.block_size,
            mixed: self.mixed,
            zero_points: self.zero_points,
            signed: self.signed,
            ort: self.target.takes_contrib_ops(),
            accuracy_level: self.accuracy_level.or(faster),
            include: self.compress_include.clone(),
            exclude: self.compress_exclude.clone(),
            min_elements: self.min_elements,
            calibrated: Calibrated::default(),
            symmetric_activations: self.target == Target::TensorRt,
            restored_tables: self.target == Target::TensorRt,
            spelling: self.spelling,
        }
    }

    /// Makes relative paths absolute, as those in a file of options are relative to its folder.
    pub fn resolve(&mut self, folder: &Path) {
        Self::META.iter().for_each(|option| (option.resolve)(self, folder));
    }

    /// The files that options name and an export reads, each with what it holds.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let Self { op_functions, rules, calibration_data, .. } = self;
        let named = [("functions", op_functions), ("rules", rules), ("samples", calibration_data)];
        named.into_iter().flat_map(|(what, paths)| paths.iter().map(move |path| (what, path)))
    }

    /// How to save a model, for [`OnnxProgram::save_with`](crate::OnnxProgram::save_with).
    pub fn saving(&self) -> SaveOptions {
        SaveOptions {
            weights: self.weights,
            data_file: self.weights_file.clone(),
            threshold: self.external_threshold,
            shard_size: self.shard_size,
            alignment: self.alignment,
            allow_external_paths: self.allow_external_paths,
            ..SaveOptions::default()
        }
    }

    /// The rewriting rules of all files; `None` if there are no files.
    fn read_rules(&self) -> Result<Option<Rules>, OptionError> {
        let mut all: Option<Rules> = None;
        for path in &self.rules {
            let text = pt2onnx_tensor::read_text(path)
                .map_err(|error| OptionError::RuleFile { path: path.clone(), error })?;
            let rules: Rules = text.parse().map_err(|error| OptionError::Rules {
                path: path.clone(),
                error: Box::new(error),
            })?;
            all.get_or_insert_default().extend(rules);
        }
        Ok(all)
    }

    /// The standard passes without those to leave out.
    fn standard_passes(&self) -> Result<Passes, OptionError> {
        let standard = Passes::standard();
        let skipped = self.skip_pass.iter().map(|name| Ok(standard.get(name)?.name));
        let skipped: Vec<&str> = skipped.collect::<Result<_, _>>().map_err(OptionError::Pass)?;
        Ok(standard.filtered(|pass| !skipped.contains(&pass.name)))
    }

    /// Options of the optimiser, for [`OnnxProgram::optimize`](crate::OnnxProgram::optimize). Reads
    /// the files of [`rules`](Self::rules).
    ///
    /// # Errors
    /// A pass to leave out does not exist, or a file of rules cannot be read.
    pub fn passes(&self) -> Result<pt2onnx_opt::Options, OptionError> {
        let mut passes = self.standard_passes()?;
        if let Some(rules) = self.read_rules()? {
            passes = passes.first(Pass::of_rules("rules", rules));
        }
        Ok(pt2onnx_opt::Options {
            level: self.optimize,
            opset: self.opset,
            target: self.target,
            max_folded_bytes: usize::try_from(self.fold_limit).unwrap_or(usize::MAX),
            dedup_weights: self.dedup_weights,
            to_float16: self.precision == Precision::Float16,
            max_positions: self.max_positions,
            passes,
            ..pt2onnx_opt::Options::default()
        })
    }

    /// Each option that differs from its default: its key and its value as JSON, in the order of
    /// the fields.
    pub fn changed(&self) -> Vec<(String, serde_json::Value)> {
        let entries = |options: &Self| match serde_json::to_value(options) {
            Ok(serde_json::Value::Object(entries)) => entries,
            _ => serde_json::Map::new(),
        };
        let defaults = entries(&Self::default());
        let own = entries(self).into_iter();
        own.filter(|(key, value)| defaults.get(key) != Some(value)).collect()
    }
}
