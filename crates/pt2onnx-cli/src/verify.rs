//! `pt2onnx verify`: runs a model in ONNX Runtime and compares what it computes.

use crate::{
    args::Verify,
    error::{self, Code, CommandError},
    output::{print, print_json},
    run,
};
use pt2onnx::{
    Exporter, OnnxProgram, OutputCheck, Session, SessionOptions, Tolerance, Verification,
    ir::{Def, Model, Value},
    opt::Level,
    tensor::Tensor,
    writer::{ExternalData, read_with},
};
use serde_json::json;
use std::path::Path;

/// Prints a line for each output, or JSON. If something differs, the exit code is not 0.
pub fn verify(args: &Verify) -> Result<Option<Code>, CommandError> {
    let mut session = run::open(&args.model, &args.running)?;
    let (inputs, from) = run::inputs(&session, &args.running)?;
    if args.each {
        return each(args, &inputs);
    }
    let got = session.run(&inputs)?;
    let names: Vec<String> = session.output_names().map(str::to_owned).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let takes: Vec<String> = session.input_names().map(str::to_owned).collect();
    let Some((expected, by)) = expected(args, &takes, &names, &inputs)? else {
        let lines =
            names.iter().zip(&got).map(|(n, t)| format!("{n}: {}{:?}\n", t.dtype(), t.shape()));
        let said = format!(
            "the model runs on {from}; nothing is expected of its outputs: give --outputs, --against or --archive\n"
        );
        return print(&(lines.collect::<String>() + &said)).map(|()| None);
    };
    if got.len() != expected.len() {
        let (has, wanted) = (got.len(), expected.len());
        let what = format!("the model has {has} outputs, and {wanted} are expected");
        return Err(CommandError::new(Code::Different, what));
    }
    let found = Verification::new(names, &got, &expected, tolerance(args));
    report(&found.outputs, args.running.json, "outputs", &format!("on {from}, against {by}"))
}

fn tolerance(args: &Verify) -> Option<Tolerance> {
    // One that is given alone leaves the other at that of float32.
    let own = Tolerance { rtol: 1e-3, atol: 1e-4 };
    (args.rtol.is_some() || args.atol.is_some()).then(|| Tolerance {
        rtol: args.rtol.unwrap_or(own.rtol),
        atol: args.atol.unwrap_or(own.atol),
    })
}

/// The expected outputs, and where they come from.
fn expected(
    args: &Verify,
    takes: &[String],
    names: &[&str],
    inputs: &[Tensor],
) -> Result<Option<(Vec<Tensor>, &'static str)>, CommandError> {
    if let Some(file) = &args.outputs {
        let (arrays, mut others) = run::with_others(file, "output", names)?;
        // One file may have all that goes into the model, too.
        others.retain(|name| !takes.contains(name) && !name.starts_with("input."));
        if !others.is_empty() {
            let what = format!("the model has no output {}, which is expected", others.join(", "));
            return Err(CommandError::new(Code::Different, what).place(file.display()));
        }
        return Ok(Some((arrays, "the given outputs")));
    }
    if let Some(other) = &args.against {
        let mut session = run::open(other, &args.running)?;
        let inputs = ordered(inputs, takes, session.input_names());
        run::fit(&session.inputs()?, &inputs).map_err(|error| error.place(other.display()))?;
        let results =
            session.run(&inputs).map_err(|e| CommandError::from(e).place(other.display()))?;
        let made: Vec<String> = session.output_names().map(str::to_owned).collect();
        return Ok(Some((ordered(&results, &made, names.iter().copied()), "the other model")));
    }
    match &args.running.archive {
        Some(archive) => Ok(Some((
            plain(archive)?.run(inputs)?,
            "the archive's program, translated without optimisation",
        ))),
        None => Ok(None),
    }
}

/// Tensors with names in another order of the same names. If names differ, the order stays.
fn ordered<'a>(
    tensors: &[Tensor],
    names: &[String],
    order: impl Iterator<Item = &'a str>,
) -> Vec<Tensor> {
    let place = |name: &str| tensors.get(names.iter().position(|n| n == name)?).cloned();
    let found: Option<Vec<Tensor>> = order.map(place).collect();
    found.filter(|found| found.len() == names.len()).unwrap_or_else(|| tensors.to_vec())
}

/// The archive's program, node by node.
fn plain(archive: &Path) -> Result<OnnxProgram, CommandError> {
    Ok(Exporter::new().optimize(Level::Off).export(archive)?)
}

/// Prints the checks, and how many are not as expected.
fn report(
    checks: &[OutputCheck],
    json: bool,
    what: &str,
    how: &str,
) -> Result<Option<Code>, CommandError> {
    let passed = checks.iter().filter(|check| check.is_expected()).count();
    let all = passed == checks.len();
    if json {
        let outputs = checks.iter().map(|check| {
            json!({
                "name": check.name, "passed": check.is_expected(), "max_abs": check.max_abs, "max_rel": check.max_rel,
                "verdict": check.to_string(),
            })
        });
        let outputs: Vec<_> = outputs.collect();
        print_json(&json!({ "passed": all, "compared": how, what: outputs }), true)?;
    } else {
        let lines: String = checks.iter().map(|check| format!("{check}\n")).collect();
        let number = checks.len();
        print(&format!("{lines}{passed} of {number} {what} are as expected, {how}\n"))?;
    }
    Ok((!all).then_some(Code::Different))
}

/// A value of one model, that of the same name of another model, and the name.
type Shared = (String, Value, Value);

/// Compares the values that have a name in both models, in the order of the first.
fn each(args: &Verify, inputs: &[Tensor]) -> Result<Option<Code>, CommandError> {
    let a = read(&args.model)?;
    let (b, how) = other_model(args)?;
    let (shared, mut first, mut second) = readable(&a, &b)?;
    let takes: Vec<String> = first.input_names().map(str::to_owned).collect();
    let got = first.run(inputs)?;
    let expected = second.run(&ordered(inputs, &takes, second.input_names()))?;
    let names = shared.iter().map(|(name, ..)| name.as_str());
    let checks = Verification::new(names, &got, &expected, tolerance(args)).outputs;
    if args.running.json {
        return report(&checks, true, "values", how);
    }
    let number = shared.len();
    let differ = checks.iter().filter(|check| !check.is_expected()).count();
    let pairs = checks.iter().zip(&shared);
    let Some((check, (_, value, _))) = pairs.into_iter().find(|(c, _)| !c.is_expected()) else {
        print(&format!("all {number} values of the same name are as expected, {how}\n"))?;
        return Ok(None);
    };
    let node = a.producer(*value).map(|node| format!("  computed by {}\n", a.describe(node)));
    let node = node.unwrap_or_default();
    print(&format!(
        "{differ} of {number} values of the same name differ, {how}; the first:\n{check}\n{node}"
    ))?;
    Ok(Some(Code::Different))
}

/// The model to compare with, and what it is.
fn other_model(args: &Verify) -> Result<(Model, &'static str), CommandError> {
    match (&args.against, &args.running.archive) {
        (Some(other), _) => Ok((read(other)?, "against the other model")),
        (None, Some(archive)) => Ok((
            plain(archive)?.model().clone(),
            "against the archive's program, translated without optimisation",
        )),
        (None, None) => {
            let help = "give another model with --against, or the archive with --archive";
            Err(CommandError::new(Code::Usage, "--each compares two models").help(help))
        }
    }
}

/// The values of the same name that can be read from both models, and a session of each model that
/// gives them.
fn readable(a: &Model, b: &Model) -> Result<(Vec<Shared>, Session, Session), CommandError> {
    let pair = |(name, value): (&str, Value)| {
        let (_, other) = named(b).find(|(n, _)| *n == name)?;
        Some((name.to_owned(), value, other))
    };
    let mut shared: Vec<Shared> = named(a).filter_map(pair).collect();
    if shared.is_empty() {
        let what = "no value has the same name in both models";
        let error = CommandError::new(Code::Usage, what);
        return Err(error.help("compare the outputs, without --each"));
    }
    let sessions = |shared: &[Shared]| -> Result<(Session, Session), CommandError> {
        let first = session(a, shared.iter().map(|(_, value, _)| *value))?;
        Ok((first, session(b, shared.iter().map(|(.., value)| *value))?))
    };
    let (mut first, mut second) = sessions(&shared)?;
    let readable = first.readable_outputs().zip(second.readable_outputs());
    let readable: Vec<bool> = readable.map(|(a, b)| a && b).collect();
    if readable.contains(&false) {
        let mut readable = readable.into_iter();
        shared.retain(|_| readable.next().unwrap_or(true));
        (first, second) = sessions(&shared)?;
    }
    Ok((shared, first, second))
}

/// A model that gives these values.
fn session(model: &Model, values: impl Iterator<Item = Value>) -> Result<Session, CommandError> {
    let mut model = model.clone();
    model.set_outputs(Model::MAIN, &values.collect::<Vec<_>>());
    Ok(Session::new(&model, &SessionOptions::default(), &[])?)
}

/// The named values of nodes outside bodies, in order. `val_3` may name another value elsewhere.
fn named(model: &Model) -> impl Iterator<Item = (&str, Value)> {
    let numbered = |name: &str| {
        let digits = name.strip_prefix("val_").unwrap_or(name).trim_start_matches('_');
        digits.chars().all(|c| c.is_ascii_digit())
    };
    model.nodes(Model::MAIN).flat_map(|node| model[node].outputs().to_vec()).filter_map(
        move |value| {
            let name = model[value].name.as_deref().filter(|name| !numbered(name))?;
            let tensor = model[value].ty.as_ref().is_none_or(|ty| ty.as_tensor().is_some());
            (tensor && matches!(model[value].def(), Def::Node(..))).then_some((name, value))
        },
    )
}

fn read(path: &Path) -> Result<Model, CommandError> {
    let reading = read_with(path, ExternalData::Mapped).map_err(|e| error::model(path, &e))?;
    let mut model = reading.model;
    model.assign_names();
    Ok(model)
}
