//! Opens files for reading: devices and pipes are errors, rather than a wait or memory without end.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// The most bytes of a small file, in MiB.
const MOST: u64 = 64;

/// Opens a file that is read at several places, or mapped.
///
/// # Errors
/// The operating system refuses; it is a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked before the file is opened: opening a pipe would wait for a writer.
    let there = fs::metadata(path)?;
    match there.is_dir() {
        _ if there.is_file() => File::open(path),
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Err(io::Error::other(
            "this is not a file, and it is read at several places: save it to a file first",
        )),
    }
}

/// The bytes of a small file, such as one of options or rules. It may be a pipe.
///
/// # Errors
/// The operating system refuses, or there are more than 64 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take((MOST << 20) + 1).read_to_end(&mut bytes)?;
    if read as u64 > MOST << 20 {
        Err(io::Error::other(format!("it has more than {MOST} MiB")))
    } else {
        Ok(bytes)
    }
}

/// The text of a small file. It may be a pipe.
///
/// # Errors
/// Those of [`read`]; it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::other("it is not text in UTF-8"))
}
