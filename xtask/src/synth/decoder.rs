//! A decoder like Llama, with the nodes that PyTorch exports.
//!
//! They are RMS normalisation, rotary positions, grouped-query attention, and gated feed-forward.

use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};

use super::program::{Dim, Program, Value, sizes};

/// Width of an attention head. Narrow decoders have two narrower heads.
const HEAD: u64 = 64;

/// Entries of the vocabulary, unless another number is given.
const VOCABULARY: u64 = 1000;

/// The shape of a decoder.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// How many layers.
    pub layers: u64,
    /// Width of the hidden state.
    hidden: u64,
    /// Width of a head.
    head: u64,
    /// Entries of the vocabulary.
    vocabulary: u64,
}

fn int(value: i64) -> Json {
    json!({"as_int": value})
}

fn ints(values: &[i64]) -> Json {
    json!({"as_ints": values})
}

impl Decoder {
    /// # Errors
    /// The hidden size cannot be divided evenly into heads.
    pub fn new(layers: u64, hidden: u64) -> Result<Self> {
        let head = HEAD.min(hidden / 2);
        ensure!(
            head > 0 && head.is_multiple_of(2) && hidden.is_multiple_of(2 * head),
            "the hidden size must be a multiple of {0}, or a multiple of 4 below {0}",
            2 * HEAD
        );
        Ok(Self { layers, hidden, head, vocabulary: VOCABULARY })
    }

    /// The decoder with a vocabulary of this size.
    #[must_use]
    pub fn vocabulary(self, vocabulary: u64) -> Self {
        Self { vocabulary, ..self }
    }

    /// The decoder with as many layers as bring its weights closest to this size.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> Self {
        let weights = |layers| -> u64 {
            let program = Self { layers, ..self }.program();
            program.weights.iter().map(|weight| weight.bytes()).sum()
        };
        let (none, one) = (weights(0), weights(1));
        let layer = one - none;
        Self { layers: (bytes.saturating_sub(none) + layer / 2) / layer, ..self }
    }

    fn heads(&self) -> u64 {
        self.hidden / self.head
    }

    /// The program from token ids to logits. Batch and sequence are dynamic.
    pub fn program(&self) -> Program {
        let mut p = Program::default();
        let width = Dim::Int(self.hidden);
        let table =
            p.weight("embed_tokens.weight".to_owned(), &[self.vocabulary, self.hidden], 0.0);
        let frequencies = p.buffer("rotary.inv_freq", &[self.head / 2]);
        let layers: Vec<Layer> =
            (0..self.layers).map(|index| Layer::new(self, index, &mut p)).collect();
        let norm = p.weight("norm.weight".to_owned(), &[self.hidden], 1.0);
        let head = p.weight("lm_head.weight".to_owned(), &[self.vocabulary, self.hidden], 0.0);

        let ids = p.input("input_ids", &[Dim::Batch, Dim::Sequence]);
        let hidden = [Dim::Batch, Dim::Sequence, width];
        let mut x = p.node(
            "embedding.default",
            &[("weight", table.arg()), ("indices", ids.arg())],
            &hidden,
        );
        let rotary = rotary(&mut p, &frequencies, self.head);
        for layer in &layers {
            x = layer.forward(self, &mut p, &x, &rotary);
        }
        p.modules = vec![("norm".to_owned(), "RMSNorm")];
        x = rms_norm(&mut p, &x, &norm);
        p.modules = vec![("lm_head".to_owned(), "Linear")];
        let logits = linear(&mut p, &x, &head);
        p.output(&logits);
        p
    }
}

/// Cosines and sines of the positions, `[1, sequence, head]`.
fn rotary(p: &mut Program, frequencies: &Value, head: u64) -> [Value; 2] {
    p.modules = vec![("rotary".to_owned(), "Rotary")];
    let end = json!({"as_sym_int": {"as_name": "sym_size_int_1"}});
    let cpu = json!({"as_device": {"type": "cpu", "index": null}});
    let pin = json!({"as_bool": false});
    let args = [("end", end), ("device", cpu), ("pin_memory", pin)];
    let positions = p.typed("arange.default", &args, &[Dim::Sequence], 5);
    let to = [("self", positions.arg()), ("dtype", json!({"as_scalar_type": 7}))];
    let positions = p.node("to.dtype", &to, &[Dim::Sequence]);
    let column = [Dim::Sequence, Dim::Int(1)];
    let positions =
        p.node("unsqueeze.default", &[("self", positions.arg()), ("dim", int(1))], &column);
    let half = [Dim::Sequence, Dim::Int(head / 2)];
    let angles =
        p.node("mul.Tensor", &[("self", positions.arg()), ("other", frequencies.arg())], &half);
    let twice = json!({"as_tensors": [{"name": angles.name}, {"name": angles.name}]});
    let whole = [Dim::Sequence, Dim::Int(head)];
    let angles = p.node("cat.default", &[("tensors", twice), ("dim", int(-1))], &whole);
    ["cos.default", "sin.default"].map(|op| {
        let waves = p.node(op, &[("self", angles.arg())], &whole);
        let dims = [Dim::Int(1), Dim::Sequence, Dim::Int(head)];
        p.node("unsqueeze.default", &[("self", waves.arg()), ("dim", int(0))], &dims)
    })
}

fn rms_norm(p: &mut Program, x: &Value, weight: &Value) -> Value {
    let x = p.same_type(x);
    let mut one = x.dims.clone();
    one.pop();
    one.push(Dim::Int(1));
    let squares = p.node("pow.Tensor_Scalar", &[("self", x.arg()), ("exponent", int(2))], &x.dims);
    let keep = json!({"as_bool": true});
    let args = [("self", squares.arg()), ("dim", ints(&[-1])), ("keepdim", keep)];
    let mean = p.node("mean.dim", &args, &one);
    let epsilon = json!({"as_float": 1e-6});
    let mean = p.node("add.Tensor", &[("self", mean.arg()), ("other", epsilon)], &one);
    let scale = p.node("rsqrt.default", &[("self", mean.arg())], &one);
    let normal = p.node("mul.Tensor", &[("self", x.arg()), ("other", scale.arg())], &x.dims);
    let normal = p.same_type(&normal);
    p.node("mul.Tensor", &[("self", weight.arg()), ("other", normal.arg())], &x.dims)
}

fn linear(p: &mut Program, x: &Value, weight: &Value) -> Value {
    let mut dims = x.dims.clone();
    dims.pop();
    dims.extend(weight.dims.first());
    p.node("linear.default", &[("input", x.arg()), ("weight", weight.arg())], &dims)
}

fn transpose(p: &mut Program, x: &Value) -> Value {
    let mut dims = x.dims.clone();
    dims.swap(1, 2);
    p.node("transpose.int", &[("self", x.arg()), ("dim0", int(1)), ("dim1", int(2))], &dims)
}

fn binary(p: &mut Program, op: &str, x: &Value, y: &Value) -> Value {
    p.node(op, &[("self", x.arg()), ("other", y.arg())], &x.dims)
}

/// The rotation of queries or keys by their positions.
fn rotate(p: &mut Program, x: &Value, [cos, sin]: &[Value; 2], head: u64) -> Value {
    let straight = binary(p, "mul.Tensor", x, cos);
    let mut half = x.dims.clone();
    half.pop();
    half.push(Dim::Int(head / 2));
    let middle = (head / 2) as i64;
    let [low, high] = [(0, middle), (middle, i64::MAX)].map(|(start, end)| {
        let args = [("self", x.arg()), ("dim", int(3)), ("start", int(start)), ("end", int(end))];
        p.node("slice.Tensor", &args, &half)
    });
    let high = p.node("neg.default", &[("self", high.arg())], &half);
    let halves = json!({"as_tensors": [{"name": high.name}, {"name": low.name}]});
    let turned = p.node("cat.default", &[("tensors", halves), ("dim", int(-1))], &x.dims);
    let turned = binary(p, "mul.Tensor", &turned, sin);
    binary(p, "add.Tensor", &straight, &turned)
}

/// The weights of a layer.
struct Layer {
    name: String,
    input_norm: Value,
    projections: [Value; 3],
    output: Value,
    post_norm: Value,
    gate: Value,
    up: Value,
    down: Value,
}

impl Layer {
    fn new(decoder: &Decoder, index: u64, p: &mut Program) -> Self {
        let name = format!("layers.{index}");
        let (hidden, wide) = (decoder.hidden, 3 * decoder.hidden);
        let mut weight = |part: &str, sizes: &[u64], centre| {
            p.weight(format!("{name}.{part}.weight"), sizes, centre)
        };
        Self {
            input_norm: weight("input_norm", &[hidden], 1.0),
            projections: [
                weight("attention.q_proj", &[hidden, hidden], 0.0),
                weight("attention.k_proj", &[hidden / 2, hidden], 0.0),
                weight("attention.v_proj", &[hidden / 2, hidden], 0.0),
            ],
            output: weight("attention.o_proj", &[hidden, hidden], 0.0),
            post_norm: weight("post_norm", &[hidden], 1.0),
            gate: weight("mlp.gate_proj", &[wide, hidden], 0.0),
            up: weight("mlp.up_proj", &[wide, hidden], 0.0),
            down: weight("mlp.down_proj", &[hidden, wide], 0.0),
            name,
        }
    }

    /// Sets the part of this layer to which the next nodes belong.
    fn within(&self, p: &mut Program, part: &str, class: &'static str) {
        p.modules = vec![(self.name.clone(), "Layer"), (format!("{}.{part}", self.name), class)];
    }

    fn forward(&self, decoder: &Decoder, p: &mut Program, x: &Value, rotary: &[Value; 2]) -> Value {
        self.within(p, "input_norm", "RMSNorm");
        let normal = rms_norm(p, x, &self.input_norm);
        self.within(p, "attention", "Attention");
        let attended = self.attention(decoder, p, &normal, rotary);
        let x = binary(p, "add.Tensor", x, &attended);
        self.within(p, "post_norm", "RMSNorm");
        let normal = rms_norm(p, &x, &self.post_norm);
        self.within(p, "mlp", "MLP");
        let gate = linear(p, &normal, &self.gate);
        let gate = p.node("silu.default", &[("self", gate.arg())], &gate.dims);
        let up = linear(p, &normal, &self.up);
        let product = binary(p, "mul.Tensor", &gate, &up);
        let down = linear(p, &product, &self.down);
        binary(p, "add.Tensor", &x, &down)
    }

    fn attention(
        &self,
        decoder: &Decoder,
        p: &mut Program,
        x: &Value,
        rotary: &[Value; 2],
    ) -> Value {
        let (batch, sequence, head) = (Dim::Batch, Dim::Sequence, Dim::Int(decoder.head));
        let (all, groups) = (Dim::Int(decoder.heads()), Dim::Int(decoder.heads() / 2));
        let counts = [all, groups, groups];
        let mut heads = self.projections.iter().zip(counts).map(|(weight, count)| {
            let x = linear(p, x, weight);
            let dims = [batch, sequence, count, head];
            let x = p.node("view.default", &[("self", x.arg()), ("size", sizes(&dims))], &dims);
            transpose(p, &x)
        });
        let (Some(q), Some(k), Some(v)) = (heads.next(), heads.next(), heads.next()) else {
            unreachable!("three projections");
        };
        drop(heads);
        let waves = rotary.each_ref().map(|wave| {
            let dims = [Dim::Int(1), Dim::Int(1), sequence, head];
            p.node("unsqueeze.default", &[("self", wave.arg()), ("dim", int(1))], &dims)
        });
        let q = rotate(p, &q, &waves, decoder.head);
        let k = rotate(p, &k, &waves, decoder.head);
        let [k, v] = [k, v].map(|x| {
            let one = [batch, groups, Dim::Int(1), sequence, head];
            let x = p.node("unsqueeze.default", &[("self", x.arg()), ("dim", int(2))], &one);
            let two = [batch, groups, Dim::Int(2), sequence, head];
            let x = p.node("expand.default", &[("self", x.arg()), ("size", sizes(&two))], &two);
            let dims = [batch, all, sequence, head];
            p.node("reshape.default", &[("self", x.arg()), ("shape", sizes(&dims))], &dims)
        });
        let args = [
            ("query", q.arg()),
            ("key", k.arg()),
            ("value", v.arg()),
            ("is_causal", json!({"as_bool": true})),
        ];
        let attended = p.node("scaled_dot_product_attention.default", &args, &q.dims);
        let attended = transpose(p, &attended);
        let dims = [batch, sequence, Dim::Int(decoder.hidden)];
        let attended =
            p.node("reshape.default", &[("self", attended.arg()), ("shape", sizes(&dims))], &dims);
        linear(p, &attended, &self.output)
    }
}
