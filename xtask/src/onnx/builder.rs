//! Generates the builder's typed methods, `generated/builder/`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::attributes::{is_borrowed, optional_attributes, required_attributes};
use super::model::{AttributeKind, Param, ParamKind, Schema, by_letter};
use super::names;

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
    let summary = "A builder method for each ONNX operator at its newest version. Parameters are the inputs, then the attributes.";
    modules.push(("builder.rs".into(), summary.into(), body));
    Ok(modules)
}

/// Items that the files of methods share.
const ROOT: &str = r#"
#![expect(
    clippy::too_many_arguments,
    reason = "operators have that many inputs and attributes"
)]

use std::array;

use smallvec::SmallVec;

use super::attrs;
use crate::attribute::{Attributes, attributes};
use crate::{Builder, RegionId, Value};

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

/// The inputs of an operator whose last input is variadic.
fn with_variadic(fixed: &[Option<Value>], variadic: &[Value]) -> SmallVec<[Option<Value>; 4]> {
    let variadic = variadic.iter().copied().map(Some);
    fixed.iter().copied().chain(variadic).collect()
}
"#;

/// The outputs that a method returns.
enum Returns {
    /// The first or only output.
    One,
    /// All outputs, whose number is fixed.
    Fixed(usize),
    /// As many as the caller wants.
    Asked,
}

/// The method of an operator. If it has optional outputs, there is a second method `NAME_n` that
/// takes the number of outputs.
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
        let lifetime = if is_borrowed(schema) { "<'_>" } else { "" };
        params.push(format!("options: attrs::{}{lifetime}", schema.name));
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

/// The doc comment: operator and version, inputs, and outputs if there are several.
fn docs(schema: &Schema, returns: &Returns) -> String {
    let list = |params: &[Param]| {
        let each = params.iter().map(|param| match param.kind {
            ParamKind::Single => format!("`{}`", param.name),
            ParamKind::Optional => format!("`{}` (optional)", param.name),
            ParamKind::Variadic => format!("`{}` (variadic)", param.name),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("/// ONNX `{}` (since opset {})", schema.name, schema.since);
    if schema.inputs.is_empty() {
        text += ". It has no inputs.\n";
    } else {
        text += &format!(".\n/// Inputs: {}.\n", list(&schema.inputs));
    }
    match returns {
        Returns::One if schema.outputs.len() == 1 => {}
        Returns::One => text += "/// Returns the first output only.\n",
        Returns::Fixed(_) => text += &format!("/// Outputs: {}.\n", list(&schema.outputs)),
        Returns::Asked => {
            text += &format!(
                "/// Outputs, of which the first `outputs` are returned: {}.\n",
                list(&schema.outputs)
            );
        }
    }
    text
}

/// The parameter type of a required attribute, and the expression that converts it to an
/// `Attribute`.
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
