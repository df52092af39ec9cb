//! Programs that write into their tensors are translated, and every result has the type that
//! PyTorch recorded.

use pt2onnx_aten::{Mutations, Registry, lower};
use pt2onnx_fx::{passes, text};

#[test]
fn writes_are_translated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../pt2onnx-fx/tests/data/functionalise.txt");
    let registry = Registry::default();
    let mut count = 0;
    for case in std::fs::read_to_string(path).unwrap().split("\n\n") {
        let (before, after) = case.split_once("\n=>\n").unwrap();
        if after.starts_with("error") {
            continue;
        }
        count += 1;
        let (title, program) = before.trim().split_once('\n').unwrap();
        let mut program = text::parse_program(program).unwrap();
        passes::prepare(&mut program).unwrap();
        if let Err(errors) = lower(&program, &registry, Mutations::default()) {
            panic!("{title}: {errors}");
        }
    }
    assert!(count > 10);
}
