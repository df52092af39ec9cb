//! Laws of the join: the order of the branches does not matter but for names, and equal branches
//! need no phis.

use super::{
    join::Joiner,
    phi::{Base, Branch, Joined, plain_meta},
};
use crate::{
    error::Step,
    eval::{Flow, context::Names},
    state::{Delta, Env, JoinPolicy, State, memory::Memory},
    value::{Item, Optional, Value},
};
use proptest::prelude::*;
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Variables and a list, as a branch leaves them.
type End = (Vec<Option<Value>>, Vec<Value>);

/// A state with four tensors of several types, a list and three variables.
fn start() -> (State, Env) {
    let mut state = State::default();
    let sizes = |sizes: &[i64]| sizes.iter().map(|size| Expr::int(*size)).collect();
    for (name, dtype, sizes) in [
        ("t0", DType::F32, sizes(&[2])),
        ("t1", DType::F32, sizes(&[2])),
        ("t2", DType::F32, sizes(&[3])),
        ("t3", DType::I64, sizes(&[])),
    ] {
        state.facts.values.insert(name.into(), plain_meta(dtype, sizes).into());
    }
    state.heap.push(Item::List { items: vec![Value::int(0)], element: None });
    (state, (0..3).map(|at| (variable(at), Value::int(0))).collect())
}

fn variable(at: usize) -> Name {
    format!("v{at}").into()
}

fn branch((variables, list): &End) -> Branch {
    let assigned = variables.iter().enumerate().filter(|(_, value)| value.is_some());
    let mut delta = Delta::default();
    delta.heap.old = 1;
    delta.heap.items.insert(0, Item::List { items: list.clone(), element: None });
    Branch {
        env: assigned.map(|(at, value)| (variable(at), value.clone())).collect(),
        delta,
        flow: Flow::Next,
        made: 0..0,
    }
}

/// The join of two branches, and how many phis it has.
fn joined(a: &End, b: &End, how: JoinPolicy, swapped: bool) -> Step<(String, usize)> {
    let (mut state, env) = start();
    state.join = how;
    let (memory, truths, mut names) = (Memory::default(), FxHashMap::default(), Names::default());
    let ends = [branch(a), branch(b)];
    let base = Base {
        state: &state,
        memory: &memory,
        truths: &truths,
        names: &mut names,
        allow_sequences: false,
        max_steps: u64::MAX,
    };
    let mut joiner = Joiner { base, ends: &ends, sizes: None, joined: Joined::default() };
    assert!(matches!(joiner.flows()?, Flow::Next));
    let variables = joiner.variables(&env)?;
    joiner.items(&BTreeSet::from([0]))?;
    let Joined { mut phis, items, .. } = joiner.joined;
    if swapped {
        phis.iter_mut().for_each(|phi| phi.operands.reverse());
    }
    Ok((format!("{variables:?} {items:?} {phis:?}"), phis.len()))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0i64..3).prop_map(Value::int),
        (0i64..2).prop_map(|n| Value::float(n as f64)),
        any::<bool>().prop_map(Value::bool),
        (0usize..4).prop_map(|at| Value::Tensor(format!("t{at}").into())),
        Just(Value::None),
        Just(Value::str("text")),
        Just(Value::Undef("an uninitialised value".into())),
        (0usize..4).prop_map(|at| {
            let present = Expr::symbol("u100");
            Optional::of(present, Value::Tensor(format!("t{at}").into()))
        }),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| prop::collection::vec(inner, 1..3).prop_map(Value::tuple))
}

fn end() -> impl Strategy<Value = End> {
    let variables = prop::collection::vec(prop::option::of(value()), 3);
    (variables, prop::collection::vec(value(), 1..3))
}

fn policy() -> impl Strategy<Value = JoinPolicy> {
    prop_oneof![
        Just(JoinPolicy::Exact),
        Just(JoinPolicy::AllowNumbers),
        Just(JoinPolicy::AllowOptional)
    ]
}

proptest! {
    #[test]
    fn equal_branches_need_no_phis(end in end(), how in policy()) {
        let (all, phis) = joined(&end, &end, how, false).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(phis, 0, "{:?}", all);
    }

    #[test]
    fn the_order_of_branches_does_not_matter(a in end(), b in end(), how in policy()) {
        match (joined(&a, &b, how, false), joined(&b, &a, how, true)) {
            (Ok(first), Ok(second)) => prop_assert_eq!(first, second),
            (Err(_), Err(_)) => {}
            (first, second) => prop_assert!(false, "{:?}\n{:?}", first, second),
        }
    }
}
