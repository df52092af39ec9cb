//! `--options FILE.toml`: options of the command, written down.

use crate::error::{Code, CommandError};
use pt2onnx::{OptionError, Options, in_words};
use serde_json::Value;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// A file of options.
pub struct OptionsFile {
    path: PathBuf,
    text: String,
    /// The options in the file. Paths are relative to its folder.
    pub options: Options,
}

impl OptionsFile {
    /// Reads a file. Values may still be out of range, as flags can replace them.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let text = pt2onnx::tensor::read_text(path).map_err(|e| {
            CommandError::new(Code::Input, format!("the options cannot be read: {e}"))
                .place(path.display())
        })?;
        let mut file = Self { path: path.to_owned(), text, options: Options::default() };
        let table = DeTable::parse(&file.text).map_err(|e| {
            let what = format!("the options are not TOML: {}", e.message());
            CommandError::new(Code::Usage, what).place(file.place(e.span().map(|s| s.start)))
        })?;
        let options: Result<Options, _> = toml::from_str(&file.text);
        file.options = options.map_err(|e| {
            let at = e.span().map(|s| s.start);
            let unknown = e.message().strip_prefix("unknown field ");
            if let Some(key) = unknown.and_then(|rest| rest.split(',').next()) {
                return CommandError::new(Code::Usage, format!("there is no option {key}"))
                    .place(file.place(at))
                    .help("keys are the names of flags without `--`, see `pt2onnx --help`");
            }
            // The entry that the place is in: the last one that starts before it.
            let before = table.get_ref().keys().filter(|key| Some(key.span().start) <= at);
            let key = before.max_by_key(|key| key.span().start);
            let key = key.map(|key| key.get_ref().to_string()).unwrap_or_default();
            file.wrong(&key, e.message(), at)
        })?;
        file.options.resolve(path.parent().unwrap_or(Path::new("")));
        Ok(file)
    }

    /// An error about a value that this file or a flag gave, or about a file that it names.
    pub fn explain(&self, error: OptionError, merged: &Options) -> CommandError {
        let key = error.key();
        let table = DeTable::parse(&self.text).ok();
        let option = Options::META.iter().find(|option| option.key == key);
        let spellings = option.map_or(&[][..], |option| option.aliases).iter().chain([&key]);
        let span = table.and_then(|table| {
            let given = { spellings }.find_map(|key| table.get_ref().get_key_value(*key));
            Some(given?.0.span())
        });
        let unchanged = keys(&self.options).get(key) == keys(merged).get(key);
        let Some(at) = span.filter(|_| unchanged).map(|span| span.start) else {
            return error.into();
        };
        match error {
            OptionError::FunctionFile { .. }
            | OptionError::Functions { .. }
            | OptionError::RuleFile { .. }
            | OptionError::Rules { .. } => {
                let named = format!("`{key}` in {}", self.place(Some(at)));
                CommandError::from(error).help(format!("{named} names this file"))
            }
            _ => self.wrong(key, &error.to_string(), Some(at)),
        }
    }

    fn wrong(&self, key: &str, why: &str, at: Option<usize>) -> CommandError {
        let why = in_words(why);
        CommandError::new(Code::Usage, format!("`{key}` cannot have this value: {why}"))
            .place(self.place(at))
    }

    /// `FILE:LINE:COLUMN` of a byte of the text.
    fn place(&self, at: Option<usize>) -> String {
        let path = self.path.display();
        let Some(before) = at.and_then(|at| self.text.get(..at)) else {
            return path.to_string();
        };
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("{path}:{line}:{column}")
    }
}

/// Options by their keys.
fn keys(options: &Options) -> Value {
    serde_json::to_value(options).unwrap_or_default()
}
