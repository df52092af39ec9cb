//! `RotaryEmbedding` by the formula of the standard's function body, without its transpositions.

use crate::legalise::{Emitted, Reason, input};
use pt2onnx_ir::{Builder, Node, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) fn rotary(cx: &Builder, node: &Node) -> Emitted {
    let given = input(node, 0)?;
    let options = attrs::RotaryEmbedding::read(node)?;
    let packed = match cx.rank(given) {
        3 => Some(options.num_heads.filter(|h| *h > 0).ok_or("num_heads is missing")?),
        4 => None,
        rank => return Err(format!("its input must have rank 3 or 4, but has {rank}").into()),
    };
    // Heads are before the positions, or behind them.
    let (x, heads_axis) = match packed {
        None => (given, 1),
        Some(heads) => {
            let apart = cx.ints(&[0, 0, heads, -1]);
            let x = cx.reshape_op(given, apart, attrs::Reshape::default());
            let dims = cx.shape(given);
            let size = dims[2].floor_div(&Expr::int(heads));
            let sizes = [dims[0].clone(), dims[1].clone(), Expr::int(heads), size];
            cx.set_type(x, pt2onnx_ir::Type::tensor(cx.dtype(x), sizes));
            (x, 2)
        }
    };
    let cache = |i: usize| {
        let cache = input(node, i)?;
        let at = match node.input(3) {
            Some(positions) => cx.gather(cache, positions, 0),
            None => cache,
        };
        Ok::<_, Reason>(cx.unsqueeze(at, &[heads_axis]))
    };
    let (cos, sin) = (cache(1)?, cache(2)?);
    let whole = cx.dim(x, 3);
    let turned = match options.rotary_embedding_dim {
        n @ 1.. => Expr::int(n),
        _ => whole.clone(),
    };
    let zero = Expr::int(0);
    let part = cx.slice(x, 3, &zero, &turned, 1);
    let half = turned.floor_div(&Expr::int(2));
    let [a, b] = if options.interleaved {
        [cx.slice(part, 3, &zero, &turned, 2), cx.slice(part, 3, &Expr::int(1), &turned, 2)]
    } else {
        cx.halves(part, 3)
    };
    let real = cx.sub(cx.mul(cos, a), cx.mul(sin, b));
    let imaginary = cx.add(cx.mul(sin, a), cx.mul(cos, b));
    let mut y = if options.interleaved {
        let pairs = cx.concat(&[cx.unsqueeze(real, &[4]), cx.unsqueeze(imaginary, &[4])], 4);
        let flat = cx.ints(&[0, 0, 0, -1]);
        let joined = cx.reshape_op(pairs, flat, attrs::Reshape::default());
        let mut dims = cx.shape(x);
        dims[3] = half * 2;
        cx.set_type(joined, pt2onnx_ir::Type::tensor(cx.dtype(x), dims));
        joined
    } else {
        cx.concat(&[real, imaginary], 3)
    };
    if turned != whole {
        y = cx.concat(&[y, cx.slice(x, 3, &turned, &whole, 1)], 3);
    }
    Ok(vec![match packed {
        Some(_) => cx.reshape_op(y, cx.ints(&[0, 0, -1]), attrs::Reshape::default()),
        None => y,
    }])
}
