//! Traces of pt2onnx's Python package: a graph in the text form of TorchScript, and lists of the
//! tensors and modules that it names.

mod code;
mod text;

use crate::{
    source_ranges::{self, Line, Origin},
    syntax::{Class, line_of},
};
use pt2onnx_fx::{
    Name,
    archive::{StoredTensor, element_type},
};
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// The record of the graph.
pub(crate) const GRAPH: &str = "pt2onnx/graph";
/// The records of the lists. Each line of `inputs` is the name of an input, of `modules` the path
/// and class of a module that was called, the traced one first, and of `tensors` a [`GraphTensor`].
pub(crate) const LISTS: [&str; 3] = ["pt2onnx/inputs", "pt2onnx/modules", "pt2onnx/tensors"];

/// The record of the Python stacks of nodes, in the order of their lines and with zero bytes
/// between; only messages need it.
pub(crate) const STACKS: &str = "pt2onnx/stacks";

/// A trace.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) state: GraphState,
    /// Where the lines of nodes start.
    nodes: Vec<u32>,
    stacks: Vec<String>,
}

/// The modules and tensors of a trace.
#[derive(Debug, Default)]
pub struct GraphState {
    /// The path and the class of each call of a module, the traced one first.
    pub modules: Vec<(Name, Name)>,
    /// The tensors of the module, then the constants of the code.
    pub tensors: Vec<GraphTensor>,
    /// Other paths of tensors of the module, with the first ones.
    pub tied: Vec<(Name, Name)>,
}

/// A tensor of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTensor {
    /// Its role.
    pub kind: TensorKind,
    /// Its path in the module; empty for a constant.
    pub path: Name,
    /// Its element type.
    pub dtype: DType,
    /// Where it is.
    pub stored: StoredTensor,
}

/// The role of a tensor of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// A parameter of the module.
    Parameter,
    /// A buffer that the state dict has.
    Buffer,
    /// Another tensor of the module.
    Attribute,
    /// A constant of the code.
    Constant,
}

impl Trace {
    /// Reads a trace, and the class of its module, whose method `forward` is the graph.
    ///
    /// # Errors
    /// Those of the texts, with the record and the line.
    pub(crate) fn read(
        graph: &str,
        [inputs, modules, tensors]: [&str; 3],
        stacks: &str,
    ) -> Result<(Self, Class), (&'static str, u32, String)> {
        let modules = modules.lines().map(|line| {
            let (path, class) = line.split_once('\t').unwrap_or(("", line));
            (path.into(), class.into())
        });
        let mut state = GraphState { modules: modules.collect(), ..GraphState::default() };
        for (line, number) in tensors.lines().zip(1..) {
            if let Some((path, first)) = tied(line) {
                state.tied.push((path.into(), first.into()));
            } else {
                let wrong = || ("pt2onnx/tensors", number, format!("`{line}` is not a tensor"));
                state.tensors.push(tensor(line).ok_or_else(wrong)?);
            }
        }
        let own = state.tensors.iter().filter(|tensor| tensor.kind != TensorKind::Constant);
        let own: Vec<Name> = own.map(|tensor| tensor.path.clone()).collect();
        let names: Vec<Name> = inputs.lines().map(Into::into).collect();
        let block = text::read(graph).map_err(|(line, what)| (GRAPH, line, what))?;
        let forward = code::function(&block, &own, &names);
        let forward = forward.map_err(|(at, what)| (GRAPH, line_of(graph, at), what))?;
        let class = Class {
            name: "Trace".into(),
            base: Some("Module".into()),
            methods: vec![Arc::new(forward)],
            attributes: Vec::new(),
            values: Vec::new(),
        };
        let nodes = if stacks.is_empty() { Vec::new() } else { block.places() };
        let stacks = stacks.split('\0').map(str::to_owned).collect();
        Ok((Self { state, nodes, stacks }, class))
    }

    /// The origin of the node whose line starts at a byte: its stack, or else its line of Python.
    pub(crate) fn origin(&self, at: u32, line: &str) -> Option<Origin> {
        let position = self.nodes.binary_search(&at).ok();
        if let Some(stack) = position.and_then(|position| self.stacks.get(position)) {
            return source_ranges::stack(stack).map(Origin::Stack);
        }
        let (file, line) = text::place(line)?;
        let line = Line { file: file.to_owned(), line, function: None, code: String::new() };
        Some(Origin::Stack(vec![line]))
    }
}

/// `tied decoder.weight\tencoder.weight`: the other path, and the first one.
fn tied(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("tied ")?.split_once('\t')
}

/// `parameter torch.float32 0.storage 0 2,3 3,1 layer.weight`; no sizes are `-`.
fn tensor(line: &str) -> Option<GraphTensor> {
    let mut words = line.splitn(7, ' ');
    let mut word = || words.next();
    let kind = match word()? {
        "parameter" => TensorKind::Parameter,
        "buffer" => TensorKind::Buffer,
        "attribute" => TensorKind::Attribute,
        "constant" => TensorKind::Constant,
        _ => return None,
    };
    let numbers = |text: &str| -> Option<Vec<usize>> {
        if text == "-" {
            return Some(Vec::new());
        }
        text.split(',').map(|number| number.parse().ok()).collect()
    };
    let dtype = element_type(word()?)?;
    let stored = StoredTensor {
        class: "torch.UntypedStorage".into(),
        record: word()?.into(),
        offset: word()?.parse().ok()?,
        sizes: numbers(word()?)?,
        strides: numbers(word()?)?,
    };
    Some(GraphTensor { kind, path: word()?.into(), dtype, stored })
}
