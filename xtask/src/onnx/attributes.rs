//! Generates `generated/attrs.rs`: structs and functions that read the attributes of operators.
//!
//! Each operator has a struct with its optional attributes as fields, and a function for each
//! required attribute.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::model::{Attribute, AttributeKind, Schema, by_letter};
use super::{names, schema::literal};

/// The required attributes. `then_branch` is first.
pub fn required_attributes(schema: &Schema) -> Vec<&Attribute> {
    let mut required: Vec<_> = schema.attributes.iter().filter(|a| a.required).collect();
    required.sort_by_key(|attribute| attribute.name != "then_branch");
    required
}

/// The optional attributes, without sparse tensors, which the IR does not have.
pub fn optional_attributes(schema: &Schema) -> Vec<&Attribute> {
    let fits = |a: &&Attribute| !a.required && a.kind != AttributeKind::SparseTensor;
    schema.attributes.iter().filter(fits).collect()
}

/// Whether the struct has a lifetime: it borrows strings that have a default.
pub fn is_borrowed(schema: &Schema) -> bool {
    let borrowed = |a: &Attribute| a.kind == AttributeKind::String && a.default.is_some();
    optional_attributes(schema).into_iter().any(borrowed)
}

/// Path below the generated folder, summary line and body of each file.
pub fn modules(schemas: &[&Schema]) -> Result<Vec<(PathBuf, String, String)>> {
    let mut modules = Vec::new();
    let mut root = String::from(
        "\nuse pt2onnx_tensor::Tensor;\n\n\
         use crate::attribute::{Attribute, Attributes, attributes};\n\
         use crate::{AttributeError, Node, RegionId, Type};\n\n",
    );
    let any =
        |s: &&Schema| !optional_attributes(s).is_empty() || !required_attributes(s).is_empty();
    for (letter, group) in by_letter(schemas.iter().copied().filter(any)) {
        writeln!(root, "mod {letter};\npub use {letter}::*;")?;
        let mut body = String::from("\nuse super::*;\n");
        for schema in group {
            body += &attribute_struct(schema).with_context(|| schema.name.clone())?;
        }
        let summary =
            format!("Attributes of the ONNX operators in {}.", letter.to_ascii_uppercase());
        modules.push((format!("attrs/{letter}.rs").into(), summary, body));
    }
    modules.push(("attrs.rs".into(), SUMMARY.into(), root));
    Ok(modules)
}

const SUMMARY: &str =
    "Attributes of each ONNX operator at its newest version, a struct for each operator.
//!
//! The fields are the optional attributes. Builder methods take the struct. `read` reads it from a
//! node, with ONNX's defaults for attributes that the node does not have. Each required attribute
//! has a function that reads it. The readers do not check the node's operator, so one struct can
//! read any operator with the same attributes.";

/// The struct of an operator, its defaults, its readers, and the method that lists the attributes
/// that differ from the defaults.
fn attribute_struct(schema: &Schema) -> Result<String> {
    let (op, since) = (&schema.name, schema.since);
    let required = readers(schema)?;
    if optional_attributes(schema).is_empty() {
        return Ok(format!(
            "\n/// Required attributes of ONNX `{op}` (since opset {since}), which has no optional ones.\n\
             #[derive(Clone, Copy, Debug, Default)]\npub struct {op};\n\nimpl {op} {{\n{required}}}\n"
        ));
    }
    let (mut fields, mut defaults) = (String::new(), String::new());
    let (mut pushes, mut reads) = (String::new(), String::new());
    let mut derivable = true;
    for attribute in optional_attributes(schema) {
        let onnx = &attribute.name;
        let Field { ty, default, literal, says } =
            Field::new(attribute).with_context(|| onnx.clone())?;
        let name = names::variable(onnx);
        derivable &= matches!(default.as_str(), "None" | "false" | "0" | "0.0");
        writeln!(fields, "/// `{onnx}`, {says}.")?;
        writeln!(fields, "pub {name}: {ty},")?;
        writeln!(defaults, "{name}: {default},")?;
        let or_default = match default.as_str() {
            "None" => String::new(),
            "false" | "0" | "0.0" => ".unwrap_or_default()".into(),
            _ if ty.starts_with("Vec") => format!(".unwrap_or_else(|| {default})"),
            _ => format!(".unwrap_or({default})"),
        };
        writeln!(reads, "{name}: node.read({onnx:?})?{or_default},")?;
        let (condition, value) = match default.as_str() {
            "None" => (format!("let Some({name}) = self.{name}"), name),
            "false" => (format!("self.{name}"), "1i64".into()),
            "true" => (format!("!self.{name}"), "0i64".into()),
            _ => (format!("self.{name} != {literal}"), format!("self.{name}")),
        };
        let value = match ty.as_str() {
            "Option<bool>" => format!("i64::from({value})"),
            _ => value,
        };
        writeln!(pushes, "if {condition} {{ list.push(({onnx:?}.into(), {value}.into())); }}")?;
    }
    let (lifetime, elided) = if is_borrowed(schema) { ("<'a>", "<'_>") } else { ("", "") };
    let (derive, implementation) = if derivable {
        (", Default", String::new())
    } else {
        let body = format!(
            "impl Default for {op}{elided} {{\nfn default() -> Self {{\nSelf {{ {defaults} }}\n}}\n}}\n\n"
        );
        ("", body)
    };
    let node = if is_borrowed(schema) { "&'a Node" } else { "&Node" };
    Ok(format!(
        "\n/// Attributes of ONNX `{op}` (since opset {since}).\n\
         #[derive(Clone, Debug{derive})]\npub struct {op}{lifetime} {{\n{fields}}}\n\n{implementation}\
         impl{lifetime} {op}{lifetime} {{\n\
         /// Reads the optional attributes of a node, with ONNX's defaults for those that it does not have.\n///\n\
         /// # Errors\n/// Returns an error if an attribute has another type, or refers to an attribute of a function.\n\
         pub fn read(node: {node}) -> Result<Self, AttributeError> {{\nOk(Self {{ {reads} }})\n}}\n\n\
         {required}\
         /// Attributes of a new node: `required`, then the fields that differ from their defaults.\n\
         pub(crate) fn after<const N: usize>(self, required: [(&'static str, Attribute); N]) -> Attributes {{\n\
         let mut list = attributes(required);\n{pushes}list\n}}\n}}\n"
    ))
}

/// A function for each required attribute, which reads it.
fn readers(schema: &Schema) -> Result<String> {
    let mut text = String::new();
    for attribute in required_attributes(schema) {
        let onnx = &attribute.name;
        let ty = match attribute.kind {
            AttributeKind::Int if names::is_boolean(onnx) => "bool",
            AttributeKind::Int => "i64",
            AttributeKind::Float => "f32",
            AttributeKind::String => "&str",
            AttributeKind::Tensor => "&Tensor",
            AttributeKind::Graph => "RegionId",
            AttributeKind::Ints => "&[i64]",
            AttributeKind::Floats => "&[f32]",
            other => bail!("a required attribute of kind {other:?} is not supported"),
        };
        writeln!(
            text,
            "/// Reads the required attribute `{onnx}` of a node.\n///\n/// # Errors\n\
             /// Returns an error if it is missing, has another type, or refers to an attribute of a function.\n\
             pub fn {}(node: &Node) -> Result<{ty}, AttributeError> {{\nnode.read_required({onnx:?})\n}}\n",
            names::variable(onnx)
        )?;
    }
    Ok(text)
}

/// A field of an attribute struct.
struct Field {
    ty: String,
    default: String,
    /// The default as an expression to compare the field with.
    literal: String,
    /// The default, for the doc comment.
    says: String,
}

impl Field {
    fn new(attribute: &Attribute) -> Result<Self> {
        let boolean = attribute.kind == AttributeKind::Int && names::is_boolean(&attribute.name);
        let Some(default) = &attribute.default else {
            let ty = match attribute.kind {
                AttributeKind::Int if boolean => "bool",
                AttributeKind::Int => "i64",
                AttributeKind::Float => "f32",
                AttributeKind::String => "String",
                AttributeKind::Tensor => "Tensor",
                AttributeKind::TypeProto => "Type",
                AttributeKind::Ints => "Vec<i64>",
                AttributeKind::Floats => "Vec<f32>",
                AttributeKind::Strings => "Vec<String>",
                other => bail!("an attribute of kind {other:?} is not supported"),
            };
            return Ok(Self {
                ty: format!("Option<{ty}>"),
                default: "None".into(),
                literal: "None".into(),
                says: "absent by default".into(),
            });
        };
        let value = literal(attribute.kind, default)?;
        let list = format!("[{value}]");
        let (ty, default, literal) = match attribute.kind {
            AttributeKind::Int if boolean => {
                let truth = (value != "0").to_string();
                ("bool", truth.clone(), truth)
            }
            AttributeKind::Int => ("i64", value.clone(), value),
            AttributeKind::Float => ("f32", value.clone(), value),
            AttributeKind::String => ("&'a str", value.clone(), value),
            AttributeKind::Ints => ("Vec<i64>", format!("{list}.to_vec()"), list),
            AttributeKind::Floats => ("Vec<f32>", format!("{list}.to_vec()"), list),
            AttributeKind::Strings => {
                let strings = format!("{list}.map(String::from).to_vec()");
                ("Vec<String>", strings, list)
            }
            other => bail!("a default of kind {other:?} is not supported"),
        };
        Ok(Self { ty: ty.into(), default, says: format!("by default `{literal}`"), literal })
    }
}
