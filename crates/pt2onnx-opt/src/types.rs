//! Types of models of other producers: they follow from the inputs, instead of being read from the
//! file.

use crate::{
    GraphMut, analysis, contrib_types, eval, ml_types,
    opaque::{self, Raising},
    opsets::CONVERTED_OPSETS,
    size_checks,
    sizes::{self, Computed},
    slices::{self, Ends},
    unreachable_branches::{self, Taken},
};
use pt2onnx_ir::{
    Builder, InsertPoint, Model, Node, NodeId, RegionId, TensorType, Type, Value, attrs,
};
use pt2onnx_symbolic::{Constraints, Expr, Range};
use rustc_hash::FxHashSet;

/// Sets the types that follow from the types of inputs and constants. Where nothing follows, as for
/// operators of other domains, the model's types are kept; for outputs of the graph and of bodies
/// also the shapes.
pub fn infer_types(model: &mut Model) {
    let bodies = claims_of_bodies(model);
    let claims: Vec<_> = model.output_values().map(|v| (v, model[v].ty.clone())).collect();
    opaque::each_graph(model, |graph| {
        infer(graph, None, &Taken::default());
    });
    for (value, claim) in claims {
        match (&mut model[value].ty, claim) {
            (Some(Type::Tensor(tensor)), Some(Type::Tensor(claim))) => {
                tensor.shape = tensor.shape.take().or(claim.shape);
            }
            // The claim is more precise for sequences and the like.
            (ty, Some(claim)) if claim.as_tensor().is_none() => *ty = Some(claim),
            _ => {}
        }
    }
    for (body, claims) in bodies {
        restore_sizes(model, Some(body), claims);
    }
}

/// Gives each output of the graph that has no type the one that follows. Files should declare these
/// types, but runtimes do not need them.
pub fn infer_output_types(model: &mut Model) {
    if model.output_values().all(|v| model[v].ty.is_some()) {
        return;
    }
    let mut raised = model.clone();
    opaque::each_graph_of(&CONVERTED_OPSETS, &mut raised, |graph| {
        let raising = Raising { written: graph.opset, alike: false };
        infer(graph, Some(raising), &Taken::default());
    });
    let outputs: Vec<Value> = model.output_values().collect();
    for (value, found) in outputs.into_iter().zip(raised.output_values()) {
        if model[value].ty.is_none() {
            let mut ty = raised[found].ty.clone();
            ty.iter_mut().for_each(|ty| number_sizes(model, ty));
            model[value].ty = ty;
        }
    }
}

/// Replaces unknown sizes of another model by new ones of this model.
fn number_sizes(model: &mut Model, ty: &mut Type) {
    match ty {
        Type::Tensor(TensorType { shape: Some(sizes), .. }) => {
            let unknown = sizes.iter_mut().filter(|size| !analysis::known(size));
            unknown.for_each(|size| *size = model.unknown_dim());
        }
        Type::Sequence(inner) | Type::Optional(inner) => number_sizes(model, inner),
        _ => {}
    }
}

/// Calls `work`, and gives the graph's outputs the types back that they had before. Outputs of
/// bodies get those whose sizes do not follow: runtimes take the sizes of a loop that never runs
/// from there.
pub(crate) fn keeping_outputs<T>(model: &mut Model, work: impl FnOnce(&mut Model) -> T) -> T {
    let bodies = claims_of_bodies(model);
    let claims: Vec<_> = model.output_values().map(|v| model[v].ty.clone()).collect();
    let done = work(model);
    for (value, claim) in model.output_values().collect::<Vec<_>>().into_iter().zip(claims) {
        model[value].ty = claim;
    }
    let left = FxHashSet::from_iter(self::bodies(model));
    for (body, claims) in bodies {
        restore_sizes(model, Some(body).filter(|body| left.contains(body)), claims);
    }
    done
}

fn bodies(model: &Model) -> Vec<RegionId> {
    model.all_nodes().into_iter().flat_map(|n| model[n].regions().collect::<Vec<_>>()).collect()
}

/// The types that outputs of bodies have.
fn claims_of_bodies(model: &Model) -> Vec<(RegionId, Vec<Option<Type>>)> {
    { bodies(model).into_iter() }
        .map(|body| (body, model[body].output_values().map(|v| model[v].ty.clone()).collect()))
        .collect()
}

/// Gives outputs of a body without sizes those of these types.
fn restore_sizes(model: &mut Model, body: Option<RegionId>, claims: Vec<Option<Type>>) {
    let outputs: Vec<_> = body.into_iter().flat_map(|b| model[b].output_values()).collect();
    if outputs.len() != claims.len() {
        return;
    }
    for (value, claim) in outputs.into_iter().zip(claims) {
        let own = model.producer(value).is_some_and(|n| Some(model[n].region()) == body);
        if let (true, Some(Type::Tensor(ty)), Some(Type::Tensor(claim))) =
            (own, &mut model[value].ty, claim)
            && ty.dtype == claim.dtype
        {
            ty.shape = ty.shape.take().or(claim.shape);
        }
    }
}

/// [`infer_types`] for one graph; returns the sizes that it computes. With `raised`, opaque nodes
/// become nodes of the canonical form where that is possible.
pub(crate) fn infer(graph: &mut GraphMut<'_>, raised: Option<Raising>, taken: &Taken) -> Computed {
    let at = InsertPoint::End(graph.region);
    let constraints = not_negative(graph.model, graph.region);
    let cx = Builder::new(&mut *graph.model, at, constraints);
    let mut walk = Walk { cx: &cx, taken, found: Computed::default(), ends: Ends::default() };
    walk.region(graph.region, raised);
    walk.found
}

/// No size of an input is negative.
fn not_negative(model: &Model, region: RegionId) -> Constraints {
    let mut constraints = Constraints::default();
    let shapes = model[region].inputs().iter().filter_map(|&input| model.shape(input));
    for size in shapes.flatten() {
        constraints.constrain(size, Range::at_least(0));
    }
    constraints
}

struct Walk<'a, 'm> {
    cx: &'a Builder<'m>,
    taken: &'a Taken,
    found: Computed,
    ends: Ends,
}

impl Walk<'_, '_> {
    fn region(&mut self, region_id: RegionId, raised: Option<Raising>) {
        let cx = self.cx;
        let nodes: Vec<NodeId> = cx.model().nodes(region_id).collect();
        for id in nodes {
            pt2onnx_cancel::check();
            if let Some(raising) = raised {
                cx.edit(|model| opaque::raise(model, id, raising));
            }
            // Nodes that replace this one have types.
            if !cx.model().contains(id) {
                continue;
            }
            let bodies: Vec<RegionId> = cx.model()[id].regions().collect();
            let own = raised.filter(|_| cx.model()[id].domain.is_empty());
            bodies.into_iter().for_each(|body| self.region(body, own));
            match () {
                () if *cx.model()[id].domain == *ml_types::DOMAIN => {
                    self.set(id, ml_types::types(cx, id))
                }
                () if contrib_types::has(&cx.model()[id]) => {
                    self.set(id, contrib_types::types(cx, id))
                }
                () if cx.model()[id].is("Scan") => {
                    self.set(id, scanned(cx, id).unwrap_or_default());
                    self.carry(id, 0);
                }
                () if cx.model()[id].is("Loop") => self.carry(id, 1),
                () => {}
            }
            if !known(&cx.model(), id) {
                continue;
            }
            // Nobody has verified the model: a type that cannot be inferred is not an error.
            let taken = self.taken.get(&id).copied();
            let taken = taken.or_else(|| unreachable_branches::taken_by_users(&cx.model(), id));
            let types = match taken {
                Some(branch) => unreachable_branches::types(&cx.model(), branch),
                None if let Some(ty) = size_checks::checked(cx, id) => vec![Some(ty)],
                None => cx.inferred(id).unwrap_or_default(),
            };
            let (outputs, differ) = {
                let model = cx.model();
                (model[id].outputs().to_vec(), counts_differ(&model[id]))
            };
            for (&value, ty) in outputs.iter().zip(types) {
                if let Some(ty) = ty.map(|ty| slices::whole(cx, id, ty)) {
                    slices::note(cx, id, &ty, &mut self.ends);
                    let ty = slices::broadcast(cx, id, ty, &self.ends);
                    cx.set_type(value, if differ { without_spatial(cx, ty) } else { ty });
                }
            }
            for (value, elements) in sizes::contents(cx, id) {
                cx.set_contents(value, elements.clone());
                self.found.insert(value, elements);
            }
        }
    }
}

impl Walk<'_, '_> {
    /// Sets types of outputs. The model's own types are kept where nothing follows.
    fn set(&self, id: NodeId, types: Vec<Option<Type>>) {
        let outputs = self.cx.model()[id].outputs().to_vec();
        for (value, ty) in outputs.into_iter().zip(types) {
            if let Some(ty) = ty {
                self.cx.set_type(value, ty);
            }
        }
    }

    /// Sets the types of a loop's outputs after the `first`, where the model declares none.
    fn carry(&self, id: NodeId, first: usize) {
        let types: Vec<Option<Type>> = {
            let model = self.cx.model();
            let body = model[id].regions().next();
            let results = body.into_iter().flat_map(|b| model[b].output_values()).skip(first);
            let elements = |(&value, result): (&Value, Value)| match model[result]
                .ty
                .as_ref()
                .filter(|_| model[value].ty.is_none())?
            {
                Type::Tensor(ty) => Some(Type::Tensor(TensorType { dtype: ty.dtype, shape: None })),
                other => Some(other.clone()),
            };
            model[id].outputs().iter().zip(results).map(elements).collect()
        };
        self.set(id, types);
    }
}

/// The types of what a `Scan` collects from its iterations: those of its body's outputs, with one
/// dimension more. The body's inputs have the type that the model claims, which is only relied on
/// if it has as many dimensions as the parts of what is scanned.
fn scanned(cx: &Builder, id: NodeId) -> Option<Vec<Option<Type>>> {
    let (axes, results, states) = {
        let model = cx.model();
        let node = &model[id];
        let body = node.regions().next()?;
        let scanned = usize::try_from(node.read::<i64>("num_scan_inputs").ok()??).ok()?;
        let states = node.inputs().len().checked_sub(scanned)?;
        let inside = model[body].inputs().get(states..)?;
        let outside = (states..node.inputs().len()).map(|i| node.input(i));
        for (&part, whole) in inside.iter().zip(outside) {
            let whole = model.rank(whole?)?;
            if model.rank(part)? + 1 != whole {
                return None;
            }
        }
        let axes = attrs::Scan::read(node).ok()?.scan_output_axes;
        let types: Vec<Option<Type>> =
            model[body].output_values().skip(states).map(|v| model[v].ty.clone()).collect();
        (axes, types, states)
    };
    let stacked = |(i, ty): (usize, Option<Type>)| {
        let Type::Tensor(TensorType { dtype, shape: Some(shape) }) = ty? else { return None };
        let axis = axes.as_ref().map_or(Some(0), |axes| axes.get(i).copied())?;
        let axis = eval::axis(axis, shape.len() + 1)?;
        // A size of the body has no name outside.
        let outside = |d: &Expr| d.as_int().map_or_else(|| cx.unknown_dim(), Expr::int);
        let mut sizes: Vec<Expr> = shape.iter().map(outside).collect();
        sizes.insert(axis, cx.unknown_dim());
        Some(Type::tensor(dtype, sizes))
    };
    Some(
        vec![None; states]
            .into_iter()
            .chain(results.into_iter().enumerate().map(stacked))
            .collect(),
    )
}

fn known(model: &Model, id: NodeId) -> bool {
    let node = &model[id];
    // Values that a loop carries may change their sizes.
    let carries = matches!(node.op(), "Loop" | "Scan");
    node.domain.is_empty() && !carries
}

/// Whether opsets may count a pool's windows differently: the last may start in the padding.
fn counts_differ(node: &Node) -> bool {
    let read = |name: &'static str| node.read::<&[i64]>(name).ok().flatten().unwrap_or_default();
    let (kernel, strides, pads) = (read("kernel_shape"), read("strides"), read("pads"));
    let inside = pads.iter().all(|&p| p == 0) && strides.iter().zip(kernel).all(|(s, k)| s <= k);
    node.read("ceil_mode") == Ok(Some(true)) && !inside
}

/// A type whose sizes from the third on are not known.
fn without_spatial(cx: &Builder, ty: Type) -> Type {
    let Type::Tensor(TensorType { dtype, shape: Some(shape) }) = ty else {
        return ty;
    };
    let unknown = |(i, dim)| if i < 2 { dim } else { cx.unknown_dim() };
    Type::tensor(dtype, shape.into_iter().enumerate().map(unknown).collect::<Vec<_>>())
}
