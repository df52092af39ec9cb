//! Writes what packages have besides the command: completions for shells and man pages, into
//! `FOLDER/completions` and `FOLDER/man`.
//! `cargo run -p pt2onnx-cli --example packaging FOLDER`

use clap_complete::{Shell, generate_to};
use std::{env, fs, io, path::Path, process::ExitCode};

/// The shells that have completions.
const SHELLS: [Shell; 5] = [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh];

fn write(folder: &Path) -> io::Result<()> {
    let (completions, man) = (folder.join("completions"), folder.join("man"));
    fs::create_dir_all(&completions)?;
    fs::create_dir_all(&man)?;
    for shell in SHELLS {
        generate_to(shell, &mut pt2onnx_cli::command(), "pt2onnx", &completions)?;
    }
    clap_mangen::generate_to(pt2onnx_cli::command(), man)
}

#[expect(clippy::print_stderr, reason = "a program for a terminal")]
fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: packaging FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_have_completions_and_pages() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let [bash, page] = ["completions/pt2onnx.bash", "man/pt2onnx.1"].map(read);
        assert!(bash.contains("--rename-dim") && page.contains("Exit codes"));
        let command = pt2onnx_cli::command();
        for name in command.get_subcommands().map(clap::Command::get_name) {
            assert!(bash.contains(&format!("pt2onnx,{name})")), "{name}");
            assert!(!read(&format!("man/pt2onnx-{name}.1")).is_empty());
        }
        // Options that are declared late are there.
        assert!(bash.contains("--extract") && read("man/pt2onnx-optimize.1").contains("extract"));
        assert_eq!(fs::read_dir(folder.path().join("completions")).unwrap().count(), SHELLS.len());
    }
}
