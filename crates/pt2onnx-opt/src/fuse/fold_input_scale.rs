//! Folds a number that the input of a layer is multiplied by into the weight.

use super::{
    Because, Fusion, Match, NoFusion, Pass, Patterns, Phase, Run,
    per_channel::{Channels, Kind, SPREAD, float_type, scaled_weight},
};
use pt2onnx_ir::{Builder, Traits, Value};

pub(crate) static FOLD_INPUT_SCALE: Pass = Pass {
    name: "fold-input-scale",
    description: "Folds Mul and Div of the input of a Conv, ConvTranspose, Gemm or MatMul with a \
                  number into the weight.",
    precondition: "float32 or float64, a number between 1e-9 and 1e9. Nothing else uses the weight \
                   or the product. The half of a GELU stays.",
    phase: Phase::Late,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        for (factor, kind) in [("Mul", Kind::Mul), ("Div", Kind::Div)] {
            let pattern = format!("w:{op}(m:{factor}(x, #c), #weight)");
            fusions.push(Fusion::new(&pattern, move |cx, found| of_input(cx, found, op, kind))?);
        }
    }
    Ok(fusions)
}

/// Factors far from where products overflow or vanish.
const USUAL: std::ops::Range<f64> = 1e-9..1e9;

/// The bias stays.
fn of_input(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Result<Value, NoFusion> {
    let node = found.get_node(cx, "w")?;
    let dtype = float_type(cx, found)?;
    let place = Channels::of(cx, &node, op)?;
    let (x, c) = (found.get("x")?, found.get("c")?);
    // The product has the rank of the input.
    let number = cx.constant_of(c).filter(|t| t.numel() == 1 && t.rank() <= place.rank);
    let number = number.because("the factor is not one number")?;
    let affine = kind.affine(place.spread(cx, c, dtype)?);
    let factors = affine.factors.ok_or(NoFusion::NoMatch)?;
    let usual = factors.iter().all(|f| USUAL.contains(&f.abs()));
    usual.because("the factor is very small or very large")?;
    (number.rank() <= 1 || op != "MatMul").because(SPREAD)?;
    let weight = scaled_weight(cx, found, &node, place.scaled_as(), dtype, &factors)?;
    let mut inputs = node.inputs().to_vec();
    (inputs[0], inputs[1]) = (Some(x), Some(found.add_folded(cx, weight, node.input(1))));
    Ok(cx.emit1(op, &inputs, node.attributes.clone()))
}
