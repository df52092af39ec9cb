//! The step `walk` of a release: the pages for newcomers, each block run as printed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::generate::root;
use crate::python::run;

/// The pages, from the top.
const PAGES: [&str; 2] = ["README.md", "docs/first-steps.md"];

/// A block of a page: its language and its text.
type Block<'a> = (&'a str, String);

/// Runs the blocks of the pages in a folder with an archive, `model.pt2`. Blocks of the language
/// `sh` are for a checkout: the steps `install` and `wheel` and the CI run what they say.
///
/// # Arguments
/// - `bin`: The folder of an environment with pt2onnx; nothing else is found.
/// - `has_torch`: Whether its interpreter has PyTorch, which blocks of Python need.
pub fn walk(bin: &Path, has_torch: bool) -> Result<()> {
    for page in PAGES {
        let text = fs::read_to_string(root().join(page))?;
        let folder = tempfile::tempdir()?;
        fs::copy(root().join("testdata/models/mlp.pt2"), folder.path().join("model.pt2"))?;
        let mut count = 0;
        for (language, block) in blocks(&text) {
            let (program, flag, code) = match language {
                "python" if has_torch => (bin.join("python"), "-c", block.clone()),
                "console" => ("/bin/sh".into(), "-ec", script(&block)),
                _ => continue,
            };
            let mut command = Command::new(program);
            command.args([flag, &code]).current_dir(folder.path());
            run(command.env("PATH", bin).env_remove("PYTHONPATH"))
                .with_context(|| format!("this block of {page} does not run:\n{block}"))?;
            count += 1;
        }
        ensure!(count > 0, "{page} has no blocks that run");
        println!("{page}: {count} blocks");
    }
    Ok(())
}

/// The blocks of code of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(language) if !inside => found.push((language, String::new())),
            Some(_) => {}
            None => {
                if let Some((_, block)) = found.last_mut().filter(|_| inside) {
                    block.push_str(line);
                    block.push('\n');
                }
                continue;
            }
        }
        inside = !inside;
    }
    found
}

/// The commands of a session. One whose exit code is shown next may fail.
fn script(session: &str) -> String {
    let commands: Vec<&str> = session.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let mut script = String::new();
    for (at, command) in commands.iter().enumerate() {
        script.push_str(command);
        script.push_str(match commands.get(at + 1) {
            Some(&"echo $?") => " || ",
            _ => "\n",
        });
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_commands_are_found() {
        let page =
            "a\n```console\n$ one\nout\n$ two\n$ echo $?\n6\n```\nb\n```python\nx = 1\n```\n";
        let found = blocks(page);
        assert_eq!(found.len(), 2);
        assert_eq!(script(&found[0].1), "one\ntwo || echo $?\n");
        assert_eq!(found[1], ("python", "x = 1\n".to_owned()));
    }
}
