//! Random models give in ONNX Runtime what they gave before, after each pass alone and after the passes of each level.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod blocks;

use blocks::{Choice, model};
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use pt2onnx::{
    Session, SessionOptions,
    ir::{Model, verify},
    opt::{GraphMut, Level, Options, Passes, Target, optimize},
    tensor::Tensor,
};
use std::{cell::RefCell, collections::BTreeSet};

/// What `N` is.
const N: usize = 2;

fn inputs() -> Vec<Tensor> {
    let numbers = |phase: f32| {
        let all: Vec<f32> = (0..N * 192).map(|i| ((i as f32) * 0.7 + phase).sin() * 3.0).collect();
        Tensor::from_slice([N, 4, 6, 8], &all).unwrap()
    };
    // The third query of the first item and the last of the second see no key.
    let hidden = |i: usize| matches!((i / 36, i % 36 / 6), (0, 2) | (1, 5));
    let mask: Vec<bool> = (0..N * 36).map(|i| !hidden(i) && i % 5 != 3).collect();
    vec![numbers(0.0), numbers(1.0), Tensor::from_slice([N, 1, 6, 6], &mask).unwrap()]
}

fn outputs(mut model: Model) -> Result<Vec<Vec<f32>>, String> {
    model.assign_names();
    let options = SessionOptions::new().threads(1).optimize(false);
    let mut session = Session::new(&model, &options, &[]).map_err(|e| e.to_string())?;
    let outputs = session.run(&inputs()).map_err(|e| e.to_string())?;
    Ok(outputs.iter().map(|t| t.to_vec().unwrap()).collect())
}

/// As far apart as another order of rounding explains.
fn alike(a: &[f32], b: &[f32]) -> bool {
    let largest = a.iter().copied().filter(|v| v.is_finite()).fold(1.0, |m: f32, v| m.max(v.abs()));
    let near = |(a, b): (&f32, &f32)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-3 * a.abs() + 1e-4 * largest
    };
    a.len() == b.len() && a.iter().zip(b).all(near)
}

/// With ONNX Runtime's own operators.
fn options(level: Level) -> Options {
    Options { target: Target::Ort, ..Options::from(level) }
}

#[test]
fn what_the_passes_leave_gives_the_same() {
    let seen = RefCell::new(BTreeSet::new());
    let config = Config {
        cases: 64,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(6),
        ..Config::default()
    };
    let choices = prop::collection::vec(any::<Choice>(), 1..9);
    let result = TestRunner::new(config).run(&choices, |choices| {
        let before = model(&choices);
        prop_assert!(verify(&before).is_ok(), "{before}");
        let expected = outputs(before.clone()).map_err(TestCaseError::fail)?;
        let holds = |what: &str, after: Model| {
            prop_assert!(verify(&after).is_ok(), "{what}\n{after}");
            let actual = outputs(after.clone());
            let message = || format!("{what} of\n{before}\nis\n{after}\n");
            let actual = actual.map_err(|e| TestCaseError::fail(format!("{}{e}", message())))?;
            let same = expected.iter().zip(&actual).all(|(a, b)| alike(a, b));
            prop_assert!(same, "{}{expected:?}\n{actual:?}", message());
            Ok(())
        };
        for pass in &Passes::standard() {
            let mut after = before.clone();
            if pass.run(&mut GraphMut::main(&mut after), &options(Level::Fuse)) {
                seen.borrow_mut().insert(pass.name);
                holds(pass.name, after)?;
            }
        }
        for level in [Level::Off, Level::Simplify, Level::Fuse] {
            let mut after = before.clone();
            optimize(&mut after, &options(level));
            holds(&format!("{level:?}"), after)?;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let idle: Vec<_> =
        Passes::standard().iter().map(|p| p.name).filter(|n| !seen.borrow().contains(n)).collect();
    assert!(idle.is_empty(), "no model had anything for {idle:?}");
}
