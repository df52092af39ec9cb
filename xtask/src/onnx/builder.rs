//! The builder's typed methods, `generated/builder/`, and the structs of optional attributes,
//! `generated/attrs.rs`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::{Attribute, AttributeKind, ParamKind, Schema, by_letter, names, schema::literal};

/// Path below the generated folder, summary line and body of each file of methods.
pub fn modules(schemas: &[&Schema]) -> Result<Vec<(PathBuf, String, String)>> {
    let mut modules = Vec::new();
    let mut declarations = String::new();
    let mut seen = BTreeSet::new();
    for (letter, group) in by_letter(schemas.iter().copied()) {
        writeln!(declarations, "mod {letter};")?;
        let mut methods = String::new();
        for schema in group {
            let name = names::method(&schema.name);
            ensure!(seen.insert(name.clone()), "two methods named {name}");
            methods += &method(schema, &name).with_context(|| schema.name.clone())?;
        }
        let body = format!("\nuse super::*;\n\nimpl Builder<'_> {{\n{methods}}}\n");
        let summary =
            format!("Builder methods for the ONNX operators in {}.", letter.to_ascii_uppercase());
        modules.push((format!("builder/{letter}.rs").into(), summary, body));
    }
    let body = format!("{ROOT}\n{declarations}");
    let summary =
        "One builder method per ONNX operator, at its newest version, inputs before attributes.";
    modules.push(("builder.rs".into(), summary.into(), body));
    Ok(modules)
}

/// What the method files share.
const ROOT: &str = r#"
#![expect(
    clippy::too_many_arguments,
    reason = "the operators' own signatures"
)]

use std::array;

use smallvec::SmallVec;

use super::attrs;
use crate::builder::attributes;
use crate::{Attributes, Builder, RegionId, Value};

impl Builder<'_> {
    /// Emits a node with exactly `N` outputs.
    fn emit_all<const N: usize>(
        &self,
        op: &'static str,
        inputs: &[Option<Value>],
        attributes: Attributes,
    ) -> [Value; N] {
        let outputs = self.emit(op, inputs, attributes, N);
        array::from_fn(|i| outputs[i])
    }
}

/// The inputs of an operator that ends in a variadic one.
fn with_variadic(fixed: &[Option<Value>], variadic: &[Value]) -> SmallVec<[Option<Value>; 4]> {
    let variadic = variadic.iter().copied().map(Some);
    fixed.iter().copied().chain(variadic).collect()
}
"#;

/// How many outputs a method returns.
enum Returns {
    One,
    Fixed(usize),
    Asked,
}

/// The method, and where the first output is what most callers want, its `_n` form.
fn method(schema: &Schema, name: &str) -> Result<String> {
    let kinds: Vec<ParamKind> = schema.outputs.iter().map(|o| o.kind).collect();
    if kinds.contains(&ParamKind::Variadic) {
        return form(schema, name, Returns::Asked);
    }
    if kinds.contains(&ParamKind::Optional) {
        return Ok(form(schema, name, Returns::One)?
            + &form(schema, &format!("{name}_n"), Returns::Asked)?);
    }
    match kinds.len() {
        1 => form(schema, name, Returns::One),
        n => form(schema, name, Returns::Fixed(n)),
    }
}

fn form(schema: &Schema, name: &str, returns: Returns) -> Result<String> {
    let mut params = vec!["&self".to_owned()];
    if matches!(returns, Returns::Asked) {
        params.push("outputs: usize".into());
    }
    let mut seen = BTreeSet::new();
    let (mut fixed, mut variadic) = (Vec::new(), None);
    for input in &schema.inputs {
        let name = names::variable(&input.name);
        ensure!(seen.insert(name.clone()), "two inputs named {name}");
        match input.kind {
            ParamKind::Single => {
                params.push(format!("{name}: Value"));
                fixed.push(format!("Some({name})"));
            }
            ParamKind::Optional => {
                params.push(format!("{name}: impl Into<Option<Value>>"));
                fixed.push(format!("{name}.into()"));
            }
            ParamKind::Variadic => {
                params.push(format!("{name}: &[Value]"));
                variadic = Some(name);
            }
        }
    }
    let fixed = format!("&[{}]", fixed.join(", "));
    let inputs = match variadic {
        Some(name) => format!("&with_variadic({fixed}, {name})"),
        None => fixed,
    };

    let mut required = Vec::new();
    for attribute in required_attributes(schema) {
        let name = names::variable(&attribute.name);
        ensure!(seen.insert(name.clone()), "two parameters named {name}");
        let (ty, value) = argument(attribute.kind, &name)?;
        params.push(format!("{name}: {ty}"));
        required.push(format!("({:?}, {value})", attribute.name));
    }
    let attributes = if optional_attributes(schema).is_empty() {
        format!("attributes([{}])", required.join(", "))
    } else {
        params.push(format!("options: attrs::{}", schema.name));
        format!("options.after([{}])", required.join(", "))
    };

    let op = &schema.name;
    let (output, call) = match returns {
        Returns::One => ("Value".to_owned(), format!("self.emit1({op:?}, {inputs}, {attributes})")),
        Returns::Fixed(n) => {
            (format!("[Value; {n}]"), format!("self.emit_all({op:?}, {inputs}, {attributes})"))
        }
        Returns::Asked => (
            "SmallVec<[Value; 2]>".to_owned(),
            format!("self.emit({op:?}, {inputs}, {attributes}, outputs)"),
        ),
    };
    Ok(format!(
        "{}pub fn {name}({}) -> {output} {{\n{call}\n}}\n\n",
        docs(schema, &returns),
        params.join(", ")
    ))
}

/// The doc comment: operator and version, inputs, outputs where there are several.
fn docs(schema: &Schema, returns: &Returns) -> String {
    let list = |params: &[super::Param]| {
        let each = params.iter().map(|param| match param.kind {
            ParamKind::Single => format!("`{}`", param.name),
            ParamKind::Optional => format!("`{}` (optional)", param.name),
            ParamKind::Variadic => format!("`{}` (variadic)", param.name),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("/// ONNX `{}` (since opset {})", schema.name, schema.since);
    if schema.inputs.is_empty() {
        text += ", without inputs.\n";
    } else {
        text += &format!(".\n/// Inputs: {}.\n", list(&schema.inputs));
    }
    match returns {
        Returns::One if schema.outputs.len() == 1 => {}
        Returns::One => text += "/// Returns the first output only.\n",
        Returns::Fixed(_) => text += &format!("/// Outputs: {}.\n", list(&schema.outputs)),
        Returns::Asked => {
            text += &format!("/// The first `outputs` of: {}.\n", list(&schema.outputs));
        }
    }
    text
}

/// Parameter type of a required attribute, and the expression that makes its `Attribute`.
fn argument(kind: AttributeKind, name: &str) -> Result<(&'static str, String)> {
    Ok(match kind {
        AttributeKind::Int => ("i64", format!("{name}.into()")),
        AttributeKind::Float => ("f32", format!("{name}.into()")),
        AttributeKind::String => ("&str", format!("{name}.into()")),
        AttributeKind::Tensor => ("Tensor", format!("{name}.into()")),
        AttributeKind::Graph => ("RegionId", format!("{name}.into()")),
        AttributeKind::Ints => ("&[i64]", format!("{name}.to_vec().into()")),
        AttributeKind::Floats => ("&[f32]", format!("{name}.to_vec().into()")),
        other => bail!("a required attribute of kind {other:?}"),
    })
}

/// The required attributes, those that come in an order of their own first.
fn required_attributes(schema: &Schema) -> Vec<&Attribute> {
    let mut required: Vec<_> = schema.attributes.iter().filter(|a| a.required).collect();
    required.sort_by_key(|attribute| attribute.name != "then_branch");
    required
}

/// The optional attributes that the IR can hold: it has no sparse tensors.
fn optional_attributes(schema: &Schema) -> Vec<&Attribute> {
    let fits = |a: &&Attribute| !a.required && a.kind != AttributeKind::SparseTensor;
    schema.attributes.iter().filter(fits).collect()
}

/// Path below the generated folder, summary line and body of each file of attribute structs.
pub fn attributes(schemas: &[&Schema]) -> Result<Vec<(PathBuf, String, String)>> {
    let mut modules = Vec::new();
    let mut root = String::from(
        "\nuse pt2onnx_tensor::Tensor;\n\n\
         use crate::builder::attributes;\nuse crate::{Attribute, Attributes, Type};\n\n",
    );
    let schemas = schemas.iter().copied();
    for (letter, group) in by_letter(schemas.filter(|s| !optional_attributes(s).is_empty())) {
        writeln!(root, "mod {letter};\npub use {letter}::*;")?;
        let mut body = String::from("\nuse super::*;\n");
        for schema in group {
            body += &attribute_struct(schema).with_context(|| schema.name.clone())?;
        }
        let summary = format!(
            "Optional attributes of the ONNX operators in {}.",
            letter.to_ascii_uppercase()
        );
        modules.push((format!("attrs/{letter}.rs").into(), summary, body));
    }
    let summary = "Optional attributes of each ONNX operator at its newest version, a struct each.";
    modules.push(("attrs.rs".into(), summary.into(), root));
    Ok(modules)
}

/// One operator's struct, its defaults, and the list of what differs from them.
fn attribute_struct(schema: &Schema) -> Result<String> {
    let op = &schema.name;
    let (mut fields, mut defaults, mut pushes) = (String::new(), String::new(), String::new());
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
    let (derive, implementation) = if derivable {
        (", Default", String::new())
    } else {
        let body = format!(
            "impl Default for {op} {{\nfn default() -> Self {{\nSelf {{ {defaults} }}\n}}\n}}\n\n"
        );
        ("", body)
    };
    Ok(format!(
        "\n/// Optional attributes of ONNX `{op}` (since opset {since}).\n\
         #[derive(Clone, Debug{derive})]\npub struct {op} {{\n{fields}}}\n\n{implementation}\
         impl {op} {{\n\
         /// The `required` attributes, then those of these that differ from the default.\n\
         pub(crate) fn after<const N: usize>(self, required: [(&'static str, Attribute); N]) -> Attributes {{\n\
         let mut list = attributes(required);\n{pushes}list\n}}\n}}\n",
        since = schema.since
    ))
}

/// A field of an attribute struct.
struct Field {
    ty: String,
    default: String,
    /// What the field's value is compared with.
    literal: String,
    /// The default in words.
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
                other => bail!("an attribute of kind {other:?}"),
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
            AttributeKind::String => ("&'static str", value.clone(), value),
            AttributeKind::Ints => ("Vec<i64>", format!("{list}.to_vec()"), list),
            AttributeKind::Floats => ("Vec<f32>", format!("{list}.to_vec()"), list),
            AttributeKind::Strings => {
                let strings = format!("{list}.map(String::from).to_vec()");
                ("Vec<String>", strings, list)
            }
            other => bail!("a default of kind {other:?}"),
        };
        Ok(Self { ty: ty.into(), default, says: format!("by default `{literal}`"), literal })
    }
}
