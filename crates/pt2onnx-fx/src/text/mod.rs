//! Exported programs as text: [`print()`] writes it, [`parse_program`] reads it back, and
//! [`parse_call`] reads a single call.
//!
//! The text looks like what PyTorch's `print_readable` writes. Types are `f32[s0, 8]`: PyTorch's
//! short name of the element type, and the sizes as integers or expressions over symbols.
//!
//! ```text
//! {s0: VR[2, 100]}
//! graph(x: f32[s0, 8], w: f32[8] as PARAMETER('scale')) {
//!     mul: f32[s0, 8] = aten.mul.Tensor(x, w)
//!     max_1: (values: f32[s0], indices: i64[s0]) = aten.max.dim(mul, -1, keepdim = False)
//!     return (values,)
//! }
//! ```
//!
//! - The first line gives the ranges of symbols, as `str(ep.range_constraints)` has them. It may be
//!   absent; sizes of inputs are never negative.
//! - A type may go on with strides (`f32[8, 8][1, 8]`, absent if contiguous), with `@` and the
//!   storage offset, and with the device (`'cuda:0'`, absent if `cpu`). Symbolic numbers have the
//!   types `Sym(2*s0)`, `SymFloat(..)`, `SymBool(..)`, objects `Object('class')`.
//! - Results are `name: type`, `name: (a: type, b: type)`, `name: [a: type, b: type]` for a list,
//!   `name: ()` for none. `None` may stand for a result.
//! - Arguments are values by name, `None`, `True`, `1`, `1.0`, `inf`, `nan`, `(1+2j)`, `'text'`,
//!   `torch.float32`, `torch.strided`, `torch.channels_last`, `torch.device('cpu')`,
//!   `torch.ops.aten.add.Tensor` (an operator), `Sym(s0 + 1)` (an expression), `[..]`, `{key:
//!   value}`, and `graph NAME(..) {..}`, the body of a higher-order op.
//! - `name = value` is a keyword argument. If a `*` follows it in the call, it is a positional
//!   argument whose name is known.
//! - `aten.relu` without an overload is `aten.relu.default`.
//! - Parameters, buffers and constants have no data: their tensors are absent.
//! - `#` starts a comment. Names that are not identifiers are in backquotes.
//!
//! Not in the text: source lines and modules of nodes, hints of symbols, `requires_grad`, layouts,
//! guards, calling conventions, versions, and contents of tensors.

mod grammar;
mod lists;
mod print;
mod tokens;
mod types;
mod values;
mod words;

use crate::graph::ExportedProgram;
use std::fmt::Display;

pub use pt2onnx_symbolic::text::SyntaxError as ParseError;
pub(crate) use words::short_name;

/// Reads a program, as [`print()`] writes it.
///
/// ```
/// use pt2onnx_fx::text;
///
/// let program = text::parse_program(
///     "graph(x: f32[s0, 8]) {
///         add: f32[s0, 8] = aten.add.Tensor(x, x, alpha = 2)
///         return (add,)
///     }",
/// )?;
/// assert_eq!(program.graph.nodes[0].target.to_string(), "aten.add.Tensor");
/// assert_eq!(text::parse_program(&text::print(&program).to_string())?.graph, program.graph);
/// # Ok::<(), text::ParseError>(())
/// ```
///
/// # Errors
/// Returns the first error in the text.
pub fn parse_program(text: &str) -> Result<ExportedProgram, ParseError> {
    grammar::Grammar::new(text).program()
}

/// Reads a call as a program of one node. Arguments with a type become inputs, the types of the
/// results follow `->`. The node has the name of its operator; so have the results, with a number
/// if there are several.
///
/// ```
/// use pt2onnx_fx::text;
///
/// let text = "aten.index.Tensor(x: f32[s0, 8], [i: i64[4]]) -> f32[4, 8]";
/// let program = text::parse_call(text)?;
/// assert_eq!(program.graph.inputs.len(), 2);
/// assert_eq!(program.graph.nodes[0].name, "index");
/// # Ok::<(), text::ParseError>(())
/// ```
///
/// # Errors
/// Returns the first error in the text.
pub fn parse_call(text: &str) -> Result<ExportedProgram, ParseError> {
    grammar::Grammar::new(text).call()
}

/// A program as text. With `{:#}`, positional arguments are printed with their names, which are
/// lost otherwise.
pub fn print(program: &ExportedProgram) -> impl Display {
    print::program(program)
}
