//! The table of rules, and those that need few words. One rule per operator and step.

use super::{Done, activation, attention, normalization, padding, replace};
use pt2onnx_ir::{Attribute, Model, NodeId, Type, Value, schema};
use pt2onnx_tensor::{DType, Scalar, Tensor};
use std::sync::LazyLock;

/// When a rule applies.
#[derive(Clone, Copy)]
pub(super) enum When {
    /// If the older form does not accept the node.
    Needed,
    /// Always: both forms may accept a node and mean different things.
    Always,
}

/// How one operator goes down one step: from the form since `since` to what the opset before has.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub op: &'static str,
    pub since: u32,
    pub when: When,
    /// Edits the node or replaces it. The error says what has no older form.
    pub apply: fn(&mut Model, NodeId) -> Result<Done, String>,
}

const fn needed(
    op: &'static str,
    since: u32,
    apply: fn(&mut Model, NodeId) -> Result<Done, String>,
) -> Rule {
    Rule {
        op,
        since,
        when: When::Needed,
        apply,
    }
}

const fn always(
    op: &'static str,
    since: u32,
    apply: fn(&mut Model, NodeId) -> Result<Done, String>,
) -> Rule {
    Rule {
        op,
        since,
        when: When::Always,
        apply,
    }
}

static RULES: &[Rule] = &[
    needed("Attention", 23, attention::attention),
    needed("AveragePool", 19, undilated),
    needed("Cast", 19, |m, n| without(m, n, "saturate")),
    needed("Cast", 24, |m, n| without(m, n, "round_mode")),
    needed("CastLike", 19, |m, n| without(m, n, "saturate")),
    needed("CastLike", 24, |m, n| without(m, n, "round_mode")),
    needed("ConstantOfShape", 20, expanded),
    always("DFT", 20, dft_axis),
    needed("DequantizeLinear", 23, output_dtype_of_scale),
    needed("Gelu", 20, activation::gelu),
    always("GridSample", 20, grid_sample_modes),
    always("GroupNormalization", 21, normalization::group),
    needed("IsInf", 20, in_float),
    needed("IsNaN", 20, in_float),
    always("Pad", 19, padding::wrap),
    needed("QuantizeLinear", 21, zero_point_for_output_dtype),
    needed("RMSNormalization", 23, normalization::rms),
    needed("ReduceMax", 20, in_bytes),
    needed("ReduceMin", 20, in_bytes),
    always("Resize", 19, |m, n| {
        unless(
            m,
            n,
            "coordinate_transformation_mode",
            "half_pixel_symmetric",
        )
    }),
    needed("Swish", 24, activation::swish),
    needed("TopK", 24, in_float),
];

/// Operators that take bfloat16 since opset 22.
static BFLOAT16_SINCE_22: &[&str] = &[
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "Bernoulli",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "DeformConv",
    "Det",
    "Dropout",
    "Elu",
    "EyeLike",
    "GRU",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GridSample",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LSTM",
    "LpNormalization",
    "LpPool",
    "MaxPool",
    "MaxRoiPool",
    "MaxUnpool",
    "Mish",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "RNN",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "RoiAlign",
    "Round",
    "Selu",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Tan",
    "ThresholdedRelu",
];

static SORTED: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let bfloat16 = BFLOAT16_SINCE_22.iter().map(|op| needed(op, 22, in_float));
    let mut all: Vec<Rule> = RULES.iter().copied().chain(bfloat16).collect();
    all.sort_by_key(|r| (r.op, r.since));
    all
});

/// The rules of an operator.
pub(super) fn of(op: &str) -> &'static [Rule] {
    let start = SORTED.partition_point(|r| r.op < op);
    let end = SORTED.partition_point(|r| r.op <= op);
    &SORTED[start..end]
}

pub(super) fn dtype(model: &Model, value: Value) -> Option<DType> {
    Some(model[value].ty.as_ref()?.as_tensor()?.dtype)
}

fn rank(model: &Model, value: Value) -> Option<usize> {
    Some(model[value].ty.as_ref()?.as_tensor()?.shape.as_ref()?.len())
}

fn set(model: &mut Model, id: NodeId, name: &'static str, value: Attribute) {
    model[id].attributes.retain(|(n, _)| n != name);
    model[id].attributes.push((name.into(), value));
}

/// Takes away an attribute that says something about 8-bit floats only; those have a type that the older form refuses.
fn without(model: &mut Model, id: NodeId, name: &str) -> Result<Done, String> {
    model[id].attributes.retain(|(n, _)| n != name);
    Ok(Done::Kept)
}

/// Refuses one value of an attribute.
fn unless(model: &mut Model, id: NodeId, name: &str, refused: &str) -> Result<Done, String> {
    match model[id].attribute(name) {
        Some(Attribute::String(s)) if s == refused => Err(format!("{name} `{refused}` is newer")),
        _ => Ok(Done::Kept),
    }
}

/// `dilations` of 1 are none.
fn undilated(model: &mut Model, id: NodeId) -> Result<Done, String> {
    match model[id].attribute("dilations") {
        Some(Attribute::Ints(d)) if d.iter().any(|&d| d != 1) => {
            Err("dilations are newer".to_owned())
        }
        _ => without(model, id, "dilations"),
    }
}

/// With its inputs of unsupported float types as float, its outputs cast back: what runtimes do inside.
fn in_float(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let narrow = [
        DType::BF16,
        DType::F16,
        DType::F8E4M3FN,
        DType::F8E4M3FNUZ,
        DType::F8E5M2,
        DType::F8E5M2FNUZ,
    ];
    through(model, id, &narrow, DType::F32)
}

/// Bools as bytes.
fn in_bytes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    through(model, id, &[DType::Bool], DType::U8)
}

/// With everything that is of one of `types` cast to `to` and back.
fn through(model: &mut Model, id: NodeId, types: &[DType], to: DType) -> Result<Done, String> {
    let narrow = |v: Value| dtype(model, v).is_some_and(|d| types.contains(&d));
    let node = &model[id];
    if !node
        .inputs()
        .iter()
        .flatten()
        .chain(node.outputs())
        .any(|&v| narrow(v))
    {
        return Err(format!("the types of this {} are newer", node.op));
    }
    let back: Vec<Option<Type>> = node
        .outputs()
        .iter()
        .map(|&v| model[v].ty.clone())
        .collect();
    let op = schema::lookup(&node.op, schema::CANONICAL_OPSET)
        .ok_or("it has no schema")?
        .name;
    replace(model, id, |cx, node| {
        let wide = |v: Value| match cx.type_of(v).as_ref().and_then(|t| t.as_tensor()) {
            Some(t) if types.contains(&t.dtype) => cx.cast(v, to),
            _ => v,
        };
        let inputs: Vec<Option<Value>> = node.inputs().iter().map(|v| v.map(wide)).collect();
        let mut attributes = node.attributes.clone();
        for (name, value) in &mut attributes {
            if let Attribute::Int(number) = value
                && name == "dtype"
                && schema::dtype(*number).is_some_and(|d| types.contains(&d))
            {
                *number = schema::data_type(to);
            }
        }
        let outputs = cx.emit(op, &inputs, attributes, node.outputs().len());
        let cast_back = |(&value, ty): (&Value, &Option<Type>)| {
            let Some(t) = ty.as_ref().and_then(|t| t.as_tensor()) else {
                return value;
            };
            let computed = if types.contains(&t.dtype) {
                to
            } else {
                t.dtype
            };
            let ty = pt2onnx_ir::TensorType {
                dtype: computed,
                shape: t.shape.clone(),
            };
            cx.set_type(value, Type::Tensor(ty));
            cx.cast(value, t.dtype)
        };
        Ok(outputs.iter().zip(&back).map(cast_back).collect())
    })
}

/// `Expand` of the value.
fn expanded(model: &mut Model, id: NodeId) -> Result<Done, String> {
    replace(model, id, |cx, node| {
        let value = match node.attribute("value") {
            Some(Attribute::Tensor(t)) => t
                .reshaped(Vec::new())
                .ok_or("its value is no single element")?,
            _ => Tensor::scalar(0f32),
        };
        let shape = node.input(0).ok_or("it has no shape")?;
        Ok(vec![cx.emit1(
            "Expand",
            &[Some(cx.constant(value)), Some(shape)],
            Default::default(),
        )])
    })
}

/// The axis was an attribute, 1 by default; it is an input, -2 by default.
fn dft_axis(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let node = &model[id];
    if node.int("onesided") == Some(1) && node.int("inverse") == Some(1) {
        return Err("the one-sided inverse is newer".to_owned());
    }
    let x = node.input(0).ok_or("it has no input")?;
    let axis = match node.input(2) {
        Some(axis) => {
            let known = model[axis]
                .constant()
                .and_then(|t| t.to_vec::<i64>().filter(|v| v.len() == 1));
            known.ok_or("an axis that is no constant is newer")?[0]
        }
        None => -2,
    };
    // Negative axes were not always understood.
    let axis = match (axis, rank(model, x)) {
        (0.., _) => axis,
        (_, Some(rank)) => axis + rank as i64,
        (_, None) => return Err("the rank of the input is not known".to_owned()),
    };
    let inputs = model[id].inputs()[..model[id].inputs().len().min(2)].to_vec();
    let given = inputs
        .iter()
        .rposition(Option::is_some)
        .map_or(0, |i| i + 1);
    model.set_inputs(id, &inputs[..given]);
    set(model, id, "axis", axis.into());
    Ok(Done::Kept)
}

/// The modes had other names, and images two dimensions.
fn grid_sample_modes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let node = &model[id];
    match node.input(0).and_then(|x| rank(model, x)) {
        Some(4) => {}
        Some(rank) => return Err(format!("sampling from rank {rank} is newer")),
        None => return Err("the rank of the input is not known".to_owned()),
    }
    let mode = match node.attribute("mode") {
        Some(Attribute::String(mode)) => mode.as_str(),
        _ => "linear",
    };
    let older = match mode {
        "linear" => "bilinear",
        "cubic" => "bicubic",
        other => other,
    };
    let older = Attribute::from(older);
    set(model, id, "mode", older);
    Ok(Done::Kept)
}

/// The output's type was always the scale's.
fn output_dtype_of_scale(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let scale = model[id].input(1).and_then(|v| dtype(model, v));
    match model[id].int("output_dtype").map(schema::dtype) {
        Some(out) if out != scale => {
            Err("an output type other than the scale's is newer".to_owned())
        }
        _ => without(model, id, "output_dtype"),
    }
}

/// The output's type was always the zero point's: one of zeros says it.
fn zero_point_for_output_dtype(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let Some(out) = model[id].int("output_dtype").and_then(schema::dtype) else {
        return Err("blocked quantization is newer".to_owned());
    };
    if model[id].input(2).is_none() {
        let scale = model[id].input(1).ok_or("it has no scale")?;
        let shape = model[scale]
            .ty
            .as_ref()
            .and_then(|t| t.as_tensor()?.shape.clone());
        let sizes = shape.and_then(|s| {
            s.iter()
                .map(|d| usize::try_from(d.as_int()?).ok())
                .collect::<Option<Vec<_>>>()
        });
        let sizes = sizes.ok_or("the shape of the scale is not known")?;
        let count = sizes.iter().product::<usize>();
        let zero = Scalar::Int(0)
            .to_tensor(out)
            .ok_or_else(|| format!("{out} is newer"))?;
        let zeros =
            Tensor::new(out, sizes, zero.to_bytes().repeat(count)).map_err(|e| e.to_string())?;
        let zeros = model.add_constant(zeros);
        let mut inputs = model[id].inputs()[..2].to_vec();
        inputs.push(Some(zeros));
        model.set_inputs(id, &inputs);
    }
    without(model, id, "output_dtype")
}
