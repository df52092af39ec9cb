//! From the archive to the program: loads the module, runs the method, and puts the parts together.

use crate::{
    control::case_split::Cases,
    error::{Error, Problem, Result},
    eval::{
        Evaluator, Step,
        context::{Limits, RunPolicy},
        expected, unbound, unsupported,
    },
    load::{
        inputs::{GivenInputs, method_of, parameters},
        module_state::{AttributeValue, ModuleState, unsettled},
        pickle::Role,
        value_numbering::ValueNumbering,
    },
    note::Note,
    types::Types,
    value::{Item, Optional, Value},
};
use indexmap::{IndexMap, IndexSet};
use pt2onnx_fx::{
    Argument, Constant, ExportedProgram, Graph, GraphSignature, InputSpec, Name, OutputKind,
    OutputSpec, SCHEMA_MAJOR,
};
use pt2onnx_symbolic::Range;
use pt2onnx_tensor::Tensor;
use pt2onnx_torchscript_archive::{Archive, Given, syntax::Function};
use std::sync::Arc;

const STACK: usize = 128 << 20;
/// How many calls are run at most to learn the types of state.
const MAX_CALLS: usize = 6;

/// A flattened program.
#[derive(Debug)]
pub struct Attempt {
    /// The program.
    pub program: ExportedProgram,
    /// Warnings for the user.
    pub warnings: Vec<Note>,
    /// The paths of attributes whose new values the program does not give.
    pub lost: Vec<String>,
    /// Whether sizes decide somewhere, so that [`Policy::case_split`] may give another program.
    pub saw_symbolic_branch: bool,
    /// The steps of the evaluator that it took.
    pub steps: u64,
}

/// A method as a program, and the same by cases.
#[derive(Debug)]
pub struct FlatProgram {
    /// The program to translate.
    pub best: Attempt,
    /// The same by cases, if sizes decide: something in the first one may have no translation.
    pub case_split: Option<Attempt>,
}

/// How a method is flattened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The program is that of the calls after the first one: attributes to which the method gives
    /// tensors of another type or size, or other numbers, are inputs of the types that they have
    /// then. Those that stay the same from the second call on are fixed.
    pub with_state: bool,
    /// Where sizes decide between branches that differ in more than the elements of tensors, the
    /// whole method is flattened for each case. Otherwise this is done only where the branches
    /// cannot be joined.
    pub case_split: bool,
    /// Where nothing else can be made of a list of tensors, as its elements have several sizes or
    /// it has other lengths in the branches of a condition, it is a sequence: one value, to which
    /// tensors may be appended, and which nothing but a result may use.
    pub allow_sequences: bool,
    /// Beyond these, it is an error.
    pub limits: Limits,
}

/// The policies, in the order in which they are tried.
const POLICIES: &[Policy] =
    &[PLAIN, Policy { case_split: true, ..PLAIN }, Policy { allow_sequences: true, ..PLAIN }];

const PLAIN: Policy = Policy {
    with_state: false,
    case_split: false,
    allow_sequences: false,
    limits: Limits::DEFAULT,
};

/// Flattens a method of the saved module by the first policy by which it can be. Types of inputs
/// that `given` does not have come from the trace.
///
/// # Errors
/// The archive is damaged, types of inputs are missing, or the method has something that cannot be
/// flattened: the error of the last policy that allows no sequences.
pub fn flatten(
    archive: &Archive,
    method: &str,
    given: Vec<(String, Given)>,
    types: &mut dyn Types,
    with_state: bool,
) -> Result<FlatProgram> {
    let mut failure = None;
    for policy in POLICIES {
        let policy = Policy { with_state, ..*policy };
        let mut flat = |policy| flatten_as(archive, method, given.clone(), types, policy);
        match flat(policy) {
            Ok(best) => {
                let can_split = failure.is_none() && best.saw_symbolic_branch;
                let split = Policy { case_split: true, ..policy };
                let case_split = can_split.then(|| flat(split).ok()).flatten();
                return Ok(FlatProgram { best, case_split });
            }
            Err(error) if failure.is_none() && is_final(&error) => return Err(error),
            Err(error) if failure.is_none() || !policy.allow_sequences => failure = Some(error),
            Err(_) => {}
        }
    }
    Err(failure.unwrap_or_else(|| Error::Run { site: Box::default(), problem: unsettled() }))
}

/// Whether no other policy can do better.
fn is_final(error: &Error) -> bool {
    let Error::Run { problem, .. } = error else { return true };
    matches!(problem, Problem::Steps(_) | Problem::Memory(_))
}

/// Flattens a method in one way.
///
/// # Errors
/// Those of [`flatten`], and state whose type changes with each call.
pub fn flatten_as(
    archive: &Archive,
    method: &str,
    given: Vec<(String, Given)>,
    types: &mut dyn Types,
    policy: Policy,
) -> Result<Attempt> {
    on_large_stack(move || flatten_here(archive, method, given, types, policy))
}

/// The types of the inputs of a method: those in `given`, and for other parameters those of the
/// trace. The paths begin with names of parameters and are in their order.
///
/// # Errors
/// There is no such method or input, or the archive is damaged.
pub fn inputs(
    archive: &Archive,
    method: &str,
    given: Vec<(String, Given)>,
) -> Result<Vec<(String, Given)>> {
    let params = parameters(archive, method)?;
    let mut given = GivenInputs::rename(given, &params)?;
    // A type by the user replaces all that the trace has for the parameter.
    let traced = archive.traced_inputs(method)?;
    let mut told = GivenInputs::rename(traced, &params).unwrap_or_default();
    fn top(path: &str) -> &str {
        path.split('.').next().unwrap_or(path)
    }
    told.retain(|(path, _)| !given.iter().any(|(other, _)| top(other) == top(path)));
    told.append(&mut given);
    let position = |path: &str| params.iter().position(|(name, _)| name == top(path));
    told.sort_by_cached_key(|(path, _)| {
        let numbers = path.split('.').skip(1).map_while(|part| part.parse::<usize>().ok());
        (position(path), numbers.collect::<Vec<_>>())
    });
    Ok(told)
}

/// The tensors of an archive by their paths: parameters, buffers, other attributes and constants of
/// the code.
///
/// # Errors
/// The archive is damaged, or has objects that cannot be read.
pub fn tensors(archive: &Archive, types: &mut dyn Types) -> Result<IndexMap<String, Tensor>> {
    on_large_stack(move || {
        let mut ev = Evaluator::new(archive, types, RunPolicy::default());
        ev.load_module()?;
        let constants = ev.interface.constants.into_iter();
        let constants = constants.filter_map(|(name, constant)| match constant {
            Constant::Tensor(tensor) => Some((name, tensor)),
            Constant::Opaque { .. } => None,
        });
        Ok(ev.interface.weights.into_iter().chain(constants).collect())
    })
}

/// Runs the evaluator in a separate thread, which has a large stack; here, where there are no
/// threads.
fn on_large_stack<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if cfg!(target_family = "wasm") {
        return run();
    }
    let (worker, waiter) = pt2onnx_cancel::hand_over();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || worker.run(run));
        let thread = thread.map_err(|error| Error::Thread(error.to_string()))?;
        waiter.wait();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn flatten_here(
    archive: &Archive,
    method: &str,
    given: Vec<(String, Given)>,
    types: &mut dyn Types,
    policy: Policy,
) -> Result<Attempt> {
    let function = method_of(archive, method)?;
    let inputs = GivenInputs::of(inputs(archive, method, given)?);
    let call = (method, &*function, &inputs);
    let (mut state, mut numbering, mut first) =
        (ModuleState::default(), ValueNumbering::default(), None);
    let mut saved = None;
    let (mut cases, mut calls) = (Cases::default(), 0);
    let Policy { with_state, case_split, allow_sequences, limits } = policy;
    while calls < MAX_CALLS {
        let run = RunPolicy {
            cases: cases.conditions(),
            case_split,
            assume_exact_chunks: cases.assume_exact_chunks,
            allow_sequences,
            limits,
        };
        let mut ev = Evaluator::new(archive, types, run);
        let (outputs, found) = match ev.call_root(call, &state) {
            Ok(called) => called,
            Err(error) => {
                cases.record(error)?;
                continue;
            }
        };
        calls += 1;
        if !with_state {
            let mutations = ev.mutations(&found);
            let lost = ev.lost_attributes(&found);
            return Ok(Attempt { lost, ..ev.finish(mutations, outputs) });
        }
        let before = state.clone();
        let saved = saved.get_or_insert_with(|| ev.saved_state(&found));
        if ev.record_state(&found, &mut state).map_err(|problem| ev.error(problem))? {
            // The state is more than what this run took for it.
            if first.is_none() {
                first = Some(ev.first_numbers(&outputs, &state, &mut numbering));
            }
            continue;
        }
        let mut mutations = ev.mutations(&found);
        let pairs = ev.state_outputs(&before);
        mutations.extend(pairs.map_err(|problem| ev.error(problem))?);
        let now = ev.first_numbers(&outputs, &state, &mut numbering);
        ev.explain_state(&state, saved, now.is_some() && first == Some(now));
        return Ok(ev.finish(mutations, outputs));
    }
    Err(Evaluator::new(archive, types, RunPolicy::default()).error(unsettled()))
}

impl Evaluator<'_> {
    fn load_module(&mut self) -> Result<Value> {
        let archive = self.cx.archive;
        if let Some(trace) = archive.trace() {
            return self.load_trace(trace).map_err(|problem| self.error(problem));
        }
        if let Some(pickle) = archive.pickle("constants.pkl")? {
            let pool = self.load(&pickle, "constants", Role::Constant);
            let pool = pool.map_err(|problem| self.error(problem))?;
            self.cx.pool = self.sequence(&pool).unwrap_or_default();
        }
        let root = match archive.pickle("data.pkl")? {
            Some(pickle) => self.load(&pickle, "data", Role::Attribute),
            None => unbound("data.pkl"),
        };
        root.map_err(|problem| self.error(problem))
    }

    /// Calls a method of the loaded module. Returns its results, and the attributes that it found.
    fn call_root(
        &mut self,
        (method, function, told): (&str, &Function, &GivenInputs),
        state: &ModuleState,
    ) -> Result<(Vec<Argument>, Vec<AttributeValue>)> {
        let root = self.load_module()?;
        let args = self.arguments(function, told)?;
        let called = self.call_method(&root, method, &args, state);
        called.map_err(|problem| self.error(problem))
    }

    fn call_method(
        &mut self,
        root: &Value,
        method: &str,
        args: &[Value],
        state: &ModuleState,
    ) -> Step<(Vec<Argument>, Vec<AttributeValue>)> {
        self.assume(state)?;
        let found = self.attributes();
        let result = self.run_cases(root, method, args)?;
        self.state.calls.outside = "what it returns";
        let mut outputs = Vec::new();
        self.outputs(&result, &mut outputs, 32)?;
        self.check_fresh_state()?;
        if outputs.is_empty() {
            self.empty_sequences(&result, &mut outputs)?;
        }
        if outputs.is_empty() {
            return unsupported("a method that returns no tensor");
        }
        Ok((outputs, found))
    }

    /// The terms of all results and of the state, if the program only computes.
    fn first_numbers(
        &self,
        outputs: &[Argument],
        state: &ModuleState,
        numbering: &mut ValueNumbering,
    ) -> Option<Vec<usize>> {
        let mut names: Vec<Name> = outputs.iter().filter_map(Argument::name).cloned().collect();
        for slot in state.keys() {
            match self.attribute_now(slot) {
                Some(Value::Tensor(name)) => names.push(name),
                Some(value) if value.number().is_some() => {}
                _ => return None,
            }
        }
        self.numbers_of(&names, numbering)
    }

    fn mutations(&self, before: &[AttributeValue]) -> Vec<OutputSpec> {
        let mut mutations = Vec::new();
        for AttributeValue { slot, value } in before {
            let new = self.attribute_now(slot);
            let (Value::Tensor(old), Some(Value::Tensor(new))) = (value, new) else { continue };
            let held = self.interface.state_inputs.iter().any(|(_, name, _)| name == old);
            if new == *old || held || !self.is_ordinary(value, &Value::Tensor(new.clone())) {
                continue;
            }
            let spec = self.interface.specs.iter().find(|spec| spec.name() == Some(old));
            let (kind, target) = match spec {
                Some(InputSpec::Parameter { target, .. }) => {
                    (OutputKind::ParameterMutation, target.clone())
                }
                Some(InputSpec::Buffer { target, .. }) => {
                    (OutputKind::BufferMutation, target.clone())
                }
                _ => continue,
            };
            mutations.push(OutputSpec { kind, value: Argument::Tensor(new), target });
        }
        mutations
    }

    fn outputs(&mut self, value: &Value, found: &mut Vec<Argument>, depth: usize) -> Step<()> {
        self.step()?;
        if depth == 0 {
            return Err(Problem::Depth(32));
        }
        match value {
            Value::Tensor(name) => found.push(Argument::Tensor(self.readable(name)?)),
            Value::Quantized(quantized) => {
                for part in self.quantized_parts(quantized)? {
                    self.outputs(&part, found, depth - 1)?;
                }
            }
            Value::None => {}
            Value::List(list) if self.dyn_list(*list).is_some() => {
                found.push(self.list_output(*list)?);
            }
            Value::Tuple(tuple) => {
                for item in &tuple.items {
                    self.outputs(item, found, depth - 1)?;
                }
            }
            Value::List(at) | Value::Dict(at) | Value::Object(at) => {
                self.state.reads(*at);
                let item = self.state.heap.get(at.0);
                let members: Vec<Value> =
                    item.into_iter().flat_map(Item::members).cloned().collect();
                for member in members {
                    self.outputs(&member, found, depth - 1)?;
                }
            }
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                // One level more: tuples that share their parts hold very many numbers.
                let tensor = Value::Tensor(self.as_tensor(value)?);
                self.outputs(&tensor, found, depth - 1)?;
            }
            Value::Optional(maybe) => self.optional_outputs(maybe, found, depth)?,
            Value::Str(_) | Value::UnknownStr(_) | Value::Device(_) | Value::Enum(_) => {}
            other => return expected("tensors and numbers as results", other),
        }
        Ok(())
    }

    /// The tensors of what data may make None, each as an optional one.
    fn optional_outputs(
        &mut self,
        maybe: &Optional,
        found: &mut Vec<Argument>,
        depth: usize,
    ) -> Step<()> {
        let mut inner = Vec::new();
        self.outputs(&maybe.value, &mut inner, depth - 1)?;
        let present = Argument::Tensor(self.as_tensor(&Value::Bool(maybe.present.clone()))?);
        for output in inner {
            if output.name().is_none_or(|name| self.meta(name).is_err()) {
                return unsupported("a list of unknown length that data may make None");
            }
            let present = present.clone();
            found.push(self.one_value("optional", [("self", output), ("present", present)])?);
        }
        Ok(())
    }

    fn ranges(&self) -> Vec<(String, Range)> {
        let mut symbols = IndexSet::new();
        for spec in &self.interface.specs {
            let InputSpec::UserInput(Argument::Tensor(name)) = spec else { continue };
            let Ok(meta) = self.meta(name) else { continue };
            symbols.extend(meta.sizes.iter().flat_map(|size| size.symbols()));
        }
        let range = |symbol: &str| {
            let least = self.constraints().range(symbol).min.unwrap_or(0);
            (symbol.to_owned(), Range::at_least(least))
        };
        symbols.iter().map(|symbol| range(symbol)).collect()
    }

    fn finish(self, mutations: Vec<OutputSpec>, results: Vec<Argument>) -> Attempt {
        // Parameters and buffers as in the state dict, then constants and the user's inputs.
        let rank = |spec: &InputSpec| match spec {
            InputSpec::Parameter { .. } | InputSpec::Buffer { .. } => 0,
            InputSpec::TensorConstant { .. } => 1,
            _ => 2,
        };
        let ranges = self.ranges();
        let mut inputs: Vec<_> =
            self.interface.specs.into_iter().zip(self.interface.inputs).collect();
        inputs.sort_by_key(|(spec, _)| rank(spec));
        let (specs, inputs) = inputs.into_iter().unzip();
        let mut output_specs = mutations;
        output_specs.extend(results.into_iter().map(OutputSpec::user));
        let outputs = output_specs.iter().map(|output| output.value.clone()).collect();
        let graph = Graph {
            nodes: self.state.nodes.into_iter().map(Arc::new).collect(),
            inputs,
            outputs,
            values: Arc::new(self.state.facts.values),
            is_single_tensor_return: false,
        };
        let program = ExportedProgram {
            graph,
            signature: GraphSignature { inputs: specs, outputs: output_specs },
            constraints: self.state.facts.constraints,
            range_constraints: ranges,
            guards: Vec::new(),
            module_call_graph: Vec::new(),
            state: self.interface.weights,
            constants: self.interface.constants,
            mutations: Vec::new(),
            torch_version: format!("TorchScript {}", self.cx.archive.version()),
            schema_version: (SCHEMA_MAJOR, 0),
            verifiers: Vec::new(),
            opset_version: IndexMap::default(),
        };
        Attempt {
            program,
            warnings: self.state.warnings,
            lost: Vec::new(),
            steps: self.budget.steps,
            saw_symbolic_branch: self.saw_symbolic_branch,
        }
    }
}
