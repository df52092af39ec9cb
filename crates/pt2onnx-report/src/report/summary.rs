//! Summarises programs and models for reports.

use super::{Dimension, End, ModelSummary, ProgramSummary, ReportedOp, StoredTensors, Tensors};
use pt2onnx_aten::{Emitted, Registry, ops_used};
use pt2onnx_fx::{
    Argument, ExportedProgram, InputSpec, Mutation, MutationKind, OutputKind, Site, SymArg,
    ValueMeta, passes::assertions::checks,
};
use pt2onnx_ir::{Def, Model, NodeId, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeMap, BTreeSet},
    ptr,
};

impl ProgramSummary {
    pub(super) fn of(program: &ExportedProgram) -> Self {
        let (major, minor) = program.schema_version;
        let (mut inputs, mut symbols) = (Vec::new(), BTreeSet::new());
        let (mut parameters, mut buffers) = (Tensors::default(), Tensors::default());
        let mut constants = Tensors::default();
        for spec in &program.signature.inputs {
            let tensors = match spec {
                InputSpec::UserInput(arg) => {
                    inputs.push(end(program, arg, &mut symbols));
                    continue;
                }
                InputSpec::Parameter { .. } => &mut parameters,
                InputSpec::Buffer { .. } => &mut buffers,
                InputSpec::TensorConstant { .. } => &mut constants,
                _ => continue,
            };
            if let Some(tensor) = program.tensor_of(spec) {
                tensors.add(tensor);
            }
        }
        let outputs = program.signature.outputs.iter();
        let outputs = outputs.filter(|output| output.kind == OutputKind::UserOutput);
        let outputs = outputs.map(|o| end(program, &o.value, &mut symbols)).collect();
        let ranged = program.range_constraints.iter();
        let mut dimensions: Vec<Dimension> = ranged
            .map(|(symbol, range)| {
                symbols.remove(symbol);
                // PyTorch writes this number for unbounded sizes that depend on data.
                let max = range.max.filter(|max| *max < i64::MAX - 1);
                Dimension { symbol: symbol.clone(), min: range.min, max }
            })
            .collect();
        dimensions.extend(symbols.into_iter().map(|symbol| Dimension {
            symbol,
            min: None,
            max: None,
        }));
        Self {
            torch: program.torch_version.clone(),
            schema: format!("{major}.{minor}"),
            inputs,
            outputs,
            dimensions,
            parameters,
            buffers,
            constants,
            mutations: Vec::new(),
            checks: checks(program),
            nodes: program.graph.nodes.len(),
        }
    }

    /// Records the tensors that the program writes into.
    pub fn writes(&mut self, mutations: &[Mutation]) {
        let describe = |m: &Mutation| {
            let kind = match m.kind {
                MutationKind::Parameter => "parameter",
                MutationKind::Buffer => "buffer",
                MutationKind::Constant => "constant",
                MutationKind::UserInput => "input",
            };
            match &m.source {
                Some(source) => format!("{kind} {} at {source}", m.target),
                None => format!("{kind} {}", m.target),
            }
        };
        self.mutations = mutations.iter().map(describe).collect();
    }
}

impl Dimension {
    /// Its sizes in words: `2 to 8`, `1 and more`.
    pub fn range(&self) -> String {
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("{min} and more"),
            (None, Some(max)) => format!("up to {max}"),
            (None, None) => "any".to_owned(),
        }
    }
}

impl StoredTensors {
    pub(super) fn of<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Self {
        let all: Vec<&Tensor> = tensors.collect();
        let mut stored = Self { tensors: all.len(), ..Self::default() };
        let mut storages = BTreeSet::new();
        for storage in all.iter().filter_map(|t| t.storage()) {
            let data = storage.bytes();
            if data.is_empty() || storages.insert((data.as_ptr(), data.len())) {
                stored.bytes += data.len()
            } else {
                stored.shared += 1
            }
        }
        for absent in all.iter().filter(|t| !t.has_data()) {
            stored.absent += 1;
            stored.absent_bytes = stored.absent_bytes.saturating_add(absent.nbytes());
        }
        stored
    }
}

impl Tensors {
    fn add(&mut self, tensor: &Tensor) {
        self.count(tensor);
        self.dtypes.entry(tensor.dtype().to_string()).or_default().count(tensor);
    }

    fn count(&mut self, tensor: &Tensor) {
        self.count += 1;
        self.elements = self.elements.saturating_add(tensor.numel());
        self.bytes = self.bytes.saturating_add(tensor.nbytes());
    }
}

fn end(program: &ExportedProgram, arg: &Argument, symbols: &mut BTreeSet<String>) -> End {
    let fixed = |what: String| format!("{what}, fixed at export");
    let Some(name) = arg.name() else {
        let r#type = match arg {
            Argument::None | Argument::OptionalTensor(None) => "None".to_owned(),
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => fixed(i.to_string()),
            Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => fixed(f.to_string()),
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => fixed(b.to_string()),
            other => format!("{other:?}"),
        };
        return End { name: None, r#type };
    };
    let meta = program.graph.values.get(name);
    if let Some(ValueMeta::Tensor(meta)) = meta {
        let used = meta.sizes.iter().flat_map(|s| s.symbols());
        symbols.extend(used.map(|s| s.to_string()));
    }
    let r#type = meta.map_or_else(|| "of unknown type".to_owned(), ToString::to_string);
    let name = Some(name.to_string());
    End { name, r#type }
}

/// The ops of a program after the passes, including opaque nodes that passes could not handle.
/// `failures` are the nodes that cannot be converted.
pub fn ops<'a>(
    program: &ExportedProgram,
    registry: &Registry,
    emitted: &Emitted,
    failures: impl IntoIterator<Item = &'a Site>,
) -> Vec<ReportedOp> {
    let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
    for site in failures {
        *failed.entry(site.target.schema_name()).or_insert(0) += 1;
    }
    let used = ops_used(&program.graph, registry);
    let mut ops: BTreeMap<String, ReportedOp> = BTreeMap::new();
    for used in used.into_iter().filter(|u| !u.opaque) {
        let becomes = emitted.get(&used.target).into_iter().flatten();
        let op = ReportedOp {
            failed: failed.remove(used.op.as_str()).unwrap_or_default(),
            op: used.op.clone(),
            count: used.count,
            supported: used.supported,
            becomes: becomes.cloned().collect(),
        };
        ops.insert(used.op, op);
    }
    let aside = failed.into_iter().map(|(op, failed)| ReportedOp {
        op: op.to_owned(),
        count: failed,
        supported: false,
        failed,
        becomes: Vec::new(),
    });
    ops.extend(aside.map(|op| (op.op.clone(), op)));
    ops.into_values().collect()
}

impl ModelSummary {
    pub(super) fn of(model: &Model) -> Self {
        let end = |value: &Value| End {
            name: model[*value].name.as_deref().map(str::to_owned),
            r#type: model[*value]
                .ty
                .as_ref()
                .map_or_else(|| "of unknown type".to_owned(), ToString::to_string),
        };
        let nodes = model.all_nodes();
        let mut operators = count_operators(model, &nodes);
        let functions = model.functions.iter().map(|f| qualified(&f.domain, &f.name));
        let functions: BTreeMap<String, usize> = functions
            .map(|name| (name.clone(), operators.remove(&name).unwrap_or_default()))
            .collect();
        let mut weights = Tensors::default();
        for (value, data) in model.values() {
            if let Def::Constant(tensor) = data.def()
                && (data.uses().len() > 0 || model.output_values().any(|v| v == value))
            {
                weights.add(tensor);
            }
        }
        Self {
            opset: model.opset,
            inputs: model.inputs().iter().map(end).collect(),
            outputs: model.output_values().map(|v| end(&v)).collect(),
            nodes: nodes.len(),
            operators,
            functions,
            weights,
            files: Vec::new(),
        }
    }
}

/// How many nodes of each operator there are.
fn count_operators(model: &Model, nodes: &[NodeId]) -> BTreeMap<String, usize> {
    // Most names are constants of this program: equal addresses are counted without reading them.
    let mut places = FxHashMap::default();
    for id in nodes {
        let (domain, op) = (&*model[*id].domain, model[*id].op());
        places.entry((ptr::from_ref(domain), ptr::from_ref(op))).or_insert((domain, op, 0)).2 += 1;
    }
    let mut counts = BTreeMap::new();
    for (domain, op, count) in places.into_values() {
        *counts.entry(qualified(domain, op)).or_insert(0) += count;
    }
    counts
}

/// An operator's name, with its domain if that is not ONNX's own.
fn qualified(domain: &str, name: &str) -> String {
    match domain {
        "" => name.to_owned(),
        domain => format!("{domain}::{name}"),
    }
}
