//! The types of the results of operators, as the evaluator asks for them; `aten` implements them.

pub use crate::state::journal::Journal;
pub use pt2onnx_fx::{Contents, Outcome, Typed};
use pt2onnx_fx::{Name, Node, Values};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use std::cell::Cell;

/// Infers the types of the results of operators, in the thread of the evaluator.
pub trait Types: Send {
    /// The results of a call, in the order of its schema's returns.
    ///
    /// `node` calls an operator of the dispatcher (`aten.add.Tensor`), with arguments by the names
    /// of its schema and without those that have their default value. Known integers are
    /// [`Argument::Int`](pt2onnx_fx::Argument::Int), those of sizes
    /// [`SymArg::Expr`](pt2onnx_fx::SymArg::Expr), those of data names of numbers in `facts`, which
    /// has all values that the node reads. `node.outputs` is empty: the interpreter names the
    /// results, and computes the elements of arithmetic on sizes itself.
    ///
    /// Calls are in the order of execution. A name is never used twice, also not in bodies, so that
    /// an implementation may keep what it knows of a value by its name.
    ///
    /// Nodes that write (`add_`) return the tensor that they write into, with the type that it has
    /// then. Higher-order ops are never asked for, because their results are those of their bodies.
    ///
    /// # Errors
    /// The types are not known; a guess is never an answer. The text ends the sentence
    /// "`aten.foo.default` (model.py:12): ...".
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String>;

    /// The schemas of an operator that PyTorch does not have (`mylib::foo`), which archives do not
    /// have either: as PyTorch prints them, or only the name with the overload
    /// (`mylib::foo.Tensor`) of one that takes whatever it is given. Its results are asked for all
    /// the same.
    fn schemas(&self, _operator: &str) -> Vec<String> {
        Vec::new()
    }

    /// The type of floats that have no other (`torch.get_default_dtype()`).
    fn default_dtype(&self) -> DType {
        DType::F32
    }
}

/// Contents of more elements than these are forgotten.
pub const MAX_CONTENTS: usize = 4096;

/// Facts about the values so far.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Types by name: of inputs, parameters, constants and results.
    pub values: Values,
    /// Known elements by name. A write drops those of all aliases.
    pub contents: Journal<Name, Contents>,
    /// Ranges and relations of symbols. Operators may add what they guarantee or demand.
    pub constraints: Constraints,
    /// Makes symbols for numbers that depend on data.
    pub symbols: Symbols,
}

/// Makes symbols, each once.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Cell<usize>);

impl Symbols {
    /// A new symbol: for an integer that depends on data, as `nonzero` has (`u0`, `u1`, ...), or
    /// for a float (`zuf0`, ...).
    pub fn next(&self, float: bool) -> Expr {
        let prefix = if float { "zuf" } else { "u" };
        let number = self.0.replace(self.0.get() + 1);
        Expr::symbol(&format!("{prefix}{number}"))
    }

    /// Whether this is the name of such a symbol.
    pub fn makes(name: &str) -> bool {
        Self::number(name).is_some()
    }

    /// How many symbols were made before this one, if it is one.
    pub(crate) fn number(name: &str) -> Option<usize> {
        let number = name.strip_prefix("zuf").or_else(|| name.strip_prefix('u'))?;
        if number.starts_with('+') { None } else { number.parse().ok() }
    }
}

/// Whether a number depends on data.
pub(crate) fn of_data(e: &Expr) -> bool {
    e.symbols().iter().any(|s| Symbols::makes(s))
}
