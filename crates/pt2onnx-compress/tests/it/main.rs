//! Tests of compression, as textual cases in `cases/`. `UPDATE_CASES=1` writes the results into
//! the files, for review.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../../pt2onnx-opt/tests/it/cases.rs"]
mod cases;

use pt2onnx_compress::{Options, Precision, compress};
use pt2onnx_ir::{Model, verify};

#[test]
fn half() {
    cases::run("half", |graph, argument| {
        let (option, value) = argument.split_once(' ').unwrap_or((argument, ""));
        let names = |key| value.split(' ').filter(|_| option == key).map(str::to_owned).collect();
        let options = Options {
            precision: Precision::Float16,
            cast_io: option == "cast-io",
            include: names("include"),
            exclude: names("exclude"),
            ..Options::default()
        };
        let opset = if option == "opset" { value } else { "21" };
        let header = format!("<ir_version: 10, opset_import: [\"\" : {opset}, \"local\" : 1]>");
        let mut model: Model =
            format!("{header} {graph}").parse().unwrap_or_else(|e| panic!("{e}"));
        pt2onnx_opt::infer_types(&mut model);
        compress(&mut model, &options).unwrap();
        model.assign_names();
        verify(&model).unwrap();
        model.to_string().split_once(">\n").unwrap().1.to_owned()
    });
}
