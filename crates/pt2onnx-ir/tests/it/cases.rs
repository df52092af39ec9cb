//! The texts of `cases.txt`. `UPDATE=1` writes what is found.

use super::errors;
use pt2onnx_ir::Model;

/// The error of a text; "fine" if there is none.
fn outcome(kind: &str, text: &str) -> String {
    let model = match kind {
        "functions" => Model::parse_functions(text),
        _ => text.parse::<Model>(),
    };
    let found = match model {
        Err(error) => error.to_string(),
        Ok(mut model) if kind == "inline" => model.inline_functions().unwrap_err().to_string(),
        Ok(model) => errors(&model),
    };
    let found = if kind == "model" { found.replace("\nvalue", "; value") } else { found };
    found.lines().next().unwrap_or("fine").to_owned()
}

#[test]
fn what_is_wrong_with_texts() {
    let text = include_str!("cases.txt");
    let mut template = ("", "");
    let found: String = { text.lines() }
        .map(|line| match (line.strip_prefix("## "), line.rsplit_once(" => ")) {
            (Some(head), _) => {
                template = head.split_once(": ").expect(line);
                format!("{line}\n")
            }
            (_, Some((row, _))) if !line.starts_with('#') => {
                let found = outcome(template.0, &template.1.replace("NODE", row));
                format!("{row} => {found}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("tests/it/cases.txt", &found).unwrap();
    } else {
        assert_eq!(found, text);
    }
}
