//! Errors of flattening TorchScript archives.

use pt2onnx_fx::SourceLine;
use pt2onnx_symbolic::Expr;
use std::fmt;

/// An error: what is wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation of variants and fields")]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Archive(#[from] pt2onnx_torchscript_archive::Error),

    #[error("there is no method `{method}`; the module has {}", known.join(", "))]
    NoMethod { method: String, known: Vec<String> },

    #[error("the types of the inputs are not known: {}. Give them by the option `input`, as in `{example}`", missing.join(", "))]
    Untold { missing: Vec<String>, example: String },

    #[error("`{name}={given}` of the option `input` does not fit the parameter `{name}: {ty}`{}. Give it as in `{example}`", because(.why))]
    Misfit { name: String, given: String, ty: String, why: Option<String>, example: Box<str> },

    #[error("there is no input `{path}`: the parameter `{name}: {ty}` has no such part")]
    NoPart { path: String, name: String, ty: String },

    #[error("the input `{0}` is given twice")]
    InputTwice(String),

    #[error("there is no input `{name}`; the method takes {}", known.join(", "))]
    NoInput { name: String, known: Vec<String> },

    #[error(
        "the method writes into the attributes {}; the option `mutations` keeps the new values, set to `pairs`, or drops them, set to `drop`", attributes.join(", ")
    )]
    Writes { attributes: Vec<String> },

    #[error("no thread can be started: {0}")]
    Thread(String),

    #[error("{site}: {problem}")]
    Run { site: Box<Site>, problem: Problem },
}

/// The result of flattening an archive.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A step of the evaluator that may fail; it adds where to what is wrong.
pub(crate) type Step<T> = Result<T, Problem>;

/// Where in the user's model something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The method or function that ran: `forward` of a module.
    pub function: String,
    /// Path of the module: `layer1.0`; empty for the root.
    pub module: String,
    /// The file, if nothing ran.
    pub place: String,
    /// Python's text of the stack, outermost frame first: lines of the user's source, or else of
    /// the archive's code.
    pub stack_trace: String,
}

impl Site {
    /// The user's line, or else that of the innermost frame: of the archive's code, or of
    /// PyTorch's.
    pub fn source_line(&self) -> Option<SourceLine<'_>> {
        let stack = &self.stack_trace;
        SourceLine::of_stack(stack).or_else(|| SourceLine::innermost(stack))
    }
}

/// ``model.py:12: x = self.relu(x) (in forward of module layer1.0)``.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source_line() {
            Some(line) if line.file.starts_with("code/") => {
                write!(f, "{}:{}", line.file, line.line)?;
            }
            Some(line) => write!(f, "{line}")?,
            None => f.write_str(&self.place)?,
        }
        write!(f, " (in {}", self.function)?;
        if !self.module.is_empty() {
            write!(f, " of module {}", self.module)?;
        }
        f.write_str(")")
    }
}

fn because(why: &Option<String>) -> String {
    why.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
}

impl Problem {
    /// The operator that has no translation, or none for these arguments.
    pub fn op(&self) -> Option<&str> {
        match self {
            Self::Type { op, .. } => Some(op),
            Self::NoOverload(call) => Some(call.split('(').next().unwrap_or(call)),
            _ => None,
        }
    }
}

/// Why a line cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum Problem {
    #[error("raises {0}")]
    Raises(String),
    #[error("no overload of {0} takes these arguments")]
    NoOverload(String),
    #[error("`{0}` is not known")]
    Unbound(String),
    #[error("{0} is not supported")]
    Unsupported(String),
    #[error("expected {expected}, found {found}")]
    Kind { expected: &'static str, found: String },
    #[error("{op}: the type of the result is not known: {why}")]
    Type { op: String, why: String },
    #[error("the condition depends on data, and {0}")]
    Branch(String),
    #[error(
        "`{condition}` decides, and {why}. Tell more of the sizes by the option `input`, as in `x=float32[4,n>=2]`"
    )]
    Sizes { condition: Expr, why: String },
    #[error("the loop depends on data, and {0}")]
    Loop(String),
    #[error("the program runs longer than {0} steps")]
    Steps(u64),
    #[error("the program needs more than {0} values")]
    Memory(usize),
    #[error("calls nest more than {0} deep")]
    Depth(usize),
}
