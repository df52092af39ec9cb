//! A pass of your own that runs together with the standard passes: it removes `mylib.Watch`, which
//! returns its input.
//!
//! `cargo run -p pt2onnx-opt --example pass`

use pt2onnx_ir::{Model, verify};
use pt2onnx_opt::{Changed, GraphMut, Level, Options, Pass, Passes, bypass, optimize};
use std::io::Write;

/// The second `Transpose` undoes the first, which the standard passes see only without the `Watch`
/// between them.
const MODEL: &str = r#"<ir_version: 9, opset_import: ["" : 20, "mylib" : 1]>
main_graph (float[n,4] x) => (float[n,4] y)
{
  t = Transpose <perm: ints = [1, 0]> (x)
  d = mylib.Watch (t)
  u = Transpose <perm: ints = [1, 0]> (d)
  y = Relu (u)
}"#;

fn remove_watches(graph: &mut GraphMut<'_>, _: &Options) -> Changed {
    let mut changed = false;
    let mut walk = graph.walk();
    while let Some(id) = walk.next(graph.model) {
        let node = &graph.model[id];
        let watches = node.domain == "mylib" && node.op() == "Watch";
        if watches && let Some(x) = node.input(0) {
            changed |= bypass(graph.model, id, x);
        }
    }
    changed
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let watches = Pass::new("watches", remove_watches)
        .level(Level::Simplify)
        .description("Removes mylib.Watch, which returns its input.");
    let passes = Passes::standard().with(watches);
    for pass in passes.iter() {
        writeln!(std::io::stdout(), "{}: {}", pass.name, pass.description)?;
    }

    let mut model: Model = MODEL.parse()?;
    optimize(&mut model, &Options { passes, ..Options::from(Level::Simplify) });

    write!(std::io::stdout(), "{model}")?;
    assert!(verify(&model).is_ok());
    let operators: Vec<&str> = model.nodes(Model::MAIN).map(|n| model[n].op()).collect();
    assert_eq!(operators, ["Relu"]);

    // Without it, the standard passes cannot join the transposes.
    let mut model: Model = MODEL.parse()?;
    optimize(&mut model, &Options::from(Level::Simplify));
    assert_eq!(model.nodes(Model::MAIN).count(), 4);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
