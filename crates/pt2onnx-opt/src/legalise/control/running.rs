//! Replaces cumulative sums and products by `Scan`.

use crate::legalise::{Outcome, front, input, known_ints, replace};
use pt2onnx_ir::{Model, NodeId, Type, attrs};
use pt2onnx_symbolic::Expr;

/// `CumSum` and `CumProd` along a known axis.
pub(crate) fn along(model: &mut Model, id: NodeId) -> Outcome {
    let axis = known_ints(model, id, 1, "axes")?.unwrap_or_default();
    let &[axis] = axis.as_slice() else {
        return Err("its axis is missing".into());
    };
    replace(model, id, |cx, node| {
        let x = input(node, 0)?;
        let (dims, kind) = (cx.shape(x), cx.dtype(x));
        let place = front(axis, dims.len())?;
        let axis = place as i64;
        let slice: Vec<Expr> =
            dims.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, d)| d.clone()).collect();
        let sum = node.op() == "CumSum";
        let options = attrs::CumSum::read(node)?;
        // ONNX Runtime refuses a `Scan` along a dimension of size 0: what may be one gets an
        // element more, which comes last.
        let longer = dims.get(place).is_some_and(|n| n.as_int().unwrap_or_default() == 0);
        let mut one = dims.clone();
        one.iter_mut().skip(place).take(1).for_each(|n| *n = Expr::int(1));
        let added = || cx.full(&one, 0, kind);
        let x = match (longer, options.reverse) {
            (false, _) => x,
            (true, false) => cx.concat(&[x, added()], place),
            (true, true) => cx.concat(&[added(), x], place),
        };
        let start = cx.full(&slice, i64::from(!sum), kind);
        let types = [Type::tensor(kind, slice.clone()), Type::tensor(kind, slice.clone())];
        let body = cx.region(&types, |v| {
            let next = if sum { cx.add(v[0], v[1]) } else { cx.mul(v[0], v[1]) };
            let given = if options.exclusive { v[0] } else { next };
            vec![next, cx.identity(given)]
        });
        let backwards = options.reverse.then(|| vec![1]);
        let axes = attrs::Scan {
            scan_input_axes: Some(vec![axis]),
            scan_output_axes: Some(vec![axis]),
            scan_input_directions: backwards.clone(),
            scan_output_directions: backwards,
        };
        let made = cx.scan_op(2, &[start, x], body, 1, axes);
        cx.set_type(made[0], Type::tensor(kind, slice));
        cx.set_type(made[1], Type::tensor(kind, cx.shape(x)));
        let result = match (longer, options.reverse) {
            (false, _) => made[1],
            (true, false) => cx.slice(made[1], place, &Expr::int(0), &Expr::int(-1), 1),
            (true, true) => cx.slice(made[1], place, &Expr::int(1), &Expr::int(i64::MAX), 1),
        };
        cx.set_type(result, Type::tensor(kind, dims));
        Ok(vec![result])
    })
}
