//! The commands in the help, by their purpose.

use clap::Command;
use std::fmt::Write;

/// The purposes of commands. Those of other purposes follow under a heading that says so.
const TASKS: &[(&str, &[&str])] = &[
    ("Convert", &["check"]),
    ("Look at archives and models", &["inspect", "show", "diff"]),
    ("Run", &["run", "verify"]),
    ("Optimise and compress", &["optimize", "apply-weights"]),
];

/// The command, with commands by tasks in its help.
pub fn by_tasks(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut list = String::new();
    let row = |list: &mut String, name: &str, about: &str| {
        _ = writeln!(list, "  {literal}{name:<13}{literal:#}  {about}");
    };
    for (task, names) in TASKS {
        _ = writeln!(list, "{header}{task}:{header:#}");
        if *task == "Convert" {
            row(&mut list, "MODEL.pt2", "Convert an archive, or several");
        }
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            row(&mut list, name, &about.map(ToString::to_string).unwrap_or_default());
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{{all-args}}{{after-help}}"
    );
    let listed = TASKS.iter().flat_map(|(_, names)| *names);
    listed
        .fold(command, |command, name| command.mut_subcommand(name, |one| one.hide(true)))
        .help_template(template)
        .subcommand_help_heading("Other commands")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_help_has_each_command_once() {
        let help = by_tasks(Cli::command()).render_help().to_string();
        for command in Cli::command().get_subcommands() {
            let (name, about) = (command.get_name(), command.get_about().unwrap().to_string());
            let listed = |line: &&str| {
                let rest = line.strip_prefix("  ").and_then(|line| line.strip_prefix(name));
                rest.is_some_and(|rest| rest.trim_start() == about)
            };
            assert_eq!(help.lines().filter(listed).count(), 1, "{name}\n{help}");
            assert!(about.len() <= 83, "{about}");
        }
    }
}
