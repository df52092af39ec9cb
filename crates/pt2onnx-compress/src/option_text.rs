//! Options in messages, whose keys are spelt as the caller gives them.

use std::fmt;

/// How messages spell the keys of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spelling {
    /// As keys of files: `cast-io`.
    #[default]
    Kebab,
    /// As flags of the command: `--cast-io`.
    Flag,
    /// As parameters in Python: `cast_io`.
    Snake,
}

impl Spelling {
    /// A text that names options. Their keys stand in braces.
    ///
    /// ```
    /// use pt2onnx_compress::Spelling;
    ///
    /// let text = "{cast-io} or {precision} `float16`";
    /// assert_eq!(Spelling::Kebab.text(text).to_string(), "`cast-io` or `precision` `float16`");
    /// assert_eq!(Spelling::Flag.text(text).to_string(), "`--cast-io` or `--precision` `float16`");
    /// assert_eq!(Spelling::Snake.text(text).to_string(), "`cast_io` or `precision` `float16`");
    /// ```
    pub fn text(self, text: &'static str) -> OptionText {
        OptionText { text, spelling: self }
    }
}

/// A text that names options, for messages ([`Spelling::text`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionText {
    text: &'static str,
    spelling: Spelling,
}

impl OptionText {
    /// The key of the first option, as it is in files: `cast-io`. The whole text, if it names none.
    pub fn key(&self) -> &'static str {
        self.text.split(['{', '}']).nth(1).unwrap_or(self.text)
    }
}

impl fmt::Display for OptionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.text.split(['{', '}']).enumerate() {
            match (i % 2 == 1, self.spelling) {
                (false, _) => f.write_str(part)?,
                (true, Spelling::Kebab) => write!(f, "`{part}`")?,
                (true, Spelling::Flag) => write!(f, "`--{part}`")?,
                (true, Spelling::Snake) => write!(f, "`{}`", part.replace('-', "_"))?,
            }
        }
        Ok(())
    }
}
