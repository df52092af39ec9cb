//! Types that options can have, and how files, flags and Python give their values.

use super::{DefaultDtype, DynamicAxes, DynamicAxesError, IoNames, KvNames};
use crate::training::Training;
use indexmap::IndexMap;
use pt2onnx_aten::{Mutations, Provenance, UnsupportedOps};
use pt2onnx_compress::{Calibration, CastWeights, Precision, Quantize};
use pt2onnx_opt::{Level, Target};
use pt2onnx_writer::Weights;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

/// A number of bytes. Files and flags can give it with a unit ([`parse_bytes`]).
pub type Bytes = u64;

/// Entries of a table, in order. A list can hold a key twice, which checks report.
pub type Pairs<T> = Vec<(String, T)>;

/// How a flag gives the value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FlagKind {
    /// The flag alone means true.
    Switch,
    /// The flag takes one value.
    One,
    /// The flag can be given several times.
    Many,
    /// The flag takes values between commas, and can be given several times.
    Listed,
}

/// A type that options can have.
pub trait OptionValue: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// How a flag gives the value.
    const FLAG: FlagKind = FlagKind::One;

    /// Reads the texts that flags give.
    ///
    /// # Errors
    /// Returns what to give instead.
    fn parse(texts: &[&str]) -> Result<Self, String>;

    /// The type that Python annotates.
    fn python() -> String;

    /// The words that the value can be, each with its meaning; empty for other types.
    fn choices() -> Vec<(String, String)> {
        Vec::new()
    }

    /// Makes paths relative to a folder absolute.
    fn resolve(&mut self, _folder: &Path) {}

    /// Reads the form in files.
    ///
    /// # Errors
    /// The value has another type, or a form that [`parse`](Self::parse) refuses.
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }

    /// Writes the form in files.
    ///
    /// # Errors
    /// Those of the serialiser.
    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.serialize(to)
    }
}

/// Implements [`OptionValue`] for types that one text gives.
macro_rules! of_one_text {
    ($($type:ty, $python:expr, $or_error:expr;)*) => {$(
        impl OptionValue for $type {
            fn parse(texts: &[&str]) -> Result<Self, String> {
                last(texts).parse().map_err($or_error)
            }
            fn python() -> String {
                $python.to_owned()
            }
        }
    )*};
}

of_one_text! {
    u8, "int", |_| "give a number from 0 to 255".to_owned();
    u32, "int", |_| "give a number from 0 to 4294967295".to_owned();
    usize, "int", |_| "give a number of 0 or more".to_owned();
    i64, "int", |_| "give a whole number".to_owned();
    String, "str", |_| String::new();
    KvNames, "str", |error| error;
    Level, "Literal[0, 1, 2] | bool", |error| error;
    IoNames, "Sequence[str] | Literal[\"from-tree\"]", |error| match error {};
    DynamicAxes, "Mapping[str, Mapping[int, str] | Sequence[int]]",
        |error: DynamicAxesError| error.to_string();
}

fn last<'a>(texts: &[&'a str]) -> &'a str {
    texts.last().copied().unwrap_or_default()
}

impl OptionValue for bool {
    const FLAG: FlagKind = FlagKind::Switch;

    fn parse(_: &[&str]) -> Result<Self, String> {
        Ok(true)
    }

    fn python() -> String {
        "bool".to_owned()
    }
}

impl OptionValue for Bytes {
    fn parse(texts: &[&str]) -> Result<Self, String> {
        parse_bytes(last(texts))
    }

    fn python() -> String {
        "int | str".to_owned()
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "give a number of bytes such as 4096, \"64KiB\" or \"2GB\"")]
        enum Form {
            Number(u64),
            Text(String),
        }
        match Form::deserialize(from)? {
            Form::Number(bytes) => Ok(bytes),
            Form::Text(text) => parse_bytes(&text).map_err(D::Error::custom),
        }
    }
}

/// Reads a number of bytes with or without a unit: `4096`, `64KiB`, `2GB`. Units are B, kB (or KB),
/// MB, GB, KiB, MiB and GiB.
///
/// # Errors
/// Returns what to give instead if `text` is not a number, has another unit or exceeds 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 0,
    };
    let count: Option<u64> = digits.parse().ok();
    let bytes = count.and_then(|n| n.checked_mul(unit)).filter(|_| unit > 0);
    bytes.ok_or_else(|| "give a number of bytes such as 4096, 64KiB or 2GB".to_owned())
}

impl<T: OptionValue> OptionValue for Option<T> {
    const FLAG: FlagKind = T::FLAG;

    fn parse(texts: &[&str]) -> Result<Self, String> {
        T::parse(texts).map(Some)
    }

    fn python() -> String {
        T::python()
    }

    fn choices() -> Vec<(String, String)> {
        T::choices()
    }

    fn resolve(&mut self, folder: &Path) {
        self.iter_mut().for_each(|value| value.resolve(folder));
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Inner<T>(T);
        impl<'de, T: OptionValue> Deserialize<'de> for Inner<T> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                T::read(from).map(Self)
            }
        }
        Ok(Option::deserialize(from)?.map(|Inner(value)| value))
    }
}

impl OptionValue for PathBuf {
    fn parse(texts: &[&str]) -> Result<Self, String> {
        Ok(last(texts).into())
    }

    fn python() -> String {
        "Path".to_owned()
    }

    fn resolve(&mut self, folder: &Path) {
        *self = folder.join(&self);
    }
}

/// An element of a list.
pub trait Item: OptionValue {
    /// Whether a flag takes several between commas.
    const COMMAS: bool;
}

impl Item for String {
    const COMMAS: bool = true;
}

impl Item for PathBuf {
    const COMMAS: bool = false;
}

/// Files can give a list of one element without brackets.
impl<T: Item> OptionValue for Vec<T> {
    const FLAG: FlagKind = if T::COMMAS { FlagKind::Listed } else { FlagKind::Many };

    fn parse(texts: &[&str]) -> Result<Self, String> {
        texts.iter().map(|text| T::parse(&[text])).collect()
    }

    fn python() -> String {
        format!("{item} | Sequence[{item}]", item = T::python())
    }

    fn resolve(&mut self, folder: &Path) {
        self.iter_mut().for_each(|item| item.resolve(folder));
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "give a word or a list of words")]
        enum Form<T> {
            One(T),
            Many(Vec<T>),
        }
        Ok(match Form::deserialize(from)? {
            Form::One(item) => vec![item],
            Form::Many(items) => items,
        })
    }
}

/// A flag gives an entry as `KEY=VALUE`, a file the entries as a table.
impl<T: OptionValue> OptionValue for Pairs<T> {
    const FLAG: FlagKind = FlagKind::Many;

    /// The last `=` separates key and value, as names may hold others. Blanks do not count.
    fn parse(texts: &[&str]) -> Result<Self, String> {
        let entry = |text: &&str| {
            let parts = text.rsplit_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let parts = parts.filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let (key, value) = parts.ok_or("there must be text on both sides of `=`")?;
            let read = T::parse(&[value]).map_err(|error| format!("{error}, not `{value}`"))?;
            Ok((key.to_owned(), read))
        };
        texts.iter().map(entry).collect()
    }

    fn python() -> String {
        format!("Mapping[str, {}]", T::python())
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let table: IndexMap<String, T> = IndexMap::deserialize(from)?;
        Ok(table.into_iter().collect())
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(key, value)| (key, value)))
    }
}

/// Reads entries whose values may be empty and hold `=`: the first `=` separates.
pub(super) fn assignments(texts: &[&str]) -> Result<Pairs<String>, String> {
    let entry = |text: &&str| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must have the form KEY=VALUE".to_owned()),
    };
    texts.iter().map(entry).collect()
}

/// Reads shapes of inputs, empty for scalars. Names may hold `=`.
pub(super) fn shapes(texts: &[&str]) -> Result<Pairs<String>, String> {
    let entry = |text: &&str| match text.rsplit_once('=') {
        Some((name, sizes)) if !name.is_empty() => {
            Ok((name.trim().to_owned(), sizes.trim().to_owned()))
        }
        _ => Err("it must have the form INPUT=SIZE,..".to_owned()),
    };
    texts.iter().map(entry).collect()
}

/// The first paragraph of a doc comment, in one line and without the full stop.
pub(super) fn summary(doc: &str) -> String {
    let lines = doc.lines().map(str::trim).take_while(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}

/// An enum whose values are words.
pub trait Choice:
    Copy + Display + FromStr<Err: Display> + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Each value with its meaning.
    fn all() -> Vec<(Self, &'static str)>;
}

impl<T: Choice> OptionValue for T {
    fn parse(texts: &[&str]) -> Result<Self, String> {
        last(texts).parse().map_err(|error: T::Err| error.to_string())
    }

    fn python() -> String {
        let words = T::choices().into_iter().map(|(word, _)| format!("\"{word}\""));
        format!("Literal[{}]", words.collect::<Vec<_>>().join(", "))
    }

    fn choices() -> Vec<(String, String)> {
        let all = T::all().into_iter();
        all.map(|(value, doc)| (value.to_string(), summary(doc))).collect()
    }
}

/// Implements [`Choice`] for enums that have strum's derives.
macro_rules! choices {
    ($($type:ty)*) => {$(
        impl Choice for $type {
            fn all() -> Vec<(Self, &'static str)> {
                use strum::{EnumMessage, VariantArray};
                let doc = |value: &Self| value.get_documentation().unwrap_or_default();
                Self::VARIANTS.iter().map(|value| (*value, doc(value))).collect()
            }
        }
    )*};
}

choices! {
    DefaultDtype Provenance UnsupportedOps Mutations Target Training Weights
    Calibration CastWeights Precision Quantize
}

/// The words for users of an error of serde about an option's value: `expected usize` is "expected
/// a number of 0 or more".
pub fn in_words(error: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("expected u32", "expected a number from 0 to 4294967295"),
        ("expected usize", "expected a number of 0 or more"),
        ("expected u64", "expected a number of 0 or more"),
        ("expected u8", "expected a number from 0 to 255"),
        ("expected i64", "expected a whole number"),
        ("expected a map", "expected a table"),
        ("wanted string or table", "expected a word"),
    ];
    let found = WORDS.iter().find_map(|(serde, words)| Some((error.strip_suffix(serde)?, words)));
    found.map_or(error.to_owned(), |(before, words)| format!("{before}{words}"))
}
