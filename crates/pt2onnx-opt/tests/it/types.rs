//! Types that follow from those of inputs.

use pt2onnx_ir::{Model, TextOptions};
use pt2onnx_opt::infer_types;

/// A graph output has the shape of the file where none follows. Other values have what follows.
#[test]
fn shapes_of_outputs_stay() {
    let text = "<ir_version: 10, opset_import: [\"\" : 20]>
        g (float[2,3] x, int64[K] s) => (float[2,3] y) <float[5] a> { a = Reshape (x, s) y = Reshape (a, s) }";
    let mut model: Model = text.parse().unwrap();
    infer_types(&mut model);
    let mut options = TextOptions::default();
    options.types = true;
    let typed = model.text(options).to_string();
    assert!(typed.contains("=> (float[2,3] y)") && !typed.contains("float[5]"), "{typed}");
}
