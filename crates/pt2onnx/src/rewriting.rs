//! Rewriting a finished model: all that `pt2onnx optimize` does with options.

use crate::{Error, NameError, OnnxProgram, OptionError, Options, ranges};
use pt2onnx_opt::{Journal, Target};

impl Options {
    /// Checks what [`OnnxProgram::rewrite`] needs of options.
    ///
    /// # Errors
    /// Options of compression that cannot be, or do not fit together.
    pub fn check_rewrite(&self) -> Result<(), OptionError> {
        self.compression().check().map_err(OptionError::Compress)?;
        self.check_compression()
    }
}

impl OnnxProgram {
    /// Rewrites the model as options ask: puts the bodies of functions in the places of their calls, writes it for another opset if one is
    /// given, names values and fixes sizes, optimises, compresses, and fits it to the target. The options of saving and those of an export are not used.
    /// `journal` takes notes of what passes do.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let mut program = pt2onnx::Exporter::new().export(archive)?;
    /// let mut options = pt2onnx::Options::default();
    /// options.fix = vec![("tensor_x.0".to_owned(), 4)];
    /// program.rewrite(&options, Some(17), None)?;
    /// assert_eq!(program.model().opset, 17);
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Options::check_rewrite`], and an opset that the target does not read, before anything is changed; then those of the single steps: [`inline`](Self::inline),
    /// [`convert_opset`](Self::convert_opset), [`set_interface`](Self::set_interface), [`compress`](Self::compress), [`fit`](Self::fit).
    pub fn rewrite(
        &mut self,
        options: &Options,
        opset: Option<u32>,
        journal: Option<Journal>,
    ) -> Result<(), Error> {
        options.check_rewrite()?;
        if let Some(opset) = opset {
            options.target.reads(opset).map_err(OptionError::Target)?;
        }
        let passes = pt2onnx_opt::Options { journal, ..options.passes()? };
        if options.inline {
            self.inline()?;
        }
        if let Some(opset) = opset {
            self.convert_opset(opset)?;
        }
        self.set_interface(options)?;
        self.optimize(passes);
        let lost = options.rename.iter().find(|(_, new)| self.value(new.trim()).is_none());
        if let Some((old, _)) = lost {
            return Err(NameError::Unknown(old.clone()).into());
        }
        let mut compression = options.compression();
        if !compression.is_off() {
            if !options.calibrate.is_empty() {
                self.verified()?;
                compression.ranges = ranges::of_samples(self.model(), &compression, options)?;
            }
            self.compress(&compression)?;
        }
        // A model of another producer that stays at its opset is for any runtime as much as it was.
        if opset.is_some() || options.target != Target::Standard {
            self.fit(options.target)?;
        }
        Ok(())
    }
}
