//! The container: records, version, and the parsed code.

use crate::{
    error::{Error, NotTorchScript, Result},
    graph::{self, GraphState, Trace},
    source_ranges::{Origin, SourceRanges},
    syntax::{self, Class, Function},
};
use pt2onnx_fx::{
    Place,
    archive::{
        Records,
        pickle::{self, Pickle, Rules},
    },
};
use rustc_hash::FxHashMap;
use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most bytes of a compressed pickle; its objects take many times as much.
const MAX_RECORD: usize = 32 << 20;
/// The most bytes of all source ranges.
const MAX_RANGES: usize = 64 << 20;
/// The most bytes of all code; its syntax trees take many times as much.
const MAX_CODE: usize = 64 << 20;

/// An open archive.
#[derive(Debug)]
pub struct Archive {
    records: Records,
    version: u32,
    files: Vec<SourceFile>,
    index: FxHashMap<String, Definition>,
    /// The trace, if pt2onnx's Python package made the archive.
    trace: Option<(Trace, Arc<ClassDef>)>,
    /// How many bytes of source ranges may still be read.
    ranges: AtomicUsize,
}

/// A file of the code.
#[derive(Debug)]
pub struct SourceFile {
    /// Name of the record: `code/__torch__/m.py`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Where each line starts.
    lines: Vec<usize>,
    /// Where its parts come from, when that was asked for.
    ranges: OnceLock<Option<SourceRanges>>,
}

impl SourceFile {
    fn new(path: String, text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { path, text, lines, ranges: OnceLock::new() }
    }

    /// The line of a byte, counted from 1, and its text.
    pub fn line(&self, at: u32) -> (usize, &str) {
        let line = self.lines.partition_point(|start| *start <= at as usize);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (line, self.text.get(start..self.end(line)).unwrap_or_default())
    }

    /// Where a line ends.
    fn end(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |next| next - 1)
    }
}

/// The definition that a qualified name such as `__torch__.m.Model` stands for.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A class.
    Class(Arc<ClassDef>),
    /// A function that is not a method.
    Function(FunctionDef),
}

/// A class of the archive.
#[derive(Debug)]
pub struct ClassDef {
    /// `__torch__.m.Model`.
    pub name: String,
    /// Position of its file.
    pub file: usize,
    /// Its code.
    pub class: Class,
    /// The qualified name of the class that it stands for, where the archive lists it.
    of: Option<String>,
}

impl ClassDef {
    /// The name of the class in Python: TorchScript puts `__torch__` before it and numbers between
    /// its parts (`__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d`), and leaves out
    /// `__main__`.
    pub fn python_name(&self) -> String {
        python_name(self.of.as_ref().unwrap_or(&self.name))
    }

    /// Whether it is the class of a module.
    pub fn is_module(&self) -> bool {
        self.class.base.as_deref() == Some("Module")
    }
}

/// The name in Python of a class with this qualified name in TorchScript.
pub fn python_name(qualified: &str) -> String {
    let parts = qualified.split('.');
    let own = parts.filter(|p| *p != "__torch__" && !p.starts_with("___torch_mangle_"));
    own.collect::<Vec<_>>().join(".")
}

/// A function of the archive.
#[derive(Clone, Debug)]
pub struct FunctionDef {
    /// Position of its file.
    pub file: usize,
    /// Its code.
    pub function: Arc<Function>,
}

impl Archive {
    /// Opens and maps an archive.
    ///
    /// # Errors
    /// The file cannot be read, or is not a TorchScript archive.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(Records::open(path.as_ref())?)
    }

    /// Reads an archive of these records.
    ///
    /// # Errors
    /// They are not those of a TorchScript archive, or the code cannot be parsed.
    pub fn new(records: Records) -> Result<Self> {
        let refuse = |found| Error::Layout { place: records.place().clone(), found };
        let is_trace = records.has(graph::GRAPH);
        if !is_trace && !records.has("data.pkl") {
            let legacy = records.has("model.json");
            let found = if legacy { NotTorchScript::Legacy } else { NotTorchScript::NoData };
            return Err(refuse(found));
        }
        if !is_trace && !records.names().any(|name| name.starts_with("code/")) {
            return Err(refuse(NotTorchScript::NoCode));
        }
        if records.get("byteorder").is_some_and(|order| &**order.bytes() == b"big") {
            return Err(refuse(NotTorchScript::BigEndian));
        }
        let version = ["version", ".data/version"].into_iter().find(|name| records.has(name));
        let version = match version {
            Some(name) => {
                let text = records.read(name, MAX_RECORD)?;
                let text = String::from_utf8_lossy(text.bytes()).trim().to_owned();
                let number = text.parse().ok().filter(|v| (1..=10).contains(v));
                number.ok_or_else(|| refuse(NotTorchScript::Version(text)))?
            }
            None => 1,
        };
        let mut archive = Self {
            records,
            version,
            files: Vec::new(),
            index: FxHashMap::default(),
            trace: None,
            ranges: AtomicUsize::new(MAX_RANGES),
        };
        if is_trace {
            archive.read_trace()?;
        } else {
            archive.read_code()?;
        }
        Ok(archive)
    }

    fn read_trace(&mut self) -> Result<()> {
        let text = |name: &str| -> Result<String> {
            let bytes = self.records.read(name, MAX_CODE)?;
            Ok(String::from_utf8_lossy(bytes.bytes()).into_owned())
        };
        let [inputs, modules, tensors] = graph::LISTS.map(text);
        let (inputs, modules, tensors) = (inputs?, modules?, tensors?);
        let graph = text(graph::GRAPH)?;
        let stacks =
            if self.records.has(graph::STACKS) { text(graph::STACKS)? } else { String::new() };
        let trace = Trace::read(&graph, [&inputs, &modules, &tensors], &stacks);
        let (trace, class) = trace.map_err(|(record, line, what)| Error::Syntax {
            place: self.records.place().within(record),
            line,
            what,
        })?;
        let name = "__torch__.Trace".to_owned();
        let of = trace.state.modules.first().map(|(_, class)| class.to_string());
        let class = Arc::new(ClassDef { name: name.clone(), file: 0, class, of });
        self.index.insert(name, Definition::Class(class.clone()));
        self.files.push(SourceFile::new(graph::GRAPH.to_owned(), graph));
        self.trace = Some((trace, class));
        Ok(())
    }

    fn read_code(&mut self) -> Result<()> {
        let names = self.records.names().filter(|n| n.starts_with("code/") && n.ends_with(".py"));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let mut left = MAX_CODE;
        for path in names {
            let bytes = self.records.read(&path, left)?;
            left = left.checked_sub(bytes.bytes().len()).ok_or_else(|| Error::Layout {
                place: self.records.place().clone(),
                found: NotTorchScript::Large(MAX_CODE >> 20),
            })?;
            let text = String::from_utf8_lossy(bytes.bytes()).into_owned();
            let parsed = syntax::parse(&text).map_err(|error| Error::Syntax {
                place: self.records.place().within(&path),
                line: error.line,
                what: error.what,
            })?;
            let module = path.trim_start_matches("code/").trim_end_matches(".py").replace('/', ".");
            let file = self.files.len();
            for class in parsed.classes {
                let name = format!("{module}.{}", class.name);
                let class = Arc::new(ClassDef { name: name.clone(), file, class, of: None });
                self.index.insert(name, Definition::Class(class));
            }
            for function in parsed.functions {
                let name = format!("{module}.{}", function.name);
                self.index.insert(name, Definition::Function(FunctionDef { file, function }));
            }
            self.files.push(SourceFile::new(path, text));
        }
        Ok(())
    }

    /// The tensors and modules of a trace of pt2onnx's Python package.
    pub fn trace(&self) -> Option<&GraphState> {
        self.trace.as_ref().map(|(trace, _)| &trace.state)
    }

    /// The version of the format: 3 to 10.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The records.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The file, for messages.
    pub fn place(&self) -> &Place {
        self.records.place()
    }

    /// The files of the code.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The origin of a byte of a file of the code, if the archive has it.
    pub fn origin(&self, file: usize, at: u32) -> Option<Origin> {
        let file = self.files.get(file)?;
        if let Some((trace, _)) = &self.trace {
            return trace.origin(at, file.line(at).1);
        }
        let ranges = file.ranges.get_or_init(|| {
            // Records that only messages need are left out if they are damaged.
            let name = format!("{}.debug_pkl", file.path);
            let left = self.ranges.load(Ordering::Relaxed);
            let pickle = self.records.pickle(&name, &RULES, left.min(MAX_RECORD)).ok()?;
            self.ranges.store(left.checked_sub(pickle.length())?, Ordering::Relaxed);
            SourceRanges::new(pickle)
        });
        let (line, _) = file.line(at);
        ranges.as_ref()?.origin(at as usize, file.end(line))
    }

    /// The definition that a qualified name stands for.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.index.get(name)
    }

    /// The class of this qualified name.
    pub fn class(&self, name: &str) -> Option<&Arc<ClassDef>> {
        match self.index.get(name) {
            Some(Definition::Class(class)) => Some(class),
            _ => None,
        }
    }

    /// The pickle of this name; `None` if there is none.
    ///
    /// # Errors
    /// It is damaged or too large, or names globals that TorchScript does not write.
    pub fn pickle(&self, name: &str) -> Result<Option<Pickle>> {
        if !self.records.has(name) {
            return Ok(None);
        }
        Ok(Some(self.records.pickle(name, &RULES, MAX_RECORD)?))
    }

    /// The class of the saved module.
    ///
    /// # Errors
    /// `data.pkl` is not an object of a class of the archive.
    pub fn root_class(&self) -> Result<&Arc<ClassDef>> {
        if let Some((_, class)) = &self.trace {
            return Ok(class);
        }
        let refuse =
            || Error::Layout { place: self.records.place().clone(), found: NotTorchScript::NoData };
        let pickle = self.pickle("data.pkl")?.ok_or_else(refuse)?;
        match pickle.root() {
            pickle::Value::Object { class, .. } => self.class(class).ok_or_else(refuse),
            _ => Err(refuse()),
        }
    }
}

/// The globals that pickles of TorchScript may name.
const RULES: Rules = Rules { allowed, objects: true };

fn allowed(name: &str) -> bool {
    const GLOBALS: &[&str] = &[
        "collections.OrderedDict",
        "torch.device",
        "builtins.complex",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_qtensor",
        "torch._utils._rebuild_parameter",
        "torch.jit._pickle.build_intlist",
        "torch.jit._pickle.build_tensorlist",
        "torch.jit._pickle.build_doublelist",
        "torch.jit._pickle.build_boollist",
        "torch.jit._pickle.build_tensor_from_id",
        "torch.jit._pickle.restore_type_tag",
        "torch.per_tensor_affine",
        "torch.per_channel_affine",
        "torch.per_channel_affine_float_qparams",
        "torch.per_tensor_symmetric",
        "torch.per_channel_symmetric",
    ];
    GLOBALS.contains(&name)
        || name.starts_with("__torch__.")
        || (name.starts_with("torch.") && name.ends_with("Storage"))
}
