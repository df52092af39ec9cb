//! Exported programs as text: [`print()`] writes it, [`parse_program`] reads it back, and [`parse_call`] reads a single call.
//!
//! The text looks like what PyTorch's `print_readable` writes. Types are `f32[s0, 8]`: PyTorch's short name of the element
//! type, and the sizes as integers or expressions over symbols.
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
//! - The first line gives the ranges of symbols, as `str(ep.range_constraints)` has them. It may be absent; sizes of inputs
//!   are never negative.
//! - A type may go on with strides (`f32[8, 8][1, 8]`, absent if contiguous), with `@` and the storage offset, and with the device
//!   (`'cuda:0'`, absent if `cpu`). Symbolic numbers have the types `Sym(2*s0)`, `SymFloat(..)`, `SymBool(..)`, objects
//!   `Object('class')`.
//! - Results are `name: type`, `name: (a: type, b: type)`, `name: [a: type, b: type]` for a list, `name: ()` for none. `None` may
//!   stand for a result.
//! - Arguments are values by name, `None`, `True`, `1`, `1.0`, `inf`, `nan`, `(1+2j)`, `'text'`, `torch.float32`, `torch.strided`,
//!   `torch.channels_last`, `torch.device('cpu')`, `torch.ops.aten.add.Tensor` (an operator), `Sym(s0 + 1)` (an expression),
//!   `[..]`, `{key: value}`, and `graph NAME(..) {..}`, the body of a higher-order op.
//! - `name = value` is a keyword argument. If a `*` stands behind it in the call it is a positional argument whose name is known.
//! - `aten.relu` without an overload is `aten.relu.default`.
//! - Parameters, buffers and constants have no data: their tensors are absent.
//! - `#` starts a comment. Names that are no identifiers stand in backquotes.
//!
//! Not in the text: source lines and modules of nodes, hints of symbols, `requires_grad`, layouts, guards, calling
//! conventions, versions, and contents of tensors.

mod grammar;
mod print;
mod reader;
mod types;
mod values;

use crate::graph::ExportedProgram;
use pt2onnx_tensor::DType;
use std::fmt::{self, Display};

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// What is wrong.
    pub what: String,
    /// Line of the text, from 1.
    pub line: usize,
    /// Character in that line, from 1.
    pub column: usize,
    /// That line.
    pub source: String,
}

impl std::error::Error for ParseError {}

/// What, where, the line, and a caret under the place.
impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (line {}, column {})", self.what, self.line, self.column)?;
        writeln!(f, "    {}", self.source)?;
        let before = self.source.chars().take(self.column.saturating_sub(1));
        let blank: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "    {blank}^")
    }
}

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
/// The first thing that is wrong.
pub fn parse_program(text: &str) -> Result<ExportedProgram, ParseError> {
    grammar::Grammar::new(text).program()
}

/// Reads a call as a program of one node. Arguments with a type become inputs, the types of the results stand behind `->`. The node
/// is called as its operator; its results too, with a number where there are several.
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
/// The first thing that is wrong.
pub fn parse_call(text: &str) -> Result<ExportedProgram, ParseError> {
    grammar::Grammar::new(text).call()
}

/// A program as text. With `{:#}` positional arguments have their names, which are lost otherwise.
pub fn print(program: &ExportedProgram) -> impl Display {
    print::program(program)
}

/// PyTorch's short names of element types (`torch.utils._dtype_abbrs`), and names in its style for the types that it has not.
const SHORT: [(DType, &str); 27] = [
    (DType::F64, "f64"),
    (DType::F32, "f32"),
    (DType::F16, "f16"),
    (DType::BF16, "bf16"),
    (DType::I64, "i64"),
    (DType::I32, "i32"),
    (DType::I16, "i16"),
    (DType::I8, "i8"),
    (DType::U64, "u64"),
    (DType::U32, "u32"),
    (DType::U16, "u16"),
    (DType::U8, "u8"),
    (DType::Bool, "b8"),
    (DType::C32, "c32"),
    (DType::C64, "c64"),
    (DType::C128, "c128"),
    (DType::F8E4M3FN, "f8e4m3fn"),
    (DType::F8E4M3FNUZ, "f8e4m3fnuz"),
    (DType::F8E5M2, "f8e5m2"),
    (DType::F8E5M2FNUZ, "f8e5m2fnuz"),
    (DType::F8E8M0, "f8e8m0fnu"),
    (DType::F4E2M1, "f4e2m1"),
    (DType::I4, "i4"),
    (DType::U4, "u4"),
    (DType::I2, "i2"),
    (DType::U2, "u2"),
    (DType::String, "str"),
];

/// Words that are no names of values.
const RESERVED: [&str; 11] =
    ["None", "True", "False", "inf", "nan", "infj", "nanj", "torch", "graph", "return", "Sym"];
