//! Tests of the types that are inferred without PyTorch's records, against these records.
//!
//! Each node of each archive is asked for, from the recorded types of what it reads.
//! `PT2ONNX_INFER=FOLDER,..` asks for archives below folders, instead of those of `testdata/cases`,
//! and `PT2ONNX_INFER_SHOW=OP` shows what is not right of an op.

#![expect(clippy::print_stdout, reason = "its table is what one wants to see")]

use pt2onnx_aten::{
    Registry,
    infer::{Contents, Facts, Outcome, Typed},
};
use pt2onnx_fx::{Argument, ExportedProgram, Graph, Name, Node, TensorMeta, ValueMeta, archive};
use pt2onnx_symbolic::{Constraints, Expr, Func, Range, View};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::Path,
};

/// Known elements by name.
type Known = FxHashMap<Name, Contents>;

/// How often the types of an op were right, wrong and not known, and the first reason.
#[derive(Default)]
struct Count {
    right: usize,
    wrong: usize,
    unknown: usize,
    why: String,
}

#[derive(Default)]
struct Oracle {
    registry: Registry,
    ops: BTreeMap<String, Count>,
    show: Option<String>,
}

impl Oracle {
    fn program(&mut self, title: &str, program: &ExportedProgram) {
        let mut program = program.clone();
        program.assume_guards();
        // PyTorch's records hold for sizes of 2 and more, as it makes separate programs for others.
        let symbols = program.graph.values.values().flat_map(|meta| match meta {
            ValueMeta::Tensor(meta) => meta.sizes.iter().flat_map(Expr::symbols).collect(),
            _ => Vec::new(),
        });
        for symbol in symbols.collect::<BTreeSet<_>>() {
            if symbol.starts_with('s') {
                program.constraints.constrain(&Expr::symbol(&symbol), Range::at_least(2));
            }
        }
        self.graph(title, &program.graph, &program.constraints, constants(&program));
    }

    fn graph(
        &mut self,
        title: &str,
        graph: &Graph,
        constraints: &Constraints,
        mut contents: Known,
    ) {
        for node in &graph.nodes {
            node.bodies().for_each(|body| self.graph(title, body, constraints, Known::default()));
            // PyTorch records more dimensions than the result has, or sizes that hold only if its
            // inputs fit each other.
            let misrecorded = node.target.is_aten("unique_consecutive")
                && matches!(node.arg("dim"), Some(Argument::Int(..0)))
                || node.target.is_aten("_scaled_dot_product_attention_math_for_mps");
            if !misrecorded
                && node.target.is_operator()
                && !node.target.is_higher_order()
                && has_tensors(node, graph)
            {
                self.node(title, node, graph, constraints, &mut contents);
                // Writes change views, too.
                if node.target.name.ends_with('_') {
                    contents.clear();
                }
            }
        }
    }

    fn node(
        &mut self,
        title: &str,
        node: &Node,
        graph: &Graph,
        constraints: &Constraints,
        contents: &mut Known,
    ) {
        let facts =
            Facts { values: &graph.values, contents, constraints, default_dtype: DType::F32 };
        let mut symbols = 0;
        let mut symbol = |_| {
            symbols += 1;
            Expr::symbol(&format!("new{symbols}"))
        };
        let asked = Node { outputs: Vec::new(), ..node.clone() };
        let outcome = self.registry.infer(&asked, &facts, &mut symbol);
        let count = self.ops.entry(node.target.to_string()).or_default();
        let why = match outcome {
            Err(error) => {
                count.unknown += 1;
                format!("unknown: {error}")
            }
            Ok(outcome) => match Match::new(graph, constraints).all(node, &outcome) {
                Err(why) => {
                    count.wrong += 1;
                    format!("wrong: {why}")
                }
                Ok(known) => {
                    count.right += 1;
                    contents.extend(known);
                    return;
                }
            },
        };
        if self.show.as_ref().is_some_and(|op| *op == node.target.to_string()) {
            println!("{title}: {}: {why}\n    {:?}", node.name, node.args);
        }
        if count.why.is_empty() || why.starts_with("wrong") && !count.why.starts_with("wrong") {
            count.why = format!("{why} ({title}: {})", node.name);
        }
    }

    /// Prints the ops that are not always right, and the sums.
    fn report(&self) -> (usize, usize, usize) {
        let mut bad: Vec<_> = self.ops.iter().filter(|(_, c)| c.wrong + c.unknown > 0).collect();
        bad.sort_by_key(|(_, c)| std::cmp::Reverse((c.wrong, c.unknown)));
        for (op, c) in bad {
            println!(
                "{op}: {} right, {} wrong, {} unknown: {}",
                c.right, c.wrong, c.unknown, c.why
            );
        }
        let sum = |f: fn(&Count) -> usize| self.ops.values().map(f).sum::<usize>();
        let all = (sum(|c| c.right), sum(|c| c.wrong), sum(|c| c.unknown));
        let ops = |f: fn(&Count) -> usize| self.ops.values().filter(|c| f(c) > 0).count();
        println!(
            "{} ops; nodes: {} right, {} wrong, {} unknown (of {} ops)",
            self.ops.len(),
            all.0,
            all.1,
            all.2,
            ops(|c| c.unknown)
        );
        all
    }
}

/// Compares outcomes with records, with what new symbols stand for.
struct Match<'a> {
    graph: &'a Graph,
    constraints: &'a Constraints,
    new: FxHashMap<String, Expr>,
    contents: Vec<(Name, Contents)>,
    /// Whether the node pools with `ceil_mode`.
    rounds_up: bool,
}

impl<'a> Match<'a> {
    fn new(graph: &'a Graph, constraints: &'a Constraints) -> Self {
        Self {
            graph,
            constraints,
            new: FxHashMap::default(),
            contents: Vec::new(),
            rounds_up: false,
        }
    }

    fn all(mut self, node: &Node, outcome: &[Outcome]) -> Result<Vec<(Name, Contents)>, String> {
        self.rounds_up = matches!(node.arg("ceil_mode"), Some(Argument::Bool(true)));
        for (i, output) in node.outputs.iter().enumerate() {
            match (output, outcome.get(i)) {
                (Argument::Tensors(names), Some(Outcome::List(list))) => {
                    if names.len() != list.len() {
                        return Err(format!(
                            "{} elements, recorded are {}",
                            list.len(),
                            names.len()
                        ));
                    }
                    names.iter().zip(list).try_for_each(|(name, one)| self.one(name, one))?;
                }
                (output, Some(Outcome::One(one))) => {
                    if let Some(name) = output.name() {
                        self.one(name, one)?;
                    }
                }
                (Argument::None, _) => {}
                (output, found) => return Err(format!("output {i}: {found:?} for {output:?}")),
            }
        }
        Ok(self.contents)
    }

    fn one(&mut self, name: &Name, found: &Typed) -> Result<(), String> {
        match (self.graph.values.get(name), &found.meta) {
            (Some(ValueMeta::Tensor(recorded)), ValueMeta::Tensor(meta)) => {
                self.tensor(meta, recorded)?;
                let known = found.contents.clone().map(|c| (name.clone(), c));
                self.contents.extend(known);
                Ok(())
            }
            (Some(ValueMeta::SymInt { expr: recorded, .. }), ValueMeta::SymInt { expr, .. }) => {
                self.size(expr, recorded)
            }
            (Some(ValueMeta::SymFloat { .. }), ValueMeta::SymFloat { .. })
            | (Some(ValueMeta::SymBool { .. }), ValueMeta::SymBool { .. }) => Ok(()),
            (None, _) => Ok(()),
            (Some(recorded), meta) => Err(format!("{meta:?}, recorded is {recorded:?}")),
        }
    }

    fn tensor(&mut self, found: &TensorMeta, recorded: &TensorMeta) -> Result<(), String> {
        let same = found.dtype == recorded.dtype && found.sizes.len() == recorded.sizes.len() && {
            let mut pairs = found.sizes.iter().zip(&recorded.sizes);
            pairs.all(|(a, b)| self.size(a, b).is_ok())
        };
        let text = |m: &TensorMeta| {
            let sizes: Vec<String> = m.sizes.iter().map(ToString::to_string).collect();
            format!("{}[{}]", m.dtype.name(), sizes.join(", "))
        };
        same.then_some(()).ok_or_else(|| format!("{}, recorded is {}", text(found), text(recorded)))
    }

    fn size(&mut self, found: &Expr, recorded: &Expr) -> Result<(), String> {
        if let Some(symbol) = found.as_symbol().filter(|s| s.starts_with("new"))
            && !self.new.contains_key(symbol)
        {
            self.new.insert(symbol.to_owned(), recorded.clone());
        }
        let renamed = found.substitute(&|s| self.new.get(s).cloned());
        let simple = |e: &Expr| self.constraints.simplify(e);
        // PyTorch demands that sizes that broadcast are equal and bounds within the size, and
        // records one of them.
        let one_of = matches!(renamed.view(), View::Call(Func::Max | Func::Min, all) if all.contains(recorded));
        // With `ceil_mode` PyTorch records one window less, or not, as the example's size has it.
        let at = |e: &Expr, n| e.substitute(&|_| Some(Expr::int(n))).as_int();
        let mut counts = (2..40).map(|n| (at(&renamed, n), at(recorded, n)));
        let nearly = self.rounds_up
            && counts.all(|pair| matches!(pair, (Some(a), Some(b)) if (0..=1).contains(&(a - b))));
        let same = one_of
            || nearly
            || renamed == *recorded
            || simple(&renamed) == simple(recorded)
            || self.constraints.prove_eq(&renamed, recorded) == Some(true);
        same.then_some(()).ok_or_else(|| format!("{renamed}, recorded is {recorded}"))
    }
}

/// The elements of the program's small constants.
fn constants(program: &ExportedProgram) -> Known {
    let small = |spec| {
        let tensor = program.tensor_of(spec).filter(|t| t.numel() <= 64)?;
        Some((spec.name()?.clone(), Contents::Exact(tensor.clone())))
    };
    program.signature.inputs.iter().filter_map(small).collect()
}

/// Whether a node has results that are tensors.
fn has_tensors(node: &Node, graph: &Graph) -> bool {
    node.output_names()
        .iter()
        .any(|name| matches!(graph.values.get(name), Some(ValueMeta::Tensor(_))))
        || node.target.is_aten("item")
}

/// The archives below a folder.
fn archives(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => archives(&path, found),
            false if path.extension().is_some_and(|e| e == "pt2") => found.push(path),
            false => {}
        }
    }
}

fn bundles(oracle: &mut Oracle) -> std::io::Result<()> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    for bundle in fs::read_dir(cases)? {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(fs::File::open(bundle?.path())?)
            .map_err(std::io::Error::other)?;
        for entry in tar::Archive::new(unpacked).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.to_string_lossy().into_owned();
            if path.ends_with(".pt2") {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                // Some archives are damaged on purpose.
                if let Ok(program) = archive::read_bytes(bytes) {
                    oracle.program(&path, &program);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn inferred_types_are_those_that_pytorch_recorded() {
    let mut oracle = Oracle { show: std::env::var("PT2ONNX_INFER_SHOW").ok(), ..Oracle::default() };
    match std::env::var("PT2ONNX_INFER") {
        Ok(folders) => {
            let mut found = Vec::new();
            folders.split(',').for_each(|f| archives(Path::new(f), &mut found));
            for path in found {
                match archive::read(&path) {
                    Ok(program) => oracle.program(&path.display().to_string(), &program),
                    Err(error) => println!("{}: {error}", path.display()),
                }
            }
        }
        Err(_) => bundles(&mut oracle).unwrap(),
    }
    let (right, wrong, _) = oracle.report();
    assert!(right > 0);
    assert_eq!(wrong, 0);
}
