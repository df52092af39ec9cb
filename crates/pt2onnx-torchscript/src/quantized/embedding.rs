//! Embeddings of quantised rows: each row has a scale and a zero point, which may be floats.

use crate::{
    eval::{Evaluator, Step, unsupported},
    quantized::Given,
    value::{
        Value, args,
        quantized::{Kind, Quantized, Scheme},
    },
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

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
                self.quantized_rows(weight, Some(&given.get("indices")))
            }
            "embedding_bag_byte" | "embedding_bag_4bit" => self.bags(weight, given),
            _ => unsupported(format!("quantized::{name}")),
        }
    }

    /// The rows at some positions, or all. They are gathered first, then dequantised:
    /// `rows * scale + bias` with `bias = -zero_point * scale`, both of half precision where the
    /// rows have four bits.
    fn quantized_rows(&mut self, weight: &Quantized, indices: Option<&Value>) -> Step<Value> {
        let at = |ev: &mut Self, of: Value| match indices {
            Some(indices) => ev.aten("embedding", args![of, indices]),
            None => Ok(of),
        };
        let Scheme::Channels { scales, zero_points, axis: 0 } = &weight.scheme else {
            let all = self.floats(weight)?;
            return at(self, all);
        };
        let ints = at(self, (&weight.ints).into())?.tensor()?.clone();
        let ints = self.ints_of(&Quantized { ints, ..weight.clone() })?;
        let rows = self.cast(ints, DType::F32)?;
        let column = |ev: &mut Self, parameter: &Name| -> Step<Value> {
            let parameter = ev.aten("unsqueeze", args![parameter, 1])?;
            let parameter = at(ev, parameter)?;
            ev.cast(parameter, DType::F32)
        };
        let (mut scale, zero_point) = (column(self, scales)?, column(self, zero_points)?);
        let bias = self.aten("mul", args![zero_point, &scale])?;
        let mut bias = self.aten("neg", vec![bias])?;
        if weight.kind == Kind::Quint4x2 {
            (scale, bias) = (self.halved(scale)?, self.halved(bias)?);
        }
        let scaled = self.aten("mul", vec![rows, scale])?;
        self.aten("add", vec![scaled, bias])
    }

    /// Sums of the rows of each bag.
    fn bags(&mut self, weight: &Quantized, given: &Given) -> Step<Value> {
        let all = self.quantized_rows(weight, None)?;
        let (mut indices, mut offsets) = (given.get("indices"), given.get("offsets"));
        // Each row of a matrix of positions is a bag.
        if let ([bags, length], Value::None) =
            (self.meta(indices.tensor()?)?.sizes.clone().as_slice(), &offsets)
        {
            let flat = self.int_list([Expr::int(-1)])?;
            indices = self.aten("reshape", vec![indices, flat])?;
            offsets = self.aten("arange", args![0, bags * length, length.clone()])?;
        }
        let weights = given.get("per_sample_weights");
        let last = given.is_true("include_last_offset");
        // PyTorch's kernel always sums: the mode is 0.
        let args = args![all, indices, offsets, false, 0, false, weights, last];
        let made = self.aten("embedding_bag", args)?;
        let parts = self.sequence(&made).unwrap_or_default();
        parts.first().cloned().map_or_else(|| unsupported("this embedding bag"), Ok)
    }
}
