//! The operator schemas as `onnx_schemas.py` prints them, and their selection and grouping for the
//! generators.

use serde::Deserialize;

/// The output of `onnx_schemas.py`.
#[derive(Deserialize)]
pub struct Dump {
    pub version: String,
    pub schemas: Vec<Schema>,
}

#[derive(Deserialize)]
pub struct Schema {
    pub name: String,
    pub since: u32,
    pub deprecated: bool,
    pub experimental: bool,
    pub inputs: Vec<Param>,
    pub outputs: Vec<Param>,
    pub min_inputs: u32,
    pub min_outputs: u32,
    pub attributes: Vec<Attribute>,
    pub constraints: Vec<Constraint>,
    pub has_function: bool,
}

#[derive(Deserialize)]
pub struct Param {
    pub name: String,
    pub ty: String,
    pub kind: ParamKind,
    pub homogeneous: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
pub enum ParamKind {
    Single,
    Optional,
    Variadic,
}

#[derive(Deserialize)]
pub struct Attribute {
    pub name: String,
    pub kind: AttributeKind,
    pub required: bool,
    pub default: Option<serde_json::Value>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AttributeKind {
    Float,
    Int,
    String,
    Tensor,
    Graph,
    SparseTensor,
    TypeProto,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensors,
    TypeProtos,
}

#[derive(Deserialize)]
pub struct Constraint {
    pub name: String,
    pub types: Vec<String>,
}

/// The newest version of each operator that is not deprecated. `schemas` is sorted by name and
/// version.
pub fn newest(schemas: &[Schema]) -> Vec<&Schema> {
    let last = |(i, s): (usize, &Schema)| schemas.get(i + 1).is_none_or(|n| n.name != s.name);
    schemas
        .iter()
        .enumerate()
        .filter(|&entry| last(entry))
        .map(|(_, schema)| schema)
        .filter(|schema| !schema.deprecated && !schema.experimental)
        .collect()
}

/// Groups schemas by the first letter of their name, in lower case.
pub fn by_letter<'a>(
    schemas: impl IntoIterator<Item = &'a Schema>,
) -> Vec<(char, Vec<&'a Schema>)> {
    let mut groups: Vec<(char, Vec<&Schema>)> = Vec::new();
    for schema in schemas {
        let letter = schema.name.chars().next().map_or('_', |c| c.to_ascii_lowercase());
        match groups.last_mut() {
            Some((last, group)) if *last == letter => group.push(schema),
            _ => groups.push((letter, vec![schema])),
        }
    }
    groups
}
