//! Infers the types of the results of ops that give lists of parts.

use crate::stand_ins::{sized, unknown, with_size};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, arguments, cx::axis_of, op};
use pt2onnx_symbolic::Expr;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::chunk, chunk),
    op!(aten::dsplit_array, at_indices, dim = 2),
    op!(aten::dsplit_int, in_sections, dim = 2),
    op!(aten::hsplit_array, hsplit_array),
    op!(aten::hsplit_int, hsplit_int),
    op!(aten::split, of_sizes),
    op!(aten::split_Tensor, split),
    op!(aten::split_copy_Tensor, split),
    op!(aten::split_sizes, of_sizes),
    op!(aten::split_with_sizes, of_sizes),
    op!(aten::split_with_sizes_copy, of_sizes),
    op!(aten::tensor_split_indices, at_indices),
    op!(aten::tensor_split_sections, in_sections),
    op!(aten::tensor_split_tensor_indices_or_sections, tensor_split),
    op!(aten::unbind_copy_int, unbind),
    op!(aten::unbind_int, unbind),
    op!(aten::unsafe_chunk, chunk),
    op!(aten::unsafe_split_Tensor, split),
    op!(aten::unsafe_split_with_sizes, of_sizes),
    op!(aten::vsplit_array, at_indices, dim = 0),
    op!(aten::vsplit_int, in_sections, dim = 0),
];

arguments! {
    struct Sections { input: Value, sections: i64, dim: i64 }
    struct Indices { input: Value, indices: Vec<Expr>, dim: i64 }
}

/// The parts of those sizes along `axis`.
fn parts(cx: &Cx, x: Value, axis: usize, sizes: Vec<Expr>) -> Lowered<Vec<Value>> {
    Ok(sizes.into_iter().map(|size| sized(cx, x, &with_size(cx, x, axis, size))).collect())
}

/// Parts of `size`, the last one of what is left.
fn equal(cx: &Cx, x: Value, axis: usize, size: &Expr) -> Lowered<Vec<Value>> {
    let total = cx.dim(x, axis as i64);
    let count = cx.constraints().simplify(&total.ceil_div(size));
    let Some(count) = count.as_int().or_else(|| cx.constraints().range_of(&count).as_int()) else {
        return unknown("the number of its parts is not known");
    };
    if size.as_int() == Some(0) || count == 0 {
        return parts(cx, x, axis, vec![total]);
    }
    sized_parts(cx, x, axis, size, count)
}

fn split(cx: &Cx, x: Value, size: Expr, dim: i64) -> Lowered<Vec<Value>> {
    equal(cx, x, cx.axis(x, dim)?, &size)
}

/// Parts of `ceil(size / chunks)`. These are `chunks` parts if the size is larger than `(chunks -
/// 1)^2`. PyTorch gives fewer parts of some smaller sizes; a symbolic size that may be smaller
/// counts as larger, as it does in a program that takes all parts.
fn chunk(cx: &Cx, x: Value, chunks: i64, dim: i64) -> Lowered<Vec<Value>> {
    let axis = cx.axis(x, dim)?;
    let total = cx.dim(x, axis as i64);
    if total.as_int() == Some(0) {
        return parts(cx, x, axis, vec![total; chunks.max(0) as usize]);
    }
    let size = cx.constraints().simplify(&total.ceil_div(&Expr::int(chunks)));
    let count = cx.constraints().simplify(&total.ceil_div(&size));
    let known = count.as_int().is_some() || cx.constraints().range_of(&count).as_int().is_some();
    if known || chunks < 1 {
        return equal(cx, x, axis, &size);
    }
    sized_parts(cx, x, axis, &size, chunks)
}

/// Parts of `size`, and one of what is left.
fn sized_parts(cx: &Cx, x: Value, axis: usize, size: &Expr, count: i64) -> Lowered<Vec<Value>> {
    let mut sizes = vec![size.clone(); (count - 1).max(0) as usize];
    let rest = cx.dim(x, axis as i64) - size * (count - 1);
    sizes.push(cx.constraints().simplify(&rest));
    parts(cx, x, axis, sizes)
}

fn of_sizes(cx: &Cx, x: Value, sizes: Vec<Expr>, dim: i64) -> Lowered<Vec<Value>> {
    parts(cx, x, cx.axis(x, dim)?, sizes)
}

/// The first parts have one element more, if the size is no multiple.
fn in_sections(cx: &Cx, args: Sections) -> Lowered<Vec<Value>> {
    let axis = axis_of(cx.rank(args.input), args.dim)?;
    let total = cx.dim(args.input, axis as i64);
    let size = |i: i64| (&total + (args.sections - 1 - i)).floor_div(&Expr::int(args.sections));
    let sizes = (0..args.sections).map(|i| cx.constraints().simplify(&size(i))).collect();
    parts(cx, args.input, axis, sizes)
}

fn at_indices(cx: &Cx, args: Indices) -> Lowered<Vec<Value>> {
    let axis = axis_of(cx.rank(args.input), args.dim)?;
    let total = cx.dim(args.input, axis as i64);
    let mut sizes = Vec::new();
    let mut start = Expr::ZERO;
    for end in args.indices.iter().chain([&total]) {
        let end = crate::view::bound(cx, end, &total)?;
        sizes.push(cx.constraints().simplify(&Expr::max(&(&end - &start), &Expr::ZERO)));
        start = end;
    }
    parts(cx, args.input, axis, sizes)
}

/// Vectors are split along their only dimension, others along the second one.
fn hsplit_int(cx: &Cx, input: Value, sections: i64) -> Lowered<Vec<Value>> {
    in_sections(cx, Sections { input, sections, dim: i64::from(cx.rank(input) > 1) })
}

fn hsplit_array(cx: &Cx, input: Value, indices: Vec<Expr>) -> Lowered<Vec<Value>> {
    at_indices(cx, Indices { input, indices, dim: i64::from(cx.rank(input) > 1) })
}

fn tensor_split(cx: &Cx, input: Value, at: Value, dim: i64) -> Lowered<Vec<Value>> {
    match (cx.contents(at), cx.rank(at)) {
        (Some(indices), 1) => at_indices(cx, Indices { input, indices, dim }),
        (Some(sections), _) => match sections.first().and_then(Expr::as_int) {
            Some(sections) => in_sections(cx, Sections { input, sections, dim }),
            None => unknown("the number of its parts is not known"),
        },
        (None, _) => unknown("the places of its parts are not known"),
    }
}

fn unbind(cx: &Cx, x: Value, dim: i64) -> Lowered<Vec<Value>> {
    let mut sizes: Vec<Expr> = cx.shape(x).into_iter().collect();
    let count = sizes.remove(axis_of(sizes.len(), dim)?);
    let Some(count) = count.as_int() else {
        return unknown("the number of its parts is not known");
    };
    Ok((0..count).map(|_| sized(cx, x, &sizes)).collect())
}
