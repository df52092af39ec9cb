//! Conditions on the sizes of inputs, computed by nodes, and checks: nodes that fail where a
//! condition does not hold, with the reason as their name, which runtimes print.
//!
//! A check is a `Reshape` of an input to the sizes that it has, or to larger ones where the
//! condition does not hold, which is an error in every runtime. All else takes the input from it,
//! so that nothing is computed before.

use crate::legalise::{LegaliseError, legalise};
use pt2onnx_ir::{
    Attributes, Builder, Diagnostics, InsertPoint, Model, Name, NodeId, RegionId, Type, Use, Value,
    schema::CANONICAL_OPSET,
};
use pt2onnx_symbolic::{Constraints, Expr, Range, Symbol};
use rustc_hash::FxHashSet;

/// Where sizes are read: a symbol, an input of the main graph and its axis.
pub type SizeSources = [(Symbol, Value, usize)];

/// Conditions on sizes that a model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeCheck {
    /// The conditions, which hold together.
    pub holds: Vec<Expr>,
    /// The name of the node that fails where one does not hold.
    pub reason: String,
}

/// Conditions on sizes that nodes cannot compute.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeCheckError {
    /// A function or symbol of a condition.
    #[error("a condition on sizes cannot be computed: {0}")]
    Compute(Diagnostics),
    /// A condition with more parts than an expression may have.
    #[error("a condition on sizes is too large")]
    TooLarge,
    /// The opset of the model does not have the operators.
    #[error(transparent)]
    Legalise(LegaliseError),
}

/// Computes conditions on sizes before all other nodes of the main graph. Returns bools, which are
/// vectors of one element, as `If` takes them: a scalar would need one more node.
///
/// # Errors
/// See [`SizeCheckError`].
pub fn compute_conditions(
    model: &mut Model,
    conditions: &[Expr],
    sources: &SizeSources,
) -> Result<Vec<Value>, SizeCheckError> {
    let first = model.nodes(Model::MAIN).next();
    computed(model, sources, first, |cx, _| conditions.iter().map(|c| cx.element(c)).collect())
}

/// Makes the main graph fail where a condition on sizes does not hold.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::{SizeCheck, check_sizes};
/// use pt2onnx_symbolic::Expr;
///
/// let mut model: Model = "g (float[n,2] x) => (float[n,2] y) { y = Relu (x) }".parse()?;
/// let holds = vec![Expr::parse("n <= 8")?];
/// let check = SizeCheck { holds, reason: "n is at most 8".into() };
/// let x = model.inputs()[0];
/// check_sizes(&mut model, &[check], &[("n".into(), x, 0)])?;
/// assert!(model.to_string().contains("Reshape"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`SizeCheckError`]. The model is then unchanged.
pub fn check_sizes(
    model: &mut Model,
    checks: &[SizeCheck],
    sources: &SizeSources,
) -> Result<(), SizeCheckError> {
    // Each check with the inputs that have its sizes.
    let mut places: Vec<(&SizeCheck, Value)> = Vec::new();
    for check in checks {
        let mut symbols: Vec<Symbol> = check.holds.iter().flat_map(Expr::symbols).collect();
        if symbols.iter().any(|symbol| Expr::is_opaque(symbol)) {
            return Err(SizeCheckError::TooLarge);
        }
        symbols.retain(|symbol| sources.iter().any(|(s, ..)| s == symbol));
        let has = |value: &Value| {
            let sizes = model.shape(*value).into_iter().flatten();
            sizes.into_iter().any(|size| symbols.iter().any(|s| size.contains_symbol(s)))
        };
        let read = sources.iter().filter(|(s, ..)| symbols.contains(s)).map(|(_, v, _)| *v);
        let read: Vec<Value> = read.collect();
        let inputs = model.inputs().iter().copied();
        places.extend(inputs.filter(|v| has(v) || read.contains(v)).map(|v| (check, v)));
    }
    places.retain(|(_, input)| model.rank(*input).is_some_and(|rank| rank > 0));
    let first = model.nodes(Model::MAIN).next();
    let targets = computed(model, sources, first, |cx, inside| {
        let target =
            |(check, input): &(&SizeCheck, Value)| target(cx, inside(*input), &check.holds);
        places.iter().map(target).collect()
    })?;
    let mut before: FxHashSet<NodeId> = FxHashSet::default();
    before.extend(model.nodes(Model::MAIN).take_while(|node| Some(*node) != first));
    for ((check, input), target) in places.into_iter().zip(targets) {
        put_check(model, input, target, &check.reason, first, &mut before);
    }
    Ok(())
}

/// The sizes that a check reshapes `x` to.
fn target(cx: &Builder, x: Value, holds: &[Expr]) -> Value {
    let sizes = cx.sizes(&cx.shape(x));
    let each = holds.iter().map(|one| cx.cast(cx.element(one), pt2onnx_tensor::DType::Bool));
    let Some(holds) = each.reduce(|one, other| cx.and(one, other)) else { return sizes };
    cx.select(holds, sizes, cx.add(sizes, 1))
}

/// Makes all but the nodes `before` take an input through a check.
fn put_check(
    model: &mut Model,
    input: Value,
    target: Value,
    reason: &str,
    first: Option<NodeId>,
    before: &mut FxHashSet<NodeId>,
) {
    let at = first.map_or(InsertPoint::End(Model::MAIN), InsertPoint::Before);
    let operands = [Some(input), Some(target)];
    let node = model.add_node(at, "Reshape", &operands, Attributes::new(), 1);
    model[node].name = Some(reason.into());
    before.insert(node);
    let checked = model[node].outputs()[0];
    model[checked].ty = model[input].ty.clone();
    let uses: Vec<Use> = model[input].uses().collect();
    let inputs = uses.iter().filter_map(|at| at.input());
    for (user, i) in inputs.filter(|(user, _)| !before.contains(user)) {
        model.replace_input(user, i, Some(checked));
    }
    for region in uses.into_iter().filter_map(|at| match at {
        Use::Output(region, _) => Some(region),
        Use::Input(..) => None,
    }) {
        replace_outputs(model, region, input, checked);
    }
}

/// Replaces a value in the outputs of a region, which keep their names. Outputs of the main graph
/// that have the name of the input stay.
fn replace_outputs(model: &mut Model, region: RegionId, old: Value, new: Value) {
    let slots = model[region].outputs();
    let names: Vec<Option<Name>> = slots.iter().map(|s| model.output_name(s).cloned()).collect();
    if names.iter().any(|name| name.is_some() && *name == model[old].name) {
        return;
    }
    let values: Vec<Value> = model[region].output_values().collect();
    let values: Vec<Value> = values.into_iter().map(|v| if v == old { new } else { v }).collect();
    model.set_outputs(region, &values);
    for (i, name) in names.into_iter().enumerate() {
        if let Some(name) = name.filter(|name| model[values[i]].name.as_ref() != Some(name)) {
            model.set_output_name(region, i, name);
        }
    }
}

/// The type of what a check gives: that of its input. Other nodes are `None`.
pub(crate) fn checked(cx: &Builder, id: NodeId) -> Option<Type> {
    let (input, [sizes, others]) = {
        let model = cx.model();
        let node = Some(&model[id]).filter(|node| node.is("Reshape"))?;
        let target = &model[model.producer(node.input(1)?)?];
        let target = Some(target).filter(|target| target.is("Where"))?;
        (node.input(0)?, [target.input(1)?, target.input(2)?])
    };
    let (own, sizes, others) = (cx.known_shape(input)?, cx.contents(sizes)?, cx.contents(others)?);
    let larger = |(size, other): (&Expr, &Expr)| *other == size + 1;
    let fails = !own.is_empty() && others.len() == sizes.len();
    let fails = fails && own == sizes && sizes.iter().zip(&others).all(larger);
    cx.type_of(input).filter(|_| fails)
}

/// Puts nodes in front of the node `first` of the main graph, in the form of the model's opset.
/// `emit` gets the inputs as the builder has them, and returns what it computes.
fn computed(
    model: &mut Model,
    sources: &SizeSources,
    first: Option<NodeId>,
    emit: impl FnOnce(&Builder, &dyn Fn(Value) -> Value) -> Vec<Value>,
) -> Result<Vec<Value>, SizeCheckError> {
    let mut scratch = Model::new(CANONICAL_OPSET);
    let mut given: Vec<(Value, Value)> = Vec::new();
    let mut constraints = Constraints::new();
    for &input in model.inputs() {
        let inside = scratch.add_input(Model::MAIN, model[input].ty.clone());
        given.push((inside, input));
        for size in model.shape(input).into_iter().flatten() {
            constraints.constrain(size, Range::at_least(0));
        }
    }
    let inside = |input: Value| {
        let known = given.iter().find(|(_, outside)| *outside == input);
        known.map_or(input, |(inside, _)| *inside)
    };
    let cx = Builder::new(&mut scratch, InsertPoint::End(Model::MAIN), constraints);
    for (symbol, input, axis) in sources {
        cx.rebind_dim(symbol, inside(*input), *axis);
    }
    given.iter().for_each(|(inside, _)| cx.bind_dims(*inside));
    let results = emit(&cx, &inside);
    let diagnostics = cx.take_diagnostics();
    if !diagnostics.is_empty() {
        return Err(SizeCheckError::Compute(diagnostics));
    }
    drop(cx);
    scratch.set_outputs(Model::MAIN, &results);
    if ![0, CANONICAL_OPSET].contains(&model.opset) {
        legalise(&mut scratch, model.opset).map_err(SizeCheckError::Legalise)?;
    }
    if model.opset == 0 {
        model.opset = CANONICAL_OPSET;
    }
    let at = first.map_or(InsertPoint::End(Model::MAIN), InsertPoint::Before);
    Ok(model.copy_nodes(&scratch, &given, at))
}
