//! Folds a number that the input of a layer is multiplied by into the weight.

use super::{
    batch_norm::{MISFIT, SHARED},
    lazy_scale::{Real, scaled},
    ort_reserved::is_halved_gelu,
    per_channel::{Channels, Kind, SPREAD, is_double},
};
use crate::{
    fusion::{Because, Fusion, Fusions, NoFusion},
    measure::Measure,
    pass::{Level, Pass, Phase, Run},
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Traits, Value};

pub(crate) static FOLD_INPUT_SCALE: Pass = Pass {
    name: "fold-input-scale",
    level: Level::Fuse,
    since: 7,
    description: "Folds Mul and Div of the input of a Conv, ConvTranspose, Gemm or MatMul \
                  with a number into the weight.",
    precondition: "float32 or float64, a number between 1e-9 and 1e9. Nothing else uses the \
                  weight or the product. The half of a GELU stays in front of Gemm and \
                  MatMul.",
    lowers: Measure::Nodes,
    phase: Phase::Late,
    target: None,
    run: Run::Fusions(Fusions::new(fusions)),
};

fn fusions() -> Result<Vec<Fusion>, PatternError> {
    let mut fusions = Vec::new();
    for op in Traits::LAYER.operators() {
        for (pattern, kind) in [
            ("w:LAYER(m:Mul(x, #c), #weight)", Kind::Mul),
            ("w:LAYER(m:Div(x, #c), #weight)", Kind::Div),
        ] {
            let pattern = pattern.replace("LAYER", op);
            fusions.push(Fusion::new(&pattern, move |cx, found| of_input(cx, found, op, kind))?);
        }
    }
    Ok(fusions)
}

/// Factors far from where products overflow or vanish.
const USUAL: std::ops::Range<f64> = 1e-9..1e9;

/// The bias stays, and so does the half of a GELU in front of a product ([`is_halved_gelu`]).
fn of_input(cx: &Builder, found: &Match, op: &'static str, kind: Kind) -> Result<Value, NoFusion> {
    let x = found.get_node(cx, "w")?.input(0).ok_or(NoFusion::NoMatch)?;
    let halved = matches!(op, "Gemm" | "MatMul") && is_halved_gelu(&cx.model(), x);
    (!halved).because("ONNX Runtime fuses the GELU before it")?;
    if is_double(cx, found)? {
        of_input_as::<f64>(cx, found, op, kind)
    } else {
        of_input_as::<f32>(cx, found, op, kind)
    }
}

fn of_input_as<T: Real>(
    cx: &Builder,
    found: &Match,
    op: &'static str,
    kind: Kind,
) -> Result<Value, NoFusion> {
    let node = found.get_node(cx, "w")?;
    let place = Channels::of(cx, &node, op)?;
    let (x, c) = (found.get("x")?, found.get("c")?);
    let given = node.input(1).ok_or(NoFusion::NoMatch)?;
    // The product has the rank of the input.
    let number = cx.constant_of(c).filter(|t| t.numel() == 1 && t.rank() <= place.rank);
    let number = number.because("the factor is not one number")?;
    let factors = kind.affine(place.spread::<T>(cx, c)?).factors.ok_or(NoFusion::NoMatch)?;
    let usual = factors.iter().all(|f| USUAL.contains(&f.abs()));
    usual.because("the factor is very small or very large")?;
    (number.rank() <= 1 || op != "MatMul").because(SPREAD)?;
    let tensor = cx.constant_of(given);
    let tensor = tensor.filter(|t| t.has_data() && found.is_unshared(cx, given)).because(SHARED)?;
    let weight = scaled::<T>(&tensor, &node, place.scaled_as(), &factors).because(MISFIT)?;
    let mut inputs = node.inputs().to_vec();
    (inputs[0], inputs[1]) = (Some(x), Some(found.add_folded(cx, weight, Some(given))));
    Ok(cx.emit1(op, &inputs, node.attributes.clone()))
}
