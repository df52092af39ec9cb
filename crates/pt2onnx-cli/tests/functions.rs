//! `--module-functions`, and what `optimize --inline` makes of it.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[path = "common/bundle.rs"]
mod bundle;
#[expect(dead_code, reason = "what other tests need")]
mod common;

use bundle::case;
use common::pt2onnx;
use pt2onnx::{ir::Model, writer};
use std::{collections::BTreeMap, path::Path};
use tempfile::tempdir;

/// How many nodes there are of each operator, bodies included.
fn operators(model: &Path) -> BTreeMap<String, usize> {
    let model: Model = writer::read(model).unwrap();
    let mut count = BTreeMap::new();
    for node in model.graph_nodes() {
        *count.entry(format!("{}.{}", model[node].domain, model[node].op())).or_default() += 1;
    }
    count
}

#[test]
fn inlined_again_they_are_the_flat_model() {
    for name in ["bert.static", "gpt2.dyncache", "clip.vision", "longt5", "mixtral"] {
        let folder = tempdir().unwrap();
        let archive = case(&format!("transformers/{name}"), folder.path());
        let path = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
        let (flat, made, again) = (path("flat.onnx"), path("made.onnx"), path("again.onnx"));
        let archive = archive.to_str().unwrap();
        for args in [
            &[archive, "-o", &flat][..],
            &[archive, "-o", &made, "--module-functions", "all"],
            &["optimize", &made, "-o", &again, "--inline", "--optimize", "0"],
        ] {
            let run = pt2onnx(args);
            assert_eq!((run.code, &*run.stderr), (0, ""), "{name}: {args:?}");
        }
        assert!(writer::read(Path::new(&made)).unwrap().functions.len() > 5, "{name}");
        assert_eq!(operators(Path::new(&again)), operators(Path::new(&flat)), "{name}");
        assert!(writer::read(Path::new(&again)).unwrap().functions.is_empty(), "{name}");
    }
}
