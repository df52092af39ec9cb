//! Generates the operator tables: `generated/schema.rs`, and a file for each first letter below it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::model::{Attribute, AttributeKind, Constraint, Param, ParamKind, Schema, by_letter};
use super::names;

/// The name of an element type in ONNX's type strings, and the variant of `pt2onnx_tensor::DType`.
const DTYPES: &[(&str, &str)] = &[
    ("double", "F64"),
    ("float", "F32"),
    ("float16", "F16"),
    ("bfloat16", "BF16"),
    ("int64", "I64"),
    ("int32", "I32"),
    ("int16", "I16"),
    ("int8", "I8"),
    ("uint64", "U64"),
    ("uint32", "U32"),
    ("uint16", "U16"),
    ("uint8", "U8"),
    ("bool", "Bool"),
    ("complex64", "C64"),
    ("complex128", "C128"),
    ("float8e4m3fn", "F8E4M3FN"),
    ("float8e4m3fnuz", "F8E4M3FNUZ"),
    ("float8e5m2", "F8E5M2"),
    ("float8e5m2fnuz", "F8E5M2FNUZ"),
    ("float8e8m0", "F8E8M0"),
    ("float4e2m1", "F4E2M1"),
    ("int4", "I4"),
    ("uint4", "U4"),
    ("int2", "I2"),
    ("uint2", "U2"),
    ("string", "String"),
];

/// The variant of `pt2onnx_tensor::DType` for ONNX's name of an element type.
pub fn dtype(name: &str) -> Option<&'static str> {
    DTYPES.iter().find(|(onnx, _)| *onnx == name).map(|(_, variant)| *variant)
}

/// Element types that `DType` does not have, because PyTorch does not have them either.
const OUTSIDE: &[&str] = &["float6e2m3", "float6e3m2"];

/// Functions that keep the tables short.
const HELPERS: &str = r#"
pub const fn single(name: &'static str, ty: &'static str) -> Param {
    Param { name, ty, kind: ParamKind::Single, homogeneous: true }
}

pub const fn optional(name: &'static str, ty: &'static str) -> Param {
    Param { name, ty, kind: ParamKind::Optional, homogeneous: true }
}

pub const fn variadic(name: &'static str, ty: &'static str, homogeneous: bool) -> Param {
    Param { name, ty, kind: ParamKind::Variadic, homogeneous }
}

pub const fn required(name: &'static str, kind: AttributeKind) -> AttributeSchema {
    AttributeSchema { name, kind, required: true, default: None }
}

pub const fn plain(name: &'static str, kind: AttributeKind) -> AttributeSchema {
    AttributeSchema { name, kind, required: false, default: None }
}

pub const fn with_default(
    name: &'static str,
    kind: AttributeKind,
    default: AttributeDefault,
) -> AttributeSchema {
    AttributeSchema { name, kind, required: false, default: Some(default) }
}

pub const fn constraint(name: &'static str, types: TypeSet) -> TypeConstraint {
    TypeConstraint { name, types }
}

const fn bits(dtypes: &[DType]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < dtypes.len() {
        bits |= 1 << dtypes[i] as u32;
        i += 1;
    }
    bits
}
"#;

/// Path below the generated folder, summary line and body of each file of the table.
pub fn modules(schemas: &[Schema]) -> Result<Vec<(PathBuf, String, String)>> {
    let mut sets = Sets::default();
    let mut modules = Vec::new();
    let mut list = String::new();
    let mut declarations = String::new();
    for (letter, group) in by_letter(schemas) {
        writeln!(declarations, "mod {letter};")?;
        let mut body = String::from("\nuse super::parts::*;\n");
        for schema in group {
            let constant = names::constant(&schema.name, schema.since);
            writeln!(list, "{letter}::{constant},")?;
            body += &item(schema, &constant, &mut sets)?;
        }
        let summary = format!("The ONNX operators in {}.", letter.to_ascii_uppercase());
        modules.push((format!("schema/{letter}.rs").into(), summary, body));
    }
    let parts = format!(
        "\nuse pt2onnx_tensor::DType;\n\n\
         pub use crate::schema::{{AttributeDefault, AttributeKind, AttributeSchema, OpSchema, Param, ParamKind, TypeConstraint, TypeSet}};\n\
         {HELPERS}\n{}",
        sets.items()?
    );
    let summary = "Parts of the operator schemas: functions and sets of types.".into();
    modules.push(("schema/parts.rs".into(), summary, parts));
    let root = format!(
        "\nuse crate::schema::OpSchema;\n\n{declarations}mod parts;\n\n\
         /// All versions of all operators of the default domain, sorted by name and version.\n\
         pub static SCHEMAS: &[OpSchema] = &[{list}];\n"
    );
    let summary = "The table of ONNX operator schemas.".into();
    modules.push(("schema.rs".into(), summary, root));
    Ok(modules)
}

/// The constant of one schema.
fn item(schema: &Schema, constant: &str, sets: &mut Sets) -> Result<String> {
    let params = |params: &[Param]| params.iter().map(param).collect::<Vec<_>>().join(", ");
    let attributes: Vec<_> = schema
        .attributes
        .iter()
        .map(attribute)
        .collect::<Result<_>>()
        .with_context(|| schema.name.clone())?;
    let constraints: Vec<_> = schema
        .constraints
        .iter()
        .map(|Constraint { name, types }| {
            Ok(format!("constraint({name:?}, {})", sets.constant(types)?))
        })
        .collect::<Result<_>>()?;
    Ok(format!(
        "\npub(super) const {constant}: OpSchema = OpSchema {{
            name: {:?},
            since: {},
            deprecated: {},
            inputs: &[{}],
            outputs: &[{}],
            min_inputs: {},
            min_outputs: {},
            attributes: &[{}],
            constraints: &[{}],
            has_function: {},
        }};\n",
        schema.name,
        schema.since,
        schema.deprecated,
        params(&schema.inputs),
        params(&schema.outputs),
        schema.min_inputs,
        schema.min_outputs,
        attributes.join(", "),
        constraints.join(", "),
        schema.has_function,
    ))
}

fn param(param: &Param) -> String {
    let (name, ty) = (&param.name, &param.ty);
    match param.kind {
        ParamKind::Single => format!("single({name:?}, {ty:?})"),
        ParamKind::Optional => format!("optional({name:?}, {ty:?})"),
        ParamKind::Variadic => format!("variadic({name:?}, {ty:?}, {})", param.homogeneous),
    }
}

fn attribute(attribute: &Attribute) -> Result<String> {
    let (name, kind) = (&attribute.name, attribute.kind);
    let kind_path = format!("AttributeKind::{kind:?}");
    if attribute.required {
        return Ok(format!("required({name:?}, {kind_path})"));
    }
    let Some(default) = &attribute.default else {
        return Ok(format!("plain({name:?}, {kind_path})"));
    };
    let value = literal(kind, default).with_context(|| name.clone())?;
    let value = match kind {
        AttributeKind::Floats | AttributeKind::Ints | AttributeKind::Strings => {
            format!("&[{value}]")
        }
        _ => value,
    };
    Ok(format!("with_default({name:?}, {kind_path}, AttributeDefault::{kind:?}({value}))"))
}

/// A default value as a Rust literal. The elements of a list are separated by commas.
pub fn literal(kind: AttributeKind, value: &serde_json::Value) -> Result<String> {
    let each = |kind| -> Result<String> {
        let values = value.as_array().context("not a list")?;
        let literals: Vec<_> = values.iter().map(|v| literal(kind, v)).collect::<Result<_>>()?;
        Ok(literals.join(", "))
    };
    Ok(match kind {
        #[expect(clippy::cast_possible_truncation, reason = "ONNX's defaults are f32")]
        AttributeKind::Float => format!("{:?}", value.as_f64().context("not a number")? as f32),
        AttributeKind::Int => value.as_i64().context("not an integer")?.to_string(),
        AttributeKind::String => format!("{:?}", value.as_str().context("not a string")?),
        AttributeKind::Floats => each(AttributeKind::Float)?,
        AttributeKind::Ints => each(AttributeKind::Int)?,
        AttributeKind::Strings => each(AttributeKind::String)?,
        other => bail!("a default of kind {other:?} is not supported"),
    })
}

/// The distinct type sets and element type sets, which become numbered constants.
#[derive(Default)]
struct Sets {
    types: BTreeMap<[Option<usize>; 4], usize>,
    dtypes: BTreeMap<Vec<usize>, usize>,
}

impl Sets {
    /// The name of the constant for this set of type strings.
    fn constant(&mut self, types: &[String]) -> Result<String> {
        let mut members = [const { Vec::new() }; 4];
        for ty in types {
            let (container, dtype) = split(ty).with_context(|| format!("unknown type `{ty}`"))?;
            if OUTSIDE.contains(&dtype) {
                continue;
            }
            let index = DTYPES
                .iter()
                .position(|(name, _)| *name == dtype)
                .with_context(|| format!("unknown element type `{dtype}`"))?;
            members[container].push(index);
        }
        let key = members.map(|mut set| {
            set.sort_unstable();
            let next = self.dtypes.len();
            (!set.is_empty()).then(|| *self.dtypes.entry(set).or_insert(next))
        });
        let next = self.types.len();
        Ok(format!("TYPES_{}", self.types.entry(key).or_insert(next)))
    }

    /// The definitions of the constants.
    fn items(&self) -> Result<String> {
        let mut out = String::new();
        for (set, number) in sorted(&self.dtypes) {
            let names: Vec<_> = set.iter().map(|&i| format!("DType::{}", DTYPES[i].1)).collect();
            writeln!(out, "const DTYPES_{number}: u32 = bits(&[{}]);", names.join(", "))?;
        }
        for (key, number) in sorted(&self.types) {
            let [tensor, sequence, optional, optional_sequence] =
                key.map(|set| set.map_or_else(|| "0".to_owned(), |n| format!("DTYPES_{n}")));
            writeln!(
                out,
                "pub const TYPES_{number}: TypeSet = TypeSet {{ tensor: {tensor}, sequence: {sequence}, \
                 optional: {optional}, optional_sequence: {optional_sequence} }};"
            )?;
        }
        Ok(out)
    }
}

/// The entries, sorted by their numbers.
fn sorted<K>(map: &BTreeMap<K, usize>) -> Vec<(&K, usize)> {
    let mut entries: Vec<_> = map.iter().map(|(key, &number)| (key, number)).collect();
    entries.sort_unstable_by_key(|(_, number)| *number);
    entries
}

/// Splits a type string into the position of its container among the fields of `TypeSet`, and its
/// element type.
fn split(ty: &str) -> Option<(usize, &str)> {
    let wrappers = ["tensor(", "seq(tensor(", "optional(tensor(", "optional(seq(tensor("];
    wrappers.iter().enumerate().find_map(|(i, wrapper)| {
        let inner = ty.strip_prefix(wrapper)?.trim_end_matches(')');
        Some((i, inner))
    })
}
