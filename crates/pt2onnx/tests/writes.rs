//! Writes into views, as nodes of the model.

use pt2onnx::{Exporter, fx::text};

/// A number that is written into a column or a range of a tensor with a dynamic dimension is one
/// `Where`.
#[test]
fn a_number_written_into_a_dynamic_tensor_is_one_where() {
    let program = "graph(x: f32[s0, 5]) {
        column: f32[s0] = aten.select.int(self = x, dim = 1, index = -1)
        zeros: f32[s0] = aten.fill.Scalar(self = column, value = 0)
        a: f32[s0, 5] = aten.select_scatter(self = x, src = zeros, dim = 1, index = -1)
        range: f32[s0, 3] = aten.slice.Tensor(self = x, dim = 1, start = -4, end = 4)
        ones: f32[s0, 3] = aten.fill.Scalar(self = range, value = 1)
        b: f32[s0, 5] = aten.slice_scatter(self = a, src = ones, dim = 1, start = -4, end = 4)
        return (b)
    }";
    let program = text::parse_program(program).unwrap();
    let model = Exporter::new().export(program).unwrap().to_text();
    let nodes = "{\n  a = Where (val_1, val_0, x)\n  b = Where (val_3, val_2, a)\n}";
    assert!(model.trim().ends_with(nodes), "{model}");
}
