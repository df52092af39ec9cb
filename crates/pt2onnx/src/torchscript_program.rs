//! TorchScript archives: they are flattened into programs, with types from the lowerings.

use crate::{
    error::Error,
    options::{DefaultDtype, Options},
    source_program::SourceProgram,
};
use indexmap::IndexMap;
use pt2onnx_aten::{Mutations, Registry, infer};
use pt2onnx_fx::Node;
use pt2onnx_ir::{Model, Value};
use pt2onnx_opt::eval;
use pt2onnx_report::{TorchScriptSummary, Warning, WarningKind};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_torchscript::{
    Attempt, Note, flatten, inputs, tensors,
    types::{Contents, Facts, Outcome, Typed, Types},
};
use pt2onnx_torchscript_archive::{Archive, Given, Size};
use rustc_hash::FxHashMap;

/// Whether an archive could not be read because it is one of TorchScript.
pub(crate) fn is_one(error: &pt2onnx_fx::Error) -> bool {
    let found = match error {
        pt2onnx_fx::Error::Layout { found, .. } => found,
        _ => return false,
    };
    *found == pt2onnx_fx::NotAnArchive::TorchScript
}

/// Flattens the method that the options name.
pub(crate) fn read(
    archive: &Archive,
    options: &Options,
    registry: &Registry,
) -> Result<SourceProgram, Error> {
    let given = options.input.iter();
    let given = given.map(|(name, text)| (name.clone(), Given::parse(text))).collect();
    let mut given = inputs(archive, &options.method, given)?;
    name_axes(&mut given, options);
    let types = &mut Lowerings(registry, options.default_dtype);
    let with_state = options.mutations == Mutations::Pairs;
    let flat = flatten(archive, &options.method, given, types, with_state)?;
    let case_split = flat.case_split.and_then(|flat| taken(flat, options).ok());
    Ok(SourceProgram { case_split: case_split.map(Box::new), ..taken(flat.best, options)? })
}

/// A flattened program with the warnings about it.
fn taken(mut flat: Attempt, options: &Options) -> Result<SourceProgram, Error> {
    let lost: Vec<String> = flat.lost.iter().map(|path| format!("`{path}`")).collect();
    if options.mutations == Mutations::Error && !lost.is_empty() {
        return Err(pt2onnx_torchscript::Error::Writes { attributes: lost }.into());
    }
    if !lost.is_empty() {
        let text = format!(
            "the method gives the attributes {} other values, which are lost; the option `mutations` keeps them, set to `pairs`",
            lost.join(", ")
        );
        flat.warnings.push(Note { site: None, text });
    }
    let warning = |note: &Note| {
        Warning::new(WarningKind::Specialised, note.to_string()).about(note.text.as_str())
    };
    let warnings = flat.warnings.iter().map(warning).collect();
    Ok(SourceProgram { program: flat.program, warnings, archived: false, case_split: None })
}

/// The tensors of the saved module by their paths.
pub(crate) fn weights(
    archive: &Archive,
) -> Result<IndexMap<String, Tensor>, pt2onnx_torchscript::Error> {
    let registry = Registry::default();
    tensors(archive, &mut Lowerings(&registry, DefaultDtype::default()))
}

/// The class and the methods of the archive, for reports.
pub(crate) fn summary(archive: &Archive) -> Option<TorchScriptSummary> {
    let class = archive.root_class().ok()?;
    let methods = class.class.methods.iter().map(|method| method.signature());
    Some(TorchScriptSummary {
        version: archive.version(),
        class: class.python_name(),
        methods: methods.collect(),
    })
}

/// Makes axes dynamic, as `dynamic_axes` of `torch.onnx.export` does for a trace: inputs have the
/// names that the options give them, else those of their parameters.
fn name_axes(given: &mut [(String, Given)], options: &Options) {
    let mut names = options.input_names.listed().iter();
    for (path, given) in given {
        let (Given::Tensor(_, sizes) | Given::Quantized(_, sizes)) = given else { continue };
        let name = names.next();
        for (value, axis, symbol) in options.dynamic_axes.iter() {
            let own = value == path || value == path.replace('.', "_");
            if (own || name.is_some_and(|name| name == value))
                && let Some(axis) = pt2onnx_symbolic::axis(axis, sizes.len())
                && let Some(size) = sizes.get_mut(axis)
                && matches!(size, Size::Known(_))
            {
                *size = Size::Named(symbol.to_owned());
            }
        }
    }
}

/// Types from the lowerings.
struct Lowerings<'a>(&'a Registry, DefaultDtype);

impl Types for Lowerings<'_> {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let known = infer::Facts {
            values: &facts.values,
            contents: &facts.contents,
            constraints: &facts.constraints,
            default_dtype: self.default_dtype(),
        };
        let mut symbol = |float: bool| facts.symbols.next(float);
        let outcomes = self.0.infer(node, &known, &mut symbol);
        let mut outcomes = outcomes.map_err(|error| error.to_string())?;
        let computed = self.computed(node, &known, &outcomes).unwrap_or_default();
        let typed = outcomes.iter_mut().flat_map(Outcome::typed_mut);
        for (typed, elements) in typed.zip(computed) {
            typed.contents.get_or_insert(Contents::Exact(elements));
        }
        Ok(outcomes)
    }

    fn schemas(&self, operator: &str) -> Vec<String> {
        self.0.schemas(operator)
    }

    fn default_dtype(&self) -> DType {
        self.1.dtype()
    }
}

impl Lowerings<'_> {
    /// The elements of a node's results, if they are few integers and those of all operands are
    /// known: they may be dimensions or sizes, as in `x.mean(dim=torch.arange(1,
    /// x.dim()).tolist())`.
    fn computed(
        &self,
        node: &Node,
        facts: &infer::Facts,
        results: &[Outcome],
    ) -> Option<Vec<Tensor>> {
        let few = |typed: &Typed| {
            let meta = typed.meta.tensor()?;
            let numel = Expr::product(&meta.sizes).as_int()?;
            let few = meta.dtype.is_int() && (0..=MAX_COMPUTED).contains(&numel);
            few.then_some(meta.dtype)
        };
        let typed = results.iter().flat_map(Outcome::typed);
        let dtypes: Vec<DType> = typed.map(few).collect::<Option<_>>()?;
        let known = node.input_names().iter().all(|name| facts.contents.contains_key(name));
        if !known || node.target.name.ends_with('_') {
            return None;
        }
        let model = self.0.computation(node, facts, results).ok()?;
        let known = evaluated(&model);
        let elements = model.output_values().zip(dtypes).map(|(value, dtype)| {
            let elements = model[value].constant().or_else(|| known.get(&value))?;
            (elements.dtype() == dtype && elements.has_data()).then(|| elements.clone())
        });
        elements.collect()
    }
}

/// The values of a model that its nodes compute from constants.
fn evaluated(model: &Model) -> FxHashMap<Value, Tensor> {
    let mut known: FxHashMap<Value, Tensor> = FxHashMap::default();
    for node in model.nodes(Model::MAIN).map(|id| &model[id]) {
        let of = |v: Value| model[v].constant().or_else(|| known.get(&v));
        let inputs = node.inputs().iter().map(|v| v.map_or(Some(None), |v| of(v).map(Some)));
        let Some(inputs) = inputs.collect::<Option<Vec<_>>>() else { continue };
        let results = match node.op() {
            "Constant" => node.given_tensor().map(|tensor| vec![tensor]),
            _ => eval::evaluate(node, &inputs, MAX_BYTES),
        };
        known.extend(node.outputs().iter().copied().zip(results.unwrap_or_default()));
    }
    known
}

/// The most elements of a result that is computed when its type is.
const MAX_COMPUTED: i64 = 256;

/// The most bytes of a value between operands and results.
const MAX_BYTES: usize = 1 << 20;
