//! The code of a graph: its nodes become statements, as if TorchScript had printed them.

use super::text::{Block, Node, Typed};
use crate::{
    syntax::{Call, Expr, ExprKind, Function, Operator, Param, Stmt, StmtKind},
    types::Type,
};
use pt2onnx_fx::Name;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The statements that a graph becomes.
pub(super) struct Code<'t> {
    /// Values that stand in the place of their use.
    inline: FxHashMap<&'t str, Expr>,
    /// How often values are used.
    uses: FxHashMap<&'t str, usize>,
    /// The calls of modules in which the last statement was traced.
    scope: &'t str,
}

/// The function of a graph.
///
/// # Arguments
/// The graph, the paths of the tensors of the module, which are its first inputs, and the names of
/// the others.
pub(super) fn function(
    graph: &Block<'_>,
    tensors: &[Name],
    names: &[Name],
) -> Result<Function, (u32, String)> {
    let mut code = Code { inline: FxHashMap::default(), uses: FxHashMap::default(), scope: "" };
    if graph.inputs.len() != tensors.len() + names.len() {
        return Err((0, "the inputs of the graph are not those that are listed".to_owned()));
    }
    code.count(graph);
    let (own, others) = graph.inputs.split_at(tensors.len());
    let mut body = Vec::new();
    for (input, path) in own.iter().zip(tensors) {
        if code.uses.contains_key(input.name) {
            let own = ExprKind::Attr(Box::new(name("self")), path.clone());
            body.push(assign(0, variable(input.name), expr(own)));
        }
    }
    for (input, own) in others.iter().zip(names) {
        code.inline.insert(input.name, name(own));
    }
    code.block(graph, &mut body)?;
    let result = tuple_or_one(code.values(&graph.outputs));
    body.push(Stmt { at: 0, kind: StmtKind::Return(Some(result)) });
    let param = |name: &Name| Param { name: name.clone(), ty: None, default: None };
    let params = std::iter::once(&"self".into()).chain(names).map(param).collect();
    Ok(Function { name: "forward".into(), params, returns: None, body, at: 0 })
}

impl<'t> Code<'t> {
    fn count(&mut self, block: &Block<'t>) {
        let mut pending = vec![block];
        while let Some(block) = pending.pop() {
            let inputs = block.nodes.iter().flat_map(|node| &node.inputs);
            for used in inputs.chain(&block.outputs) {
                *self.uses.entry(used).or_default() += 1;
            }
            pending.extend(block.nodes.iter().flat_map(|node| &node.blocks));
        }
    }

    fn is_used_once(&self, name: &str) -> bool {
        self.uses.get(name) == Some(&1)
    }

    /// A value, in the place of a use.
    fn value(&mut self, name: &'t str) -> Expr {
        let found = if self.is_used_once(name) {
            self.inline.remove(name)
        } else {
            self.inline.get(name).cloned()
        };
        found.unwrap_or_else(|| variable(name))
    }

    fn values(&mut self, names: &[&'t str]) -> Vec<Expr> {
        names.iter().map(|name| self.value(name)).collect()
    }

    fn block(&mut self, block: &Block<'t>, body: &mut Vec<Stmt>) -> Result<(), (u32, String)> {
        for node in &block.nodes {
            if node.scope != self.scope && !node.scope.is_empty() {
                self.scope = node.scope;
                body.push(Stmt { at: node.at, kind: StmtKind::Scope(scope(node)?) });
            }
            self.node(node, body)?;
        }
        Ok(())
    }

    /// A block within a node, which may not run: it says its scope itself, as does what follows.
    fn inner(&mut self, block: &Block<'t>, body: &mut Vec<Stmt>) -> Result<(), (u32, String)> {
        self.scope = "";
        self.block(block, body)?;
        self.scope = "";
        Ok(())
    }

    fn node(&mut self, node: &Node<'t>, body: &mut Vec<Stmt>) -> Result<(), (u32, String)> {
        let at = node.at;
        let value = match (node.kind, node.outputs.as_slice()) {
            ("prim::Print", _) => return Ok(()),
            ("prim::Constant", [output]) => {
                let value = literal(node.attributes, output.ty);
                // Those of other types, such as functions, are not used.
                self.inline.extend(value.map(|value| (output.name, Expr { at, ..value })));
                return Ok(());
            }
            ("prim::If", _) => return self.branch(node, body),
            ("prim::Loop", _) => return self.repeat(node, body),
            ("prim::ListUnpack" | "prim::TupleUnpack", outputs) => {
                let target = tuple(outputs.iter().map(|output| variable(output.name)));
                if let (Some(last), [input]) = (body.last_mut(), node.inputs.as_slice())
                    && let StmtKind::Assign { target: made, .. } = &mut last.kind
                    && *made == variable(input)
                    && self.is_used_once(input)
                {
                    // The number of targets says into how many parts a call splits.
                    *made = target;
                    return Ok(());
                }
                let value = tuple_or_one(self.values(&node.inputs));
                body.push(assign(at, target, value));
                return Ok(());
            }
            (_, outputs) => {
                let values = self.values(&node.inputs);
                let ty = outputs.first().map_or("", |output| output.ty);
                expression(node, ty, values).map_err(|what| (at, what))?
            }
        };
        let value = Expr { at, ..value };
        match node.outputs.as_slice() {
            [] => body.push(Stmt { at, kind: StmtKind::Expr(value) }),
            [one] if is_flat_list(&value) && self.is_used_once(one.name) => {
                self.inline.insert(one.name, value);
            }
            [one] => body.push(assign(at, variable(one.name), value)),
            several => {
                let target = tuple(several.iter().map(|output| variable(output.name)));
                body.push(assign(at, target, value));
            }
        }
        Ok(())
    }

    fn branch(&mut self, node: &Node<'t>, body: &mut Vec<Stmt>) -> Result<(), (u32, String)> {
        let ([test], [then, other]) = (node.inputs.as_slice(), node.blocks.as_slice()) else {
            return Err((node.at, "a branch without two blocks".to_owned()));
        };
        let test = self.value(test);
        let mut sides = [Vec::new(), Vec::new()];
        for (block, side) in [then, other].into_iter().zip(&mut sides) {
            self.inner(block, side)?;
            self.results(node.at, &node.outputs, block, side);
        }
        let [then, other] = sides;
        body.push(Stmt { at: node.at, kind: StmtKind::If { test, then, other } });
        Ok(())
    }

    /// Gives values the results of a block, all at once.
    fn results(&mut self, at: u32, to: &[Typed<'t>], block: &Block<'t>, body: &mut Vec<Stmt>) {
        let skipped = block.outputs.len().saturating_sub(to.len());
        let values = self.values(block.outputs.get(skipped..).unwrap_or_default());
        if !to.is_empty() {
            let target = tuple(to.iter().map(|output| variable(output.name)));
            body.push(assign(at, target, expr(ExprKind::Tuple(values))));
        }
    }

    /// `prim::Loop(most, condition, carried...)`, whose block returns the next condition and the
    /// carried values.
    fn repeat(&mut self, node: &Node<'t>, body: &mut Vec<Stmt>) -> Result<(), (u32, String)> {
        let at = node.at;
        let ([most, first, carried @ ..], [block]) =
            (node.inputs.as_slice(), node.blocks.as_slice())
        else {
            return Err((at, "a loop without its block".to_owned()));
        };
        let (Some((count, inner)), Some(next)) =
            (block.inputs.split_first(), block.outputs.first())
        else {
            return Err((at, "a loop without a condition".to_owned()));
        };
        for (input, value) in inner.iter().zip(carried) {
            let value = self.value(value);
            body.push(assign(at, variable(input.name), value));
        }
        let (most, first) = (self.value(most), self.value(first));
        let is_true = |value: &Expr| value.kind == ExprKind::Bool(true);
        let mut steps = Vec::new();
        self.inner(block, &mut steps)?;
        let next = self.value(next);
        if is_true(&first) && is_true(&next) {
            self.results(at, inner, block, &mut steps);
            let iter = call(name("range"), vec![most]);
            let kind = StmtKind::For { target: variable(count.name), iter, body: steps };
            body.push(Stmt { at, kind });
        } else {
            let (holds, count) = (format!("%{}:holds", count.name), variable(count.name));
            let before = |condition: Expr| {
                let is_left = operator("aten::lt", vec![count.clone(), most.clone()]);
                assign(at, name(&holds), operator("aten::__and__", vec![is_left, condition]))
            };
            body.push(assign(at, count.clone(), expr(ExprKind::Int(0))));
            body.push(before(first));
            let more = operator("aten::add", vec![count.clone(), expr(ExprKind::Int(1))]);
            steps.push(assign(at, count.clone(), more));
            // The next condition is one of the values that the block computed.
            steps.push(before(next));
            self.results(at, inner, block, &mut steps);
            body.push(Stmt { at, kind: StmtKind::While { test: name(&holds), body: steps } });
        }
        for (output, input) in node.outputs.iter().zip(inner) {
            body.push(assign(at, variable(output.name), variable(input.name)));
        }
        Ok(())
    }
}

/// The value of a node that has neither blocks nor several targets.
fn expression(node: &Node<'_>, ty: &str, mut values: Vec<Expr>) -> Result<Expr, String> {
    let is_number =
        |value: &Type| matches!(value, Type::Int | Type::Float | Type::Bool | Type::Number);
    let kind = match (node.kind, values.len()) {
        ("prim::ListConstruct", _) => {
            let list = expr(ExprKind::List(values));
            return Ok(match type_of(ty) {
                Some(of) => call(name("annotate"), vec![of, list]),
                None => list,
            });
        }
        ("prim::TupleConstruct", _) => ExprKind::Tuple(values),
        ("prim::DictConstruct", _) => {
            let mut items = values.into_iter();
            let pairs = std::iter::from_fn(|| Some((items.next()?, items.next()?)));
            ExprKind::Dict(pairs.collect())
        }
        ("prim::TupleIndex" | "aten::__getitem__", 2) => {
            let index = values.pop().unwrap_or_else(|| expr(ExprKind::None));
            let base = values.pop().unwrap_or_else(|| expr(ExprKind::None));
            ExprKind::Index(Box::new(base), Box::new(index))
        }
        ("aten::Int", 1) => return Ok(call(name("int"), values)),
        ("aten::Float", 1) => return Ok(call(name("float"), values)),
        ("aten::Bool", 1) => return Ok(call(name("bool"), values)),
        ("aten::str", 1) => return Ok(call(name("str"), values)),
        ("aten::IntImplicit" | "aten::FloatImplicit" | "aten::ScalarImplicit", 1) => {
            let of = type_of(ty).filter(|of| is_number(&Type::of(of)));
            values.insert(0, of.unwrap_or_else(|| name("number")));
            return Ok(call(name("annotate"), values));
        }
        ("prim::unchecked_cast" | "prim::unchecked_unwrap_optional", 1) => {
            values.insert(0, type_of(ty).unwrap_or_else(|| name("Any")));
            return Ok(call(name("unchecked_cast"), values));
        }
        ("prim::Uninitialized", _) => return Ok(call(name("uninitialized"), values)),
        (kind, _) => match kind.split_once("::") {
            Some(("prim", own)) => {
                let ops = ExprKind::Attr(Box::new(name("ops")), "prim".into());
                let callee = ExprKind::Attr(Box::new(expr(ops)), own.into());
                return Ok(call(expr(callee), values));
            }
            Some(_) => return Ok(operator(kind, values)),
            None => return Err(format!("`{kind}` is not an operator")),
        },
    };
    Ok(expr(kind))
}

/// The ids of the calls of modules in which a node was traced, outermost first.
fn scope(node: &Node<'_>) -> Result<Arc<[u32]>, (u32, String)> {
    let ids = node.scope.split('/').map(str::parse);
    ids.collect::<Result<_, _>>().map_err(|_| (node.at, format!("the scope {}", node.scope)))
}

/// The value of a constant; `None` if it is not a literal.
fn literal(attributes: &str, ty: &str) -> Option<Expr> {
    if let Some(position) = attributes.strip_prefix("tensor=") {
        let pool = Box::new(name("CONSTANTS"));
        return Some(expr(ExprKind::Attr(pool, format!("c{position}").into())));
    }
    if ty == "NoneType" {
        return Some(expr(ExprKind::None));
    }
    let text = attributes.strip_prefix("value=")?;
    if let Some(items) = ty.strip_suffix("[]") {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let parts = inner.split(", ").filter(|part| !part.is_empty());
        let list = parts.map(|part| scalar(part, items)).collect::<Option<Vec<_>>>()?;
        let list = expr(ExprKind::List(list));
        return Some(call(name("annotate"), vec![type_of(ty)?, list]));
    }
    scalar(text, ty)
}

fn scalar(text: &str, ty: &str) -> Option<Expr> {
    Some(expr(match ty {
        "int" => ExprKind::Int(text.parse().ok()?),
        "float" => ExprKind::Float(text.parse().ok()?),
        "bool" => ExprKind::Bool(!matches!(text, "0" | "False")),
        "complex" => {
            let (re, im) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
            ExprKind::Complex(re.parse().ok()?, im.parse().ok()?)
        }
        "str" => ExprKind::Str(quoted(text)?.into()),
        "Device" => {
            let device = ExprKind::Attr(Box::new(name("torch")), "device".into());
            return Some(call(expr(device), vec![expr(ExprKind::Str(quoted(text)?.into()))]));
        }
        _ => return None,
    }))
}

/// The text within quotes, in which bytes that cannot be printed are octal numbers.
fn quoted(text: &str) -> Option<String> {
    let mut bytes = text.strip_prefix('"')?.strip_suffix('"')?.bytes().peekable();
    let mut found = Vec::new();
    while let Some(byte) = bytes.next() {
        found.push(match byte {
            b'\\' => match bytes.next()? {
                b'a' => 7,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 11,
                first @ b'0'..=b'7' => {
                    let mut number = u32::from(first - b'0');
                    while let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        number = number * 8 + u32::from(digit - b'0');
                    }
                    u8::try_from(number).ok()?
                }
                other => other,
            },
            byte => byte,
        });
    }
    String::from_utf8(found).ok()
}

/// A type, as code writes it: `int[]` is `List[int]`.
fn type_of(text: &str) -> Option<Expr> {
    let within = |outer: &str, inner: &str| {
        let index = Box::new(type_of(inner)?);
        Some(expr(ExprKind::Index(Box::new(name(outer)), index)))
    };
    if let Some(inner) = text.strip_suffix("[]") {
        return within("List", inner);
    }
    if let Some(inner) = text.strip_suffix('?') {
        return within("Optional", inner);
    }
    match text {
        "int" | "float" | "bool" | "str" | "complex" | "number" | "Device" | "Tensor" => {
            Some(name(text))
        }
        "Scalar" => Some(name("number")),
        _ => {
            // `Float(2, 3, requires_grad=0)`, but not a tuple.
            let is_tensor =
                text.ends_with(')') && text.starts_with(|c: char| c.is_ascii_uppercase());
            (is_tensor && !text.starts_with("Dict(")).then(|| name("Tensor"))
        }
    }
}

/// The items of a list or tuple, also of a list with its type.
fn items(value: &Expr) -> Option<&[Expr]> {
    match &value.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => Some(items),
        ExprKind::Call(call) => match (&call.callee.kind, call.args.as_slice()) {
            (ExprKind::Name(name), [_, list]) if &**name == "annotate" => items(list),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value is a list or tuple without others in it, which would nest without end.
fn is_flat_list(value: &Expr) -> bool {
    items(value).is_some_and(|parts| parts.iter().all(|part| items(part).is_none()))
}

fn expr(kind: ExprKind) -> Expr {
    Expr { at: 0, kind }
}

fn name(name: &str) -> Expr {
    expr(ExprKind::Name(name.into()))
}

/// The variable of a value, whose name is none of the words of the language.
fn variable(value: &str) -> Expr {
    name(&format!("%{value}"))
}

fn call(callee: Expr, args: Vec<Expr>) -> Expr {
    expr(ExprKind::Call(Box::new(Call { callee, args, kwargs: Vec::new() })))
}

fn operator(name: &str, args: Vec<Expr>) -> Expr {
    expr(ExprKind::Operator(Box::new(Operator { name: name.into(), args })))
}

fn tuple(items: impl Iterator<Item = Expr>) -> Expr {
    expr(ExprKind::Tuple(items.collect()))
}

fn tuple_or_one(values: Vec<Expr>) -> Expr {
    match <[Expr; 1]>::try_from(values) {
        Ok([one]) => one,
        Err(values) => expr(ExprKind::Tuple(values)),
    }
}

fn assign(at: u32, target: Expr, value: Expr) -> Stmt {
    Stmt { at, kind: StmtKind::Assign { target, ty: None, value } }
}
