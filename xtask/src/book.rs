//! `book`: builds the pages of `docs/` as a book with the pinned mdBook.

use std::env::consts::EXE_SUFFIX;
use std::process::Command;

use anyhow::Result;

use crate::generate::{root, target};
use crate::python::run;

/// The pinned release of mdBook.
const VERSION: &str = "0.5.4";

/// Installs mdBook below `target/` if it is not there, then builds `target/book`.
pub fn book() -> Result<()> {
    let tools = target().join("tools");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["install", "--quiet", "--debug", "--locked", "--no-default-features"])
        .args(["--features", "search", "--root"])
        .arg(&tools)
        .arg(format!("mdbook@{VERSION}")))?;
    let book = target().join("book");
    run(Command::new(tools.join(format!("bin/mdbook{EXE_SUFFIX}")))
        .arg("build")
        .arg(root().join("docs"))
        .arg("--dest-dir")
        .arg(std::path::absolute(&book)?))?;
    println!("{}", book.join("index.html").display());
    Ok(())
}
