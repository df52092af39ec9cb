//! Programs as text: what is written is read back, and what cannot be read is an error that says
//! where.

use crate::{cases::compare, support::data};
use pt2onnx_fx::{ExportedProgram, archive, passes, printer::Printer, text};
use std::path::{Path, PathBuf};

fn archives() -> Vec<PathBuf> {
    let folders = ["", "../../../../testdata/models", "../../../../testdata/archives"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(data(folder)).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|f| f.extension().is_some_and(|e| e == "pt2")).collect()
}

#[track_caller]
fn assert_reads_back(program: &ExportedProgram, path: &Path) {
    let read = |text: &str| {
        text::parse_program(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let full = format!("{:#}", text::print(program));
    assert_eq!(format!("{:#}", text::print(&read(&full))), full, "{}", path.display());
    let short = text::print(program).to_string();
    let read = read(&short);
    assert_eq!(text::print(&read).to_string(), short, "{}", path.display());
    // The signature names values that are inputs or outputs: PyTorch's form is the same too.
    assert_eq!(Printer::new(&read).to_string(), Printer::new(program).to_string());
    assert_eq!(read.signature.to_string(), program.signature.to_string());
}

#[test]
fn archives_are_read_back() {
    let mut count = 0;
    for path in archives() {
        let Ok(mut program) = archive::read(&path) else { continue };
        count += 1;
        assert_reads_back(&program, &path);
        if passes::prepare(&mut program).is_ok() {
            assert_reads_back(&program, &path);
        }
    }
    assert!(count > 35, "{count}");
}

#[test]
fn programs_and_calls() {
    let read = |program: Result<ExportedProgram, text::ParseError>| match program {
        Ok(program) => text::print(&program).to_string(),
        Err(error) => format!("error: {error}"),
    };
    compare("texts.txt", |before| read(text::parse_program(before)));
    compare("calls.txt", |before| read(text::parse_call(before)));
    let error = |text| text::parse_program(text).unwrap_err().to_string();
    let empty = "expected `graph`, found the end of the text (line 1, column 1)";
    assert!(error("").starts_with(empty));
    let deep = format!("graph() {{ add: f32[2] = aten.f({})", "[".repeat(100));
    assert!(error(&deep).starts_with("nested more than 64 levels deep"));
}

#[test]
fn weights_have_no_data() {
    let read = text::parse_program(
        "{s0: VR[2, 100]}
        graph(w: f32[8, 4] as PARAMETER('w'), b: i64[] as BUFFER('b', persistent = False),
            c: c64[2] as CONSTANT_TENSOR('c')) { return () }",
    );
    let read = read.unwrap();
    assert_eq!(read.state["w"].shape(), [8, 4]);
    assert_eq!((read.state.len(), read.constants.len()), (1, 2));
    assert_eq!(read.constraints.range("s0").to_string(), "VR[2, 100]");
}

#[test]
fn sizes_of_inputs_are_not_negative() {
    let program = text::parse_call("aten.relu(x: f32[s0, s1 + 2]) -> f32[s0, s1 + 2]").unwrap();
    assert_eq!(program.constraints.range("s0").to_string(), "VR[0, int_oo]");
    assert_eq!(program.constraints.range("s1").to_string(), "VR[-2, int_oo]");
}
