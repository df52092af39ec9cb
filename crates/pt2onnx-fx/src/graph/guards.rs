//! The conditions of a program on the sizes of its inputs: guards, run-time assertions, and ranges.

use super::{
    node::Graph,
    program::{ExportedProgram, InputSpec},
    value::ValueMeta,
};
use pt2onnx_symbolic::{Expr, Symbol};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// A condition on the sizes of inputs under which a program is right.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCondition {
    /// The condition over the program's symbols; `None` if it cannot be read.
    pub holds: Option<Expr>,
    /// The condition as it is written.
    pub text: String,
    /// The user's line, if known.
    pub place: Option<String>,
}

/// Since this version, guards are in archives. All ranges that are narrower than those of any size
/// then follow from guards, or were given by the user.
const GUARDS_SINCE: (u32, u32) = (2, 9);

/// PyTorch takes dynamic sizes for at least this.
const LEAST_SIZE: i64 = 2;

impl ExportedProgram {
    /// Adds what the guards say to the constraints. PyTorch checks them whenever the program runs,
    /// so that they hold for all its inputs. A guard that cannot be parsed is left out.
    pub fn assume_guards(&mut self) {
        for guard in &self.guards {
            if let Some(condition) = self.condition(guard) {
                self.constraints.assume(&condition);
            }
        }
    }

    /// The conditions on sizes of inputs under which the program is right, each once: from guards
    /// and run-time assertions, and from ranges where there are no guards yet. Strides are left
    /// out: they do not matter for a model.
    pub fn size_conditions(&self) -> Vec<SizeCondition> {
        let guards = self.guards.iter().filter(|guard| !guard.contains(".stride()"));
        let mut all: Vec<SizeCondition> = Vec::new();
        let of_guard = |guard: &String| SizeCondition {
            holds: self.condition(guard),
            text: guard.clone(),
            place: None,
        };
        all.extend(guards.map(of_guard));
        let symbols = self.symbols_of_inputs();
        let of_inputs = |holds: &Expr| holds.all_symbols(|symbol| symbols.contains(symbol));
        for node in &self.graph.nodes {
            if !node.target.is_aten("_assert_scalar") {
                continue;
            }
            let value = node.args.first().and_then(|arg| arg.value.name());
            let Some(ValueMeta::SymBool { expr, .. }) =
                value.and_then(|name| self.graph.values.get(name))
            else {
                continue;
            };
            let place = node.meta.place();
            let same = all.iter_mut().find(|one| one.holds.as_ref() == Some(expr));
            match same {
                Some(same) => same.place = same.place.take().or(place),
                None if of_inputs(expr) => all.push(SizeCondition {
                    holds: Some(expr.clone()),
                    text: expr.to_string(),
                    place,
                }),
                None => {}
            }
        }
        if !self.has_guards() {
            for (text, range) in &self.range_constraints {
                let Some(size) = Expr::parse(text).ok().filter(of_inputs) else { continue };
                let mut narrower = Vec::new();
                narrower.extend(
                    range.min.filter(|min| *min > LEAST_SIZE).map(|min| format!("{text} >= {min}")),
                );
                narrower.extend(
                    range
                        .max
                        .filter(|max| *max < i64::MAX - 1)
                        .map(|max| format!("{text} <= {max}")),
                );
                all.extend(narrower.into_iter().filter(|_| size.as_symbol().is_some()).map(
                    |text| SizeCondition { holds: Expr::parse(&text).ok(), text, place: None },
                ));
            }
        }
        let mut seen = FxHashSet::default();
        all.retain(|one| {
            one.holds.as_ref().is_none_or(|holds| !holds.is_static())
                && seen.insert((one.holds.clone(), one.holds.is_none().then(|| one.text.clone())))
        });
        all
    }

    /// Whether its version of PyTorch writes guards.
    fn has_guards(&self) -> bool {
        let mut parts = self.torch_version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        !self.guards.is_empty() || version >= GUARDS_SINCE
    }

    /// The symbols in the sizes of the user's inputs.
    fn symbols_of_inputs(&self) -> BTreeSet<Symbol> {
        let tensors = self.user_inputs().filter_map(|name| self.graph.tensor(name));
        tensors.flat_map(|tensor| tensor.sizes.iter().flat_map(Expr::symbols)).collect()
    }

    /// The names of the user's inputs, in order; empty for those that are no values of the graph.
    fn user_inputs(&self) -> impl Iterator<Item = &str> {
        self.signature.inputs.iter().filter_map(|spec| match spec {
            InputSpec::UserInput(argument) => Some(argument.name().map_or("", |name| &**name)),
            _ => None,
        })
    }

    /// `L['x'].size()[0] % 2 == 0` as a condition on the symbols that the size stands for.
    fn condition(&self, guard: &str) -> Option<Expr> {
        let mut text = String::with_capacity(guard.len());
        let mut parts = guard.split("L[");
        text.push_str(parts.next()?);
        for part in parts {
            let (path, rest) = part.split_once(".size()[")?;
            let (dim, rest) = rest.split_once(']')?;
            let size = self.input(path)?.sizes.get(dim.parse::<usize>().ok()?)?;
            text.push_str(&format!("({size})"));
            text.push_str(rest);
        }
        for (name, function) in FUNCTIONS {
            text = text.replace(name, function);
        }
        Expr::parse(&text).ok()
    }

    /// The input at a path: `'x']`, `'d']['a']`, `'flat_args'][0]`.
    fn input(&self, path: &str) -> Option<&super::value::TensorMeta> {
        let keys = path.strip_suffix(']')?.split("][").map(|key| key.trim_matches('\''));
        let keys: Vec<&str> = keys.collect();
        let graph: &Graph = &self.graph;
        match &keys[..] {
            ["flat_args", number] => graph.tensor(self.user_inputs().nth(number.parse().ok()?)?),
            // torch.export names inputs after the way to them.
            keys => graph.tensor(&keys.join("_")),
        }
    }
}

/// Functions in guards, and their names in expressions.
const FUNCTIONS: &[(&str, &str)] = &[
    ("torch.sym_min(", "Min("),
    ("torch.sym_max(", "Max("),
    ("torch.sym_float(", "ToFloat("),
    ("torch.sym_int(", "TruncToInt("),
    ("torch.sym_not(", "Not("),
    ("torch.sym_ite(", "Where("),
    ("torch._sym_sqrt(", "OpaqueUnaryFn_sqrt("),
    ("math.sqrt(", "OpaqueUnaryFn_sqrt("),
    ("math.ceil(", "CeilToInt("),
    ("math.floor(", "FloorToInt("),
    ("math.trunc(", "TruncToInt("),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Argument, TensorMeta};
    use pt2onnx_symbolic::Range;
    use pt2onnx_tensor::DType;

    fn program() -> ExportedProgram {
        let mut program = ExportedProgram::default();
        for (name, sizes) in [("x", ["s0", "2*s1"]), ("d_l_1", ["s3", "4"])] {
            let sizes = sizes.map(|size| Expr::parse(size).unwrap()).to_vec();
            let meta = TensorMeta::strided(DType::F32, sizes, vec![]);
            program.graph.values_mut().insert(name.into(), meta.into());
            program.signature.inputs.push(InputSpec::UserInput(Argument::Tensor(name.into())));
        }
        program
    }

    #[test]
    fn guards_are_conditions_on_symbols() {
        let program = program();
        for (guard, expected) in [
            ("L['x'].size()[0] >= 3", Some("s0 >= 3")),
            ("(L['x'].size()[0] % 2) == 0", Some("Eq(PythonMod(s0, 2), 0)")),
            (
                "torch.sym_min(L['x'].size()[0], 8) == L['x'].size()[1]",
                Some("Eq(Min(s0, 8), 2*s1)"),
            ),
            ("L['d']['l'][1].size()[0] < L['x'].size()[0]", Some("s3 < s0")),
            ("L['flat_args'][1].size()[0] != 4", Some("Ne(s3, 4)")),
            (
                "math.trunc(0.5*torch.sym_float(L['x'].size()[0])) == 4",
                Some("Eq(TruncToInt(0.5*ToFloat(s0)), 4)"),
            ),
            ("L['y'].size()[0] >= 3", None),
            ("L['x'].size()[2] >= 3", None),
            ("L['x'][0].size()[0] >= 3", None),
            ("L['x'].shape[0] >= 3", None),
        ] {
            let expected = expected.map(|text| Expr::parse(text).unwrap());
            assert_eq!(program.condition(guard), expected, "{guard}");
        }
    }

    /// A range is a condition only if no guards say why it is narrower.
    #[test]
    fn ranges_of_older_archives_are_conditions() {
        let mut program = program();
        let range = |min, max| Range::new(Some(min), max);
        program.range_constraints = vec![
            ("s0".into(), range(2, Some(8))),
            ("s3".into(), range(2, None)),
            ("u0".into(), range(3, None)),
        ];
        program.torch_version = "2.8.0+cpu".into();
        let texts = |program: &ExportedProgram| -> Vec<String> {
            program.size_conditions().into_iter().map(|one| one.text).collect()
        };
        assert_eq!(texts(&program), ["s0 <= 8"]);
        program.torch_version = "2.9.0".into();
        assert_eq!(texts(&program), [""; 0]);
        program.guards = vec!["L['x'].size()[0] <= 8".into(), "L['x'].stride()[0] == 1".into()];
        assert_eq!(texts(&program), ["L['x'].size()[0] <= 8"]);
    }
}
