//! Reads the part of ONNX's textual syntax that the cases use. Values and constants whose name begins with `_` get none.

use pt2onnx_ir::{
    Attribute, Attributes, Builder, InsertPoint, Model, TensorType, Type, Value, schema,
};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::{DType, Scalar, Tensor};
use std::{cell::RefCell, collections::HashMap};

pub struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    names: RefCell<HashMap<String, Value>>,
}

/// A model of the canonical opset.
pub fn model(text: &str) -> Model {
    let mut model = Model::new(schema::CANONICAL_OPSET);
    let cx = Builder::new(
        &mut model,
        InsertPoint::End(Model::MAIN),
        Constraints::default(),
    );
    let mut p = parser(text);
    p.next();
    for (ty, name) in p.typed_names() {
        let value = cx.edit(|m| m.add_input(Model::MAIN, Some(ty)));
        p.define(&cx, name, value);
    }
    p.expect("=>");
    let outputs = p.typed_names();
    p.constants(&cx);
    p.body(&cx);
    p.outputs(&cx, outputs, Model::MAIN);
    assert!(cx.take_faults().is_empty());
    drop(cx);
    model
}

pub fn parser(text: &str) -> Parser<'_> {
    Parser {
        tokens: tokens(text),
        at: 0,
        names: RefCell::default(),
    }
}

fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let word = |c: char| c.is_alphanumeric() || "_.+-?@".contains(c);
        let length = if rest.starts_with("=>") {
            2
        } else if let Some(inner) = rest.strip_prefix('"') {
            inner.find('"').unwrap() + 2
        } else {
            rest.find(|c| !word(c)).unwrap_or(rest.len()).max(1)
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn next(&mut self) -> &'a str {
        self.at += 1;
        self.tokens[self.at - 1]
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, token: &str) {
        assert_eq!(
            self.next(),
            token,
            "at token {} of {:?}",
            self.at,
            self.tokens
        );
    }

    /// Items up to `close`, commas between them.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self));
            self.eat(",");
        }
        items
    }

    fn typed_names(&mut self) -> Vec<(Type, &'a str)> {
        self.expect("(");
        self.list(")", |p| (p.ty(), p.next()))
    }

    fn ty(&mut self) -> Type {
        let name = self.next();
        let dtype = dtype(name).unwrap_or_else(|| panic!("no type {name}"));
        if !self.eat("[") {
            return Type::tensor(dtype, []);
        }
        if self.eat("]") {
            return Type::Tensor(TensorType { dtype, shape: None });
        }
        let dims = self.list("]", |p| match p.next() {
            "?" => Expr::symbol("?9"),
            dim => Expr::parse(dim.trim_matches('"')).unwrap(),
        });
        Type::tensor(dtype, dims)
    }

    fn define(&self, cx: &Builder, name: &str, value: Value) {
        if !name.starts_with('_') {
            cx.edit(|m| m[value].name = Some(name.into()));
        }
        assert!(
            self.names
                .borrow_mut()
                .insert(name.to_owned(), value)
                .is_none(),
            "{name} twice"
        );
    }

    fn constants(&mut self, cx: &Builder) {
        if self.eat("<") {
            for (name, tensor) in self.list(">", |p| p.constant()) {
                // Not interned: what is written twice is there twice.
                let value = cx.edit(|m| m.add_constant(tensor));
                self.define(cx, name, value);
            }
        }
    }

    fn constant(&mut self) -> (&'a str, Tensor) {
        let ty = self.ty();
        let name = self.next();
        self.expect("=");
        (name, self.elements(&ty))
    }

    /// `{1, 2}`; `{...}` for absent ones; `{0 ...}` for all zero.
    pub fn elements(&mut self, ty: &Type) -> Tensor {
        let ty = ty.as_tensor().unwrap();
        let sizes: Vec<usize> = ty
            .shape
            .iter()
            .flatten()
            .map(|d| d.as_int().unwrap() as usize)
            .collect();
        self.expect("{");
        let spelled = self.list("}", |p| p.next());
        match spelled.as_slice() {
            ["..."] => Tensor::absent(ty.dtype, sizes).unwrap(),
            ["0", "..."] => {
                let bytes = sizes.iter().product::<usize>() * ty.dtype.bits() / 8;
                Tensor::new(ty.dtype, sizes, vec![0; bytes]).unwrap()
            }
            _ => {
                let bytes: Vec<u8> = spelled.iter().flat_map(|e| element(e, ty.dtype)).collect();
                Tensor::new(ty.dtype, sizes, bytes).unwrap()
            }
        }
    }

    pub fn typed_elements(&mut self) -> Tensor {
        let ty = self.ty();
        self.elements(&ty)
    }

    fn body(&mut self, cx: &Builder) {
        self.expect("{");
        while !self.eat("}") {
            self.node(cx);
        }
    }

    fn outputs(&self, cx: &Builder, outputs: Vec<(Type, &str)>, region: pt2onnx_ir::RegionId) {
        let values: Vec<Value> = outputs
            .iter()
            .map(|(_, name)| self.names.borrow()[*name])
            .collect();
        for ((ty, _), &value) in outputs.into_iter().zip(&values) {
            cx.set_type(value, ty);
        }
        cx.edit(|m| m.set_outputs(region, &values));
    }

    fn node(&mut self, cx: &Builder) {
        let outputs = self.list("=", |p| p.next());
        let op = self.next();
        let attributes = self.attributes(cx);
        self.expect("(");
        let inputs = self.list(")", |p| match p.next() {
            "\"\"" => None,
            name => Some(
                *p.names
                    .borrow()
                    .get(name)
                    .unwrap_or_else(|| panic!("no value {name}")),
            ),
        });
        let values = cx.emit(leak(op), &inputs, attributes, outputs.len());
        for (name, &value) in outputs.iter().zip(&values) {
            self.define(cx, name, value);
        }
    }

    pub fn attributes(&mut self, cx: &Builder) -> Attributes {
        let mut attributes = Attributes::new();
        if self.eat("<") {
            attributes.extend(self.list(">", |p| {
                let name = leak(p.next());
                p.expect(":");
                let kind = p.next();
                p.expect("=");
                (name.into(), p.attribute(cx, kind))
            }));
        }
        attributes
    }

    fn attribute(&mut self, cx: &Builder, kind: &str) -> Attribute {
        match kind {
            "int" => Attribute::Int(self.next().parse().unwrap()),
            "float" => Attribute::Float(self.next().parse().unwrap()),
            "string" => Attribute::from(self.next().trim_matches('"')),
            "ints" => {
                self.expect("[");
                Attribute::Ints(self.list("]", |p| p.next().parse().unwrap()))
            }
            "tensor" => Attribute::Tensor(self.typed_elements()),
            "graph" => {
                self.next();
                let inputs = self.typed_names();
                self.expect("=>");
                let outputs = self.typed_names();
                let types: Vec<Type> = inputs.iter().map(|(ty, _)| ty.clone()).collect();
                let region = cx.region(&types, |values| {
                    for ((_, name), &value) in inputs.iter().zip(values) {
                        self.define(cx, name, value);
                    }
                    self.body(cx);
                    outputs
                        .iter()
                        .map(|(_, name)| self.names.borrow()[*name])
                        .collect()
                });
                self.outputs(cx, outputs, region);
                Attribute::Region(region)
            }
            other => panic!("no attributes of kind {other}"),
        }
    }
}

fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn dtype(name: &str) -> Option<DType> {
    use DType::*;
    let all = [
        F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, F8E4M3FN,
    ];
    all.into_iter().find(|d| match d {
        F64 => name == "double",
        F32 => name == "float",
        F8E4M3FN => name == "float8e4m3fn",
        other => name == other.name(),
    })
}

fn element(text: &str, dtype: DType) -> Vec<u8> {
    let number = match text.parse::<i64>() {
        Ok(int) => Scalar::Int(int),
        Err(_) => match text.parse::<u64>() {
            Ok(large) => Scalar::Int(large as i64),
            Err(_) => Scalar::Float(text.parse().unwrap_or_else(|_| panic!("no number {text}"))),
        },
    };
    number.to_tensor(dtype).unwrap().to_bytes().into_owned()
}
