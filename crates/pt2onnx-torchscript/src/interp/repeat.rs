//! Loops whose number of trips depends on data: a `while_loop` node, which carries what the body changes.

use super::{Env, Flow, Interp, Step, expected, graph::Body};
use crate::{
    error::Problem,
    syntax::{Expr, ExprKind, Stmt, StmtKind},
    types::Symbols,
    value::Value,
};
use pt2onnx_fx::{Argument, Name, Node, ValueMeta};
use pt2onnx_symbolic::{Expr as Sym, Func};
use rustc_hash::FxHashSet;

/// How often a body is tried with more general types of what it carries.
const MAX_TRIES: usize = 4;

/// What decides whether a loop goes on.
pub(super) enum Test<'e> {
    /// The condition of `while`.
    While(&'e Expr),
    /// `for target in range(start, end)`: the variable that counts, its first value and the end.
    Range(Name, Value, Value),
}

/// A variable that the body changes: its name, and whether it is a number, as which kind.
struct Carried {
    name: Name,
    initial: Name,
    like: Value,
}

impl Interp<'_> {
    /// A loop on data. What its body changes must be tensors and numbers.
    pub(super) fn repeat(&mut self, test: &Test<'_>, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        let mut names = Vec::new();
        assigned(body, &mut names);
        if let Test::Range(target, start, _) = test {
            env.insert(target.clone(), start.clone());
            names.push(target.clone());
        }
        let mut seen = FxHashSet::default();
        names.retain(|name| env.contains_key(name) && seen.insert(name.clone()));
        let mut carried = Vec::new();
        for name in names {
            let Some(like) = env.get(&name).cloned() else { continue };
            let initial = match &like {
                Value::Tensor(tensor) => tensor.clone(),
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                    let number = vec![like.clone()];
                    match self.operator("prim", "NumToTensor", number, Vec::new())? {
                        Value::Tensor(tensor) => tensor,
                        other => return expected("a tensor", &other),
                    }
                }
                Value::Opaque(_) | Value::Callee(_) => continue,
                other => {
                    let text = format!("`{name}`, which it changes, is {}", other.kind());
                    return Err(Problem::Loop(text));
                }
            };
            carried.push(Carried { name, initial, like });
        }
        let mut metas = Vec::with_capacity(carried.len());
        for variable in &carried {
            metas.push(self.meta(&variable.initial)?.clone());
        }
        for _ in 0..MAX_TRIES {
            let (bodies, made) = self.attempt(test, body, env, &carried, &metas)?;
            let mut stable = true;
            for (meta, name) in metas.iter_mut().zip(&made) {
                let next = self.meta(name)?.clone();
                if next.dtype != meta.dtype || next.sizes.len() != meta.sizes.len() {
                    let text = "a tensor that it changes gets another type or number of dimensions";
                    return Err(Problem::Loop(text.to_owned()));
                }
                for (size, other) in meta.sizes.iter_mut().zip(&next.sizes) {
                    if self.facts.constraints.prove_eq(size, other) != Some(true)
                        && size.as_symbol().is_none_or(|s| !Symbols::makes(s))
                    {
                        *size = self.size_symbol();
                        stable = false;
                    }
                }
            }
            if stable {
                return self.finish_loop(bodies, &carried, &metas, env);
            }
        }
        Err(Problem::Loop("the sizes of its tensors cannot be told".to_owned()))
    }

    /// Runs test and body once, over variables of these types.
    fn attempt(
        &mut self,
        test: &Test<'_>,
        body: &[Stmt],
        env: &Env,
        carried: &[Carried],
        metas: &[pt2onnx_fx::TensorMeta],
    ) -> Step<([Body; 2], Vec<Name>)> {
        let outer = std::mem::take(&mut self.nodes);
        let (inputs, mut within) = self.enter(env, carried, metas)?;
        let verdict = self.verdict(test, &within, carried, &inputs)?;
        let nodes = std::mem::take(&mut self.nodes);
        let test_body = Body { inputs, nodes, outputs: vec![verdict] };

        let (inputs, fresh) = self.enter(env, carried, metas)?;
        within = fresh;
        self.copies()?;
        let heap = self.heap.clone();
        if let Flow::Return(_) = self.deeper(|interp| interp.block(body, &mut within))? {
            return Err(Problem::Loop("it returns".to_owned()));
        }
        let changed = (0..heap.len()).any(|at| !self.unchanged(at, &heap));
        if changed {
            return Err(Problem::Loop(
                "it changes a list, a dict or an attribute, which is not supported".to_owned(),
            ));
        }
        if let Test::Range(target, ..) = test
            && let Some(Value::Int(i)) = within.get(target).cloned()
        {
            within.insert(target.clone(), Value::Int(i + 1));
        }
        let mut outputs = Vec::with_capacity(carried.len());
        for variable in carried {
            let value = within.get(&variable.name).cloned().unwrap_or(Value::None);
            let value = match (&value, &variable.like) {
                (Value::Tensor(name), Value::Tensor(_)) => name.clone(),
                (Value::Int(_), Value::Int(_))
                | (Value::Float(_), Value::Float(_))
                | (Value::Bool(_), Value::Bool(_)) => {
                    let mut nodes: Vec<Node> = std::mem::take(&mut self.nodes);
                    let name = self.tensor_in(&value, &mut nodes);
                    self.nodes = nodes;
                    name?
                }
                _ => {
                    let text = format!("`{}` gets a value of another type", variable.name);
                    return Err(Problem::Loop(text));
                }
            };
            outputs.push(value);
        }
        let nodes = std::mem::replace(&mut self.nodes, outer);
        Ok(([test_body, Body { inputs, nodes, outputs: outputs.clone() }], outputs))
    }

    /// The inputs of a body, and the variables that are seen in it.
    fn enter(
        &mut self,
        env: &Env,
        carried: &[Carried],
        metas: &[pt2onnx_fx::TensorMeta],
    ) -> Step<(Vec<Name>, Env)> {
        let mut within = env.clone();
        let mut inputs = Vec::with_capacity(carried.len());
        for (variable, meta) in carried.iter().zip(metas) {
            let name = self.fresh(&variable.name);
            self.facts.values.insert(name.clone(), ValueMeta::from(meta.clone()));
            self.roots.insert(name.clone(), name.clone());
            inputs.push(name.clone());
            let value = match &variable.like {
                Value::Tensor(_) => Value::Tensor(name),
                _ => self.scalar_of(&Value::Tensor(name), &crate::schema::Type::Number)?,
            };
            within.insert(variable.name.clone(), value);
        }
        Ok((inputs, within))
    }

    fn verdict(
        &mut self,
        test: &Test<'_>,
        within: &Env,
        carried: &[Carried],
        inputs: &[Name],
    ) -> Step<Name> {
        let condition = match test {
            Test::While(test) => self.eval(test, within)?,
            Test::Range(target, _, end) => {
                let at = carried.iter().position(|variable| variable.name == *target);
                match (within.get(target), end, at.and_then(|at| inputs.get(at))) {
                    (Some(Value::Int(i)), Value::Int(end), Some(_)) => {
                        Value::Bool(Sym::call(Func::Lt, vec![i.clone(), end.clone()]))
                    }
                    _ => return Err(Problem::Loop("its range is not known".to_owned())),
                }
            }
        };
        match self.predicate(&condition)? {
            Argument::Tensor(name) => Ok(name),
            _ => Err(Problem::Loop("its condition is not a tensor".to_owned())),
        }
    }

    fn finish_loop(
        &mut self,
        bodies: [Body; 2],
        carried: &[Carried],
        metas: &[pt2onnx_fx::TensorMeta],
        env: &mut Env,
    ) -> Step<Flow> {
        let initial = carried.iter().map(|variable| variable.initial.clone()).collect();
        let mut results = Vec::with_capacity(carried.len());
        for meta in metas {
            let mut meta = meta.clone();
            for size in &mut meta.sizes {
                // The sizes after the loop are others than those within.
                if size.as_symbol().is_some_and(Symbols::makes) {
                    *size = self.size_symbol();
                }
            }
            let name = self.fresh("while_loop");
            self.facts.values.insert(name.clone(), ValueMeta::from(meta));
            self.roots.insert(name.clone(), name.clone());
            results.push(name);
        }
        let names = ["cond_graph", "body_graph"];
        let node = self.higher_order_with(
            "while_loop",
            &[],
            bodies,
            &names,
            &[Argument::Tensors(initial)],
            results.clone(),
        )?;
        self.push(node)?;
        for (variable, name) in carried.iter().zip(results) {
            let value = match &variable.like {
                Value::Tensor(_) => Value::Tensor(name),
                _ => self.scalar_of(&Value::Tensor(name), &crate::schema::Type::Number)?,
            };
            env.insert(variable.name.clone(), value);
        }
        Ok(Flow::Next)
    }

    /// Whether an item of the heap is as it was.
    fn unchanged(&self, at: usize, before: &[crate::value::Item]) -> bool {
        use crate::value::Item;
        let all = |a: &[Value], b: &[Value]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
        };
        match (before.get(at), self.heap.get(at)) {
            (Some(Item::List { items: a, .. }), Some(Item::List { items: b, .. })) => all(a, b),
            (Some(Item::Dict(a)), Some(Item::Dict(b))) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| self.same(&a.0, &b.0) && self.same(&a.1, &b.1))
            }
            (
                Some(Item::Object { attributes: a, .. }),
                Some(Item::Object { attributes: b, .. }),
            ) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        a.0 == b.0
                            && (self.same(a.1, b.1)
                                || matches!(a.1, Value::Opaque(_) | Value::Callee(_)))
                    })
            }
            _ => false,
        }
    }
}

/// The variables that statements assign to.
fn assigned(body: &[Stmt], names: &mut Vec<Name>) {
    fn target(expr: &Expr, names: &mut Vec<Name>) {
        match &expr.kind {
            ExprKind::Name(name) => names.push(name.clone()),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().for_each(|item| target(item, names));
            }
            _ => {}
        }
    }
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign { target: to, .. } => target(to, names),
            StmtKind::If { then, other, .. } => {
                assigned(then, names);
                assigned(other, names);
            }
            StmtKind::For { target: to, body, .. } => {
                target(to, names);
                assigned(body, names);
            }
            StmtKind::While { body, .. } | StmtKind::With { body, .. } => assigned(body, names),
            _ => {}
        }
    }
}
