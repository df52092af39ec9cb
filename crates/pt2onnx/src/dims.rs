//! Names and sizes that the user gives to dynamic dimensions.

use crate::naming::find;
use pt2onnx_ir::{Model, Type, Value, is_unknown};
use pt2onnx_symbolic::{Constraints, Expr, Func, Range};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

/// Why dimensions cannot be called so, or cannot have that size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts explain them")]
pub enum DimError {
    /// Neither a symbol nor an axis.
    #[error(
        "`{target}` is no dynamic dimension: give one of {symbols}, or VALUE.AXIS such as `x.0`"
    )]
    Target { target: String, symbols: String },
    /// No value of this name is there.
    #[error("the dynamic axes name `{0}`, which is neither input nor output of the model")]
    NoValue(String),
    /// The value has fewer axes.
    #[error("`{value}` has {rank} axes, there is no axis {axis}")]
    NoAxis { value: String, axis: i64, rank: usize },
    /// The dimension is no symbol.
    #[error(
        "dimension {axis} of `{value}` is {dim}, fixed at export: export with `dynamic_shapes` to make it dynamic"
    )]
    Static { value: String, axis: i64, dim: String },
    /// The dimension follows from others.
    #[error(
        "dimension {axis} of `{value}` is `{dim}`, which follows from others: name those in it"
    )]
    Derived { value: String, axis: i64, dim: String },
    /// Expressions could not be read any more.
    #[error("`{0}` cannot name a dimension: letters, digits and underscores can, no digit first")]
    Name(String),
    /// One symbol, two names.
    #[error("the dimension `{symbol}` is given two names, `{first}` and `{second}`")]
    Twice { symbol: String, first: String, second: String },
    /// Two symbols that are never equal, one name.
    #[error("`{symbol}` and `{other}` cannot both be called `{name}`: they are never equal")]
    Different { symbol: String, other: String, name: String },
    /// Another symbol is called so.
    #[error("`{symbol}` cannot be called `{name}`, which is another dimension: name that one too")]
    Taken { symbol: String, name: String },
    /// The program does not work for that size.
    #[error("`{target}` cannot be {size}: {reason}")]
    Size { target: String, size: i64, reason: String },
    /// Neither of the two forms.
    #[error(
        "the dynamic axes are not understood: {0}; give {{\"x\": {{\"0\": \"batch\"}}}} or {{\"x\": [0]}}"
    )]
    Axes(String),
}

/// What `torch.onnx.export` takes as `dynamic_axes`: for inputs and outputs, names of axes, or axes to be named
/// `x_dynamic_axes_1` and so on. As text it is the JSON of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicAxes(Vec<(String, i64, String)>);

impl DynamicAxes {
    /// Names an axis of an input or output.
    pub fn name(mut self, value: &str, axis: i64, name: &str) -> Self {
        self.0.push((value.to_owned(), axis, name.to_owned()));
        self
    }
}

impl DynamicAxes {
    /// `x.0` and `batch`.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let axes = self.0.iter();
        axes.map(|(value, axis, name)| (format!("{value}.{axis}"), name.clone())).collect()
    }
}

impl FromStr for DynamicAxes {
    type Err = DimError;

    fn from_str(text: &str) -> Result<Self, DimError> {
        let wrong = |what: String| DimError::Axes(what);
        let json: Json = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let values = json.as_object().ok_or_else(|| wrong("they are no object".into()))?;
        let mut axes = Self::default();
        for (value, entry) in values {
            match entry {
                Json::Object(names) => {
                    for (axis, name) in names {
                        let (Ok(axis), Some(name)) = (axis.parse(), name.as_str()) else {
                            return Err(wrong(format!("`{axis}: {name}` of `{value}`")));
                        };
                        axes = axes.name(value, axis, name);
                    }
                }
                Json::Array(list) => {
                    for (i, axis) in list.iter().enumerate() {
                        let Some(axis) = axis.as_i64() else {
                            return Err(wrong(format!("`{axis}` of `{value}`")));
                        };
                        axes = axes.name(value, axis, &format!("{value}_dynamic_axes_{}", i + 1));
                    }
                }
                other => return Err(wrong(format!("`{value}: {other}`"))),
            }
        }
        Ok(axes)
    }
}

/// All that the user says of dimensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dims {
    /// Symbol or `VALUE.AXIS`, and its name.
    pub names: Vec<(String, String)>,
    pub axes: DynamicAxes,
    /// Symbol or `VALUE.AXIS`, and its size.
    pub fixed: Vec<(String, i64)>,
}

/// Names dimensions, and makes those static that get a size.
pub(crate) fn apply(
    model: &mut Model,
    constraints: &Constraints,
    dims: &Dims,
) -> Result<(), DimError> {
    // Sizes are given by old or new names, and are held against what is known under the old ones.
    let mut fixed = Vec::new();
    for (target, size) in &dims.fixed {
        let found = dims_to_fix(model, dims, target)?;
        fixed.extend(found.into_iter().map(|dim| (target, dim, *size)));
    }
    for (target, _) in &dims.names {
        symbol_of(&dim(model, target)?, target)?;
    }
    for (value, axis, _) in &dims.axes.0 {
        let (_, dim) = axis_of(model, end(model, value)?, value, *axis)?;
        if dim.is_static() {
            return Err(DimError::Static {
                value: value.clone(),
                axis: *axis,
                dim: dim.to_string(),
            });
        }
    }
    let mut constraints = constraints.clone();
    fix(model, &mut constraints, &fixed)?;
    rename(model, &constraints, dims)
}

/// The dimension of that name, or all that are given it.
fn dims_to_fix(model: &Model, dims: &Dims, target: &str) -> Result<Vec<Expr>, DimError> {
    let error = match dim(model, target) {
        Ok(dim) => return Ok(vec![dim]),
        Err(error) => error,
    };
    let mut found = Vec::new();
    for (old, _) in dims.names.iter().filter(|(_, new)| new == target) {
        found.push(dim(model, old)?);
    }
    for (value, axis, _) in dims.axes.0.iter().filter(|(.., new)| new == target) {
        found.push(axis_of(model, end(model, value)?, value, *axis)?.1);
    }
    if found.is_empty() { Err(error) } else { Ok(found) }
}

fn fix(
    model: &mut Model,
    constraints: &mut Constraints,
    fixed: &[(&String, Expr, i64)],
) -> Result<(), DimError> {
    if fixed.is_empty() {
        return Ok(());
    }
    let mut sizes: BTreeMap<String, Expr> = BTreeMap::new();
    for (target, dim, size) in fixed {
        let impossible =
            |reason: String| DimError::Size { target: (*target).clone(), size: *size, reason };
        if is_unknown(dim) {
            return Err(impossible("it depends on values, not on sizes".into()));
        }
        let range = constraints.range_of(dim);
        if *size < 0 || !range.contains(*size) {
            return Err(impossible(format!("the program allows {}", bounds(&range))));
        }
        let equal = Expr::call(Func::Eq, vec![dim.clone(), Expr::int(*size)]);
        if constraints.decide(&equal) == Some(false) {
            return Err(impossible("the program's guards exclude it".into()));
        }
        let dim = constraints.resolve(dim);
        let mut symbols = dim.symbols().into_iter();
        let (Some(symbol), None) = (symbols.next(), symbols.next()) else {
            // Nothing left: it has that size already.
            if dim.as_int() == Some(*size) {
                continue;
            }
            return Err(impossible(format!("it is `{dim}`; fix the symbols in it")));
        };
        let whole = dim.solve_linear(&symbol).and_then(|(slope, rest)| {
            let left = size.checked_sub(rest.as_int()?)?;
            (left.checked_rem(slope)? == 0).then(|| left / slope)
        });
        let whole =
            whole.ok_or_else(|| impossible(format!("there is no such `{symbol}` in `{dim}`")))?;
        let exact = Expr::symbol(&symbol);
        if !constraints.range_of(&exact).contains(whole) {
            return Err(impossible(format!("`{symbol}` would be {whole}")));
        }
        constraints.constrain(&exact, Range::exactly(whole));
        sizes.insert(symbol.to_string(), Expr::int(whole));
    }
    // Also what is known to equal them.
    for symbol in symbols(model) {
        let known =
            constraints.resolve(&Expr::symbol(&symbol)).substitute(&|s| sizes.get(s).cloned());
        if known.is_static() {
            sizes.insert(symbol, known);
        }
    }
    substitute(model, &sizes);
    Ok(())
}

/// `2 to 8`.
fn bounds(range: &Range) -> String {
    match (range.min.unwrap_or(0).max(0), range.max) {
        (min, Some(max)) if min == max => format!("{min} only"),
        (min, Some(max)) => format!("{min} to {max}"),
        (min, None) => format!("{min} and more"),
    }
}

fn rename(model: &mut Model, constraints: &Constraints, dims: &Dims) -> Result<(), DimError> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    // Axes that are called otherwise than their symbol elsewhere.
    let mut alone = Vec::new();
    for (target, name) in &dims.names {
        // What was given a size has no name to be given.
        let Some(dim) = dim(model, target).ok().filter(|d| !d.is_static()) else {
            continue;
        };
        let symbol = symbol_of(&dim, target)?;
        if let Some(first) = names.insert(symbol.clone(), valid(name)?)
            && first != *name
        {
            let second = name.clone();
            return Err(DimError::Twice { symbol, first, second });
        }
    }
    for (value, axis, name) in &dims.axes.0 {
        let (index, dim) = axis_of(model, end(model, value)?, value, *axis)?;
        if dim.is_static() {
            continue;
        }
        let name = valid(name)?;
        match dim.as_symbol() {
            Some(symbol) if names.get(symbol).is_none_or(|n| *n == name) => {
                names.insert(symbol.to_owned(), name);
            }
            _ => alone.push((end(model, value)?, index, name)),
        }
    }
    // Who gives several symbols one name says that they are equal at run time.
    for (symbol, name) in &names {
        for other in symbols(model).iter().filter(|o| *o != symbol) {
            let equal = constraints.prove_eq(&Expr::symbol(symbol), &Expr::symbol(other));
            let (symbol, name) = (symbol.clone(), name.clone());
            match names.get(other) {
                Some(same) if *same == name && equal == Some(false) => {
                    let other = other.clone();
                    return Err(DimError::Different { symbol, other, name });
                }
                None if *other == name && equal != Some(true) => {
                    return Err(DimError::Taken { symbol, name });
                }
                _ => {}
            }
        }
    }
    let names = names.into_iter().map(|(old, new)| (old, Expr::symbol(&new))).collect();
    substitute(model, &names);
    for (value, index, name) in alone {
        if let Some(Type::Tensor(t)) = &mut model[value].ty
            && let Some(dim) = t.shape.as_mut().and_then(|s| s.get_mut(index))
        {
            *dim = Expr::symbol(&name);
        }
    }
    Ok(())
}

fn symbol_of(dim: &Expr, target: &str) -> Result<String, DimError> {
    let (value, axis) = place(target).unwrap_or((target, 0));
    let (value, text) = (value.to_owned(), dim.to_string());
    match dim.as_symbol() {
        Some(symbol) => Ok(symbol.to_owned()),
        None if dim.is_static() => Err(DimError::Static { value, axis, dim: text }),
        None => Err(DimError::Derived { value, axis, dim: text }),
    }
}

fn valid(name: &str) -> Result<String, DimError> {
    let fits = |c: char| c.is_alphanumeric() || c == '_';
    let first = name.chars().next().is_some_and(|c| !c.is_numeric());
    // Not what reads as something else: `True`, `int_oo`.
    let reads = Expr::parse(name).is_ok_and(|e| e.as_symbol() == Some(name));
    if first && name.chars().all(fits) && reads {
        Ok(name.to_owned())
    } else {
        Err(DimError::Name(name.to_owned()))
    }
}

/// `x.0`.
fn place(target: &str) -> Option<(&str, i64)> {
    let (value, axis) = target.rsplit_once('.')?;
    Some((value, axis.parse().ok()?))
}

/// The dimension that a symbol or `VALUE.AXIS` stands for.
fn dim(model: &Model, target: &str) -> Result<Expr, DimError> {
    let symbols = symbols(model);
    if symbols.contains(target) {
        return Ok(Expr::symbol(target));
    }
    if let Some((name, axis)) = place(target)
        && let Some(value) = find(model, name)
    {
        return axis_of(model, value, name, axis).map(|(_, dim)| dim);
    }
    let shown: Vec<String> =
        symbols.iter().filter(|s| !s.starts_with('?')).map(|s| format!("`{s}`")).collect();
    Err(DimError::Target {
        target: target.to_owned(),
        symbols: if shown.is_empty() {
            "its symbols (there are none)".to_owned()
        } else {
            shown.join(", ")
        },
    })
}

fn end(model: &Model, name: &str) -> Result<Value, DimError> {
    find(model, name)
        .filter(|v| model.inputs().contains(v) || model.output_values().any(|o| o == *v))
        .ok_or_else(|| DimError::NoValue(name.to_owned()))
}

/// The dimension and its index; axes below 0 count from the last.
fn axis_of(model: &Model, value: Value, name: &str, axis: i64) -> Result<(usize, Expr), DimError> {
    let tensor = model[value].ty.as_ref().and_then(Type::as_tensor);
    let shape = tensor.and_then(|t| t.shape.as_deref()).unwrap_or_default();
    let index = match axis {
        0.. => Some(axis),
        _ => axis.checked_add_unsigned(shape.len() as u64),
    };
    let index = index.and_then(|i| usize::try_from(i).ok());
    let dim = index.and_then(|i| Some((i, shape.get(i)?.clone())));
    dim.ok_or_else(|| DimError::NoAxis { value: name.to_owned(), axis, rank: shape.len() })
}

/// All symbols in types.
fn symbols(model: &Model) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (_, data) in model.values() {
        if let Some(shape) = data.ty.as_ref().and_then(shape) {
            let found = shape.iter().flat_map(Expr::symbols);
            all.extend(found.map(|s| s.to_string()));
        }
    }
    all
}

fn shape(ty: &Type) -> Option<&[Expr]> {
    match ty {
        Type::Tensor(t) | Type::Sparse(t) => t.shape.as_deref(),
        Type::Sequence(t) | Type::Optional(t) | Type::Map(_, t) => shape(t),
        Type::Opaque(..) => None,
    }
}

fn shape_mut(ty: &mut Type) -> Option<&mut Vec<Expr>> {
    match ty {
        Type::Tensor(t) | Type::Sparse(t) => t.shape.as_mut(),
        Type::Sequence(t) | Type::Optional(t) | Type::Map(_, t) => shape_mut(t),
        Type::Opaque(..) => None,
    }
}

/// Puts expressions in place of symbols, in the types of all values of all regions.
fn substitute(model: &mut Model, with: &BTreeMap<String, Expr>) {
    if with.is_empty() {
        return;
    }
    let values: Vec<Value> = model.values().map(|(v, _)| v).collect();
    for value in values {
        let dims = model[value].ty.as_mut().and_then(shape_mut);
        for dim in dims.into_iter().flatten() {
            *dim = dim.substitute(&|s| with.get(s).cloned());
        }
    }
}
