//! Builds the JSON of a program (schema version 8.20) node by node, with values and weights.

use std::fmt::Write;

use serde_json::{Value as Json, json};

/// A size: a number, or one of the two dynamic sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dim {
    Int(u64),
    Batch,
    Sequence,
}

impl Dim {
    /// The symbol, the name of the value that holds it, and an example.
    fn symbol(self) -> Option<(&'static str, &'static str, u64)> {
        match self {
            Dim::Int(_) => None,
            Dim::Batch => Some(("s77", "sym_size_int", 2)),
            Dim::Sequence => Some(("s27", "sym_size_int_1", 8)),
        }
    }
}

/// A float32 parameter or buffer.
pub struct Weight {
    /// Its qualified name.
    pub name: String,
    /// Whether it is a parameter.
    pub is_param: bool,
    /// Its shape.
    pub sizes: Vec<u64>,
    /// The centre of its values.
    pub centre: f32,
}

impl Weight {
    /// The size of its values in bytes.
    pub fn bytes(&self) -> u64 {
        4 * self.sizes.iter().product::<u64>()
    }

    /// Its shape as dimensions.
    pub fn dims(&self) -> Vec<Dim> {
        self.sizes.iter().map(|size| Dim::Int(*size)).collect()
    }
}

/// A tensor of the program.
#[derive(Clone, Debug)]
pub struct Value {
    pub name: String,
    pub dims: Vec<Dim>,
    /// The schema's `ScalarType`.
    dtype: u64,
}

impl Value {
    pub fn arg(&self) -> Json {
        json!({"as_tensor": {"name": self.name}})
    }
}

/// An element of the `size` argument of a view: a number, such as -1, or a dynamic size.
pub fn sizes(dims: &[Dim]) -> Json {
    let dim = |dim: &Dim| match (dim, dim.symbol()) {
        (Dim::Int(size), _) => json!({"as_int": size}),
        (_, Some((_, name, _))) => json!({"as_name": name}),
        (_, None) => Json::Null,
    };
    json!({"as_sym_ints": dims.iter().map(dim).collect::<Vec<_>>()})
}

/// The `TensorMeta` of a contiguous tensor.
pub fn tensor_meta(dtype: u64, dims: &[Dim], requires_grad: bool) -> Json {
    let mut strides = Vec::new();
    let (mut number, mut symbols) = (1, Vec::new());
    for dim in dims.iter().rev() {
        strides.push(product(number, &symbols));
        match dim {
            Dim::Int(size) => number *= size,
            symbol => symbols.push(*symbol),
        }
    }
    strides.reverse();
    let sizes: Vec<Json> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Int(size) => product(*size, &[]),
            symbol => product(1, &[*symbol]),
        })
        .collect();
    json!({
        "dtype": dtype, "sizes": sizes, "requires_grad": requires_grad, "device": {"type": "cpu", "index": null},
        "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7,
    })
}

/// A `SymInt`. A product has the text of sympy's srepr.
fn product(number: u64, symbols: &[Dim]) -> Json {
    let factors = symbols.iter().filter_map(|dim| dim.symbol());
    let hint = factors.clone().fold(number, |hint, (_, _, size)| hint * size);
    let mut texts: Vec<String> = factors
        .map(|(name, ..)| format!("Symbol('{name}', positive=True, integer=True)"))
        .collect();
    if texts.is_empty() {
        return json!({"as_int": number});
    }
    if number != 1 {
        texts.insert(0, format!("Integer({number})"));
    }
    let text = match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("Mul({})", texts.join(", ")),
    };
    json!({"as_expr": {"expr_str": text, "hint": {"as_int": hint}}})
}

/// Keyword arguments.
const KEYWORDS: &[&str] = &["device", "dtype", "is_causal", "layout", "pin_memory"];

/// A program under construction.
#[derive(Default)]
pub struct Program {
    /// Parameters and buffers, in the order of their placeholders.
    pub weights: Vec<Weight>,
    /// The number of nodes.
    pub nodes: usize,
    /// Path and class of the modules that contain the next node, from the root.
    pub modules: Vec<(String, &'static str)>,
    names: std::collections::HashMap<String, usize>,
    node_texts: String,
    tensor_values: String,
    /// The weights' placeholders, in order.
    placeholders: Vec<Value>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl Program {
    /// Adds a weight and returns its placeholder.
    pub fn weight(&mut self, name: String, sizes: &[u64], centre: f32) -> Value {
        self.state(Weight { name, is_param: true, sizes: sizes.to_vec(), centre })
    }

    /// Adds a buffer with values around 1.
    pub fn buffer(&mut self, name: &str, sizes: &[u64]) -> Value {
        self.state(Weight {
            name: name.to_owned(),
            is_param: false,
            sizes: sizes.to_vec(),
            centre: 1.0,
        })
    }

    fn state(&mut self, weight: Weight) -> Value {
        let prefix = if weight.is_param { "p" } else { "b" };
        let name = format!("{prefix}_{}", weight.name.replace('.', "_"));
        let value = self.value(name, 7, weight.dims(), weight.is_param);
        self.weights.push(weight);
        self.placeholders.push(value.clone());
        value
    }

    /// Adds a user input of type int64.
    pub fn input(&mut self, name: &str, dims: &[Dim]) -> Value {
        let value = self.value(name.to_owned(), 5, dims.to_vec(), false);
        self.inputs.push(value.clone());
        for (dim, symbol) in
            dims.iter().enumerate().filter_map(|(dim, size)| Some((dim, size.symbol()?)))
        {
            let output = json!({"as_sym_int": {"as_name": symbol.1}});
            let args = [("self", value.arg()), ("dim", json!({"as_int": dim}))];
            self.push("sym_size.int", symbol.1, &args, Some(output));
        }
        value
    }

    /// Adds an output.
    pub fn output(&mut self, value: &Value) {
        self.outputs.push(value.clone());
    }

    fn value(&mut self, name: String, dtype: u64, dims: Vec<Dim>, requires_grad: bool) -> Value {
        let meta = tensor_meta(dtype, &dims, requires_grad);
        separate(&mut self.tensor_values);
        let _ = write!(self.tensor_values, "{}: {meta}", json!(name));
        Value { name, dims, dtype }
    }

    /// Adds a node of `op` of the ATen library with a float32 result of `dims`.
    pub fn node(&mut self, op: &str, args: &[(&str, Json)], dims: &[Dim]) -> Value {
        self.typed(op, args, dims, 7)
    }

    /// Adds a node with a result of `dims` and `dtype`.
    pub fn typed(&mut self, op: &str, args: &[(&str, Json)], dims: &[Dim], dtype: u64) -> Value {
        let name = self.name(op);
        let value = self.value(name.clone(), dtype, dims.to_vec(), false);
        self.push(op, &name, args, Some(value.arg()));
        value
    }

    /// Adds a cast of `x` to its own type, with its assertion, as mixed-precision models have in
    /// many places.
    pub fn same_type(&mut self, x: &Value) -> Value {
        let dtype = json!({"as_scalar_type": x.dtype});
        let cpu = json!({"as_device": {"type": "cpu", "index": null}});
        let name = self.name("_assert_tensor_metadata.default");
        let args = [
            ("a", x.arg()),
            ("dtype", dtype.clone()),
            ("device", cpu),
            ("layout", json!({"as_layout": 7})),
        ];
        self.push("_assert_tensor_metadata.default", &name, &args, None);
        self.typed("to.dtype", &[("self", x.arg()), ("dtype", dtype)], &x.dims, x.dtype)
    }

    /// `linear`, `linear_1`, ...
    fn name(&mut self, op: &str) -> String {
        let stem = op.split('.').next().unwrap_or(op);
        let count = self.names.entry(stem.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => stem.to_owned(),
            count => format!("{stem}_{}", count - 1),
        }
    }

    fn push(&mut self, op: &str, name: &str, args: &[(&str, Json)], output: Option<Json>) {
        let stem = op.split('.').next().unwrap_or(op);
        let mut stack = "L__self__,,decoder.Decoder".to_owned();
        let mut trace = String::new();
        for (path, class) in &self.modules {
            let _ = write!(stack, ";L__self__{},{path},decoder.{class}", path.replace('.', "_"));
            let _ = write!(
                trace,
                "File \"/home/user/decoder/model.py\", line 100, in forward\n    {class}.forward(hidden_states)\n  "
            );
        }
        let _ = write!(
            trace,
            "File \"/home/user/decoder/model.py\", line 200, in forward\n    return {stem}({name})"
        );
        let inputs: Vec<Json> = args
            .iter()
            .map(|(name, arg)| json!({"name": name, "arg": arg, "kind": if KEYWORDS.contains(name) { 2 } else { 1 }}))
            .collect();
        let node = json!({
            "target": format!("torch.ops.aten.{op}"),
            "inputs": inputs,
            "outputs": output.into_iter().collect::<Vec<_>>(),
            "metadata": {
                "stack_trace": trace, "nn_module_stack": stack, "torch_fn": format!("{name};builtin_function_or_method.{stem}"),
            },
            "is_hop_single_tensor_return": null,
            "name": name,
        });
        separate(&mut self.node_texts);
        let _ = write!(self.node_texts, "{node}");
        self.nodes += 1;
    }

    /// The JSON text.
    pub fn json(&self) -> String {
        let leaf = json!({"type": null, "context": null, "children_spec": []});
        let args: Vec<Json> = self.inputs.iter().map(|_| leaf.clone()).collect();
        let tuple = json!({"type": "builtins.tuple", "context": "null", "children_spec": args});
        let dict = json!({"type": "builtins.dict", "context": "[]", "children_spec": []});
        let in_spec = json!([1, {"type": "builtins.tuple", "context": "null", "children_spec": [tuple, dict]}]);
        let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let state = self.weights.iter().zip(&self.placeholders).map(|(weight, value)| {
            let arg = json!({"name": value.name});
            if weight.is_param {
                json!({"parameter": {"arg": arg, "parameter_name": weight.name}})
            } else {
                json!({"buffer": {"arg": arg, "buffer_name": weight.name, "persistent": true}})
            }
        });
        let inputs = self.inputs.iter().map(|value| json!({"user_input": {"arg": value.arg()}}));
        let outputs = self.outputs.iter().map(|value| json!({"user_output": {"arg": value.arg()}}));
        let signature = json!({
            "input_specs": state.chain(inputs).collect::<Vec<_>>(),
            "output_specs": outputs.collect::<Vec<_>>(),
        });
        let calls = json!([{"fqn": "", "signature": {
            "inputs": [], "outputs": [], "in_spec": in_spec.to_string(), "out_spec": json!([1, leaf]).to_string(),
            "forward_arg_names": names,
        }}]);
        let placeholders: Vec<Json> =
            self.placeholders.iter().chain(&self.inputs).map(Value::arg).collect();
        let results: Vec<Json> = self.outputs.iter().map(Value::arg).collect();
        let range = |dim: Dim| {
            dim.symbol().map(|(name, ..)| (name.to_owned(), json!({"min_val": 2, "max_val": 4096})))
        };
        let ranges: serde_json::Map<String, Json> =
            [Dim::Batch, Dim::Sequence].into_iter().filter_map(range).collect();
        let sym_ints: serde_json::Map<String, Json> = [Dim::Batch, Dim::Sequence]
            .into_iter()
            .filter_map(|dim| Some((dim.symbol()?.1.to_owned(), product(1, &[dim]))))
            .collect();
        format!(
            r#"{{"graph_module": {{"graph": {{"inputs": {}, "outputs": {}, "nodes": [{}], "tensor_values": {{{}}}, "sym_int_values": {}, "sym_bool_values": {{}}, "is_single_tensor_return": false, "custom_obj_values": {{}}, "sym_float_values": {{}}}}, "signature": {signature}, "module_call_graph": {calls}, "metadata": {{}}, "treespec_namedtuple_fields": {{}}}}, "opset_version": {{"aten": 10}}, "range_constraints": {}, "schema_version": {{"major": 8, "minor": 20}}, "verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": []}}"#,
            Json::from(placeholders),
            Json::from(results),
            self.node_texts,
            self.tensor_values,
            Json::from(sym_ints),
            Json::from(ranges),
        )
    }
}

fn separate(list: &mut String) {
    if !list.is_empty() {
        list.push_str(", ");
    }
}
