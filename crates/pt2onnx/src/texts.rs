//! The program and the model as text, for reports.

use crate::{OnnxProgram, Report, printable::cut, report::text_of};

impl OnnxProgram {
    /// Writes the program and the model as text into a report, cut after 2 MB. `report` is
    /// [`report`](Self::report), or has more to say ([`Report::saved`]).
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
        report.program_text = self.exported_program().map(text_of);
        report.model_text = Some(cut(self.to_text()));
    }
}
