//! Types of what the operators of `ai.onnx.ml` give: those that scikit-learn's and similar
//! converters use.

use pt2onnx_ir::{Attribute, Builder, NodeId, Type};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The domain of these operators.
pub(crate) const DOMAIN: &str = "ai.onnx.ml";

/// The types of a node's outputs, where they follow from its inputs and attributes. Models without
/// them do not say what the operators behind them work on.
pub(crate) fn types(cx: &Builder, id: NodeId) -> Vec<Option<Type>> {
    let node = Node { cx, id };
    let first = match node.op().as_str() {
        "Scaler" | "Normalizer" => node.alike(Some(DType::F32)),
        "Binarizer" | "Imputer" => node.alike(node.dtype(0)),
        "LabelEncoder" => node.alike(node.label()),
        "LinearRegressor" => node.scores(node.number("targets").or(Some(1))),
        "TreeEnsembleRegressor" => node.scores(node.number("n_targets")),
        "SVMRegressor" => node.scores(None),
        "LinearClassifier" | "SVMClassifier" | "TreeEnsembleClassifier" => {
            return vec![node.classes(), node.scores(None)];
        }
        "OneHotEncoder" => node.hot(),
        "ArrayFeatureExtractor" => node.picked(),
        _ => None,
    };
    vec![first]
}

struct Node<'a, 'm> {
    cx: &'a Builder<'m>,
    id: NodeId,
}

impl Node<'_, '_> {
    fn op(&self) -> String {
        self.cx.model()[self.id].op().to_owned()
    }

    fn dtype(&self, input: usize) -> Option<DType> {
        let value = self.cx.model()[self.id].input(input)?;
        self.cx.known_dtype(value)
    }

    fn shape(&self, input: usize) -> Option<Vec<Expr>> {
        let value = self.cx.model()[self.id].input(input)?;
        Some(self.cx.known_shape(value)?.to_vec())
    }

    fn has(&self, attribute: &str) -> bool {
        self.cx.model()[self.id].attribute(attribute).is_some()
    }

    /// A tensor of the first input's sizes.
    fn alike(&self, dtype: Option<DType>) -> Option<Type> {
        Some(Type::tensor(dtype?, self.shape(0)?))
    }

    /// The number of rows of the first input, a matrix.
    fn rows(&self) -> Expr {
        match self.shape(0).as_deref() {
            Some([rows, _]) => rows.clone(),
            _ => self.cx.unknown_dim(),
        }
    }

    fn number(&self, attribute: &'static str) -> Option<i64> {
        self.cx.model()[self.id].read(attribute).ok()?
    }

    /// A number for each row and class, or row and target.
    fn scores(&self, targets: Option<i64>) -> Option<Type> {
        let targets = targets.map_or_else(|| self.cx.unknown_dim(), Expr::int);
        Some(Type::tensor(DType::F32, vec![self.rows(), targets]))
    }

    /// A label for each row.
    fn classes(&self) -> Option<Type> {
        let numbers = ["classlabels_ints", "classlabels_int64s"].into_iter().any(|n| self.has(n));
        let text = self.has("classlabels_strings") && !numbers;
        let dtype = if text { DType::String } else { DType::I64 };
        Some(Type::tensor(dtype, vec![self.rows()]))
    }

    /// A number for each category, as a last dimension.
    fn hot(&self) -> Option<Type> {
        let mut shape = self.shape(0)?;
        let model = self.cx.model();
        let count = ["cats_int64s", "cats_strings"].into_iter().find_map(|name| {
            match model[self.id].attribute(name)? {
                Attribute::Ints(all) => Some(all.len()),
                Attribute::Strings(all) => Some(all.len()),
                _ => None,
            }
        })?;
        shape.push(Expr::int(i64::try_from(count).ok()?));
        Some(Type::tensor(DType::F32, shape))
    }

    /// The element type that `LabelEncoder` gives. Its first version has other attributes.
    fn label(&self) -> Option<DType> {
        let of = |name: &str| match self.cx.model()[self.id].attribute(name) {
            Some(Attribute::Tensor(t)) => Some(t.dtype()),
            _ => None,
        };
        match () {
            () if self.has("values_tensor") => of("values_tensor"),
            () if self.has("values_strings") => Some(DType::String),
            () if self.has("values_int64s") => Some(DType::I64),
            () if self.has("values_floats") => Some(DType::F32),
            () => None,
        }
    }

    /// Elements of the last dimension.
    fn picked(&self) -> Option<Type> {
        let (mut shape, picked) = (self.shape(0)?, self.shape(1)?);
        shape.pop()?;
        if shape.is_empty() {
            shape.push(Expr::int(1));
        }
        shape.push(Expr::product(picked));
        Some(Type::tensor(self.dtype(0)?, shape))
    }
}
