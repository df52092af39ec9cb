//! The registry's tables, and how it finds the translation of an op.

use super::translation::{Custom, Translation};
use crate::{AtenOp, Schema, ops};
use dashmap::DashMap;
use pt2onnx_ir::{Model, schema};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All ops that can be translated, with their translations. If an op has several, the one that was registered last is used.
///
/// One registry serves many conversions at the same time: `&Registry` may be shared between threads.
#[derive(Default)]
pub struct Registry {
    pub(super) ops: Ops,
    /// Translations by the op's name, in the order in which they were registered.
    pub(super) custom: FxHashMap<String, Vec<Custom>>,
    /// A model for each text given to `add_functions`.
    pub(super) functions: Vec<Model>,
    /// The schemas of the tables that were parsed so far.
    schemas: DashMap<&'static str, Arc<Schema>>,
}

/// The rows of all tables, by the op's name.
pub(super) struct Ops(pub(super) FxHashMap<&'static str, &'static AtenOp>);

impl Default for Ops {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Ops {
    fn with(more: &'static [AtenOp]) -> Self {
        let all = ops::tables().chain([more]).flatten();
        Self(all.map(|op| (op.name(), op)).collect())
    }
}

impl Registry {
    /// A registry of the built-in ops and of `more`, which replace built-in ones of the same name.
    pub fn with(more: &'static [AtenOp]) -> Self {
        Self { ops: Ops::with(more), ..Self::default() }
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
                Custom::Untyped(_) => Translation::Untyped,
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
        self.ops.0.get(name).copied()
    }

    /// All ops of the tables, sorted by name.
    pub fn ops(&self) -> Vec<&'static AtenOp> {
        let mut all: Vec<_> = self.ops.0.values().copied().collect();
        all.sort_by_key(|op| op.name());
        all
    }

    /// The translation registered last for an op; `complex` tells whether the node has complex tensors.
    pub(crate) fn custom(&self, op: &str, complex: impl Fn() -> bool) -> Option<&Custom> {
        let (mut custom, complex) = (self.custom.get(op)?.iter().rev(), complex());
        custom.find(|c| match c {
            Custom::Closure { complex: c, .. } => *c == complex,
            Custom::Untyped(_) | Custom::Function(..) => !complex,
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
    pub(crate) fn schema(&self, op: &'static AtenOp) -> Option<Arc<Schema>> {
        let known = self.schemas.get(op.schema).map(|known| known.clone());
        known.or_else(|| {
            let parsed = Arc::new(Schema::parse(op.schema)?);
            self.schemas.insert(op.schema, parsed.clone());
            Some(parsed)
        })
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let custom: Vec<_> = self.custom.keys().collect();
        f.debug_struct("Registry").field("ops", &self.ops.0.len()).field("custom", &custom).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cx, Lowered, arguments, checks::tests::translated_by, op};
    use pt2onnx_ir::Value;
    use std::collections::HashSet;

    #[test]
    fn tables_are_sorted_and_unique() {
        let mut seen = HashSet::new();
        for family in ops::tables() {
            for pair in family.windows(2) {
                let (a, b) = (pair[0].name(), pair[1].name());
                assert!(a < b, "{a} before {b}");
            }
            for op in family {
                assert!(seen.insert(op.name()), "{} stands twice", op.name());
            }
        }
    }

    /// Rows of ops in PyTorch's list have the list's schema.
    #[test]
    fn schemas_are_those_of_the_list() {
        let list = include_str!("../../../pt2onnx-schemas/src/schemas.txt");
        let schemas: HashSet<&str> = list.lines().collect();
        let names: HashSet<&str> = list.lines().filter_map(|l| l.split('(').next()).collect();
        for op in ops::tables().flatten().filter(|op| !schemas.contains(op.schema)) {
            assert!(Schema::parse(op.schema).is_some(), "no schema: {}", op.schema);
            assert!(!names.contains(op.name()), "not PyTorch's schema: {}", op.schema);
        }
    }

    #[test]
    fn parameters_fit_the_schemas() {
        let wrong: Vec<String> =
            ops::tables().flatten().filter_map(|op| op.check().err()).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    arguments! {
        struct ScaleArgs {
            input: Value,
            bias: Option<Value>,
            factor: f64,
        }
    }

    /// `input * factor + bias`.
    fn scale(cx: &Cx, args: ScaleArgs) -> Lowered {
        let product = cx.mul(args.input, args.factor);
        Ok(args.bias.map_or(product, |bias| cx.add(product, bias)))
    }

    static OPS: &[AtenOp] = &[
        op!("mylib::biased(float factor, Tensor bias, Tensor input) -> Tensor", scale),
        op!("mylib::doubled(Tensor self) -> Tensor", scale, factor = 2.0),
        op!("mylib::scaled(Tensor self, float factor=1.) -> Tensor", scale),
    ];

    #[test]
    fn fields_are_bound_by_name() {
        assert!(OPS.iter().all(|op| op.check().is_ok()));
        let registry = Registry::with(OPS);
        let translated = |call| translated_by(&registry, call);
        insta::assert_snapshot!(translated("mylib.biased(3.0, b: f32[2], x: f32[2]) -> f32[2]"), @"
        (float[2] b, float[2] x) => (float[2] biased)
        <
          float val_0 = {3.0}
        >
        {
          val_1 = Mul (x, val_0)
          biased = Add (val_1, b)
        }
        ");
        insta::assert_snapshot!(translated("mylib.doubled(x: f32[2]) -> f32[2]"), @"
        (float[2] x) => (float[2] doubled)
        <
          float val_0 = {2.0}
        >
        {
          doubled = Mul (x, val_0)
        }
        ");
        insta::assert_snapshot!(translated("mylib.scaled(x: f32[2]) -> f32[2]"), @"
        (float[2] x) => (float[2] scaled)
        {
          scaled = Identity (x)
        }
        ");
    }

    #[test]
    fn rows_that_do_not_fit_their_schemas() {
        static ROWS: &[AtenOp] = &[
            op!("mylib::missing(Tensor self) -> Tensor", scale),
            op!("mylib::mistyped(Tensor self, str factor) -> Tensor", scale),
            op!("mylib::untaken(Tensor self, float factor, int n) -> Tensor", scale),
            op!("mylib::given_twice(Tensor self, float factor) -> Tensor", scale, factor = 2.0),
            op!("mylib::given_in_vain(Tensor self, float factor) -> Tensor", scale, n = 2),
            op!("mylib::unreadable", scale),
        ];
        let errors: Vec<String> = ROWS.iter().filter_map(|row| row.check().err()).collect();
        assert_eq!(errors.len(), ROWS.len());
        insta::assert_snapshot!(errors.join("\n"), @"
        mylib::missing: the function takes `factor`, which the schema does not have
        mylib::mistyped: a parameter of type f64 cannot take `str factor`
        mylib::untaken: the function does not take `n`, which has no default
        mylib::given_twice: the row gives a value for `factor`, which is a parameter of the schema
        mylib::given_in_vain: the function does not take `n`, which has no default
        `mylib::unreadable` is not a schema
        ");
    }
}
