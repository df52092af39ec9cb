//! Outputs held against PyTorch's: number, types, shapes, values within the type's tolerance (as tools/conformance.py).

use half::{bf16, f16};
use pt2onnx_tensor::{DType, Tensor};

/// What counts as equal.
#[derive(Clone, Copy)]
pub struct Standard {
    /// Whether the values count, or only shapes and types (random ops).
    pub values: bool,
    /// Tolerances, if wider than the types'.
    pub rtol: f64,
    /// See `rtol`.
    pub atol: f64,
}

impl Default for Standard {
    fn default() -> Self {
        Self {
            values: true,
            rtol: 0.0,
            atol: 0.0,
        }
    }
}

/// Compares all outputs of one run.
pub fn outputs(got: &[Tensor], wanted: &[Tensor], standard: Standard) -> Result<(), String> {
    if got.len() != wanted.len() {
        return Err(format!(
            "{} outputs, the program has {}",
            got.len(),
            wanted.len()
        ));
    }
    got.iter()
        .zip(wanted)
        .enumerate()
        .try_for_each(|(i, (g, w))| one(g, w, standard).map_err(|e| format!("output {i}: {e}")))
}

fn one(got: &Tensor, wanted: &Tensor, standard: Standard) -> Result<(), String> {
    if got.shape() != wanted.shape() {
        return Err(format!(
            "shape {:?}, PyTorch gave {:?}",
            got.shape(),
            wanted.shape()
        ));
    }
    if got.dtype() != wanted.dtype() {
        return Err(format!(
            "type {}, PyTorch gave {}",
            got.dtype(),
            wanted.dtype()
        ));
    }
    if !standard.values {
        return Ok(());
    }
    let (Some((rtol, atol)), Some(g), Some(w)) =
        (tolerance(wanted.dtype()), floats(got), floats(wanted))
    else {
        return match got.to_bytes() == wanted.to_bytes() {
            true => Ok(()),
            false => Err("values differ".to_owned()),
        };
    };
    let (rtol, atol) = (rtol.max(standard.rtol), atol.max(standard.atol));
    // As numpy.isclose: equal infinities are close, NaN is close to NaN.
    let close = |g: f64, w: f64| {
        g == w
            || (g.is_nan() && w.is_nan())
            || (w.is_finite() && (g - w).abs() <= atol + rtol * w.abs())
    };
    let bad: Vec<usize> = (0..w.len()).filter(|&i| !close(g[i], w[i])).collect();
    match bad.first() {
        None => Ok(()),
        Some(&i) => Err(format!(
            "{} of {} differ, first {} where PyTorch gave {}",
            bad.len(),
            w.len(),
            g[i],
            w[i]
        )),
    }
}

/// Relative and absolute; none for types that are compared exactly.
fn tolerance(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((1e-6, 1e-8)),
        DType::F32 => Some((1e-3, 1e-4)),
        DType::F16 => Some((1e-2, 1e-2)),
        DType::BF16 => Some((4e-2, 4e-2)),
        _ => None,
    }
}

fn floats(t: &Tensor) -> Option<Vec<f64>> {
    match t.dtype() {
        DType::F64 => t.to_vec::<f64>(),
        DType::F32 => Some(t.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
        DType::F16 => Some(t.to_vec::<f16>()?.into_iter().map(f64::from).collect()),
        DType::BF16 => Some(t.to_vec::<bf16>()?.into_iter().map(f64::from).collect()),
        _ => None,
    }
}
