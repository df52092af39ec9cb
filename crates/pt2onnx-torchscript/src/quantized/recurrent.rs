//! Recurrent layers with packed weights. The input of a layer is quantised as a whole, its state in
//! each step.

use crate::{
    control::higher_order::Body,
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    quantized::Given,
    schema::Type,
    value::{
        Value,
        quantized::{Packed, Weight},
    },
};
use pt2onnx_fx::{Argument, Name};

impl Evaluator<'_> {
    /// `quantized_lstm` and `quantized_gru`.
    pub(crate) fn quantized_layers(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let given = self.given(&format!("aten::{name}"), args, kwargs)?;
        if &*given.schema.overload != "input" {
            return unsupported(format!("aten::{name} of packed sequences"));
        }
        let lstm = name == "quantized_lstm";
        let mut cells = Vec::new();
        for cell in self.sequence(&given.get("params")).unwrap_or_default() {
            match cell {
                Value::Packed(cell) => cells.push((*cell).clone()),
                other => return expected("parameters of a layer", &other),
            }
        }
        if let Some(weights) = self.half_weights(&cells)? {
            return self.half_layers(lstm, &given, weights);
        }
        let initial = match given.get("hx") {
            list @ Value::List(_) => self.sequence(&list).unwrap_or_default(),
            one => vec![one],
        };
        let directions = if given.is_true("bidirectional") { 2 } else { 1 };
        let batch_first = given.is_true("batch_first");
        let turn = |ev: &mut Self, x: Value| {
            if batch_first {
                ev.aten("transpose", vec![x, Value::int(0), Value::int(1)])
            } else {
                Ok(x)
            }
        };
        let mut x = turn(self, given.get("input"))?;
        let mut last: Vec<Vec<Value>> = vec![Vec::new(); initial.len()];
        for (layer, cells) in cells.chunks(directions).enumerate() {
            let mut outputs = Vec::new();
            for (direction, cell) in cells.iter().enumerate() {
                let at = i64::try_from(layer * directions + direction).unwrap_or(0);
                let mut state = Vec::new();
                for hx in &initial {
                    state.push(
                        self.aten("select", vec![hx.clone(), Value::int(0), Value::int(at)])?,
                    );
                }
                let (output, state) = self.layer(lstm, cell, x.clone(), state, direction == 1)?;
                outputs.push(output);
                last.iter_mut().zip(state).for_each(|(all, value)| all.push(value));
            }
            x = match outputs.len() {
                1 => outputs.pop().unwrap_or(Value::None),
                _ => {
                    let outputs = self.list(outputs, Some(Type::Tensor))?;
                    self.aten("cat", vec![outputs, Value::int(-1)])?
                }
            };
        }
        let mut results = vec![turn(self, x)?];
        for values in last {
            let values = self.list(values, Some(Type::Tensor))?;
            results.push(self.aten("stack", vec![values])?);
        }
        self.tuple(results, None)
    }

    /// One direction of a layer: what it gives in each step, and its last state.
    fn layer(
        &mut self,
        lstm: bool,
        cell: &Packed,
        x: Value,
        state: Vec<Value>,
        reverse: bool,
    ) -> Step<(Value, Vec<Value>)> {
        let Packed::Cell { input, hidden, reduce_range } = cell else {
            return unsupported("parameters of another operator");
        };
        let mut gates = self.dynamic_linear(x, input, *reduce_range)?;
        let axes = Value::tuple(vec![Value::int(0)]);
        if reverse {
            gates = self.aten("flip", vec![gates, axes.clone()])?;
        }
        let (output, state) = self.scan(state, gates, |ev, state, gates| {
            let first = state.first().cloned().unwrap_or(Value::None);
            let own = ev.dynamic_linear(first, hidden, *reduce_range)?;
            ev.next_state(if lstm { "lstm" } else { "gru" }, state, gates, own)
        })?;
        let output = if reverse { self.aten("flip", vec![output, axes])? } else { output };
        Ok((output, state))
    }

    /// The state after a step, from what the cell computes of the input and of the state.
    fn next_state(
        &mut self,
        kind: &str,
        state: &[Value],
        input: Value,
        own: Value,
    ) -> Step<Vec<Value>> {
        let mut both =
            |name: &str, a: &Value, b: &Value| self.aten(name, vec![a.clone(), b.clone()]);
        let first = state.first().cloned().unwrap_or(Value::None);
        match kind {
            "rnn_relu" | "rnn_tanh" => {
                let sum = both("add", &input, &own)?;
                Ok(vec![self.aten(kind.trim_start_matches("rnn_"), vec![sum])?])
            }
            "gru" => {
                let (x, h) = (self.gates(input, 3)?, self.gates(own, 3)?);
                let ([x0, x1, x2], [h0, h1, h2]) = (x.as_slice(), h.as_slice()) else {
                    return unsupported("a GRU without three gates");
                };
                let mut both =
                    |name: &str, a: &Value, b: &Value| self.aten(name, vec![a.clone(), b.clone()]);
                let (reset, update) = (both("add", h0, x0)?, both("add", h1, x1)?);
                let reset = self.aten("sigmoid", vec![reset])?;
                let update = self.aten("sigmoid", vec![update])?;
                let new = self.aten("mul", vec![h2.clone(), reset])?;
                let new = self.aten("add", vec![x2.clone(), new])?;
                let new = self.aten("tanh", vec![new])?;
                let moved = self.aten("sub", vec![first, new.clone()])?;
                let moved = self.aten("mul", vec![moved, update])?;
                Ok(vec![self.aten("add", vec![moved, new])?])
            }
            _ => {
                let sum = both("add", &own, &input)?;
                let gates = self.gates(sum, 4)?;
                let [i, f, g, o] = gates.as_slice() else {
                    return unsupported("an LSTM without four gates");
                };
                let i = self.aten("sigmoid", vec![i.clone()])?;
                let f = self.aten("sigmoid", vec![f.clone()])?;
                let g = self.aten("tanh", vec![g.clone()])?;
                let o = self.aten("sigmoid", vec![o.clone()])?;
                let cell = state.get(1).cloned().unwrap_or(Value::None);
                let kept = self.aten("mul", vec![f, cell])?;
                let new = self.aten("mul", vec![i, g])?;
                let cell = self.aten("add", vec![kept, new])?;
                let shown = self.aten("tanh", vec![cell.clone()])?;
                Ok(vec![self.aten("mul", vec![o, shown])?, cell])
            }
        }
    }

    fn gates(&mut self, all: Value, count: i64) -> Step<Vec<Value>> {
        let gates = self.aten("chunk", vec![all, Value::int(count), Value::int(-1)])?;
        Ok(self.sequence(&gates).unwrap_or_default())
    }

    /// `quantized_lstm_cell_dynamic` and its kin: one step.
    pub(crate) fn quantized_cell(&mut self, name: &str, given: &Given) -> Step<Value> {
        let (Value::Packed(input), Value::Packed(hidden)) = (given.get("w_ih"), given.get("w_hh"))
        else {
            return unsupported(format!("quantized::{name} with these weights"));
        };
        let state = match given.get("hx") {
            list @ Value::List(_) => self.sequence(&list).unwrap_or_default(),
            one => vec![one],
        };
        let x = self.dynamic_linear(given.get("input"), &input, true)?;
        let first = state.first().cloned().unwrap_or(Value::None);
        let own = self.dynamic_linear(first, &hidden, true)?;
        let kind = name.trim_start_matches("quantized_").trim_end_matches("_cell_dynamic");
        let mut next = self.next_state(kind, &state, x, own)?;
        match next.len() {
            1 => Ok(next.pop().unwrap_or(Value::None)),
            _ => self.tuple(next, None),
        }
    }

    /// A loop over dimension 0 of `xs`. Returns the first state of all steps, and the last state.
    fn scan(
        &mut self,
        state: Vec<Value>,
        xs: Value,
        step: impl FnOnce(&mut Self, &[Value], Value) -> Step<Vec<Value>>,
    ) -> Step<(Value, Vec<Value>)> {
        let name_of = |value: &Value| match value {
            Value::Tensor(name) => Ok(name.clone()),
            other => expected("a tensor", other),
        };
        let initial: Vec<Name> = state.iter().map(name_of).collect::<Step<_>>()?;
        let xs = name_of(&xs)?;
        let mut sizes = self.meta(&xs)?.sizes.clone();
        let steps = if sizes.is_empty() {
            return unsupported("a loop over a number");
        } else {
            sizes.remove(0)
        };
        let mut inputs = Vec::new();
        for name in &initial {
            let sizes = self.meta(name)?.sizes.clone();
            inputs.push(self.like(name, "state", sizes)?);
        }
        inputs.push(self.like(&xs, "step", sizes)?);
        let outer = std::mem::take(&mut self.state.nodes);
        let values: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let (slice, before) = match values.split_last() {
            Some((slice, before)) => (slice.clone(), before.to_vec()),
            None => return unsupported("a loop without state"),
        };
        let after = step(self, &before, slice)?;
        let mut outputs: Vec<Name> = after.iter().map(name_of).collect::<Step<_>>()?;
        let Some(shown) = outputs.first().cloned() else {
            return unsupported("a loop without state");
        };
        outputs.push(shown.clone());
        let nodes = std::mem::replace(&mut self.state.nodes, outer);
        let mut results = Vec::new();
        for name in &initial {
            let sizes = self.meta(name)?.sizes.clone();
            results.push(self.like(name, "scan", sizes)?);
        }
        let mut sizes = self.meta(&shown)?.sizes.clone();
        sizes.insert(0, steps);
        let stacked = self.like(&shown, "scan", sizes)?;
        results.push(stacked.clone());
        let body = Body { name: "scan_combine_graph", inputs, nodes, outputs };
        let then = [Argument::Tensors(initial), Argument::Tensors(vec![xs])];
        let node = self.higher_order("scan", &[], [body], &then, results.clone())?;
        self.push(node)?;
        results.pop();
        Ok((Value::Tensor(stacked), results.into_iter().map(Value::Tensor).collect()))
    }

    /// A new value of the element type of another one.
    fn like(&mut self, other: &Name, wish: &str, sizes: Vec<pt2onnx_symbolic::Expr>) -> Step<Name> {
        let mut meta = self.meta(other)?.clone();
        meta.strides = pt2onnx_fx::strides::contiguous(&sizes);
        meta.sizes = sizes;
        let name = self.fresh(wish);
        self.state.facts.values.insert(name.clone(), meta.into());
        self.memory.own(&name);
        Ok(name)
    }

    /// The weights of layers that are all of half precision, in the order of `lstm`.
    fn half_weights(&mut self, cells: &[Packed]) -> Step<Option<Vec<Value>>> {
        let mut weights = Vec::new();
        for cell in cells {
            let Packed::Cell { input, hidden, .. } = cell else { return Ok(None) };
            let mut biases = Vec::new();
            for part in [input, hidden] {
                let Packed::Linear { weight: weight @ Weight::Half(_), bias: Some(bias) } = &**part
                else {
                    return Ok(None);
                };
                weights.push(self.weight_floats(weight)?);
                biases.push(Value::Tensor(bias.clone()));
            }
            weights.extend(biases);
        }
        Ok((!weights.is_empty()).then_some(weights))
    }

    fn half_layers(&mut self, lstm: bool, given: &Given, weights: Vec<Value>) -> Step<Value> {
        let weights = self.list(weights, Some(Type::Tensor))?;
        let args = vec![
            given.get("input"),
            given.get("hx"),
            weights,
            Value::bool(true),
            given.get("num_layers"),
            Value::float(0.0),
            Value::bool(false),
            Value::bool(given.is_true("bidirectional")),
            Value::bool(given.is_true("batch_first")),
        ];
        self.aten(if lstm { "lstm" } else { "gru" }, args)
    }
}
