//! Translates contractions by labels: `Einsum`.

use crate::math::reduce::{matmul_of, may_be_empty_along, sum_of_products};
use crate::meta::{self, typed, unknown};
use crate::{AtenOp, Complex, Cx, LowerError, Lowered, checks, cx::axis_of, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] =
    &[op!(aten::einsum, einsum, meta = meta_einsum), op!(aten::tensordot, tensordot)];

/// The letters of both alphabets, as ONNX takes them for labels.
fn letters() -> impl Iterator<Item = char> {
    ('a'..='z').chain('A'..='Z')
}

/// An equation without blanks and ellipses.
struct Equation {
    /// Labels of each operand's dimensions.
    terms: Vec<Vec<char>>,
    /// Labels of the result's dimensions.
    output: Vec<char>,
}

impl Equation {
    /// Reads PyTorch's form for operands of these ranks. The dimensions under an ellipsis get
    /// letters that are free, the last ones of all operands the same.
    fn parse(text: &str, ranks: &[usize]) -> Lowered<Self> {
        let wrong = |what: &str| LowerError::unsupported(format!("einsum of `{text}`: {what}"));
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&*text, None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return Err(wrong("it has another number of operands"));
        }
        let named = |term: &str| term.chars().filter(|c| *c != '.').count();
        let hidden = |(term, &rank): (&&str, &usize)| {
            if term.contains("...") {
                rank.checked_sub(named(term))
            } else {
                Some(0).filter(|_| named(term) == rank)
            }
        };
        let hidden: Option<Vec<usize>> = terms.iter().zip(ranks).map(hidden).collect();
        let hidden = hidden.ok_or_else(|| wrong("a term has other dimensions than its operand"))?;
        let most = hidden.iter().copied().max().unwrap_or(0);
        let free: Vec<char> = letters().filter(|c| !text.contains(*c)).take(most).collect();
        if free.len() < most {
            return Err(wrong("it has more dimensions than there are letters"));
        }
        let spell = |term: &str, hidden: usize| -> Vec<char> {
            let dots: String = free[most - hidden..].iter().collect();
            term.replace("...", &dots).chars().collect()
        };
        let terms: Vec<Vec<char>> =
            terms.iter().zip(&hidden).map(|(term, &hidden)| spell(term, hidden)).collect();
        let output = match right {
            Some(right) => spell(right, if right.contains("...") { most } else { 0 }),
            None => {
                // Labels that occur once, in alphabetical order, after the dimensions of the
                // ellipsis.
                let count = |c: &char| terms.iter().flatten().filter(|d| *d == c).count();
                let mut once: Vec<char> = terms.iter().flatten().copied().collect();
                once.retain(|c| count(c) == 1 && !free.contains(c));
                once.sort_unstable();
                [free.clone(), once].concat()
            }
        };
        let known = |c: &char| c.is_ascii_alphabetic() && terms.iter().flatten().any(|d| d == c);
        if output.iter().all(known) && terms.iter().flatten().all(char::is_ascii_alphabetic) {
            Ok(Self { terms, output })
        } else {
            Err(wrong("it is not an equation"))
        }
    }

    /// `ab,bc->ac`.
    fn text(terms: &[&[char]], output: &[char]) -> String {
        let terms: Vec<String> = terms.iter().map(|t| t.iter().collect()).collect();
        format!("{}->{}", terms.join(","), output.iter().collect::<String>())
    }

    /// One `Einsum` for real operands. Complex operands are multiplied one after the other, because
    /// a product of two is bilinear.
    fn emit(&self, cx: &Cx, operands: &[Complex]) -> Lowered<Complex> {
        if operands.iter().all(|o| o.im.is_none()) {
            let terms: Vec<&[char]> = self.terms.iter().map(Vec::as_slice).collect();
            let values: Vec<_> = operands.iter().map(|o| o.re).collect();
            return Ok(contracted(cx, &values, &terms, &self.output).into());
        }
        let mut terms = self.terms.iter().zip(operands);
        let (first, &x) = terms
            .next()
            .ok_or_else(|| LowerError::unsupported("einsum needs at least one operand"))?;
        let (mut labels, mut result) = (first.clone(), x);
        for (i, (term, &x)) in terms.enumerate() {
            // The labels that later operands or the result have.
            let later = |c: &char| {
                self.output.contains(c) || self.terms[i + 2..].iter().any(|t| t.contains(c))
            };
            let mut kept: Vec<char> = Vec::new();
            for &c in labels.iter().chain(term) {
                if later(&c) && !kept.contains(&c) {
                    kept.push(c);
                }
            }
            if i + 2 == self.terms.len() {
                kept.clone_from(&self.output);
            }
            result =
                result.bilinear(cx, x, |a, b| contracted(cx, &[a, b], &[&labels, term], &kept));
            labels = kept;
        }
        if self.terms.len() == 1 {
            result = result.map(|x| contracted(cx, &[x], &[&labels], &self.output));
        }
        Ok(result)
    }
}

fn einsum(cx: &Cx, equation: String, operands: Vec<Complex>) -> Lowered {
    let ranks: Vec<usize> = operands.iter().map(|o| cx.rank(o.re)).collect();
    let equation = Equation::parse(&equation, &ranks)?;
    // PyTorch sums a single operand of integers in int64.
    let dtype = cx.out_dtype()?;
    let operands: Vec<Complex> = operands.iter().map(|o| o.cast(cx, dtype)).collect();
    Ok(equation.emit(cx, &operands)?.value(cx))
}

/// `Einsum`, or [`matrix_product`].
fn contracted(cx: &Cx, operands: &[Value], terms: &[&[char]], output: &[char]) -> Value {
    let product = || {
        let product = match (operands, terms) {
            (&[a, b], &[of_a, of_b]) => matrix_product(cx, [a, b], [of_a, of_b], output),
            _ => None,
        };
        product.unwrap_or_else(|| cx.einsum(operands, &Equation::text(terms, output)))
    };
    sum_of_products(cx, operands, || sizes_of(cx, output, operands, terms), product)
}

/// The sizes of labels: of each, those that the operands have for it, broadcast.
fn sizes_of(
    cx: &Cx,
    labels: &[char],
    operands: &[Value],
    terms: &[impl AsRef<[char]>],
) -> Vec<Expr> {
    let size = |label: &char| {
        let sizes = operands.iter().zip(terms).flat_map(|(&x, term)| {
            let named = term.as_ref().iter().zip(cx.shape(x)).filter(|(other, _)| *other == label);
            named.map(|(_, size)| size).collect::<Vec<_>>()
        });
        sizes.fold(Vec::new(), |all, size| cx.broadcast_shapes(&all, &[size]))
    };
    labels.iter().flat_map(size).collect()
}

/// A sum of products by `MatMul`, if an operand may be empty: `Einsum` may end ONNX Runtime's
/// process then. None for an equation with a label twice in one operand, or one that only one
/// operand has and the output does not, and where sizes of a sum may differ.
fn matrix_product(
    cx: &Cx,
    [a, b]: [Value; 2],
    [of_a, of_b]: [&[char]; 2],
    output: &[char],
) -> Option<Value> {
    let may_be_empty = |x: Value| may_be_empty_along(cx, x, &Vec::from_iter(0..cx.rank(x)));
    if !may_be_empty(a) && !may_be_empty(b) {
        return None;
    }
    let pick = |of: &[char], other: &[char], is_output: bool| -> Vec<char> {
        let labels = of.iter().copied().filter(|c| output.contains(c) == is_output);
        labels.filter(|c| other.contains(c)).collect()
    };
    let rest = |of: &[char], other: &[char]| -> Vec<char> {
        of.iter().copied().filter(|c| !other.contains(c)).collect()
    };
    let (batch, inner) = (pick(of_a, of_b, true), pick(of_a, of_b, false));
    let (left, right) = (rest(of_a, of_b), rest(of_b, of_a));
    let distinct = |of: &[char]| of.iter().enumerate().all(|(i, c)| !of[..i].contains(c));
    let made = [&batch[..], &left, &right].concat();
    if output.len() != made.len() || !distinct(of_a) || !distinct(of_b) {
        return None;
    }
    let arranged = |x, of: &[char], order: &[char]| {
        let place = |label: &char| of.iter().position(|c| c == label);
        let perm: Vec<usize> = order.iter().filter_map(place).collect();
        cx.transpose(x, &perm)
    };
    let a = arranged(a, of_a, &[&batch[..], &left, &inner].concat());
    let b = arranged(b, of_b, &[&batch[..], &inner, &right].concat());
    let (sizes_a, sizes_b) = (cx.shape(a), cx.shape(b));
    let (batch_a, own_a) = sizes_a.split_at(batch.len());
    let (batch_b, own_b) = sizes_b.split_at(batch.len());
    let ((rows, depth), (depth_b, columns)) =
        (own_a.split_at(left.len()), own_b.split_at(inner.len()));
    if depth != depth_b {
        return None;
    }
    // Without a batch, `MatMul` takes several dimensions of rows for one.
    if (left.len() == 1 || batch.is_empty()) && inner.len() == 1 && right.len() == 1 {
        return Some(arranged(matmul_of(cx, a, b), &made, output));
    }
    let matrix = |x, batch: &[Expr], rows: &[Expr], columns: &[Expr]| {
        let ends = [Expr::product(rows), Expr::product(columns)];
        cx.reshape(x, &[batch, &ends].concat())
    };
    let (a, b) = (matrix(a, batch_a, rows, depth), matrix(b, batch_b, depth, columns));
    let all = [&cx.broadcast_shapes(batch_a, batch_b)[..], rows, columns].concat();
    Some(arranged(cx.reshape(matmul_of(cx, a, b), &all), &made, output))
}

/// Sums over pairs of dimensions. The other dimensions of `a` come before those of `b`.
fn tensordot(cx: &Cx, a: Complex, b: Complex, dims_a: Vec<i64>, dims_b: Vec<i64>) -> Lowered {
    let (rank_a, rank_b) = (cx.rank(a.re), cx.rank(b.re));
    let all: Vec<char> = letters().take(rank_a + rank_b).collect();
    if all.len() < rank_a + rank_b {
        return Err(LowerError::unsupported(
            "tensordot supports at most 52 dimensions of both tensors together",
        ));
    }
    if dims_a.len() != dims_b.len() {
        return Err(LowerError::unsupported("both lists of dimensions must have the same length"));
    }
    let (first, mut second) = (all[..rank_a].to_vec(), all[rank_a..].to_vec());
    for (&i, &j) in dims_a.iter().zip(&dims_b) {
        second[axis_of(rank_b, j)?] = first[axis_of(rank_a, i)?];
    }
    let only = |one: &[char], other: &[char]| -> Vec<char> {
        one.iter().copied().filter(|c| !other.contains(c)).collect()
    };
    let output = [only(&first, &second), only(&second, &first)].concat();
    let equation = Equation { terms: vec![first, second], output };
    Ok(equation.emit(cx, &[a, b])?.value(cx))
}

/// Sums of integers are int64, products of matrices are not.
fn meta_einsum(cx: &Cx, text: String, tensors: Vec<Value>) -> Lowered {
    let ranks: Vec<usize> = tensors.iter().map(|&v| cx.rank(v)).collect();
    let equation = Equation::parse(&text, &ranks)?;
    let size = sizes_of(cx, &equation.output, &tensors, &equation.terms);
    let dtype = meta::common_type(cx, &tensors)?;
    let integers = tensors.iter().any(|&v| !cx.dtype(v).is_float() && !cx.dtype(v).is_complex());
    let summed = equation.terms.iter().flatten().any(|label| !equation.output.contains(label));
    match &tensors[..] {
        [_] if integers && summed => Ok(typed(cx, DType::I64, &size)),
        [_, _, ..] if integers && summed && dtype != DType::I64 => {
            if text.contains('.') || !sums_products(cx, &equation, &tensors) {
                return unknown("sums of narrow integers that are not of products of two tensors");
            }
            Ok(typed(cx, dtype, &size))
        }
        _ => Ok(typed(cx, dtype, &size)),
    }
}

/// Whether two tensors are multiplied as matrices along all labels that are summed: each has them
/// once, in the same size. Other labels are summed before.
fn sums_products(cx: &Cx, equation: &Equation, tensors: &[Value]) -> bool {
    let ([left, right], &[x, y]) = (&*equation.terms, tensors) else { return false };
    let along = |term: &[char], x: Value, label: &char| {
        let mut sizes = term.iter().zip(cx.shape(x)).filter(|(other, _)| *other == label);
        sizes.next().filter(|_| sizes.next().is_none()).map(|(_, size)| size)
    };
    let mut summed = left.iter().chain(right).filter(|label| !equation.output.contains(label));
    cx.dtype(x) == cx.dtype(y)
        && summed.all(|l| along(left, x, l).is_some_and(|n| Some(n) == along(right, y, l)))
}

checks! {
    // An ellipsis gets letters.
    "aten.einsum('...ij, ...jk', [a: f32[s0, 2, 3], b: f32[3, 4]]) -> f32[s0, 2, 4]" => "
    einsum = MatMul (a, b)
    ";

    // Operands that may have no elements.
    "aten.einsum('bhid, bhjd->bhij', [a: f32[u0, 2, 3, 4], b: f32[u0, 2, 5, 4]]) -> f32[u0, 2, 3, 5]" => "
    val_0 = Transpose <perm: ints = [0, 1, 3, 2]> (b)
    einsum = MatMul (a, val_0)
    ";
    "aten.einsum('bid, bjd->bij', [a: f32[2, 3, u0], b: f32[2, 5, u0]]) -> f32[2, 3, 5]" => "
    val_0 = Transpose <perm: ints = [0, 2, 1]> (b)
    val_1 = Pad (a, [0, 0, 0, 0, 0, 1])
    val_2 = Pad (val_0, [0, 0, 0, 0, 1, 0])
    einsum = MatMul (val_1, val_2)
    ";
    "aten.einsum('ik, kj->ji', [a: f32[2, u0], b: f32[u0, 3]]) -> f32[3, 2]" => "
    val_0 = MatMul (a, b)
    einsum = Transpose <perm: ints = [1, 0]> (val_0)
    ";

    // Operands without elements.
    "aten.einsum('ij, kj->ik', [a: f32[2, 0], b: f32[3, 0]]) -> f32[2, 3]" => "
    einsum = Expand (0.0, [2, 3])
    ";
    "aten.mv(a: f64[2, 0], b: f64[0]) -> f64[2]" => "mv = Expand (double {0.0}, [2])";

    // Dimensions pair up.
    "aten.tensordot(a: f32[2, 3], b: f32[4, 2], [0], [1]) -> f32[3, 4]" => r#"
    tensordot = Einsum <equation: string = "ab,ca->bc"> (a, b)
    "#;

    // Integers are summed as int64.
    "aten.einsum('i->', [a: i16[3]]) -> i64[]" => r#"
    val_0 = Cast <to: int = 7> (a)
    einsum = Einsum <equation: string = "i->"> (val_0)
    "#;

    // Labels that are not written.
    "aten.einsum('i ->', [x: f32[3]]) -> f32[]" => r#"
    einsum = Einsum <equation: string = "i->"> (x)
    "#;
    "aten.einsum('ij,jk', [x: f32[2, 3], y: f32[3, 4]]) -> f32[2, 4]" => r#"
    einsum = Einsum <equation: string = "ij,jk->ik"> (x, y)
    "#;
    "aten.einsum('ba', [x: f32[2, 3]]) -> f32[3, 2]" => r#"
    einsum = Einsum <equation: string = "ba->ab"> (x)
    "#;
    "aten.einsum('ii', [x: f32[3, 3]]) -> f32[]" => r#"
    einsum = Einsum <equation: string = "ii->"> (x)
    "#;
    "aten.einsum('...ik, ...j -> ij', [x: f32[2, 3, 4], y: f32[5]]) -> f32[3, 5]" => r#"
    einsum = Einsum <equation: string = "aik,j->ij"> (x, y)
    "#;
    "aten.einsum('...ij,...jk', [x: f32[2, 2, 3, 4], y: f32[2, 4, 5]]) -> f32[2, 2, 3, 5]" => r#"
    einsum = Einsum <equation: string = "abij,bjk->abik"> (x, y)
    "#;
    "aten.einsum('...a->a...', [x: f32[2, 3, 4]]) -> f32[4, 2, 3]" => r#"
    einsum = Einsum <equation: string = "bca->abc"> (x)
    "#;

    // Equations that do not fit.
    "aten.einsum('ij->k', [x: f32[2, 3]]) -> f32[2]" => "
    parts of the program cannot be translated:
      aten.einsum.default (node `einsum`): einsum of `ij->k`: it is not an equation
    ";
    "aten.einsum('ij', [x: f32[2, 3, 4]]) -> f32[2]" => "
    parts of the program cannot be translated:
      aten.einsum.default (node `einsum`): einsum of `ij`: a term has other dimensions than its operand
    ";
    "aten.einsum('i,j', [x: f32[2]]) -> f32[2]" => "
    parts of the program cannot be translated:
      aten.einsum.default (node `einsum`): einsum of `i,j`: it has another number of operands
    ";
}
