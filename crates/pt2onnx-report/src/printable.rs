//! Text from files, for terminals and reports. Names, traces and metadata may hold anything, also
//! escape sequences.

use std::{borrow::Cow, fmt::Write};

/// Longer words of messages are cut: names, paths, expressions.
const LONGEST_WORD: usize = 256;

/// Characters of such a word that are kept at its beginning and at its end.
const KEPT: (usize, usize) = (160, 64);

/// The characters between words.
const BLANKS: [char; 3] = [' ', '\n', '\t'];

/// Longer messages are cut at their ends.
const LONGEST: usize = 10_000;

/// Longer texts of programs and models are cut at their ends, in bytes.
const LONGEST_TEXT: usize = 2_000_000;

/// One line of a message, with control characters, those that are invisible and those that change
/// the direction of text as escapes: `\n`, `\u{1b}`. Words of more than 256 characters are cut in
/// the middle, with the number of cut characters.
pub fn message(text: &str) -> Cow<'_, str> {
    shortened(line(text))
}

/// The text with the same escapes, in one line and uncut.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| match c {
        '\n' | '\r' | '\t' => Some(c.escape_default().to_string()),
        c => is_hidden(c).then(|| c.escape_unicode().to_string()),
    })
}

/// The text with the same escapes, uncut. Lines and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_kept = |c| c == '\n' || c == '\t';
    escaped(text, |c| (is_hidden(c) && !is_kept(c)).then(|| c.escape_unicode().to_string()))
}

/// The text of [`lines`] for people: words of more than 256 characters are cut in the middle, with
/// the number of cut characters.
pub fn shown(text: &str) -> Cow<'_, str> {
    let text = lines(text);
    if longest_word(&text) <= LONGEST_WORD {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    words_into(&mut out, &text);
    Cow::Owned(out)
}

/// The first 2 MB of the text of a program or model, with a note about the cut.
pub(crate) fn cut(mut text: String) -> String {
    let whole = text.len();
    if whole > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text += &format!("\n… cut: {whole} bytes in all. `pt2onnx show` prints the rest.\n");
    }
    text
}

/// JSON with the escapes of JSON for what it allows unescaped.
pub fn json(text: &str) -> Cow<'_, str> {
    let units =
        |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04x}")).collect();
    escaped(text, |c| (is_hidden(c) && c != '\n').then(|| units(c)))
}

/// Whether a character is invisible: it controls a terminal, has no width, or changes the direction
/// of the text after it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text with the characters replaced for which `escape` returns a text.
fn escaped(text: &str, escape: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match escape(c) {
            Some(escaped) => out.push_str(&escaped),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn shortened(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= LONGEST_WORD {
        return text;
    }
    let mut out = String::with_capacity(text.len().min(LONGEST));
    words_into(&mut out, &text);
    let count = out.chars().count();
    if count > LONGEST {
        out = out.chars().take(LONGEST).collect();
        let _ = write!(out, "...({} characters cut)", count - LONGEST);
    }
    Cow::Owned(out)
}

/// The bytes of the longest word.
fn longest_word(text: &str) -> usize {
    text.split(BLANKS).map(str::len).max().unwrap_or_default()
}

/// Appends a text whose longer words are cut.
fn words_into(out: &mut String, text: &str) {
    for with_blank in text.split_inclusive(BLANKS) {
        let word = with_blank.trim_end_matches(BLANKS);
        let count = word.chars().count();
        if count <= LONGEST_WORD {
            out.push_str(with_blank);
            continue;
        }
        let (head, tail) = KEPT;
        out.extend(word.chars().take(head));
        // Writing to a String cannot fail.
        let _ = write!(out, "...({} characters cut)...", count - head - tail);
        out.extend(with_blank.chars().skip(count - tail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\u{1b}[31m\u{7}\r\n\t\u{9b}2J\u{202e}b\u{200b}\u{e0041}ä";
        assert_eq!(
            line(text),
            "a\\u{1b}[31m\\u{7}\\r\\n\\t\\u{9b}2J\\u{202e}b\\u{200b}\\u{e0041}ä"
        );
        assert_eq!(
            lines(text),
            "a\\u{1b}[31m\\u{7}\\u{d}\n\t\\u{9b}2J\\u{202e}b\\u{200b}\\u{e0041}ä"
        );
        let written = serde_json::to_string(text).unwrap();
        assert!(json(&written).chars().all(|c| !is_hidden(c)));
        assert_eq!(serde_json::from_str::<String>(&json(&written)).unwrap(), text);
        assert_eq!(message("weights of `fc-1.ünlaut`"), "weights of `fc-1.ünlaut`");
    }

    #[test]
    fn long_names_are_cut() {
        let name = format!("a{}z", "ä".repeat(998));
        let cut = message(&format!("weight `{name}`: no")).into_owned();
        assert!(cut.starts_with("weight `aä") && cut.ends_with("äz`: no"), "{cut}");
        assert!(cut.contains("ä...(779 characters cut)...ä"), "{cut}");
        assert!(message(&"ä".repeat(256)) == "ä".repeat(256));
        let all = message(&"word ".repeat(3000)).into_owned();
        assert!(all.ends_with("...(5000 characters cut)"), "{all}");
        assert_eq!(line(&name), name);
    }

    #[test]
    fn texts_of_many_lines_keep_their_lines() {
        let name = "n".repeat(1000);
        let long = "a, ".repeat(5000);
        let cut = shown(&format!("{long}\n\t{name}\n{name} = \u{1b}\n")).into_owned();
        let name = format!("{}...(776 characters cut)...{}", "n".repeat(160), "n".repeat(64));
        assert_eq!(cut, format!("{long}\n\t{name}\n{name} = \\u{{1b}}\n"));
        let most = "n".repeat(256) + "\n";
        assert_eq!(shown(&most.repeat(2)), most.repeat(2));
        assert!(matches!(shown("short"), Cow::Borrowed("short")));
    }

    #[test]
    fn long_texts_are_cut_with_a_note() {
        let long = cut("é".repeat(LONGEST_TEXT));
        assert!(
            long.ends_with("é\n… cut: 4000000 bytes in all. `pt2onnx show` prints the rest.\n")
        );
        assert_eq!(cut("short".to_owned()), "short");
    }
}
