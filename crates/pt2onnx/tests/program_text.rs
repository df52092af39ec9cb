//! Programs as text, against what `print(torch.export.load(path))` of PyTorch 2.15 wrote:
//! `testdata/metadata/*.txt`.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may fail so")]

mod bundles;

use bundles::{temporary, testdata, unpack};
use pt2onnx::Exporter;
use std::fs;

#[test]
fn as_pytorch_prints_them() {
    let bundle = unpack(&testdata().join("cases/control.tar.zst"));
    let cond = temporary(&bundle["signatures/ControlFlowCond2Outputs.dyn"]["model.pt2"]);
    let mlp = testdata().join("models/mlp.pt2");
    for (archive, expected) in [(mlp.as_path(), "mlp"), (cond.path(), "cond")] {
        let text = Exporter::new().program_text(archive, true).unwrap();
        let path = testdata().join(format!("metadata/{expected}.txt"));
        // `print` adds a line break.
        assert_eq!(text + "\n", fs::read_to_string(path).unwrap(), "{expected}");
    }
}
