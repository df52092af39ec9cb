//! Reads a pattern from the body of a function, as rules have it.

use super::part::{AttributePart, ConstantPart, NodePart, Part, Pattern, commutes};
use pt2onnx_ir::{Attribute, Def, Model, Name, Node, OpSet, RegionId, Value};
use rustc_hash::FxHashSet;

impl Pattern {
    /// The pattern of the first output of a region. Inputs stand for any values.
    pub(crate) fn of_function(library: &Model, body: RegionId) -> Option<Self> {
        let output = library[body].output_values().next()?;
        Some(Self(Reader { library, read: FxHashSet::default() }.part(output)))
    }
}

struct Reader<'a> {
    library: &'a Model,
    read: FxHashSet<Value>,
}

impl Reader<'_> {
    /// A name of a value that is not an input. No input has such a name.
    fn name(value: Value) -> Name {
        format!("%{}", value.index()).into()
    }

    fn part(&mut self, value: Value) -> Part {
        if !self.read.insert(value) {
            let name = match self.library[value].def() {
                Def::Input(..) => self.input(value),
                _ => Self::name(value),
            };
            return Part::Any { name, constant: false };
        }
        match *self.library[value].def() {
            Def::Input(..) => Part::Any { name: self.input(value), constant: false },
            Def::Constant(ref tensor) => {
                let wanted = ConstantPart::Equal(tensor.clone());
                Part::Constant { name: Self::name(value), wanted }
            }
            Def::Node(id, output) => {
                let node = &self.library[id];
                if node.is("Constant") {
                    return Part::Constant { name: Self::name(value), wanted: constant(node) };
                }
                self.read.extend(node.outputs());
                let inputs: Vec<Part> = { node.inputs().iter() }
                    .map(|input| input.map_or(Part::Absent, |value| self.part(value)))
                    .collect();
                let attributes = node.attributes.iter().map(|(name, value)| AttributePart {
                    name: (&**name).into(),
                    value: value.clone(),
                });
                Part::Node(NodePart {
                    labels: node.outputs().iter().map(|&v| Some(Self::name(v))).collect(),
                    output: output as usize,
                    domain: (&*node.domain).into(),
                    overload: (&*node.overload).into(),
                    op: node.op().into(),
                    ops: OpSet::from_iter([node.op()]),
                    commutes: node.domain.is_empty() && commutes(node.op()) && inputs.len() == 2,
                    inputs: inputs.into(),
                    exactly: Some(attributes.collect()),
                })
            }
        }
    }

    fn input(&self, value: Value) -> Name {
        self.library[value].name.clone().unwrap_or_default()
    }
}

/// The constant that a `Constant` node of a rule stands for.
fn constant(node: &Node) -> ConstantPart {
    match node.attributes.as_slice() {
        [(_, Attribute::Reference { name, kind })] => {
            ConstantPart::Bound { name: name.as_str().into(), kind: kind.name() }
        }
        _ => node.given_tensor().map_or(ConstantPart::Never, ConstantPart::Equal),
    }
}
