//! The textual syntax: printed models are read back, and errors give a position.
#![expect(clippy::panic, reason = "a test may fail so")]

use pt2onnx_ir::{Model, verify};

/// Reads, and prints what was read.
fn again(text: &str) -> String {
    let model: Model = text.parse().unwrap_or_else(|e| panic!("{e}\n\n{text}"));
    model.to_string()
}

/// All that the printer writes.
const ALL: &str = r#"<
  ir_version: 10,
  opset_import: ["" : 21, "mylib" : 3]
>
main_graph (float[N,8] x, int64 n, float[] any, float["2*N + 1",?] sized, seq(float[2]) s, optional(map(int64, string)) o, float[2] given = {1.0, 2.0}) => (float[N,8] y, bool[1] "odd name")
<
  float[2] w = {0.5, -inf},
  double e = {1e-300},
  int64[0] none = {},
  string[2] words = {"a \"b\"", "c\\d"},
  bool[1] "odd name" = {1},
  float[100] large = {...},
  uint64[1] u = {18446744073709551615},
  int8[2] i = {-128, 127},
  float16[1] h = {0.33325195}
>
{
  a, b = Split <axis: int = 0, num_outputs: int = 2> (x)
  c = Clip (x, "", e)
  t = Constant <value: tensor = float[1] {0.25}> ()
  k = mylib.Strange:other <floats: floats = [1.0, NaN], strings: strings = ["a", "b"], ints: ints = [], empty: floats = [], tensors: tensors = [int64 {1}, float[1] {2.0}], type: type_proto = float[N], types: type_protos = [int64, seq(float)]> (a, w, words, none, large, u, i, h)
  "", m = "my-lib.Odd" (k)
  y = If <then_branch: graph = yes () => (float[N,8] p)
  {
    p = Mul (x, w)
  }, else_branch: graph = no () => (float[N,8] q)
  {
    q = mylib.foo <alpha: float = 2.0> (x)
  }> (n)
}

<domain: "mylib", opset_import: ["" : 21]>
foo <beta, alpha: float = 1.0> (x) => (y)
{
  c = Constant <value_float: float = @alpha> ()
  y = Mul (x, c)
}

<domain: "mylib", overload: "two", opset_import: ["" : 21, "mylib" : 3]>
foo (x) => (y)
{
  y = mylib.foo <alpha: float = 2.0> (x)
}
"#;

#[test]
fn what_is_printed_is_read_back() {
    assert_eq!(again(ALL), ALL);
}

/// A line break is not printed as one, and not as `\n`, which ONNX's parser reads as `n`.
#[test]
fn names_with_line_breaks() {
    let text = "<\n  ir_version: 10,\n  opset_import: [\"\" : 21]\n>\ng (float[2] \"x\\u{a}\\\\n\") => (float[2] y)\n{\n  y = Neg (\"x\\u{a}\\\\n\")\n}\n";
    let mut model: Model = text.parse().unwrap();
    assert_eq!(model[model.inputs()[0]].name.as_deref(), Some("x\n\\n"));
    model.assign_names();
    assert_eq!(model.to_string(), text);
}

/// Forms that `onnx.parser` reads, and the printer does not write.
#[test]
fn other_forms() {
    let text = r#"
      # A comment.
      <ir_version: 8, opset_import: ["": 18], producer_name: "me", producer_version: "1", model_version: 7,
       domain: "org", doc_string: "words", metadata_props: ["k": "v"]>
      g (float[2] x) => (float[2] y) <float[2] t> {
        [first] t = LeakyRelu <alpha = 0.5> (x)
        u = Sum (t) <> 
        v, w = Split (u) <axis = 0, num_outputs = 2>
        y = Concat <axis = 0> (v, w)
      }
    "#;
    let model: Model = text.parse().unwrap();
    let nodes = model.all_nodes();
    assert_eq!(model[nodes[0]].name.as_deref(), Some("first"));
    assert_eq!((model.opset, model.model_version), (18, Some(7)));
    assert_eq!(model.producer.as_deref(), Some("me"));
    assert_eq!(model.metadata, [("k".into(), "v".into())]);
    let text = model.to_string();
    assert!(text.contains("LeakyRelu <alpha: float = 0.5> (x)"), "{text}");
    assert!(text.contains("Split <axis: int = 0, num_outputs: int = 2> (u)"), "{text}");
    let types: Vec<String> = { model.values() }
        .filter(|(_, d)| d.name.as_deref() == Some("v"))
        .map(|(_, d)| d.ty.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(types, ["float[1]"], "inferred");
    verify(&model).unwrap();
}

#[test]
fn what_cannot_be_read_is_told_where() {
    let graph = |body: &str| format!("g (float[2] x) => (float[2] y) {{\n  {body}\n}}\n");
    for (text, error) in [
        (
            String::new(),
            "expected the graph's name, found the end of the text (line 1, column 1)\n    \n    ^",
        ),
        (
            graph("y = Relu (z)"),
            "`z` is not defined here (line 2, column 13)\n      y = Relu (z)\n                ^",
        ),
        (graph("y = Relu x"), "expected `(`, found `x` (line 2, column 12)"),
        (graph("x = Relu (x)\n"), "`x` is defined twice (line 2, column 3)"),
        (
            graph("y = Relu <a: integer = 1> (x)"),
            "there is no attribute type `integer` (line 2, column 16)",
        ),
        (
            graph("y = Relu <a = []> (x)"),
            "expected a value that shows its type (or write `name: type = value`), found `[]>` (line 2, column 17)",
        ),
        (
            graph("y = Relu <a: int = 1.5> (x)"),
            "expected an integer, found `1.5` (line 2, column 22)",
        ),
        (
            graph("y = Relu <a = @b> (x)"),
            "a reference needs a type: `name: float = @other` (line 2, column 13)",
        ),
        (
            graph("y = Relu <a: tensor = int8[1] {128}> (x)"),
            "expected an element, found `128` (line 2, column 34)",
        ),
        (graph("y = Relu <a: tensor = int8[2] {1}> (x)"), "(line 2, column 25)"),
        (
            graph("y = Relu <a: tensor = int8[N] {1}> (x)"),
            "a constant needs the type of a tensor with known sizes (line 2, column 25)",
        ),
        (graph("z = Relu (x)"), "`y` is not defined here (line 1, column 29)"),
        (graph("y = Relu <s = \"open> (x)"), "expected a text in quotes"),
        ("<opset: 3> g () => () {}".into(), "a header has no key `opset` (line 1, column 2)"),
        ("g (flat[2] x) => () {}".into(), "there is no type `flat` (line 1, column 4)"),
        (format!("g ({}float", "seq(".repeat(1000)), "nested more than 64 levels deep"),
        (
            "g () => () {} f (x) => (x) {} f (x) => (x) {}".into(),
            "the function f is defined twice (line 1, column 31)",
        ),
    ] {
        let found = text.parse::<Model>().unwrap_err().to_string();
        assert!(found.contains(error), "{text}\n{found}\nwanted: {error}");
    }
}

#[test]
fn functions_alone() {
    let text = r#"
        <opset_import: ["" : 18]> "mylib::foo.Tensor" <alpha: float = 1.0> (x) => (y) {
            y = LeakyRelu <alpha: float = @alpha> (x)
        }
        <domain: "other", opset_import: ["" : 18, "mylib" : 1]> bar (x) => (y) { y = mylib.foo (x) }
    "#;
    let model = Model::parse_functions(text).unwrap();
    let names: Vec<_> = { model.functions.iter() }
        .map(|f| (f.domain.as_str(), f.name.as_str(), f.overload.as_str(), f.imports[""]))
        .collect();
    assert_eq!(names, [("mylib", "foo", "Tensor", 18), ("other", "bar", "", 18)]);

    let function = |imports: &str, body: &str| {
        format!("<domain: \"d\", opset_import: [{imports}]> f <a> (x) => (y) {{ {body} }}")
    };
    for (imports, body, error) in [
        ("", "y = Relu (x)", "the function's opset_import has no version of ONNX's own operators"),
        (r#""": 18"#, "y = e.Relu (x)", "the function's opset_import has no version of `e`"),
        (r#""": 18"#, "y = Gelu (x)", "opset 18 has no operator `Gelu`"),
        (r#""": 18"#, "y = Relu (x, x)", "2 inputs are given, and Relu takes 1"),
        (
            r#""": 18"#,
            "y = Elu <alpha: int = @a> (x)",
            "attribute alpha of Elu must be Float, but is Int",
        ),
        (r#""": 18"#, "y = Elu <alpha: float = @b> (x)", "the function has no attribute `b`"),
        (r#""": 18"#, "y = Elu <beta: float = 1.0> (x)", "Elu of opset 6 has no attribute beta"),
    ] {
        let text = function(imports, body);
        let found = Model::parse_functions(&text).unwrap_err().to_string();
        assert!(found.contains(error), "{text}\n{found}");
    }
    let found = Model::parse_functions("f (x) => (x) {}").unwrap_err().to_string();
    assert!(found.contains("the function has no domain"), "{found}");
}
