//! Textual cases: how expressions print, what they evaluate to, what follows from facts, which
//! texts are refused.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, outside of `#[test]` functions"
)]

use std::collections::HashMap;

use pt2onnx_symbolic::{Constraints, Expr, MAX_NESTING, MAX_TEXT, ParseError};

/// The cases of a file, split at `=>`, without comments; `check` gives what is to stand on the
/// right.
fn check(text: &str, answer: impl Fn(&str) -> String) {
    let mut wrong = String::new();
    let mut count = 0;
    for line in text.lines() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let (question, expected) = line.rsplit_once(" => ").expect(line);
        let found = answer(question.trim_end());
        if found != expected {
            wrong += &format!("{question}\n  expected {expected}\n  found    {found}\n");
        }
        count += 1;
    }
    assert!(count > 10, "no cases");
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn parse(text: &str) -> Expr {
    Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn display() {
    check(include_str!("data/display.txt"), |text| {
        let expr = parse(text);
        let shown = expr.to_string();
        assert_eq!(parse(&shown), expr, "{shown} reads as another expression");
        shown
    });
}

#[test]
fn eval() {
    check(include_str!("data/eval.txt"), |question| {
        let (text, bindings) = question.split_once(" @ ").expect(question);
        let bindings: HashMap<&str, i64> = bindings
            .split_whitespace()
            .map(|binding| {
                let (name, value) = binding.split_once('=').expect(binding);
                (name, value.parse().expect(value))
            })
            .collect();
        parse(text)
            .eval(&|name| bindings.get(name).copied())
            .map_or("none".to_owned(), |value| value.to_string())
    });
}

#[test]
fn proofs() {
    check(include_str!("data/proofs.txt"), |line| {
        // `|` is an operator of facts as well: the last one separates.
        let (facts, question) = line.rsplit_once("| ").expect(line);
        let mut constraints = Constraints::new();
        for fact in facts.split(';').filter(|fact| !fact.trim().is_empty()) {
            constraints.assume(&parse(fact));
        }
        let (verb, rest) = question.trim().split_once(' ').expect(question);
        match verb {
            "range" => constraints.range_of(&parse(rest)).to_string(),
            "decide" => match constraints.decide(&parse(rest)) {
                Some(known) => known.to_string(),
                None => "unknown".to_owned(),
            },
            "simplify" => constraints.simplify(&parse(rest)).to_string(),
            "solve" => {
                let (expr, symbol) = rest.split_once(" for ").expect(rest);
                match parse(expr).solve_linear(symbol) {
                    Some((slope, offset)) => format!("{slope}, {offset}"),
                    None => "none".to_owned(),
                }
            }
            _ => panic!("{verb}"),
        }
    });
}

#[test]
fn texts_that_are_no_expressions_are_errors() {
    check(include_str!("data/errors.txt"), |text| match Expr::parse(text) {
        Ok(expr) => expr.to_string(),
        Err(error) => error.to_string(),
    });
}

/// Texts that would take the stack or all memory if there were no limits. The default thread of a
/// test has 2 MiB.
#[test]
fn texts_that_nest_or_grow_without_end_are_errors() {
    let long = "s".repeat(MAX_TEXT + 1);
    assert_eq!(Expr::parse(&long), Err(ParseError::TooLong(long.len())));

    let nesting = MAX_NESTING as usize;
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("not ", ""),
        ("2**", ""),
        ("Max(1, ", ")"),
        ("Piecewise((1, ", "))"),
    ] {
        let deep = open.repeat(nesting + 1) + "s0" + &close.repeat(nesting + 1);
        assert!(matches!(Expr::parse(&deep), Err(ParseError::TooDeep(_))), "{open}");
        let fits = open.repeat(nesting / 2) + "s0" + &close.repeat(nesting / 2);
        assert!(Expr::parse(&fits).is_ok(), "{open}");
    }

    // Products of sums stay products when they would have too many terms.
    let product =
        (0..40).map(|index| format!("(a{index} + b{index})")).collect::<Vec<_>>().join("*");
    let product = parse(&product);
    assert!(product.to_string().len() < 4000);
    assert_eq!(product.eval(&|name| Some((name == "a7").into())), Some(0));

    // Each step doubles the tree: past the limit it is one unknown symbol, and equal steps stay
    // equal.
    let grow = || {
        let mut expr = Expr::symbol("s0");
        for _ in 0..100 {
            expr = expr.floor_div(&Expr::int(2)) * expr.modulo(&Expr::int(3));
        }
        expr
    };
    assert_eq!(grow(), grow());
    assert_eq!(grow().eval(&|_| None), None);
    let sum = parse(&vec!["s0*s1"; 2000].join(" + "));
    assert_eq!(sum.to_string(), "2000*s0*s1");
}
