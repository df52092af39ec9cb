//! The program and the model as text, for reports.

use crate::{OnnxProgram, Report, report::cut};

impl OnnxProgram {
    /// Writes the program and the model as text into a report, cut after 2 MB. `report` is [`report`](Self::report), or has more to
    /// say ([`Report::saved`]).
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// let mut report = program.report().clone();
    /// program.put_texts(&mut report);
    /// assert!(report.to_markdown().contains("## Text of the model"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn put_texts(&self, report: &mut Report) {
        let source = self.exported_program();
        report.program_text = source.map(|p| cut(pt2onnx_fx::readable(p).to_string()));
        report.model_text = Some(cut(self.to_text()));
    }
}
