//! Types that follow from those of inputs.

use pt2onnx_ir::{Model, TextOptions};
use pt2onnx_opt::infer_types;

fn typed(graph: &str) -> String {
    let text = format!("<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> {graph}");
    let mut model: Model = text.parse().unwrap();
    infer_types(&mut model);
    let mut options = TextOptions::default();
    options.types = true;
    model.text(options).to_string()
}

/// A graph output has the shape of the file where none follows. Other values have what follows.
#[test]
fn shapes_of_outputs_stay() {
    let typed = typed(
        "g (float[2,3] x, int64[K] s) => (float[2,3] y) <float[5] a> { a = Reshape (x, s) y = Reshape (a, s) }",
    );
    assert!(typed.contains("=> (float[2,3] y)") && !typed.contains("float[5]"), "{typed}");
}

/// So has an output of a body: ONNX Runtime's `Scan` needs it.
#[test]
fn shapes_of_outputs_of_bodies_stay() {
    let typed = typed(
        "g (float[N,4] x) => (float[N,4] y) <float[4] zero = {0, 0, 0, 0}> {
            factor = local.Factor (x)
            last, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] t, float[4] o) {
                t = Add (s, e) o = Mul (t, factor)
            }> (zero, x)
        }",
    );
    assert!(typed.contains("=> (float[4] t, float[4] o)"), "{typed}");
}

/// What comes out of a loop has the element type of what its body gives, if the file says nothing.
#[test]
fn results_of_loops() {
    let typed = typed(
        "g (float[N] x, int64 n, float[M,N] rows) => (float[K] y) {
            a, b = Loop <body = b (int64 i, bool c, float[L] s) => (bool d, float[P] t, int64 u) {
                d = Identity (c) t = Concat <axis = 0> (s, s) u = Identity (i)
            }> (n, \"\", x)
            e, f = Scan <num_scan_inputs = 1, body = b (float[N] s, float[N] p) => (float[N] t, float[N] q) {
                t = Add (s, p) q = Neg (p)
            }> (x, rows)
            y = Add (a, e)
        }",
    );
    for loops in ["# float[], int64[]", "# float[], float[?,?]"] {
        assert!(typed.contains(loops), "{typed}");
    }
}
