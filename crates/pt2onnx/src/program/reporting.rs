//! The report about a program, with its texts and as a page.

use super::OnnxProgram;
use pt2onnx_report::Report;

impl OnnxProgram {
    /// Adds the program and the model as text to a report, each cut after 2 MB. `report` is
    /// [`report`](Self::report), possibly with more entries ([`Report::saved`]).
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
        report.put_texts(self.exported_program(), self.model());
    }

    /// A page that shows the model and its report: the graph, folded by module, operators and
    /// weights by size, warnings, the program and the model as text. `report` is
    /// [`report`](Self::report), possibly with more entries ([`Report::saved`]).
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// let page = program.to_html(program.report());
    /// assert!(page.starts_with("<!DOCTYPE html>"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn to_html(&self, report: &Report) -> String {
        report.to_html_with(self.exported_program(), self.model())
    }
}
