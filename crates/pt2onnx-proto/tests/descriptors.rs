//! Tests `proto/onnx.proto` against the standard's own descriptors.
//!
//! `cargo xtask regen-proto` takes these from the `onnx` Python package as `descriptors.txt`: a
//! fact a line, sorted.

use std::collections::BTreeSet;

use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto,
};

#[test]
fn wire_identical_to_the_standard() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto");
    let set = protox::compile(["onnx.proto"], [folder]).unwrap();
    let mut ours = Vec::new();
    for file in &set.file {
        let scope = format!(".{}", file.package());
        for e in &file.enum_type {
            enumeration(&scope, e, &mut ours);
        }
        for m in &file.message_type {
            message(&scope, m, &mut ours);
        }
    }
    let ours: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
    let official: BTreeSet<&str> = include_str!("descriptors.txt").lines().collect();
    let missing: Vec<_> = official.difference(&ours).collect();
    let extra: Vec<_> = ours.difference(&official).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing: {missing:#?}\nnot in the standard: {extra:#?}"
    );
}

fn message(scope: &str, m: &DescriptorProto, out: &mut Vec<String>) {
    let name = format!("{scope}.{}", m.name());
    out.push(format!("message {name}"));
    for r in &m.reserved_range {
        out.push(format!("reserved {name} {} to {}", r.start(), r.end() - 1));
    }
    for r in &m.reserved_name {
        out.push(format!("reserved {name} {r}"));
    }
    for f in &m.field {
        out.push(field(&name, m, f));
    }
    for e in &m.enum_type {
        enumeration(&name, e, out);
    }
    for n in &m.nested_type {
        message(&name, n, out);
    }
}

fn field(scope: &str, m: &DescriptorProto, f: &FieldDescriptorProto) -> String {
    let label = f.label().as_str_name();
    let ty = match f.type_name() {
        "" => f.r#type().as_str_name(),
        name => name,
    };
    let packed = f.options.as_ref().is_some_and(|o| o.packed());
    let packed = if packed { " packed" } else { "" };
    let oneof = f.oneof_index.and_then(|i| m.oneof_decl.get(i as usize));
    let oneof = oneof.map_or_else(String::new, |o| format!(" in {}", o.name()));
    let (name, number) = (f.name(), f.number());
    format!("field {scope}.{name} {number} {label} {ty}{packed}{oneof}")
}

fn enumeration(scope: &str, e: &EnumDescriptorProto, out: &mut Vec<String>) {
    let name = format!("{scope}.{}", e.name());
    out.push(format!("enum {name}"));
    for v in &e.value {
        out.push(format!("value {name}.{} {}", v.name(), v.number()));
    }
    for r in &e.reserved_range {
        out.push(format!("reserved {name} {} to {}", r.start(), r.end()));
    }
    for r in &e.reserved_name {
        out.push(format!("reserved {name} {r}"));
    }
}
