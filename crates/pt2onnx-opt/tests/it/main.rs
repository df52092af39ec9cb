//! Tests of the passes, of legalisation and of the evaluator, as textual cases in `cases/`.
//! `UPDATE_CASES=1` writes what comes out into the files, for review.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cases;
mod endless;
mod eval;
mod origins;
mod outline;
mod parse;
mod property;
mod types;

use cases::run;
use pt2onnx_ir::{Model, schema::NEWEST_OPSET, verify};
use pt2onnx_opt::{
    GraphMut, Options, Pass, Passes, SizeCheck, SizeCheckError, check_sizes, convert, fit,
    legalise, legalise_for, optimize, optimize_imported,
};
use std::fmt::Display;

/// The graph, without the header.
fn graph(model: &Model) -> String {
    let text = model.to_string();
    text.split_once("\n>\n").map_or(text.clone(), |(_, graph)| graph.to_owned())
}

fn valid(model: &Model) {
    verify(model).unwrap_or_else(|e| panic!("{e:?}\n{model}"));
}

fn with_pass(name: &str, text: &str, options: &Options) -> String {
    let mut model = parse::model(text);
    valid(&model);
    let pass = options.passes.get(name).unwrap();
    measured(pass, &model, options);
    pass.run(&mut GraphMut::main(&mut model), options);
    valid(&model);
    graph(&model)
}

/// The model, with names for all of its values.
fn named(text: &str) -> Model {
    let mut model = parse::model(text);
    model.assign_names();
    model
}

/// The graph after a change, or the error.
fn after<E: Display>(mut model: Model, change: impl FnOnce(&mut Model) -> Result<(), E>) -> String {
    // Changes refuse an opset that is not known.
    if model.opset <= NEWEST_OPSET {
        valid(&model);
    }
    match change(&mut model) {
        Ok(()) => {
            valid(&model);
            graph(&model)
        }
        Err(error) => format!("error: {error}\n"),
    }
}

/// If a pass says that it changes a model, its measure must fall.
fn measured(pass: &Pass, model: &Model, options: &Options) {
    let clean = |model: &mut Model| {
        let passes = Passes::standard();
        let dead = passes.get("dead").ok().filter(|dead| dead.name != pass.name);
        dead.map(|dead| dead.run(&mut GraphMut::main(model), options));
    };
    let mut model = model.clone();
    clean(&mut model);
    let old = model.clone();
    if pass.run(&mut GraphMut::main(&mut model), options) {
        clean(&mut model);
        let [before, after] = [&old, &model].map(|m| pass.lowers.of(m, Model::MAIN).unwrap());
        assert!(after < before, "{}: {before:?} {after:?}\n{old}\n{model}", pass.name);
    }
}

#[test]
fn cleanup() {
    run("cleanup", |text, _| with_pass("cleanup", text, &Options::default()));
}

#[test]
fn fold() {
    run("fold", |text, argument| {
        let mut options =
            Options { max_folded_bytes: 64, max_read_bytes: 256, ..Options::default() };
        options.replace_weights = argument != "keep weights";
        with_pass("fold", text, &options)
    });
}

/// One run makes 64 MiB of constants at most: 64 of these nodes have results of 1 MiB.
#[test]
fn fold_has_a_limit() {
    let count = 70;
    let outputs: Vec<String> = (0..count).map(|i| format!("float[262144] y{i}")).collect();
    let nodes: String = (0..count).map(|i| format!("y{i} = Expand (c{i}, n)\n")).collect();
    let constants: Vec<String> = (0..count).map(|i| format!("float[1] c{i} = {{{i}.0}}")).collect();
    let text = format!(
        "g (float[1] x) => ({}) <int64[1] n = {{262144}}, {}> {{ {nodes} }}",
        outputs.join(", "),
        constants.join(", ")
    );
    let mut model = parse::model(&text);
    let options = Options { max_generated_bytes: 1 << 20, ..Options::default() };
    let nodes = |model: &Model| model.graph_nodes().len();
    for left in [count - 64, 0] {
        options.passes.get("fold").unwrap().run(&mut GraphMut::main(&mut model), &options);
        assert_eq!(nodes(&model), left);
    }
    valid(&model);
}

#[test]
fn cse() {
    run("cse", |text, argument| {
        let options = Options {
            dedup_weights: argument == "merge weights",
            share_weights: argument == "share weights",
            ..Options::default()
        };
        with_pass(if options.share_weights { "cse-layers" } else { "cse" }, text, &options)
    });
}

#[test]
fn control() {
    run("control", |text, _| with_pass("fold-control-flow", text, &Options::default()));
}

#[test]
fn tails() {
    run("tail", |text, _| with_pass("tail-merge", text, &Options::default()));
}

/// A check of sizes keeps the types behind it, and stays.
#[test]
fn checks_of_sizes() {
    run("size_checks", |text, condition| {
        after(named(text), |model| {
            let x = model.inputs()[0];
            let holds = vec![condition.parse().unwrap()];
            let check = SizeCheck { holds, reason: "too long".into() };
            check_sizes(model, &[check], &[("N".into(), x, 0)])?;
            optimize_imported(model, &Options::default());
            Ok::<_, SizeCheckError>(())
        })
    });
}

#[test]
fn converted() {
    run("convert", |text, opset| {
        after(named(text), |model| convert(model, opset.parse().unwrap()))
    });
}

#[test]
fn fuse() {
    run("fuse", |text, argument| {
        let mut words = argument.split(' ');
        let pass = words.next().unwrap();
        let options = Options {
            opset: words.next().unwrap_or("26").parse().unwrap(),
            target: words.next().unwrap_or("ort").parse().unwrap(),
            join_weights: true,
            imported: true,
            max_positions: words.next().map(|n| n.parse().unwrap()),
            ..Options::default()
        };
        with_pass(pass, text, &options)
    });
}

#[test]
fn targets() {
    run("target", |text, argument| {
        let (target, opset) = argument.split_once(' ').unwrap();
        let target = target.parse().unwrap();
        let mut model = parse::model(text);
        legalise_for(&mut model, opset.parse().unwrap(), target).unwrap();
        match fit(&mut model, target) {
            Ok(warnings) => {
                valid(&model);
                warnings.into_iter().map(|w| w + "\n").collect::<String>() + &graph(&model)
            }
            Err(error) => error.to_string(),
        }
    });
}

#[test]
fn dead() {
    run("dead", |text, _| with_pass("dead", text, &Options::default()));
}

#[test]
fn optimized() {
    run("optimize", |text, _| {
        after(parse::model(text), |model| {
            optimize(model, &Options::default());
            Ok::<_, String>(())
        })
    });
}

#[test]
fn imported() {
    run("imported", |text, _| {
        after(named(text), |model| {
            optimize_imported(model, &Options::default());
            Ok::<_, String>(())
        })
    });
}

#[test]
fn legalised() {
    run("legalise", |text, opset| {
        after(parse::model(text), |model| legalise(model, opset.parse().unwrap()))
    });
}
