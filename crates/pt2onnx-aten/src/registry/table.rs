//! The registry's tables, and how it finds the translation of an op.

use super::translation::{Custom, RegisterError, Translation};
use crate::{AtenOp, Schema, ops};
use pt2onnx_ir::{Model, schema};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// All ops that can be translated, with their translations. If an op has several, the one that was
/// registered last is used.
///
/// One registry serves many conversions at the same time: `&Registry` may be shared between
/// threads.
#[derive(Clone, Default)]
pub struct Registry {
    pub(super) ops: Ops,
    /// Translations by the op's name, in the order in which they were registered.
    pub(super) custom: FxHashMap<String, Vec<Custom>>,
    /// A model for each text given to `add_functions`.
    pub(super) functions: Vec<Model>,
}

/// The rows of all tables, by the op's name.
#[derive(Clone)]
pub(super) struct Ops(pub(super) FxHashMap<&'static str, Known>);

/// A row of a table, and its schema, which is parsed when it is first needed.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) op: &'static AtenOp,
    schema: OnceLock<Option<Arc<Schema>>>,
}

impl Default for Ops {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Ops {
    fn with(more: &'static [AtenOp]) -> Self {
        let all = ops::tables().chain([more]).flatten();
        Self(all.map(|op| (op.name(), Known { op, schema: OnceLock::new() })).collect())
    }
}

impl Registry {
    /// A registry of the built-in ops and of `more`, which replace built-in ones of the same name.
    ///
    /// # Errors
    /// The first row of `more` whose schema cannot be read, or whose parameters do not fit it.
    pub fn with(more: &'static [AtenOp]) -> Result<Self, RegisterError> {
        more.iter().try_for_each(|row| row.check().map_err(RegisterError::Parameters))?;
        Ok(Self { ops: Ops::with(more), ..Self::default() })
    }

    /// Whether the op of that name (`aten::add.Tensor`) has a translation.
    pub fn is_registered(&self, op: &str) -> bool {
        self.custom.contains_key(op) || self.get(op).is_some()
    }

    /// The translations of an op, in the order in which they were registered. The last one is used.
    pub fn functions(&self, op: &str) -> Vec<Translation<'_>> {
        let table = self.get(op).map(Translation::Table);
        let custom = self.custom.get(op).into_iter().flatten();
        let custom = custom.filter_map(|c| {
            Some(match c {
                Custom::Closure { schema, complex, .. } => {
                    Translation::Registered { schema, is_complex: *complex }
                }
                Custom::Untyped { .. } => Translation::Untyped,
                Custom::Function(library, i) => {
                    Translation::Function(self.function(*library, *i)?.1)
                }
            })
        });
        table.into_iter().chain(custom).collect()
    }

    /// The opset whose operators lowerings emit. A written model can have an older one.
    pub fn opset_version(&self) -> u32 {
        schema::CANONICAL_OPSET
    }

    /// The op of that name (`aten::add.Tensor`) in the tables.
    pub fn get(&self, name: &str) -> Option<&'static AtenOp> {
        self.ops.0.get(name).map(|known| known.op)
    }

    /// All ops of the tables, sorted by name.
    pub fn ops(&self) -> Vec<&'static AtenOp> {
        let mut all: Vec<_> = self.ops.0.values().map(|known| known.op).collect();
        all.sort_by_key(|op| op.name());
        all
    }

    /// The translation registered last for an op; `complex` returns whether the node has complex
    /// tensors.
    pub(crate) fn custom(&self, op: &str, complex: impl Fn() -> bool) -> Option<&Custom> {
        let (mut custom, complex) = (self.custom.get(op)?.iter().rev(), complex());
        custom.find(|c| match c {
            Custom::Closure { complex: c, .. } | Custom::Untyped { complex: c, .. } => {
                *c == complex
            }
            Custom::Function(..) => !complex,
        })
    }

    /// Function `i` of the text `library`, and the model that has it.
    pub(crate) fn function(
        &self,
        library: usize,
        i: usize,
    ) -> Option<(&Model, &pt2onnx_ir::Function)> {
        let library = self.functions.get(library)?;
        Some((library, library.functions.get(i)?))
    }

    /// The parsed schema of a table's row. It is parsed once, for all threads.
    pub(crate) fn schema(&self, op: &AtenOp) -> Option<Arc<Schema>> {
        let known = self.ops.0.get(op.name())?;
        known.schema.get_or_init(|| Schema::parse(known.op.schema).ok().map(Arc::new)).clone()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let custom: Vec<_> = self.custom.keys().collect();
        f.debug_struct("Registry").field("ops", &self.ops.0.len()).field("custom", &custom).finish()
    }
}
