//! Patterns of nodes, and finding them.

use crate::analysis::{known, number_of, rounded};
use pt2onnx_ir::{Builder, Model, Name, Node, NodeId, OpSet, Traits, Use, Value};
use pt2onnx_symbolic::text::MAX_NESTING;
use smallvec::SmallVec;
use std::{str::FromStr, sync::Arc};

/// A pattern of nodes, written as the expression that the nodes compute.
///
/// | written | finds |
/// |---|---|
/// | `x` | any value; the same value wherever the name is written |
/// | `#x` | the same, but only a constant |
/// | `0.5`, `-inf` | a float constant with one element of that value, rounded to its type |
/// | `Mul(x, Sigmoid(x))` | the only output of a node of ONNX's own domain, given patterns for its first inputs |
/// | `com.example.Silu(x)` | the same for a node of the domain `com.example` |
/// | `s:Sigmoid(x)` | the same, and lets `s` be the node's output |
/// | `{a \| b}` | one of several patterns |
/// | `?Cast(Relu(x))` | the node, or else what its first operand pattern finds |
///
/// The inputs of `Add`, `Mul`, `Min`, `Max`, `And` and `Or` may be in either order.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::Pattern;
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[n] x) => (float[n] y) { s = Sigmoid (x) y = Mul (s, x) }"#;
/// let model: Model = text.parse()?;
/// let pattern: Pattern = "Mul(x, s:Sigmoid(x))".parse()?;
/// let mut nodes = model.nodes(Model::MAIN);
/// let found = nodes.find_map(|node| pattern.find(&model, node));
/// assert_eq!(found.and_then(|f| f.value("x")), Some(model.inputs()[0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Part);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// Any value, or any constant; the same under the same name.
    Any {
        name: Name,
        constant: bool,
    },
    /// A constant with one element.
    Number(f64),
    Either(Arc<[Part]>),
    Node {
        label: Option<Name>,
        /// Empty for ONNX's own domain.
        domain: Name,
        op: Name,
        /// The operator as a set, which is faster to look for.
        ops: OpSet,
        /// Whether its two inputs may be in either order.
        commutes: bool,
        inputs: Arc<[Part]>,
    },
}

/// The nodes that a [`Pattern`] found.
#[derive(Clone, Debug)]
pub struct Match<'p> {
    names: SmallVec<[(&'p str, Value); 8]>,
    nodes: SmallVec<[NodeId; 8]>,
    output: Value,
}

impl Match<'_> {
    /// The value with that name in the pattern. `None` if the pattern has no such name, or it is in
    /// an alternative that was not found.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.names.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// A copy of the node whose output has that name.
    pub fn node(&self, cx: &Builder<'_>, name: &str) -> Option<Node> {
        let model = cx.model();
        Some(model[model.producer(self.value(name)?)?].clone())
    }

    /// The only element of the float constant with that name.
    pub fn number(&self, cx: &Builder<'_>, name: &str) -> Option<f64> {
        number_of(&cx.model(), self.value(name)?).map(|(_, number)| number)
    }

    /// The nodes found. Each comes before the ones that compute its inputs.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The output of the last node: the value of the whole pattern.
    pub fn output(&self) -> Value {
        self.output
    }

    /// Whether the output is known to have the shape of `value`: no other operand broadcasts it.
    pub fn keeps_shape(&self, cx: &Builder<'_>, value: Value) -> bool {
        let shapes = cx.known_shape(value).zip(cx.known_shape(self.output));
        shapes.is_some_and(|(a, b)| a == b && a.iter().all(known))
    }
}

impl Pattern {
    /// The operators that the last node of the pattern may have.
    pub fn last_operators(&self) -> Vec<&str> {
        self.0.ends()
    }

    /// The operators without which it finds nothing.
    pub(crate) fn needed(&self) -> OpSet {
        self.0.needed()
    }

    /// Finds the pattern whose last node is `last`. All nodes are in one region, and the outputs of
    /// all nodes but the last are used by nodes of the pattern only.
    pub fn find(&self, model: &Model, last: NodeId) -> Option<Match<'_>> {
        let [output] = *model[last].outputs() else {
            return None;
        };
        let complete = |found: &Match<'_>| {
            let inside = |u: Use| matches!(u, Use::Input(node, _) if found.nodes.contains(&node));
            found.nodes.iter().all(|&node| {
                let own = || model[model[node].outputs()[0]].uses().all(inside);
                model[node].region() == model[last].region() && (node == last || own())
            })
        };
        let empty = Match { names: SmallVec::new(), nodes: SmallVec::new(), output };
        self.0
            .may_be(model, output, LOOKED_AHEAD)
            .then(|| solve(model, &[(&self.0, output)], empty, &complete))?
    }
}

/// How many steps before the last node are looked at before anything is noted: most nodes are none
/// of a pattern.
const LOOKED_AHEAD: usize = 2;

impl Part {
    /// Whether the value may be what the part stands for, as far as its last node or number tells,
    /// and the nodes up to `depth` steps before that.
    fn may_be(&self, model: &Model, value: Value, depth: usize) -> bool {
        match self {
            Self::Any { constant, .. } => !constant || model[value].constant().is_some(),
            Self::Number(number) => is_number(model, value, *number),
            Self::Either(all) => all.iter().any(|part| part.may_be(model, value, depth)),
            Self::Node { domain, op, ops, commutes, inputs, .. } => {
                let producer = model.producer(value).filter(|&id| model.may_be(id, *ops));
                producer.map(|id| &model[id]).is_some_and(|node| {
                    let fits = |order: &[usize; 2]| {
                        operands(node, inputs, *order)
                            .all(|(p, v)| v.is_some_and(|v| p.may_be(model, v, depth - 1)))
                    };
                    // Texts are compared last: mostly, something else differs.
                    node.outputs().len() == 1
                        && node.inputs().len() >= inputs.len()
                        && (depth == 0 || orders(node, *commutes).iter().any(fits))
                        && node.op() == op
                        && node.domain == domain.as_str()
                })
            }
        }
    }

    fn needed(&self) -> OpSet {
        match self {
            Self::Any { .. } | Self::Number(_) => OpSet::default(),
            Self::Either(all) => {
                all.iter().map(Self::needed).reduce(OpSet::intersection).unwrap_or_default()
            }
            Self::Node { ops, inputs, .. } => {
                inputs.iter().map(Self::needed).fold(*ops, OpSet::union)
            }
        }
    }

    fn ends(&self) -> Vec<&str> {
        match self {
            Self::Node { op, .. } => vec![op],
            Self::Either(all) => all.iter().flat_map(Self::ends).collect(),
            Self::Any { .. } | Self::Number(_) => Vec::new(),
        }
    }
}

/// Finds all goals in addition to what is found already, so that the whole is complete. Each goal's
/// value [may be](Part::may_be) its part.
fn solve<'p>(
    model: &Model,
    goals: &[(&'p Part, Value)],
    mut found: Match<'p>,
    complete: &dyn Fn(&Match<'p>) -> bool,
) -> Option<Match<'p>> {
    let Some((&(part, value), rest)) = goals.split_first() else {
        return complete(&found).then_some(found);
    };
    let bind = |found: &mut Match<'p>, name: &'p str| match found.value(name) {
        Some(known) => known == value,
        None => {
            found.names.push((name, value));
            true
        }
    };
    match part {
        Part::Any { name, .. } => {
            bind(&mut found, name).then(|| solve(model, rest, found, complete)).flatten()
        }
        Part::Number(_) => solve(model, rest, found, complete),
        Part::Either(all) => all.iter().filter(|p| p.may_be(model, value, 0)).find_map(|p| {
            let goals: Vec<_> = [(p, value)].into_iter().chain(rest.iter().copied()).collect();
            solve(model, &goals, found.clone(), complete)
        }),
        Part::Node { label, commutes, inputs, .. } => {
            let id = model.producer(value)?;
            let node = &model[id];
            if let Some(label) = label
                && !bind(&mut found, label)
            {
                return None;
            }
            if !found.nodes.contains(&id) {
                found.nodes.push(id);
            }
            orders(node, *commutes).iter().find_map(|order| {
                let mut goals = operands(node, inputs, *order)
                    .map(|(p, value)| Some((p, value?)))
                    .map(|goal| goal.filter(|(p, value)| p.may_be(model, *value, 0)))
                    .collect::<Option<Vec<_>>>()?;
                goals.extend_from_slice(rest);
                solve(model, &goals, found.clone(), complete)
            })
        }
    }
}

/// The orders in which the first two inputs of a node may stand.
fn orders(node: &Node, commutes: bool) -> &'static [[usize; 2]] {
    match commutes {
        true if node.inputs().len() != 2 => &[],
        true => &[[0, 1], [1, 0]],
        false => &[[0, 1]],
    }
}

/// The patterns of a node's inputs, and its inputs in an order.
fn operands<'p>(
    node: &Node,
    inputs: &'p [Part],
    order: [usize; 2],
) -> impl Iterator<Item = (&'p Part, Option<Value>)> {
    let place = move |i: usize| order.get(i).copied().unwrap_or(i);
    inputs.iter().enumerate().map(move |(i, part)| (part, node.input(place(i))))
}

fn commutes(op: &str) -> bool {
    Traits::of(op).contains(Traits::COMMUTATIVE)
}

/// Whether a value is a constant with one element, equal to the number rounded to its type.
fn is_number(model: &Model, value: Value, number: f64) -> bool {
    let Some((dtype, element)) = number_of(model, value) else {
        return false;
    };
    let rounded = rounded(dtype, number);
    element == rounded || (element - rounded).abs() <= rounded.abs() * 1e-12
}

/// A text is not a [`Pattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{pattern}`: {expected} expected {}", place(rest))]
#[non_exhaustive]
pub struct PatternError {
    /// The text.
    pub pattern: String,
    /// What should be there, such as "a name or an operator".
    pub expected: &'static str,
    /// The text from where it should be.
    pub rest: String,
}

fn place(rest: &str) -> String {
    match rest {
        "" => "at the end".to_owned(),
        rest => format!("at `{rest}`"),
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut parser = Parser { rest: text, depth: 0 };
        let parsed = parser.part().and_then(|part| match part {
            _ if !parser.rest.trim().is_empty() => Err("the end"),
            part if part.ends().is_empty() => Err("an operator as the last node"),
            part => Ok(Self(part)),
        });
        parsed.map_err(|expected| PatternError {
            pattern: text.to_owned(),
            expected,
            rest: parser.rest.trim().to_owned(),
        })
    }
}

/// Reads patterns; errors say what is expected at the rest of the text.
struct Parser<'a> {
    rest: &'a str,
    /// How many patterns the current one is inside of.
    depth: u32,
}

impl Parser<'_> {
    fn eat(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Patterns separated by `separator`, up to `close`.
    fn list(
        &mut self,
        separator: char,
        close: char,
        expected: &'static str,
    ) -> Result<Arc<[Part]>, &'static str> {
        let mut all = Vec::new();
        loop {
            all.push(self.part()?);
            if self.eat(close) {
                return Ok(all.into());
            }
            if !self.eat(separator) {
                return Err(expected);
            }
        }
    }

    fn word(&mut self) -> Result<Name, &'static str> {
        self.rest = self.rest.trim_start();
        let inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err("a name, a number or an operator");
        }
        self.rest = rest;
        Ok(word.into())
    }

    fn part(&mut self) -> Result<Part, &'static str> {
        if self.depth == MAX_NESTING {
            return Err("a pattern of at most 64 levels");
        }
        self.depth += 1;
        let part = self.one();
        self.depth -= 1;
        part
    }

    fn one(&mut self) -> Result<Part, &'static str> {
        if self.eat('?') {
            let with = self.part()?;
            let inner = match &with {
                Part::Node { inputs, .. } => {
                    inputs.iter().find(|p| matches!(p, Part::Node { .. } | Part::Either(_)))
                }
                _ => None,
            };
            let without = inner.ok_or("`?` before an operator of another operator")?.clone();
            return Ok(Part::Either([with, without].into()));
        }
        if self.eat('{') {
            return Ok(Part::Either(self.list('|', '}', "`|` or `}`")?));
        }
        if self.eat('#') {
            let name = self.word().ok().filter(|word| word.parse::<f64>().is_err());
            return Ok(Part::Any { name: name.ok_or("a name after `#`")?, constant: true });
        }
        let word = self.word()?;
        if let Ok(number) = word.parse() {
            return Ok(Part::Number(number));
        }
        if self.eat(':') {
            return match self.part()? {
                Part::Node { label: None, domain, op, ops, commutes, inputs } => {
                    Ok(Part::Node { label: Some(word), domain, op, ops, commutes, inputs })
                }
                _ => Err("an operator after `:`"),
            };
        }
        if self.eat('(') {
            let inputs = self.list(',', ')', "`,` or `)`")?;
            let (domain, op) = word.rsplit_once('.').unwrap_or(("", &word));
            return Ok(Part::Node {
                label: None,
                domain: domain.into(),
                op: op.into(),
                ops: OpSet::from_iter([op]),
                commutes: domain.is_empty() && commutes(op) && inputs.len() == 2,
                inputs,
            });
        }
        Ok(Part::Any { name: word, constant: false })
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use pt2onnx_ir::Model;

    #[test]
    fn domains_are_told_apart() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20, "com.example" : 1]>
            main_graph (float[n] x) => (float[n] y) { a = Relu (x) b = com.example.Relu (a) y = Relu (b) }"#;
        let model: Model = text.parse().unwrap();
        let found = |pattern: &str| {
            let pattern: Pattern = pattern.parse().unwrap();
            let nodes = model.nodes(Model::MAIN).enumerate();
            let found = nodes.filter(|(_, id)| pattern.find(&model, *id).is_some());
            found.map(|(i, _)| i).collect::<Vec<_>>()
        };
        assert_eq!(found("Relu(x)"), [0, 2]);
        assert_eq!(found("com.example.Relu(x)"), [1]);
        assert_eq!(found("Relu(com.example.Relu(Relu(x)))"), [2]);
        assert!(found("Relu(Relu(x))").is_empty());
    }

    #[test]
    fn constants_are_told_apart_in_either_order() {
        let text = r#"<ir_version: 9, opset_import: ["" : 20]>
            main_graph (float[n] x) => (float[n] y, float[n] z) <float[1] two = {2.0}> {
                y = Mul (two, x) z = Mul (x, x) }"#;
        let model: Model = text.parse().unwrap();
        let pattern: Pattern = "Mul(a, #b)".parse().unwrap();
        let found: Vec<_> =
            model.nodes(Model::MAIN).map(|node| pattern.find(&model, node)).collect();
        let x = model.inputs()[0];
        assert_eq!(found[0].as_ref().and_then(|found| found.value("a")), Some(x));
        assert!(found[1].is_none());
    }

    #[test]
    fn errors_say_what_is_expected_and_where() {
        let nested = |depth| format!("{}x{}", "Relu(".repeat(depth), ")".repeat(depth));
        let deep = format!("{}Relu(x)", "Relu(".repeat(64));
        assert!(nested(63).parse::<Pattern>().is_ok());
        for text in [nested(64), nested(100_000), "?".repeat(100_000), "a:".repeat(100_000)] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert_eq!(error.expected, "a pattern of at most 64 levels");
        }
        for (text, error) in [
            ("", "a name, a number or an operator expected at the end"),
            ("x", "an operator as the last node expected at the end"),
            ("Mul(x", "`,` or `)` expected at the end"),
            ("Mul(x; y)", "`,` or `)` expected at `; y)`"),
            ("{Relu(x), Neg(x)}", "`|` or `}` expected at `, Neg(x)}`"),
            ("Relu(x) y", "the end expected at `y`"),
            ("Mul(x, #)", "a name after `#` expected at `)`"),
            ("Mul(x, #2)", "a name after `#` expected at `)`"),
            (&deep, "a pattern of at most 64 levels expected at `Relu(x)`"),
            ("a:b:Relu(x)", "an operator after `:` expected at the end"),
            ("Relu(?Neg(x))", "`?` before an operator of another operator expected at `)`"),
        ] {
            let found = text.parse::<Pattern>().unwrap_err().to_string();
            assert_eq!(found, format!("pattern `{text}`: {error}"));
        }
    }
}
