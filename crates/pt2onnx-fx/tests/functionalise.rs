//! Programs in text before and after functionalisation, or `error: ..`:
//! `tests/data/functionalise.txt`, and with writes in bodies `tests/data/bodies.txt`.

#[path = "common/cases.rs"]
mod cases;

use pt2onnx_fx::{passes::functionalise::functionalise, text};

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
    cases::compare("functionalise.txt", after);
}

#[test]
fn writes_in_bodies_become_results() {
    cases::compare("bodies.txt", after);
}
