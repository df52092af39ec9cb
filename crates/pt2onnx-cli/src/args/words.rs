//! A first word that is neither a command nor a file.

use super::Cli;
use crate::error::{Code, CommandError};
use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue},
};
use std::{ffi::OsString, path::Path};

/// The error of a command line whose first word is neither a command nor like a file that commands
/// take.
pub fn misspelt(args: &[OsString]) -> Option<CommandError> {
    let word = args.get(1)?.to_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(plain);
    if !is_word || word == "help" || Path::new(word).exists() {
        return None;
    }
    let known = Cli::command();
    if known.find_subcommand(word).is_some() {
        return None;
    }
    let usage = |what: String| CommandError::new(Code::Usage, what);
    if matches!(word, "convert" | "export" | "translate") {
        let rest: Vec<_> = args.iter().skip(2).map(|arg| arg.to_string_lossy()).collect();
        let rest =
            if rest.is_empty() { "MODEL.pt2 -o OUT.onnx".to_owned() } else { rest.join(" ") };
        return Some(
            usage(format!("there is no command `{word}`"))
                .help(format!("leave the word out: `pt2onnx {rest}`")),
        );
    }
    let list = "`pt2onnx --help` lists the commands";
    let help = match similar(known, word) {
        _ if word == "version" => "`pt2onnx --version` prints the version".to_owned(),
        Some(similar) => format!("`pt2onnx {similar}` is a command; {list}"),
        None => list.to_owned(),
    };
    Some(usage(format!("there is no command `{word}`, and no file of that name")).help(help))
}

/// The command that is written most like the word, if one is.
fn similar(known: clap::Command, word: &str) -> Option<String> {
    let commands = known.get_subcommands().cloned();
    let only = clap::Command::new("pt2onnx").subcommands(commands).subcommand_required(true);
    let error = only.try_get_matches_from(["pt2onnx", word]).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) => names.first().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_files() {
        let said = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            misspelt(&args).map(|error| error.what().to_owned() + " " + &error.details())
        };
        for line in
            ["p", "p a.pt2 -o x", "p inspect x", "p optimise x", "p help", "p -h", "p ./x", "p src"]
        {
            assert_eq!(said(line), None, "{line}");
        }
        for (line, part) in [
            (
                "p inspct a.pt2",
                "there is no command `inspct`, and no file of that name   help: `pt2onnx inspect` is",
            ),
            ("p lasagne", "help: `pt2onnx --help` lists the commands"),
            ("p convert", "help: leave the word out: `pt2onnx MODEL.pt2 -o OUT.onnx`"),
            ("p export a.pt2 x.onnx", "help: leave the word out: `pt2onnx a.pt2 x.onnx`"),
        ] {
            let said = said(line).unwrap_or_default();
            assert!(said.contains(part), "{said}");
        }
    }
}
