//! The texts in a report: the program, and the model.

use crate::{OnnxProgram, Report};

/// Longer texts of programs and models are cut.
const LONGEST: usize = 2_000_000;

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

/// The text, or its beginning and a line that says so.
pub(super) fn cut(mut text: String) -> String {
    let whole = text.len();
    if whole > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text += &format!("\n… cut: {whole} bytes in all. `pt2onnx show` prints the rest.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = cut("é".repeat(LONGEST));
        assert!(long.ends_with("… cut: 4000000 bytes in all. `pt2onnx show` prints the rest.\n"));
        assert_eq!(cut("short".to_owned()), "short");
    }
}
