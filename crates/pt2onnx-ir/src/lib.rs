//! ONNX graphs in memory: arena, types, operator schemas, builder, verifier, text printer and
//! parser.
//!
//! Layer 1: knows ONNX's operators and types, neither PyTorch nor protobuf, and does no IO. All
//! nodes, values and regions of a model live in one arena, [`Model`]; each has a small id. The
//! bodies of `If`, `Loop` and `Scan` are regions of the same arena, so a captured value is just a
//! [`Value`]. The crate can be used alone, to make or change ONNX graphs:
//!
//! ```
//! use pt2onnx_ir::{InsertPoint, Model, Type, attrs, verify};
//! use pt2onnx_symbolic::Expr;
//! use pt2onnx_tensor::{DType, Tensor};
//!
//! let mut model = Model::new(20);
//! let batch = Type::tensor(DType::F32, [Expr::symbol("n"), Expr::int(2)]);
//! let x = model.add_input(Model::MAIN, Some(batch));
//! model[x].name = Some("x".into());
//! let weight = Tensor::from_slice(vec![1, 2], &[0.5f32, -1.0])?;
//! let y = model.build(InsertPoint::End(Model::MAIN), |cx| {
//!     let transposed = attrs::Gemm { trans_b: true, ..Default::default() };
//!     cx.relu(cx.gemm(x, cx.constant(weight), None, transposed))
//! })?;
//! model.set_outputs(Model::MAIN, &[y]);
//! model.assign_names();
//! assert!(verify(&model).is_ok());
//! assert!(model.to_string().contains("(float[n,2] x) => (float[n,1] val_0)"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parts of a model:
//!
//! - [`Model`] is the arena: `model[id]` is a node or the data of a value, and methods of the model
//!   change them.
//! - [`Value`] is the id of a tensor, a sequence or an optional value. An input, a constant or a
//!   node defines it ([`Def`]).
//! - [`NodeId`] is the id of a [`Node`], a call of an operator with inputs, outputs and attributes,
//!   in one region.
//! - [`RegionId`] is the id of a list of nodes with inputs and outputs: [`Model::MAIN`], the body
//!   of a node, or the body of a function.
//! - [`Type`] has an element type and sizes ([`Expr`](pt2onnx_symbolic::Expr)), where known.
//! - [`Builder`] emits nodes at an [`InsertPoint`] and infers their types.
//! - [`OriginId`] is the id of a node's place in the source program.
//! - [`Traits`] are the facts about an operator that passes ask for.
//!
//! [`Model::graph`] shows a region to petgraph's algorithms; [`dot()`] draws a model.

#![deny(missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod attribute;
mod attribute_access;
mod builder;
mod copy;
mod dce;
mod describe;
mod dot;
mod extract;
mod function;
mod function_index;
mod generated;
mod graph;
mod ids;
mod infer;
mod ir_version;
mod model;
mod modules;
mod names;
mod nesting;
mod node;
mod op_set;
mod origin;
mod outline;
mod outputs;
mod par_join;
mod parse;
mod region;
pub mod schema;
mod schema_check;
mod scoped_names;
mod shared_text;
mod text;
mod traits;
mod types;
mod uses;
mod value;
mod verify;
mod walk;

pub use attribute::{Attribute, Attributes};
pub use attribute_access::{AttributeError, FromAttribute};
pub use builder::{Builder, Diagnostic, Diagnostics, Operand, Reduction};
pub use copy::InlineError;
pub use dot::dot;
pub use extract::ExtractError;
pub use function::Function;
pub use function_index::FunctionIndex;
pub use generated::attrs;
pub use graph::Graph;
pub use ids::{ModuleId, NodeId, OriginId, RegionId, Value};
pub use infer::{Contents, Facts, InferError, einsum_terms, infer};
pub use model::Model;
pub use names::{FOLDED_FROM, ORIGINAL_NAME, Scopes};
pub use nesting::MAX_NESTING;
pub use node::Node;
pub use op_set::OpSet;
pub use origin::{Metadata, ModuleCall, Name, Origin};
pub use outline::Outlined;
pub use parse::ParseError;
pub use petgraph;
pub use pt2onnx_symbolic::{self as symbolic, is_possible};
pub use pt2onnx_tensor as tensor;
pub use region::{InsertPoint, Output, Region};
pub use schema_check::conforms;
pub use shared_text::SharedText;
pub use text::TextOptions;
pub use traits::Traits;
pub use types::{Shape, TensorType, Type, is_unknown, is_unknown_symbol};
pub use uses::Use;
pub use value::{Def, ValueData};
pub use verify::{VerifyError, verify, verify_imported};
