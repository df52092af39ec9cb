//! Embeddings of quantised rows: each row has a scale and a zero point, which may be floats.

use crate::{
    eval::{Evaluator, Step, unsupported},
    quantized::Given,
    value::{
        Value,
        quantized::{Kind, Quantized, Scheme},
    },
};
use std::sync::Arc;

impl Evaluator<'_> {
    /// `embedding_byte`, `embedding_bag_4bit` and their kin.
    pub(crate) fn quantized_embedding(
        &mut self,
        name: &str,
        weight: &Quantized,
        given: &Given,
    ) -> Step<Value> {
        if given.is_true("pruned_weights")
            || !matches!(given.get("compressed_indices_mapping"), Value::None)
        {
            return unsupported(format!("quantized::{name} of pruned weights"));
        }
        match name {
            "embedding_byte" | "embedding_4bit" => {
                self.quantized_rows(weight, &given.get("indices"))
            }
            "embedding_bag_byte" | "embedding_bag_4bit" => self.bags(weight, given),
            _ => unsupported(format!("quantized::{name}")),
        }
    }

    /// The rows at these positions: they are gathered first, then dequantised.
    fn quantized_rows(&mut self, weight: &Quantized, indices: &Value) -> Step<Value> {
        let Scheme::Channels { scales, zero_points, axis: 0 } = &weight.scheme else {
            let all = self.dequantized(&Value::Quantized(Arc::new(weight.clone())))?;
            return self.aten("embedding", vec![all, indices.clone()]);
        };
        let bytes = Value::Tensor(weight.ints.clone());
        let bytes = self.aten("embedding", vec![bytes, indices.clone()])?;
        let Value::Tensor(bytes) = bytes else {
            return unsupported("this embedding");
        };
        let ints = self.ints_of(&Quantized { ints: bytes, ..weight.clone() })?;
        let rows = self.aten("to", vec![Value::Tensor(ints), Value::int(6)])?;
        let mut column = |parameter: &pt2onnx_fx::Name| -> Step<Value> {
            let parameter = vec![Value::Tensor(parameter.clone()), Value::int(1)];
            let parameter = self.aten("unsqueeze", parameter)?;
            let parameter = self.aten("embedding", vec![parameter, indices.clone()])?;
            self.aten("to", vec![parameter, Value::int(6)])
        };
        let (scale, zero_point) = (column(scales)?, column(zero_points)?);
        self.rows_of(weight, rows, scale, zero_point)
    }

    /// `rows * scale + bias` with `bias = -zero_point * scale`, both of half precision where the
    /// rows have four bits.
    fn rows_of(
        &mut self,
        weight: &Quantized,
        rows: Value,
        scale: Value,
        zero_point: Value,
    ) -> Step<Value> {
        let bias = self.aten("mul", vec![zero_point, scale.clone()])?;
        let bias = self.aten("neg", vec![bias])?;
        let mut held = |value: Value| -> Step<Value> {
            if weight.kind != Kind::Quint4x2 {
                return Ok(value);
            }
            let half = self.aten("to", vec![value, Value::int(5)])?;
            self.aten("to", vec![half, Value::int(6)])
        };
        let (scale, bias) = (held(scale)?, held(bias)?);
        let scaled = self.aten("mul", vec![rows, scale])?;
        self.aten("add", vec![scaled, bias])
    }

    /// All rows.
    fn all_rows(&mut self, weight: &Quantized) -> Step<Value> {
        let Scheme::Channels { scales, zero_points, axis: 0 } = &weight.scheme else {
            return self.dequantized(&Value::Quantized(Arc::new(weight.clone())));
        };
        let ints = self.ints_of(weight)?;
        let rows = self.aten("to", vec![Value::Tensor(ints), Value::int(6)])?;
        let mut column = |parameter: &pt2onnx_fx::Name| -> Step<Value> {
            let parameter = vec![Value::Tensor(parameter.clone()), Value::int(1)];
            let parameter = self.aten("unsqueeze", parameter)?;
            self.aten("to", vec![parameter, Value::int(6)])
        };
        let (scale, zero_point) = (column(scales)?, column(zero_points)?);
        self.rows_of(weight, rows, scale, zero_point)
    }

    /// Sums of the rows of each bag.
    fn bags(&mut self, weight: &Quantized, given: &Given) -> Step<Value> {
        let all = self.all_rows(weight)?;
        let indices = given.get("indices");
        let Value::Tensor(name) = &indices else {
            return crate::quantized::expected("a tensor", &indices);
        };
        let sizes = self.meta(name)?.sizes.clone();
        // Each row of a matrix of positions is a bag.
        let (indices, offsets) = match (sizes.as_slice(), given.get("offsets")) {
            ([bags, length], Value::None) => {
                let step = Value::Int(length.clone());
                let end = Value::Int(bags * length);
                let flat = self.int_list(vec![pt2onnx_symbolic::Expr::int(-1)])?;
                let indices = self.aten("reshape", vec![indices, flat])?;
                (indices, self.aten("arange", vec![Value::int(0), end, step])?)
            }
            (_, offsets) => (indices, offsets),
        };
        let per_sample = given.get("per_sample_weights");
        let args = vec![
            all,
            indices,
            offsets,
            Value::bool(false),
            // PyTorch's kernel always sums.
            Value::int(0),
            Value::bool(false),
            per_sample,
            Value::bool(given.is_true("include_last_offset")),
        ];
        let made = self.aten("embedding_bag", args)?;
        let parts = self.sequence(&made).unwrap_or_default();
        parts.first().cloned().map_or_else(|| unsupported("this embedding bag"), Ok)
    }
}
