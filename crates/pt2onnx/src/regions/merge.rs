//! Puts the models of a decision tree into one model.

use super::{
    error::ChooseError,
    interface::{Interface, Places, free, name},
    tree::{Plan, Region, Tree},
    weights::Weights,
};
use crate::dims::{self, Scope};
use pt2onnx_ir::{
    Attribute, Attributes, Def, InsertPoint, Metadata, Model, RegionId, TensorType, Type, Value,
    is_unknown,
};
use pt2onnx_opt::{SizeCheck, check_sizes, compute_conditions, infer_types, merge_branches};
use pt2onnx_symbolic::{Constraints, Expr, Symbol};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Key in the metadata of a merged model: its regions, as JSON.
const REGIONS: &str = "pkg.pt2onnx.regions";

/// A decision tree on sizes, and what is known of them.
pub(crate) struct Decision<'a> {
    pub tree: &'a Tree,
    pub places: &'a Places,
    /// Ranges of the sizes.
    pub known: &'a Constraints,
    /// Conditions that only tests have joined.
    pub tested: &'a [String],
}

/// The model that does the same as the one of `models` that a decision tree chooses. All are of one
/// opset and have names.
pub(crate) fn merge(
    mut models: Vec<Model>,
    scope: Scope,
    decision: &Decision<'_>,
) -> Result<Model, ChooseError> {
    let plan = plan(&models, decision)?;
    let interface = Interface::new(&models, decision.places)?;
    let mut taken = BTreeSet::new();
    models.iter_mut().for_each(|model| interface.rename(model, scope, &mut taken));
    let outputs = outputs(&models)?;
    let mut merged = header(&models);
    let inputs = add_inputs(&mut merged, &interface, &models);
    let sources: Vec<(Symbol, Value, usize)> = decision
        .places
        .iter()
        .filter_map(|(symbol, (input, axis))| {
            Some((symbol.as_str().into(), *inputs.get(input)?, (*axis)?))
        })
        .collect();
    let mut conditions = Vec::new();
    let mut of_flags: Vec<(Expr, Value)> = Vec::new();
    plan.tree.each_condition(&mut |condition| match flag(condition, decision.places, &inputs) {
        Some(value) => of_flags.push((condition.clone(), value)),
        None => conditions.push(condition.clone()),
    });
    let values = compute_conditions(&mut merged, &conditions, &sources)?;
    let mut branches = Branches {
        merged: &mut merged,
        models: &models,
        inputs: &inputs,
        outputs: &outputs,
        conditions: conditions.into_iter().zip(values).chain(of_flags).collect(),
        weights: Weights::default(),
    };
    let results = branches.put(&plan.tree, Model::MAIN);
    merged.set_outputs(Model::MAIN, &results);
    for (i, output) in outputs.iter().enumerate() {
        merged.set_output_name(Model::MAIN, i, output.as_str());
    }
    infer_types(&mut merged);
    merge_branches(&mut merged);
    infer_types(&mut merged);
    let checks = plan.checks.iter();
    let checks =
        checks.map(|(reason, holds)| SizeCheck { holds: holds.clone(), reason: reason.clone() });
    check_sizes(&mut merged, &checks.collect::<Vec<_>>(), &sources)?;
    set_output_types(&mut merged, &models, &outputs, &plan, decision.known, &mut taken);
    merged.metadata.push((REGIONS.into(), described(&plan, decision.tested).as_str().into()));
    merged.assign_names();
    Ok(merged)
}

/// The input that decides a condition by its one element.
fn flag(condition: &Expr, places: &Places, inputs: &FxHashMap<String, Value>) -> Option<Value> {
    let symbols = condition.symbols();
    let place = symbols.iter().find_map(|symbol| places.get(&**symbol));
    place.filter(|(_, axis)| axis.is_none()).and_then(|(input, _)| inputs.get(input).copied())
}

/// The models that sizes take, each with the conditions under which it is chosen, as text.
pub(crate) fn regions(
    models: &[Model],
    decision: &Decision<'_>,
) -> Result<Vec<(usize, Vec<String>)>, ChooseError> {
    let plan = plan(models, decision)?;
    let models = plan.regions.iter().filter_map(|region| match region.leaf {
        Tree::Model(model) => Some((model, region.conditions())),
        _ => None,
    });
    Ok(models.collect())
}

/// The decision tree without impossible paths.
fn plan(models: &[Model], decision: &Decision<'_>) -> Result<Plan, ChooseError> {
    if decision.tree.is_too_large() {
        return Err(ChooseError::TooLarge);
    }
    let mut wrong = None;
    decision.tree.each_condition(&mut |condition| {
        let unknown = |symbol: &Symbol| !decision.places.contains_key(&**symbol);
        if let Some(symbol) = condition.symbols().into_iter().find(unknown) {
            wrong.get_or_insert_with(|| ChooseError::Symbol {
                condition: condition.to_string(),
                symbol: symbol.to_string(),
                known: decision.places.keys().cloned().collect(),
            });
        }
    });
    if let Some(error) = wrong {
        return Err(error);
    }
    let plan = Plan::new(decision.tree, decision.known).ok_or(ChooseError::None)?;
    for region in &plan.regions {
        if let Tree::Model(model) = region.leaf
            && model >= models.len()
        {
            return Err(ChooseError::NoModel { model, count: models.len() });
        }
    }
    Ok(plan)
}

/// The names of the outputs, which all models have.
fn outputs(models: &[Model]) -> Result<Vec<String>, ChooseError> {
    let of = |model: &Model| -> Vec<(String, Option<Type>)> {
        model.output_values().map(|v| (name(model, v), model[v].ty.clone())).collect()
    };
    let mut all = models.iter().map(of);
    let first = all.next().unwrap_or_default();
    for other in all {
        let names = |all: &[(String, Option<Type>)]| -> Vec<String> {
            all.iter().map(|(name, _)| name.clone()).collect()
        };
        let types: FxHashMap<&String, &Option<Type>> = other.iter().map(|(n, t)| (n, t)).collect();
        if first.len() != other.len() || first.iter().any(|(name, _)| !types.contains_key(name)) {
            return Err(ChooseError::Outputs { first: names(&first), second: names(&other) });
        }
        for (name, ty) in &first {
            let (Some(first), Some(second)) =
                (ty, types.get(name).copied().and_then(Option::as_ref))
            else {
                continue;
            };
            let same = match (first, second) {
                (Type::Tensor(a), Type::Tensor(b)) => a.dtype == b.dtype,
                (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
            };
            if !same {
                let (first, second) = (first.to_string(), second.to_string());
                return Err(ChooseError::Differ {
                    end: "output",
                    name: name.clone(),
                    first,
                    second,
                });
            }
        }
    }
    Ok(first.into_iter().map(|(name, _)| name).collect())
}

/// An empty model with what the headers of all models have in common.
fn header(models: &[Model]) -> Model {
    let mut merged = Model::new(models.first().map_or(0, |model| model.opset));
    let Some((first, rest)) = models.split_first() else { return merged };
    let common = |of: fn(&Model) -> &Metadata| -> Metadata {
        let all = of(first).iter();
        all.filter(|entry| rest.iter().all(|other| of(other).contains(entry))).cloned().collect()
    };
    merged.metadata = common(|model| &model.metadata);
    merged.graph_metadata = common(|model| &model.graph_metadata);
    merged.metadata.retain(|(key, _)| ![REGIONS, super::CONDITIONS].contains(&&**key));
    merged.ir_version = models.iter().map(|model| model.ir_version).max().flatten();
    merged.name.clone_from(&first.name);
    merged.producer.clone_from(&first.producer);
    merged.producer_version.clone_from(&first.producer_version);
    merged.domain.clone_from(&first.domain);
    merged.model_version = first.model_version;
    merged.doc_string.clone_from(&first.doc_string);
    merged.source_lines = first.source_lines;
    for (domain, version) in models.iter().flat_map(|model| &model.imports) {
        merged.imports.entry(domain.clone()).or_insert(*version);
    }
    merged
}

/// Adds the inputs, described as in the first model that has them.
fn add_inputs(
    merged: &mut Model,
    interface: &Interface,
    models: &[Model],
) -> FxHashMap<String, Value> {
    let mut inputs = FxHashMap::default();
    for (name, ty) in &interface.inputs {
        let value = merged.add_input(Model::MAIN, ty.clone());
        let described = models.iter().find_map(|model| {
            let input = model.inputs().iter().find(|v| model[**v].name.as_deref() == Some(name));
            input.map(|input| &model[*input])
        });
        merged[value].name = Some(name.as_str().into());
        if let Some(own) = described {
            merged[value].metadata.clone_from(&own.metadata);
            merged[value].doc_string.clone_from(&own.doc_string);
            merged[value].default.clone_from(&own.default);
        }
        inputs.insert(name.clone(), value);
    }
    inputs
}

/// Puts models into branches.
struct Branches<'a> {
    merged: &'a mut Model,
    models: &'a [Model],
    inputs: &'a FxHashMap<String, Value>,
    outputs: &'a [String],
    conditions: FxHashMap<Expr, Value>,
    weights: Weights,
}

impl Branches<'_> {
    /// Puts a tree at the end of a region; returns its results.
    fn put(&mut self, tree: &Tree, region: RegionId) -> Vec<Value> {
        match tree {
            Tree::Model(model) => {
                self.models.get(*model).map_or(Vec::new(), |m| self.copy(m, region))
            }
            // A plan has none.
            Tree::Refused(_) => Vec::new(),
            Tree::If(condition, both) => {
                let condition = self.conditions.get(condition).copied();
                let [yes, no] = [&both.0, &both.1].map(|part| {
                    let branch = self.merged.add_region();
                    let results = self.put(part, branch);
                    self.merged.set_outputs(branch, &results);
                    branch
                });
                let attributes = Attributes::from_iter([
                    ("then_branch".into(), Attribute::Region(yes)),
                    ("else_branch".into(), Attribute::Region(no)),
                ]);
                let (at, count) = (InsertPoint::End(region), self.outputs.len());
                let node = self.merged.add_node(at, "If", &[condition], attributes, count);
                self.merged[node].outputs().to_vec()
            }
        }
    }

    /// Whether a model has a number where the merged one has a name.
    fn is_specialised(&self, model: &Model) -> bool {
        model.inputs().iter().any(|&input| {
            let merged = self.inputs.get(&name(model, input)).and_then(|v| self.merged.shape(*v));
            let own = model.shape(input).into_iter().flatten();
            own.zip(merged.into_iter().flatten()).any(|(own, merged)| own != merged)
        })
    }

    /// Copies a model to the end of a region; returns its outputs in the order of all.
    fn copy(&mut self, model: &Model, region: RegionId) -> Vec<Value> {
        let inputs = model.inputs().iter();
        let inputs = inputs.filter_map(|v| Some((*v, *self.inputs.get(&name(model, *v))?)));
        let mut given: Vec<(Value, Value)> = inputs.collect();
        given.extend(self.weights.shared(self.merged, model));
        let first = self.merged.values().count();
        let results = self.merged.copy_nodes(model, &given, InsertPoint::End(region));
        self.weights.add(self.merged, first);
        if self.is_specialised(model) {
            forget_sizes(self.merged, first);
        }
        let names: Vec<String> = model.output_values().map(|v| name(model, v)).collect();
        let place = |output: &String| names.iter().position(|name| name == output);
        let outputs = self.outputs.iter().filter_map(|o| results.get(place(o)?).copied());
        outputs.collect()
    }
}

/// Makes the sizes of node results from a number on unknown: they hold only for some sizes.
fn forget_sizes(model: &mut Model, first: usize) {
    let made = model.values_from(first).filter(|(_, data)| matches!(data.def(), Def::Node(..)));
    for value in made.map(|(value, _)| value).collect::<Vec<_>>() {
        let rank = model.rank(value).unwrap_or_default();
        let unknown: Vec<Expr> = (0..rank).map(|_| model.unknown_dim()).collect();
        if let Some(Type::Tensor(TensorType { shape: Some(sizes), .. })) = &mut model[value].ty {
            *sizes = unknown;
        }
    }
}

/// Sets the types of outputs: a size is that of a model if it is the same in all others, where
/// these are chosen. Other sizes get names.
fn set_output_types(
    merged: &mut Model,
    models: &[Model],
    outputs: &[String],
    plan: &Plan,
    known: &Constraints,
    taken: &mut BTreeSet<String>,
) {
    for model in [&*merged].into_iter().chain(models) {
        taken.extend(dims::symbols(model, Scope::MainGraph));
    }
    let slots: Vec<Value> = merged.output_values().collect();
    for (slot, output) in slots.into_iter().zip(outputs) {
        let of = |region: &Region| -> Option<(Vec<Expr>, Constraints)> {
            let Tree::Model(model) = region.leaf else { return None };
            let model = models.get(model)?;
            let value = model.output_values().find(|v| name(model, *v) == *output)?;
            Some((model.shape(value)?.clone(), region.known(known)))
        };
        let all: Vec<(Vec<Expr>, Constraints)> = plan.regions.iter().filter_map(of).collect();
        let leaves = plan.regions.iter().filter(|r| matches!(r.leaf, Tree::Model(_))).count();
        let Some(Type::Tensor(TensorType { dtype, shape: Some(own) })) = merged[slot].ty.clone()
        else {
            continue;
        };
        let rank = own.len();
        if all.len() != leaves || all.iter().any(|(sizes, _)| sizes.len() != rank) {
            continue;
        }
        let size = |axis: usize| {
            let mut candidates = all.iter().filter_map(|(sizes, _)| sizes.get(axis));
            let same = |size: &&Expr| {
                !is_unknown(size)
                    && all.iter().all(|(sizes, known)| {
                        sizes.get(axis).is_some_and(|own| known.prove_eq(size, own) == Some(true))
                    })
            };
            candidates.find(same).cloned()
        };
        let sizes: Vec<Expr> = own
            .into_iter()
            .enumerate()
            .map(|(axis, own)| match size(axis) {
                Some(size) => size,
                None if is_unknown(&own) => {
                    Expr::symbol(&free(&format!("{output}_dim_{axis}"), taken))
                }
                None => own,
            })
            .collect();
        merged[slot].ty = Some(Type::tensor(dtype, sizes));
    }
}

/// The regions as JSON.
fn described(plan: &Plan, tested: &[String]) -> String {
    let regions = plan.regions.iter().map(|region| {
        let conditions = region.conditions();
        match &region.leaf {
            Tree::Refused(reason) => serde_json::json!({"refused": reason, "where": conditions}),
            Tree::Model(model) => serde_json::json!({"model": model, "where": conditions}),
            Tree::If(..) => serde_json::Value::Null,
        }
    });
    let regions: Vec<_> = regions.collect();
    serde_json::json!({"regions": regions, "tested": tested}).to_string()
}
