//! The guards of a program: Python conditions on the sizes of its inputs.

use super::{node::Graph, program::ExportedProgram};
use pt2onnx_symbolic::Expr;

impl ExportedProgram {
    /// Adds what the guards say to the constraints. PyTorch checks them whenever the program runs,
    /// so that they hold for all its inputs. A guard that cannot be parsed is left out.
    pub fn assume_guards(&mut self) {
        for guard in &self.guards {
            if let Some(condition) = condition(guard, &self.graph) {
                self.constraints.assume(&condition);
            }
        }
    }
}

/// `L['x'].size()[0] % 2 == 0` as a condition on the symbols that the size stands for.
fn condition(guard: &str, graph: &Graph) -> Option<Expr> {
    let mut text = String::with_capacity(guard.len());
    let mut parts = guard.split("L['");
    text.push_str(parts.next()?);
    for part in parts {
        let (name, rest) = part.split_once("'].size()[")?;
        let (dim, rest) = rest.split_once(']')?;
        let size = graph.tensor(name)?.sizes.get(dim.parse::<usize>().ok()?)?;
        text.push_str(&format!("({size})"));
        text.push_str(rest);
    }
    let text = text.replace("torch.sym_min(", "Min(").replace("torch.sym_max(", "Max(");
    Expr::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorMeta;
    use pt2onnx_tensor::DType;

    #[test]
    fn guards_are_conditions_on_symbols() {
        let mut graph = Graph::default();
        let sizes = vec![Expr::symbol("s0"), Expr::parse("2*s1").unwrap()];
        let meta = TensorMeta::strided(DType::F32, sizes, vec![]);
        graph.values_mut().insert("x".into(), meta.into());
        for (guard, expected) in [
            ("L['x'].size()[0] >= 3", Some("s0 >= 3")),
            ("(L['x'].size()[0] % 2) == 0", Some("Eq(PythonMod(s0, 2), 0)")),
            (
                "torch.sym_min(L['x'].size()[0], 8) == L['x'].size()[1]",
                Some("Eq(Min(s0, 8), 2*s1)"),
            ),
            ("L['y'].size()[0] >= 3", None),
            ("L['x'].size()[2] >= 3", None),
            ("L['x'][0].size()[0] >= 3", None),
            ("L['x'].shape[0] >= 3", None),
        ] {
            let expected = expected.map(|text| Expr::parse(text).unwrap());
            assert_eq!(condition(guard, &graph), expected, "{guard}");
        }
    }
}
