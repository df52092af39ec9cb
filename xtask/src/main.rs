//! The project's own tasks: code generation, tests, benches.
fn main() {}
