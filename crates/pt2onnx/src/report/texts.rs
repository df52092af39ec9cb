//! Texts in reports: long ones are cut.

/// Longer texts of programs and models are cut.
const LONGEST: usize = 2_000_000;

/// The text, or its beginning and a line that says so.
pub(crate) fn cut(mut text: String) -> String {
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
