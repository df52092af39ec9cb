//! `Einsum` by matrix products, one operand at a time.

use crate::legalise::{Emitted, input};
use pt2onnx_ir::{Builder, Node, Reduction, Value, attrs, einsum_terms};
use pt2onnx_symbolic::Expr;

/// An operand and the letters of its dimensions.
struct Term {
    value: Value,
    letters: Vec<char>,
}

pub(crate) fn einsum(cx: &Builder, node: &Node) -> Emitted {
    let equation = attrs::Einsum::equation(node)?;
    let (left, right) = einsum_terms(equation);
    let (mut terms, mut widest) = (Vec::new(), 0);
    for (i, term) in left.split(',').enumerate() {
        let value = input(node, i)?;
        let others = term.chars().filter(|&c| c != '.').count();
        let more = cx.rank(value).checked_sub(others).filter(|&n| n == 0 || term.contains('.'));
        let more = more.ok_or_else(|| {
            format!("operand {i} does not have the rank that the Einsum `{equation}` needs")
        })?;
        widest = widest.max(more);
        terms.push(Term { value, letters: spelt(term, more) });
    }
    let wanted = spelt(&right, widest);
    for letters in terms.iter().map(|term| &term.letters).chain([&wanted]) {
        if letters.iter().enumerate().any(|(i, c)| letters[..i].contains(c)) {
            return Err(format!("the Einsum `{equation}` needs a newer opset").into());
        }
    }
    let mut rest = terms.into_iter();
    let mut left = rest.next().ok_or("its operands are missing")?;
    let rest: Vec<Term> = rest.collect();
    for (i, right) in rest.iter().enumerate() {
        let later =
            |c: &char| wanted.contains(c) || rest[i + 1..].iter().any(|t| t.letters.contains(c));
        left = product(cx, &left, right, later);
    }
    let alone = |c: &char| wanted.contains(c);
    let summed = summed(cx, &left, alone);
    let value = arranged(cx, &summed, &wanted);
    Ok(vec![if value == input(node, 0)? { cx.identity(value) } else { value }])
}

/// The letters of a term, in which an ellipsis stands for `count` dimensions. Each has its own
/// letter, counted from the last.
fn spelt(term: &str, count: usize) -> Vec<char> {
    let (front, back) = term.split_once("...").unwrap_or((term, ""));
    let own = (0..count as u32).rev().filter_map(|i| char::from_u32(0xE000 + i));
    front
        .chars()
        .chain(own.take(if term.contains('.') { count } else { 0 }))
        .chain(back.chars())
        .collect()
}

fn summed(cx: &Builder, term: &Term, needed: impl Fn(&char) -> bool) -> Term {
    let letters = term.letters.iter().enumerate();
    let gone: Vec<usize> = letters.filter(|(_, c)| !needed(c)).map(|(i, _)| i).collect();
    let value = if gone.is_empty() {
        term.value
    } else {
        cx.reduce(Reduction::Sum, term.value, &gone, false)
    };
    let letters = term.letters.iter().copied().filter(|c| needed(c)).collect();
    Term { value, letters }
}

fn arranged(cx: &Builder, term: &Term, order: &[char]) -> Value {
    let place = |c: &char| term.letters.iter().position(|l| l == c);
    let perm: Vec<usize> = order.iter().filter_map(place).collect();
    cx.transpose(term.value, &perm)
}

/// Multiplies two terms and sums over the letters that only they have.
fn product(cx: &Builder, a: &Term, b: &Term, later: impl Fn(&char) -> bool) -> Term {
    let a = summed(cx, a, |c| b.letters.contains(c) || later(c));
    let b = summed(cx, b, |c| a.letters.contains(c) || later(c));
    let pick = |term: &Term, f: &dyn Fn(&char) -> bool| -> Vec<char> {
        term.letters.iter().copied().filter(f).collect()
    };
    let batch = pick(&a, &|c| b.letters.contains(c) && later(c));
    let inner = pick(&a, &|c| b.letters.contains(c) && !later(c));
    let rows = pick(&a, &|c| !b.letters.contains(c));
    let columns = pick(&b, &|c| !a.letters.contains(c));
    let size = |c: &char| {
        let of = |t: &Term| {
            let i = t.letters.iter().position(|l| l == c)?;
            Some(cx.dim(t.value, i as i64))
        };
        match (of(&a), of(&b)) {
            // One of them may be 1, and broadcasts.
            (Some(x), Some(y)) if x != y => match (x.as_int(), y.as_int()) {
                (Some(1), _) | (None, Some(2..)) => y,
                (Some(_), _) | (_, Some(1)) => x,
                _ => Expr::max(&x, &y),
            },
            (x, y) => x.or(y).unwrap_or(Expr::int(1)),
        }
    };
    let sizes = |letters: &[char]| letters.iter().map(size).collect::<Vec<Expr>>();
    let matrix = |t: &Term, first: &[char], second: &[char]| {
        let order = [&batch, first, second].concat();
        let value = cx.expand(arranged(cx, t, &order), &sizes(&order));
        let mut dims = sizes(&batch);
        dims.push(Expr::product(sizes(first)));
        dims.push(Expr::product(sizes(second)));
        cx.reshape(value, &dims)
    };
    let made = cx.matmul(matrix(&a, &rows, &inner), matrix(&b, &inner, &columns));
    let letters = [batch.as_slice(), &rows, &columns].concat();
    let value = cx.reshape(made, &sizes(&letters));
    Term { value, letters }
}
