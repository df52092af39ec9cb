//! Recurrent layers with packed weights. The input of a layer is quantised as a whole, its state in
//! each step.

use crate::{
    control::higher_order::Body,
    eval::{Evaluator, Step, expected, unsupported},
    quantized::Given,
    schema::Type,
    value::{Packed, Value, args},
};
use pt2onnx_fx::{Argument, Name, strides};
use pt2onnx_symbolic::Expr;
use std::sync::Arc;

impl Evaluator<'_> {
    /// `quantized_lstm` and `quantized_gru`.
    pub(crate) fn quantized_layers(&mut self, name: &str, given: &Given) -> Step<Value> {
        if &*given.schema.overload != "input" {
            return unsupported(format!("aten::{name} of packed sequences"));
        }
        let kind = name.trim_start_matches("quantized_");
        let cells = self.sequence(&given.get("params")).unwrap_or_default();
        let cells = cells.iter().map(|cell| match cell {
            Value::Packed(cell) => Ok(cell.clone()),
            other => expected("parameters of a layer", other),
        });
        let cells = cells.collect::<Step<Vec<_>>>()?;
        if let Some(weights) = self.half_weights(&cells)? {
            let weights = self.list(weights, Some(Type::Tensor))?;
            let [x, hx, count] = ["input", "hx", "num_layers"].map(|name| given.get(name));
            let [both, first] = ["bidirectional", "batch_first"].map(|name| given.is_true(name));
            return self.aten(kind, args![x, hx, weights, true, count, 0.0, false, both, first]);
        }
        let hx = given.get("hx");
        let initial = self.sequence(&hx).unwrap_or_else(|| vec![hx]);
        let directions = if given.is_true("bidirectional") { 2 } else { 1 };
        let batch_first = given.is_true("batch_first");
        let turn = |ev: &mut Self, x: Value| {
            if batch_first { ev.aten("transpose", args![x, 0, 1]) } else { Ok(x) }
        };
        let mut x = turn(self, given.get("input"))?;
        let mut last: Vec<Vec<Value>> = vec![Vec::new(); initial.len()];
        for (layer, cells) in cells.chunks(directions).enumerate() {
            let mut outputs = Vec::new();
            for (direction, cell) in cells.iter().enumerate() {
                let at = layer * directions + direction;
                let state = initial.iter().map(|hx| self.aten("select", args![hx, 0, at]));
                let state = state.collect::<Step<Vec<_>>>()?;
                let (output, state) = self.layer(kind, cell, x.clone(), state, direction == 1)?;
                outputs.push(output);
                last.iter_mut().zip(state).for_each(|(all, value)| all.push(value));
            }
            x = if outputs.len() == 1 {
                outputs.remove(0)
            } else {
                let outputs = self.list(outputs, Some(Type::Tensor))?;
                self.aten("cat", args![outputs, -1])?
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
        kind: &str,
        cell: &Packed,
        x: Value,
        state: Vec<Value>,
        reverse: bool,
    ) -> Step<(Value, Vec<Value>)> {
        let (Value::Packed(input), Value::Packed(hidden)) = (cell.get("w_ih"), cell.get("w_hh"))
        else {
            return unsupported("parameters of another operator");
        };
        let reduce_range = cell.get("reduce_range").as_bool() == Some(true);
        let turn = |ev: &mut Self, x: Value| {
            if reverse { ev.aten("flip", vec![x, Value::tuple(args![0])]) } else { Ok(x) }
        };
        let gates = self.dynamic_linear(x, &input, reduce_range)?;
        let gates = turn(self, gates)?;
        let (output, state) = self.scan(state, gates, |ev, state, gates| {
            let first = state.first().cloned().unwrap_or(Value::None);
            let own = ev.dynamic_linear(first, &hidden, reduce_range)?;
            ev.next_state(kind, state, [gates, own])
        })?;
        Ok((turn(self, output)?, state))
    }

    /// The state after a step, from what the cell computes of the input and of the state.
    fn next_state(
        &mut self,
        kind: &str,
        state: &[Value],
        [input, own]: [Value; 2],
    ) -> Step<Vec<Value>> {
        let args = [state, &[input, own]].concat();
        let next = self.formula(&format!("{kind}_cell"), args)?;
        Ok(self.sequence(&next).unwrap_or_else(|| vec![next]))
    }

    /// `quantized_lstm_cell_dynamic` and its kin: one step.
    pub(crate) fn quantized_cell(&mut self, name: &str, given: &Given) -> Step<Value> {
        let (Value::Packed(input), Value::Packed(hidden)) = (given.get("w_ih"), given.get("w_hh"))
        else {
            return unsupported(format!("quantized::{name} with these weights"));
        };
        let hx = given.get("hx");
        let state = self.sequence(&hx).unwrap_or_else(|| vec![hx]);
        let x = self.dynamic_linear(given.get("input"), &input, true)?;
        let first = state.first().cloned().unwrap_or(Value::None);
        let own = self.dynamic_linear(first, &hidden, true)?;
        let kind = name.trim_start_matches("quantized_").trim_end_matches("_cell_dynamic");
        let mut next = self.next_state(kind, &state, [x, own])?;
        if next.len() == 1 { Ok(next.remove(0)) } else { self.tuple(next, None) }
    }

    /// A loop over dimension 0 of `xs`. Returns the first state of all steps, and the last state.
    fn scan(
        &mut self,
        state: Vec<Value>,
        xs: Value,
        step: impl FnOnce(&mut Self, &[Value], Value) -> Step<Vec<Value>>,
    ) -> Step<(Value, Vec<Value>)> {
        let names = |values: &[Value]| {
            values.iter().map(|value| value.tensor().cloned()).collect::<Step<Vec<Name>>>()
        };
        let (initial, xs) = (names(&state)?, xs.tensor()?.clone());
        let mut sizes = self.meta(&xs)?.sizes.clone();
        if sizes.is_empty() {
            return unsupported("a loop over a number");
        }
        let steps = sizes.remove(0);
        let inputs = initial.iter().map(|state| self.like(state, "state", None));
        let mut inputs = inputs.collect::<Step<Vec<_>>>()?;
        let slice = self.like(&xs, "step", Some(sizes))?;
        let outer = std::mem::take(&mut self.state.nodes);
        let before: Vec<Value> = inputs.iter().map(Value::from).collect();
        let after = step(self, &before, (&slice).into())?;
        inputs.push(slice);
        let mut outputs = names(&after)?;
        let Some(shown) = outputs.first().cloned() else {
            return unsupported("a loop without state");
        };
        outputs.push(shown.clone());
        let nodes = std::mem::replace(&mut self.state.nodes, outer);
        let results = initial.iter().map(|state| self.like(state, "scan", None));
        let mut results = results.collect::<Step<Vec<_>>>()?;
        let mut sizes = self.meta(&shown)?.sizes.clone();
        sizes.insert(0, steps);
        let stacked = self.like(&shown, "scan", Some(sizes))?;
        results.push(stacked.clone());
        let body = Body { name: "scan_combine_graph", inputs, nodes, outputs };
        let then = [Argument::Tensors(initial), Argument::Tensors(vec![xs])];
        let node = self.higher_order("scan", &[], [body], &then, results.clone())?;
        self.push(node)?;
        results.pop();
        Ok((stacked.into(), results.into_iter().map(Value::Tensor).collect()))
    }

    /// A new value of the element type of another one, and of its sizes or others.
    fn like(&mut self, other: &Name, wish: &str, sizes: Option<Vec<Expr>>) -> Step<Name> {
        let mut meta = self.meta(other)?.clone();
        meta.sizes = sizes.unwrap_or(meta.sizes);
        meta.strides = strides::contiguous(&meta.sizes);
        let name = self.fresh(wish);
        self.declare(&name, meta);
        Ok(name)
    }

    /// The weights of layers that are all of half precision, in the order of `lstm`.
    fn half_weights(&mut self, cells: &[Arc<Packed>]) -> Step<Option<Vec<Value>>> {
        let mut weights = Vec::new();
        for cell in cells {
            let mut biases = Vec::new();
            for part in ["w_ih", "w_hh"] {
                let Value::Packed(part) = cell.get(part) else { return Ok(None) };
                let (weight @ Value::Tensor(_), bias @ Value::Tensor(_)) =
                    (part.get("weight"), part.get("bias"))
                else {
                    return Ok(None);
                };
                weights.push(self.halved(weight)?);
                biases.push(bias);
            }
            weights.extend(biases);
        }
        Ok((!weights.is_empty()).then_some(weights))
    }
}
