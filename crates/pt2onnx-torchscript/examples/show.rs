//! Prints the modules, the code and, with a method, its flattened graph: `show MODEL.pt`, `show MODEL.pt forward`.
//!
//! The types of results come from a translator, as `pt2onnx` has it. Without one, the graph ends at the first operator.
#![expect(clippy::print_stdout, reason = "an example prints")]

use pt2onnx_fx::Node;
use pt2onnx_torchscript::{
    Archive, Error, flatten, parameters,
    types::{Facts, Outcome, Types},
};

/// Knows no types: prints the first call.
struct NoTypes;

impl Types for NoTypes {
    fn results(&mut self, node: &Node, _: &mut Facts) -> Result<Vec<Outcome>, String> {
        println!("{} calls {}", node.name, node.target);
        Err("this example knows no types".to_owned())
    }
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        println!("give an archive");
        return Ok(());
    };
    let archive = Archive::open(path)?;
    for file in archive.files() {
        println!("# {}\n{}", file.path, file.text);
    }
    let root = archive.root_class()?;
    println!("# {} (version {})", root.name, archive.version());
    for (name, ty, _) in &root.class.attributes {
        println!("{name}: {}", pt2onnx_torchscript::schema::Type::of(ty));
    }
    for method in &root.class.methods {
        let params: Vec<String> = parameters(&archive, &method.name)?
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        println!("{}({})", method.name, params.join(", "));
    }
    if let Some(method) = args.next()
        && let Err(error) = flatten(&archive, &method, Vec::new(), &mut NoTypes)
    {
        println!("{error}");
    }
    Ok(())
}
