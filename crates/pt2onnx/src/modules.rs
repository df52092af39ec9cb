//! Functions of the calls of modules
//! ([`Options::module_functions`](crate::Options::module_functions)).

use pt2onnx_ir::{Attribute, Attributes, Model, ModuleCall};
use pt2onnx_report::{Warning, WarningKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Attributes by the paths of modules.
pub type ModuleAttributes = BTreeMap<String, serde_json::Map<String, Value>>;

/// The word for all modules.
const ALL: &str = "all";

/// A message lists at most this many classes, and as many paths.
const LISTED: usize = 30;

/// No module has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no module is called `{given}`: {}", choice(.classes, .paths))]
pub struct ModuleError {
    /// The class or path that is given.
    pub given: String,
    /// The classes of the modules that the program calls.
    pub classes: Vec<String>,
    /// Their paths.
    pub paths: Vec<String>,
}

fn choice(classes: &[String], paths: &[String]) -> String {
    if paths.is_empty() {
        return "the program calls no modules".to_owned();
    }
    let listed = |all: &[String]| match all.get(..LISTED) {
        Some(first) if all.len() > LISTED => {
            format!("{} and {} more", first.join(", "), all.len() - LISTED)
        }
        _ => all.join(", "),
    };
    format!("give `all`, a class ({}) or a path ({})", listed(classes), listed(paths))
}

/// Makes functions of the calls of these modules. Each is given as `all`, by its class, or by its
/// path.
pub(crate) fn outline(
    model: &mut Model,
    given: &[String],
    attributes: Option<&ModuleAttributes>,
    warnings: &mut Vec<Warning>,
) -> Result<(), ModuleError> {
    if given.is_empty() {
        return Ok(());
    }
    if let Some(attributes) = attributes {
        model.set_module_attributes(|call| {
            let own = attributes.get(call.path.as_str()).into_iter().flatten();
            let own =
                own.filter_map(|(name, value)| Some((name.clone().into(), attribute(value)?)));
            Some(own.collect::<Attributes>())
        });
    }
    let chosen: Vec<bool> = {
        let is_chosen = |call: &ModuleCall| given.iter().any(|given| is_meant(given, call));
        model.modules().map(|(_, call)| call.parent.is_some() && is_chosen(call)).collect()
    };
    let unknown = given
        .iter()
        .find(|given| *given != ALL && !called(model).any(|call| is_meant(given, call)));
    if let Some(given) = unknown {
        let all = |text: fn(&ModuleCall) -> String| -> Vec<String> {
            called(model).map(text).collect::<BTreeSet<_>>().into_iter().collect()
        };
        return Err(ModuleError {
            given: given.clone(),
            classes: all(|call| call.class.to_string()),
            paths: all(|call| call.path.to_string()),
        });
    }
    let made = pt2onnx_opt::outline(model, |module| {
        chosen.get(module.index()).copied().unwrap_or_default()
    });
    if made == 0 {
        let text =
            "there are no functions: no node of the model is part of a module that is chosen";
        warnings.push(Warning::new(WarningKind::Functions, text));
    }
    Ok(())
}

/// A value as an attribute; `None` if ONNX has none for it.
fn attribute(value: &Value) -> Option<Attribute> {
    let int = |v: &Value| v.as_bool().map(i64::from).or_else(|| v.as_i64());
    let float = |v: &Value| v.as_f64().map(|f| f as f32);
    match value {
        Value::String(text) => Some(Attribute::String(text.clone())),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let ints = || items.iter().map(int).collect::<Option<_>>().map(Attribute::Ints);
            let floats = || items.iter().map(float).collect::<Option<_>>().map(Attribute::Floats);
            let text = |v: &Value| v.as_str().map(str::to_owned);
            let texts = || items.iter().map(text).collect::<Option<_>>().map(Attribute::Strings);
            ints().or_else(floats).or_else(texts)
        }
        _ => int(value).map(Attribute::Int).or_else(|| float(value).map(Attribute::Float)),
    }
}

/// The calls that can become functions.
fn called(model: &Model) -> impl Iterator<Item = &ModuleCall> {
    model.modules().map(|(_, call)| call).filter(|call| call.parent.is_some())
}

/// Whether `given` is the class of a module, with or without its Python module, or its path.
fn is_meant(given: &str, call: &ModuleCall) -> bool {
    let short = call.class.rsplit('.').next().unwrap_or_default();
    given == ALL || given == short || fits(given, &call.class) || fits(given, &call.path)
}

/// Whether a name fits a pattern, in which `*` stands for any text without dots.
fn fits(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut names) = (pattern.split('.'), name.split('.'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if part_fits(pattern, name) => {}
            _ => return false,
        }
    }
}

/// Whether a part of a name fits a part of a pattern.
fn part_fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(start) else {
        return false;
    };
    // Texts between stars are found in order; the last must be at the end.
    let mut texts: Vec<&str> = rest.split('*').collect();
    let end = texts.pop().unwrap_or_default();
    for text in texts {
        match name.split_once(text) {
            Some((_, rest)) => name = rest,
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modules() {
        let call = ModuleCall::new(None, "encoder.layer.12", "my.models.Layer");
        for (given, is) in [
            ("all", true),
            ("Layer", true),
            ("my.models.Layer", true),
            ("models.Layer", false),
            ("my.*.Layer", true),
            ("encoder.layer.12", true),
            ("encoder.layer.*", true),
            ("encoder.layer.1*", true),
            ("encoder.*.*2", true),
            ("encoder.*", false),
            ("*.*.*", true),
            ("encoder.layer.*3", false),
            ("encoder.l*y*r.12", true),
            ("encoder.l*yy*r.12", false),
            ("encoder.layer", false),
            ("", false),
        ] {
            assert_eq!(is_meant(given, &call), is, "{given}");
        }
    }

    #[test]
    fn messages_list_some_names() {
        let paths: Vec<String> = (0..32).map(|i| format!("l.{i}")).collect();
        let text = choice(&["m.L".to_owned()], &paths);
        assert!(text.starts_with("give `all`, a class (m.L) or a path (l.0, l.1, "), "{text}");
        assert!(text.ends_with("l.29 and 2 more)"), "{text}");
        assert_eq!(choice(&[], &[]), "the program calls no modules");
    }
}
