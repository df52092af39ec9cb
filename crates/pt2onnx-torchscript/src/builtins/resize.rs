//! `interpolate` of archives that call it as one operator: the operator for its mode and number of
//! dimensions.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, arith, expected, unsupported},
    schema::Type,
    value::Value,
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr, Func};

/// The parameters after the input, in order.
const PARAMS: &[&str] =
    &["size", "scale_factor", "mode", "align_corners", "recompute_scale_factor", "antialias"];

impl Evaluator<'_> {
    /// `aten::__interpolate`.
    pub(crate) fn interpolate(&mut self, args: &[Value], kwargs: &[(Name, Value)]) -> Step<Value> {
        let [input @ Value::Tensor(name), rest @ ..] = args else {
            return expected("a tensor", args.first().unwrap_or(&Value::None));
        };
        let given = |param: &str| {
            let at = PARAMS.iter().position(|p| *p == param);
            let named = kwargs.iter().find(|(name, _)| name == param).map(|(_, value)| value);
            at.and_then(|at| rest.get(at)).or(named).cloned().unwrap_or(Value::None)
        };
        let sizes: Vec<Expr> = self.meta(name)?.sizes.iter().skip(2).cloned().collect();
        let spatial = sizes.len();
        let mode = given("mode").as_str().unwrap_or("nearest").to_owned();
        let mut size = self.each(&given("size"), spatial)?;
        let mut scale = self.each(&given("scale_factor"), spatial)?;
        if given("recompute_scale_factor").as_bool() == Some(true)
            && let Some(scales) = scale.take()
        {
            let scaled = sizes.iter().zip(&scales).map(|(size, scale)| {
                let scale = scale.number().map(arith::to_float).unwrap_or(Expr::ONE);
                let product = arith::to_float(size) * scale;
                Value::Int(match crate::value::known(&product) {
                    Some(f) => Expr::int(f.floor() as i64),
                    None => Expr::call(Func::FloorToInt, vec![product]),
                })
            });
            size = Some(scaled.collect());
        }
        let list = |ev: &mut Self, items: Option<Vec<Value>>, ty: Type| match items {
            Some(items) => ev.list(items, Some(ty)),
            None => Ok(Value::None),
        };
        let size = list(self, size, Type::Int)?;
        let scales = match scale {
            Some(items) => {
                let floats = items.iter().map(|v| self.real_of(v)).collect::<Step<Vec<_>>>()?;
                self.list(floats, Some(Type::Float))?
            }
            None => Value::None,
        };
        let align = Value::bool(given("align_corners").as_bool().unwrap_or(false));
        let smooth = given("antialias").as_bool() == Some(true);
        let (op, aligned) = match (mode.as_str(), spatial, smooth) {
            ("nearest", 1..=3, false) => (format!("upsample_nearest{spatial}d"), false),
            ("nearest-exact", 1..=3, false) => {
                (format!("_upsample_nearest_exact{spatial}d"), false)
            }
            ("linear", 1, false) => ("upsample_linear1d".to_owned(), true),
            ("bilinear", 2, false) => ("upsample_bilinear2d".to_owned(), true),
            ("bicubic", 2, false) => ("upsample_bicubic2d".to_owned(), true),
            ("trilinear", 3, false) => ("upsample_trilinear3d".to_owned(), true),
            ("bilinear", 2, true) => ("_upsample_bilinear2d_aa".to_owned(), true),
            ("bicubic", 2, true) => ("_upsample_bicubic2d_aa".to_owned(), true),
            ("area", 1..=3, false) if !matches!(size, Value::None) => {
                let op = format!("adaptive_avg_pool{spatial}d");
                return self.operator("aten", &op, vec![input.clone(), size], Vec::new());
            }
            _ => {
                return unsupported(format!(
                    "interpolate with mode {mode} of {spatial} dimensions"
                ));
            }
        };
        let mut args = vec![input.clone(), size];
        args.extend(aligned.then_some(align));
        args.push(scales);
        self.operator("aten", &op, args, Vec::new())
    }

    /// One value for each dimension: of a list, or a number for all.
    fn each(&self, value: &Value, count: usize) -> Step<Option<Vec<Value>>> {
        Ok(match value {
            Value::None => None,
            Value::Int(_) | Value::Float(_) => Some(vec![value.clone(); count]),
            _ => match self.sequence(value) {
                Some(items) if items.len() == count => Some(items),
                _ => {
                    let text = "ValueError: sizes or factors for another number of dimensions";
                    return Err(Problem::Raises(text.to_owned()));
                }
            },
        })
    }
}
