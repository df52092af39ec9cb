//! Prints the code, the modules and the flattened graph of a TorchScript archive, for inputs of
//! these types: `show MODEL.pt x=float32[n,4]`.
//!
//! The types of results come from an implementation of `Types`; here these are the lowerings of
//! `pt2onnx-aten`.

use pt2onnx_aten::{Registry, infer};
use pt2onnx_fx::{Node, text};
use pt2onnx_torchscript::{
    Archive, Error, Given, flatten, inputs, loaded, signature,
    types::{Facts, Outcome, Types},
};
use std::{fmt::Write as _, io::Write as _};

/// The types of lowerings.
struct Lowerings(Registry);

impl Types for Lowerings {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let known = infer::Facts {
            values: &facts.values,
            contents: &facts.contents,
            constraints: &facts.constraints,
            default_dtype: self.default_dtype(),
        };
        let outcomes = self.0.infer(node, &known, &mut |float| facts.symbols.next(float));
        outcomes.map_err(|error| error.to_string())
    }
}

/// Everything there is to say of an archive.
fn describe(archive: &Archive, given: Vec<(String, Given)>) -> Result<String, Error> {
    let mut types = Lowerings(Registry::default());
    let mut out = String::new();
    // A String takes whatever is written to it.
    for file in archive.files() {
        let _ = writeln!(out, "# {}\n{}", file.path, file.text);
    }
    let root = archive.root_class()?;
    let _ = writeln!(out, "# {} (version {})", root.python_name(), archive.version());
    for method in &root.class.methods {
        let _ = writeln!(out, "{}", signature(method));
    }
    let held = loaded(archive, &mut types)?;
    let _ = writeln!(out, "\n# modules");
    for (path, class) in &held.modules {
        let _ = writeln!(out, "{}: {class}", if path.is_empty() { "(root)" } else { path });
    }
    let _ = writeln!(out, "\n# tensors");
    for (path, tensor) in &held.tensors {
        let _ = writeln!(out, "{path}: {}{:?}", tensor.dtype(), tensor.shape());
    }
    let _ = writeln!(out, "\n# graph of forward");
    for (path, given) in inputs(archive, "forward", given.clone())? {
        let _ = writeln!(out, "# {path}: {given}");
    }
    match flatten(archive, "forward", given, &mut types, false) {
        Ok(flat) => {
            for warning in &flat.best.warnings {
                let _ = writeln!(out, "# {warning}");
            }
            let _ = writeln!(out, "{}", text::print(&flat.best.program));
        }
        Err(error) => {
            let _ = writeln!(out, "{error}");
        }
    }
    Ok(out)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        return Err(
            "give an archive, and the types of its inputs: `show MODEL.pt x=float32[n,4]`".into()
        );
    };
    let given = args.filter_map(|arg| {
        let (name, text) = arg.split_once('=')?;
        Some((name.to_owned(), Given::parse(text)))
    });
    let given = given.collect();
    std::io::stdout().lock().write_all(describe(&Archive::open(path)?, given)?.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_shown() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/net.pt");
        let shown = describe(&Archive::open(path).unwrap(), Vec::new()).unwrap();
        for part in [
            "class Net(Module):",
            "forward(x: Tensor) -> Tensor",
            "layers.0.bn: torch.nn.modules.batchnorm.BatchNorm2d",
            "layers.0.bn.running_mean: float32[3]",
            "# x: float32[2,3,8,8]",
            "aten.batch_norm.default",
        ] {
            assert!(shown.contains(part), "no {part} in {shown}");
        }
    }
}
