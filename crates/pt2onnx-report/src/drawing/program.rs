//! The drawing of an exported program, for reports of failures.

use super::{Drawing, DrawnNode, DrawnValue, Texts, shortened};
use pt2onnx_fx::{Argument, ExportedProgram, Graph, Name, Node};
use std::collections::{HashMap, HashSet};

/// Draws a program: its nodes, grouped by module, and the bodies of higher-order ops.
pub(crate) fn of_program(program: &ExportedProgram) -> Drawing {
    let mut painter =
        Painter { drawing: Drawing::default(), groups: HashMap::new(), texts: Texts::default() };
    let mut scope = Scope { graph: &program.graph, values: HashMap::new() };
    let specs = program.signature.inputs.iter();
    let weights: HashSet<&Name> =
        specs.filter(|s| program.tensor_of(s).is_some()).filter_map(|s| s.name()).collect();
    let inputs = program.graph.inputs.iter();
    painter.drawing.inputs = inputs
        .flat_map(names)
        .filter(|name| !weights.contains(name))
        .map(|name| painter.value(&mut scope, &name))
        .collect();
    for spec in &program.signature.inputs {
        if let (Some(tensor), Some(name)) = (program.tensor_of(spec), spec.name()) {
            let place = painter.value(&mut scope, name);
            painter.drawing.values[place].bytes = Some(tensor.nbytes());
        }
    }
    painter.graph(&mut scope, None);
    let outputs = program.graph.outputs.iter().flat_map(names);
    painter.drawing.outputs = outputs.map(|name| painter.value(&mut scope, &name)).collect();
    painter.drawing.texts = painter.texts.all;
    painter.drawing
}

/// Whether a path is that of a module: neither the program itself, nor PyTorch's mark for nodes
/// outside of modules.
fn is_module(path: &str) -> bool {
    !path.is_empty() && !path.starts_with("_empty_nn_module_stack")
}

fn names(argument: &Argument) -> Vec<Name> {
    let mut names = Vec::new();
    argument.for_each_name(&mut |name| names.push(name.clone()));
    names
}

/// The values of one graph; names of bodies are separate.
struct Scope<'p> {
    graph: &'p Graph,
    values: HashMap<Name, usize>,
}

struct Painter {
    drawing: Drawing,
    /// Groups of modules, by parent and path.
    groups: HashMap<(Option<usize>, Name), usize>,
    texts: Texts,
}

impl Painter {
    fn graph(&mut self, scope: &mut Scope<'_>, body: Option<usize>) {
        let graph = scope.graph;
        for node in &graph.nodes {
            self.node(scope, node, body);
        }
    }

    fn node(&mut self, scope: &mut Scope<'_>, node: &Node, body: Option<usize>) {
        let group = body.or_else(|| self.group(node));
        let line = node.meta.source_line();
        let source = line.map(|l| l.to_string()).unwrap_or_default();
        let arguments = node.args.iter().filter(|a| names(&a.value).is_empty());
        let arguments = arguments.filter(|a| !matches!(a.value, Argument::Graph { .. }));
        let attributes =
            arguments.map(|a| (a.name.to_string(), shortened(format!("{:?}", a.value)))).collect();
        let mut metadata = Vec::new();
        if let Some(trace) = &node.meta.stack_trace {
            metadata.push((self.texts.place("stack_trace"), self.texts.place(trace)));
        }
        let inputs = node.input_names();
        let inputs = inputs.iter().map(|name| Some(self.value(scope, name))).collect();
        let outputs = node.output_names();
        let outputs = outputs.iter().map(|name| self.value(scope, name)).collect();
        self.drawing.nodes.push(DrawnNode {
            op: node.target.schema_name().to_owned(),
            name: node.name.to_string(),
            group,
            inputs,
            outputs,
            attributes,
            source,
            metadata,
            ..DrawnNode::default()
        });
        for (i, graph) in node.bodies().enumerate() {
            let body = self.drawing.group(group, &format!("{} body {}", node.name, i + 1), "body");
            let mut inner = Scope { graph, values: HashMap::new() };
            self.graph(&mut inner, Some(body));
        }
    }

    fn group(&mut self, node: &Node) -> Option<usize> {
        let mut parent = None;
        for frame in node.meta.nn_module_stack.iter().filter(|f| is_module(&f.path)) {
            let key = (parent, frame.path.clone());
            let known = self.groups.get(&key).copied();
            parent = Some(known.unwrap_or_else(|| {
                let group = self.drawing.group(parent, &frame.path, &frame.ty);
                self.groups.insert(key, group);
                group
            }));
        }
        parent
    }

    fn value(&mut self, scope: &mut Scope<'_>, name: &Name) -> usize {
        if let Some(&known) = scope.values.get(name) {
            return known;
        }
        let meta = scope.graph.values.get(name);
        let r#type = meta.map(ToString::to_string).unwrap_or_default();
        self.drawing.values.push(DrawnValue { name: name.to_string(), r#type, bytes: None });
        let place = self.drawing.values.len() - 1;
        scope.values.insert(name.clone(), place);
        place
    }
}
