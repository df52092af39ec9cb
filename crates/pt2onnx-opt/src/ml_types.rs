//! Types of what the operators of `ai.onnx.ml` give: those that scikit-learn's and similar
//! converters use.

use pt2onnx_ir::{Attribute, Builder, Node, NodeId, Type};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The domain of these operators.
pub(crate) const DOMAIN: &str = "ai.onnx.ml";

/// The types of a node's outputs, where they follow from its inputs and attributes. Models without
/// them do not say what the operators behind them work on.
pub(crate) fn types(cx: &Builder, id: NodeId) -> Vec<Option<Type>> {
    let node = cx.model()[id].clone();
    let dtype = |input: usize| cx.known_dtype(node.input(input)?);
    let shape = |input: usize| Some(cx.known_shape(node.input(input)?)?.to_vec());
    // A tensor of the first input's sizes.
    let alike = |dtype: Option<DType>| Some(Type::tensor(dtype?, shape(0)?));
    // The number of rows of the first input, a matrix.
    let rows = || match shape(0).as_deref() {
        Some([rows, _]) => rows.clone(),
        _ => cx.unknown_dim(),
    };
    let number = |attribute: &'static str| node.read::<i64>(attribute).ok()?;
    // A number for each row and class, or row and target.
    let scores = |targets: Option<i64>| {
        let targets = targets.map_or_else(|| cx.unknown_dim(), Expr::int);
        Some(Type::tensor(DType::F32, [rows(), targets]))
    };
    let first = match node.op() {
        "Scaler" | "Normalizer" => alike(Some(DType::F32)),
        "Binarizer" | "Imputer" => alike(dtype(0)),
        "LabelEncoder" => alike(label(&node)),
        "LinearRegressor" => scores(number("targets").or(Some(1))),
        "TreeEnsembleRegressor" => scores(number("n_targets")),
        "SVMRegressor" => scores(None),
        "LinearClassifier" | "SVMClassifier" | "TreeEnsembleClassifier" => {
            return vec![Some(Type::tensor(class(&node), [rows()])), scores(None)];
        }
        "OneHotEncoder" => shape(0).zip(categories(&node)).map(|(mut shape, count)| {
            shape.push(Expr::int(count));
            Type::tensor(DType::F32, shape)
        }),
        "ArrayFeatureExtractor" => shape(0).zip(shape(1)).and_then(|(mut shape, picked)| {
            shape.pop()?;
            if shape.is_empty() {
                shape.push(Expr::int(1));
            }
            shape.push(Expr::product(picked));
            Some(Type::tensor(dtype(0)?, shape))
        }),
        _ => None,
    };
    vec![first]
}

/// The element type of the labels that a classifier gives.
fn class(node: &Node) -> DType {
    let has = |name: &str| node.attribute(name).is_some();
    let numbers = has("classlabels_ints") || has("classlabels_int64s");
    if has("classlabels_strings") && !numbers { DType::String } else { DType::I64 }
}

/// The number of categories of a `OneHotEncoder`.
fn categories(node: &Node) -> Option<i64> {
    let count = |name: &&str| match node.attribute(name)? {
        Attribute::Ints(all) => i64::try_from(all.len()).ok(),
        Attribute::Strings(all) => i64::try_from(all.len()).ok(),
        _ => None,
    };
    ["cats_int64s", "cats_strings"].iter().find_map(count)
}

/// The element type that `LabelEncoder` gives. Its first version has other attributes.
fn label(node: &Node) -> Option<DType> {
    let has = |name: &str| node.attribute(name).is_some();
    match node.attribute("values_tensor") {
        Some(Attribute::Tensor(t)) => Some(t.dtype()),
        Some(_) => None,
        None if has("values_strings") => Some(DType::String),
        None if has("values_int64s") => Some(DType::I64),
        None if has("values_floats") => Some(DType::F32),
        None => None,
    }
}
