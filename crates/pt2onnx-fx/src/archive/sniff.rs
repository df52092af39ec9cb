//! Kinds of files by their first bytes.

use crate::error::NotAnArchive;

/// How many bytes [`other_file`] looks at.
pub const START: usize = 512;

/// Files that people take for archives or models, by how they begin.
const OTHERS: &[(&[u8], &str)] = &[
    (b"GGUF", "a GGUF file, which holds tensors but no program"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it"),
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file: `git lfs pull` fetches it"),
    (b"<!", "a web page, not the file: download it again"),
    (b"<html", "a web page, not the file: download it again"),
    (b"\x93NUMPY", "an array of NumPy"),
];

/// The kind of a file that is not a zip file, by its first [`START`] bytes.
/// [`NotAnArchive::NotZip`] if nothing is known of it.
pub fn other_file(bytes: &[u8]) -> NotAnArchive {
    let bytes = bytes.get(..START).unwrap_or(bytes);
    let other = OTHERS.iter().find(|(start, _)| bytes.starts_with(start));
    match bytes {
        [] => NotAnArchive::Empty,
        _ if let Some((_, what)) = other => NotAnArchive::Other(what),
        [b'{', ..] => NotAnArchive::Json,
        [0x80, 2..=5, ..] => NotAnArchive::Pickle,
        _ if bytes.get(257..262) == Some(b"ustar") => NotAnArchive::Tar,
        _ if bytes.get(4..8) == Some(b"PTMF") => NotAnArchive::Mobile,
        _ if bytes.get(4..8) == Some(b"TFL3") => NotAnArchive::Other("a model of TensorFlow Lite"),
        [_, _, _, _, _, _, 0, 0, b'{', ..] => NotAnArchive::Safetensors,
        // ir_version, a small varint, then another field of a model: the producer, a text, the
        // graph, opsets.
        [0x08, 1..=31, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42 | 0x72, ..] => {
            NotAnArchive::Protobuf
        }
        _ if is_text(bytes) => NotAnArchive::Other("plain text"),
        _ => NotAnArchive::NotZip,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    // A character may be cut at the end.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => {
            bytes.get(..e.valid_up_to()).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace())
}
