//! `regen-ops`: generates the table of supported ops from the registry and the conformance cases.
//! `coverage`: prints the lowerings that no case runs.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::generate::{Files, publish, root};

/// Writes `docs/supported-ops.md` and the table that `pt2onnx explain` reads.
pub fn regen(check: bool) -> Result<()> {
    let table = run()?.0;
    let mut page = "# Supported ops\n\n\
         The overloads of ops that pt2onnx translates. `pt2onnx explain OP` shows one of them.\n\n\
         - *cases*: conformance cases with the op.\n\
         - *ONNX operators*: what it became in these cases.\n\
         - *opset*: the first that has all these operators; in older ones, [legalisation](opsets.md) rewrites them: `explain` shows to what.\n\
         - *types*: element types of the results in these cases.\n\n\
         `cargo xtask regen-ops` generates this page from the registry and the cases; do not edit it.\n\n\
         | op | cases | ONNX operators | opset | types |\n|---|---|---|---|---|\n"
        .to_owned();
    for line in table.lines() {
        // The last cell is for `pt2onnx explain`.
        let mut cells = line.split('\t').take(5);
        let name = cells.next().context("the table has an empty line")?;
        writeln!(page, "| `{name}` | {} |", cells.collect::<Vec<_>>().join(" | "))?;
    }
    let files =
        [("docs/supported-ops.md", page), ("crates/pt2onnx-cli/src/generated/ops.tsv", table)];
    let files: Files = files.map(|(path, content)| (PathBuf::from(path), content)).into();
    publish(&files, None, check)
}

/// Prints the lowerings that no case runs. Returns an error if there are any.
pub fn coverage() -> Result<()> {
    let missed = run()?.1;
    print!("{missed}");
    if missed.starts_with("0 of") {
        Ok(())
    } else {
        bail!("no conformance case runs these lowerings: add cases with testdata/generate")
    }
}

/// Runs the example `op_table`. Returns the table and the list of lowerings that no case runs.
fn run() -> Result<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "pt2onnx", "--example", "op_table"])
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .context("starting cargo")?;
    let text = |bytes| String::from_utf8(bytes).context("the output is not UTF-8");
    let (table, missed) = (text(output.stdout)?, text(output.stderr)?);
    ensure!(output.status.success(), "op_table: {}\n{missed}", output.status);
    Ok((table, missed))
}
