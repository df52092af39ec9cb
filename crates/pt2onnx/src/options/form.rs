//! How values of options are written down: numbers of bytes with units, tables of pairs, levels as
//! numbers.

use serde::{Deserialize, Deserializer, de::Error};

/// Reads a number of bytes with or without a unit: `4096`, `64KiB`, `2GB`. Units are B, kB (or KB),
/// MB, GB, KiB, MiB and GiB.
///
/// # Errors
/// Returns what to give instead if `text` is no number, has another unit or exceeds 64 bits.
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

/// What an error of serde about the value of an option says, in words for users: `expected usize`
/// is "expected a number of 0 or more".
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
    let found = WORDS.iter().find_map(|(said, words)| Some((error.strip_suffix(said)?, words)));
    found.map_or(error.to_owned(), |(before, words)| format!("{before}{words}"))
}

/// A number of bytes: as a number, or as text with a unit.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a number of bytes such as 4096, \"64KiB\" or \"2GB\"")]
enum Bytes {
    Number(u64),
    Text(String),
}

impl Bytes {
    fn read<E: Error>(self) -> Result<u64, E> {
        match self {
            Self::Number(bytes) => Ok(bytes),
            Self::Text(text) => parse_bytes(&text).map_err(E::custom),
        }
    }
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Bytes::deserialize(from)?.read()
}

pub(super) fn optional_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<Bytes>::deserialize(from)?.map(Bytes::read).transpose()
}

/// A list of words, or a single one.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a word or a list of words")]
enum Words {
    One(String),
    All(Vec<String>),
}

pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Words::deserialize(from)? {
        Words::One(word) => vec![word],
        Words::All(words) => words,
    })
}

/// Pairs as a table. In the struct they are a list, as a command line may give one key twice, which
/// is an error of its own.
pub(super) mod pairs {
    use indexmap::IndexMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        pairs: &[(String, T)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(pairs.iter().map(|(key, value)| (key, value)))
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, T)>, D::Error> {
        let table: IndexMap<String, T> = IndexMap::deserialize(from)?;
        Ok(table.into_iter().collect())
    }
}

/// Levels as the numbers 0, 1 and 2.
pub(super) mod level {
    use pt2onnx_opt::Level;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(level: &Level, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*level as u8)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Level, D::Error> {
        match i64::deserialize(from)? {
            0 => Ok(Level::Off),
            1 => Ok(Level::Simplify),
            2 => Ok(Level::Fuse),
            other => Err(D::Error::custom(format!("there is no level {other}; give 0, 1 or 2"))),
        }
    }
}
