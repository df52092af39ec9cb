//! Programs in text before and after functionalisation: `tests/data/functionalise.txt`. A case is its name behind `# `, a program, `=>`,
//! and the program after the passes or `error: ..`. `UPDATE=1` writes what comes out.

use pt2onnx_fx::{passes::functionalise::functionalise, text};
use std::{env, fs, path::Path};

fn after(before: &str) -> String {
    let mut program = match text::parse_program(before) {
        Ok(program) => program,
        Err(error) => return format!("not read: {error}"),
    };
    if let Err(error) = functionalise(&mut program) {
        return format!("error: {error}");
    }
    let mutations = program.mutations.iter();
    let mutations = mutations.map(|m| format!("\n{:?} {} becomes {}", m.kind, m.target, m.value));
    format!("{}{}", text::print(&program), mutations.collect::<String>())
}

#[test]
fn programs_become_functional() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/functionalise.txt");
    let cases = fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    for case in cases.split("\n\n").map(str::trim).filter(|c| !c.is_empty()) {
        let (before, expected) = case.split_once("\n=>").unwrap_or((case, ""));
        let (title, program) = before.split_once('\n').unwrap();
        let found = after(program);
        written += &format!("{before}\n=>\n{found}\n\n");
        if env::var_os("UPDATE").is_none() {
            assert_eq!(found, expected.trim(), "{title}");
        }
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, written.trim_end().to_owned() + "\n").unwrap();
    }
}
