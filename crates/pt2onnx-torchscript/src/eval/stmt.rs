//! Runs statements: branches, loops, assignments, `with`.

use crate::{
    control::loop_carried::{Condition, assigned},
    eval::{Env, Evaluator, Flow, Step, arith::compare, expected, in_loop, raises, unsupported},
    schema::Type,
    value::{Callee, Item, Value, dyn_list::split},
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Func;
use pt2onnx_torchscript_archive::{
    FunctionDef,
    syntax::{Expr, ExprKind, Stmt, StmtKind},
};

/// The most times that a loop is unrolled.
const MAX_ITERATIONS: u64 = 100_000;

impl Evaluator<'_> {
    pub(crate) fn block(&mut self, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        self.blocks(vec![body], env)
    }

    /// Runs blocks one after the other, the last one first.
    pub(crate) fn blocks(&mut self, mut todo: Vec<&[Stmt]>, env: &mut Env) -> Step<Flow> {
        while let Some(body) = todo.pop() {
            let Some((stmt, behind)) = body.split_first() else { continue };
            if !behind.is_empty() {
                todo.push(behind);
            }
            self.step()?;
            self.set_at(stmt.at);
            let flow = match &stmt.kind {
                StmtKind::If { test, then, other } => {
                    let test = self.eval(test, env)?;
                    self.set_at(stmt.at);
                    match self.truth(&test)? {
                        Some(truth) => todo.push(if truth { then } else { other }),
                        None => match (only_raises(then), only_raises(other)) {
                            (true, false) => {
                                self.assert_sizes(&test, false)?;
                                todo.push(other);
                            }
                            (false, true) => {
                                self.assert_sizes(&test, true)?;
                                todo.push(then);
                            }
                            _ => {
                                let branches = [then.as_slice(), other.as_slice()];
                                let end =
                                    self.eval_symbolic_branch(&test, branches, &mut todo, env)?;
                                if let Some(flow) = end {
                                    return Ok(flow);
                                }
                            }
                        },
                    }
                    continue;
                }
                _ => self.stmt(stmt, env)?,
            };
            if let Flow::Return(value) = flow {
                return Ok(Flow::Return(value));
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt, env: &mut Env) -> Step<Flow> {
        match &stmt.kind {
            StmtKind::Assign { target, ty, value } => {
                self.state.calls.expected_arity = split::unpacked(target, value);
                let value = self.eval(value, env)?;
                self.state.calls.expected_arity = None;
                let value = self.annotated(ty.as_ref(), value)?;
                self.assign(target, value, env)?;
            }
            StmtKind::Expr(expr) => {
                self.eval(expr, env)?;
            }
            StmtKind::For { target, iter, body } => return self.for_loop(target, iter, body, env),
            StmtKind::While { test, body } => return self.while_loop(test, body, env),
            StmtKind::With { context, target, body } => {
                return self.with(context, target.as_ref(), body, env);
            }
            StmtKind::Def(function) => {
                let file = self.state.calls.frames.last().map_or(0, |frame| frame.file);
                let seen = env.iter().filter(|(_, value)| !matches!(value, Value::Callee(_)));
                let seen = seen.map(|(name, value)| (name.clone(), value.clone())).collect();
                let def = FunctionDef { file, function: function.clone() };
                env.insert(function.name.clone(), Value::callee(Callee::Closure(def, seen)));
            }
            StmtKind::Scope(calls) => self.enter_modules(calls),
            StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| self.eval(value, env)).transpose()?;
                return Ok(Flow::Return(value.unwrap_or(Value::None)));
            }
            StmtKind::If { .. } | StmtKind::Pass => {}
        }
        Ok(Flow::Next)
    }

    fn for_loop(&mut self, target: &Expr, iter: &Expr, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        let items = match &iter.kind {
            ExprKind::Call(call) if matches!(&call.callee.kind, ExprKind::Name(n) if n == "range") =>
            {
                let args = self.eval_all(&call.args, env)?;
                let known = args.iter().all(|arg| arg.as_int().is_some());
                if let ([end], ExprKind::Name(name), false) = (args.as_slice(), &target.kind, known)
                {
                    let is_before: Condition<'_> = &|_, env| match (env.get(name), end) {
                        (Some(Value::Int(i)), Value::Int(end)) => {
                            Ok(Value::Bool(compare(Func::Lt, i, end)))
                        }
                        _ => in_loop("its range is not known"),
                    };
                    env.insert(name.clone(), Value::int(0));
                    return self.repeat((is_before, Some(name)), body, env);
                }
                self.range(&args)?
            }
            _ => {
                let value = self.eval(iter, env)?;
                match self.sequence(&value) {
                    Some(items) => items,
                    None => return expected("a list or range", &value),
                }
            }
        };
        let locals = locals(body, env);
        for item in items {
            self.step()?;
            self.assign(target, item, env)?;
            if let Flow::Return(value) = self.deeper(|ev| ev.block(body, env))? {
                return Ok(Flow::Return(value));
            }
            locals.iter().for_each(|name| env.remove(name));
        }
        Ok(Flow::Next)
    }

    pub(crate) fn range(&mut self, args: &[Value]) -> Step<Vec<Value>> {
        let known = args.iter().map(Value::as_int).collect::<Option<Vec<i64>>>();
        let (start, end, step) = match known.as_deref() {
            Some(&[end]) => (0, end, 1),
            Some(&[start, end]) => (start, end, 1),
            Some(&[start, end, step]) if step != 0 => (start, end, step),
            _ => return in_loop("how often it runs is not known, which is not supported yet"),
        };
        let span = if step > 0 { end.saturating_sub(start) } else { start.saturating_sub(end) };
        let count = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        if count > MAX_ITERATIONS {
            return unsupported(format!("a loop that runs more than {MAX_ITERATIONS} times"));
        }
        self.steps(count as usize)?;
        Ok((0..count as i64).map(|at| Value::int(start + at * step)).collect())
    }

    fn while_loop(&mut self, test: &Expr, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        let locals = locals(body, env);
        for _ in 0..MAX_ITERATIONS {
            let condition = self.eval(test, env)?;
            match self.truth(&condition)? {
                Some(true) => {}
                Some(false) => return Ok(Flow::Next),
                None => return self.repeat((&|ev, env| ev.eval(test, env), None), body, env),
            }
            if let Flow::Return(value) = self.deeper(|ev| ev.block(body, env))? {
                return Ok(Flow::Return(value));
            }
            locals.iter().for_each(|name| env.remove(name));
        }
        unsupported(format!("a loop that runs more than {MAX_ITERATIONS} times"))
    }

    fn with(
        &mut self,
        context: &Expr,
        target: Option<&Expr>,
        body: &[Stmt],
        env: &mut Env,
    ) -> Step<Flow> {
        let manager = self.eval(context, env)?;
        let entered = if self.has_method(&manager, "__enter__") {
            self.method(&manager, "__enter__", Vec::new(), Vec::new())?
        } else {
            Value::None
        };
        if let Some(target) = target {
            self.assign(target, entered, env)?;
        }
        let within = self.autocast_within(&manager)?;
        let around = std::mem::replace(&mut self.state.calls.autocast, within);
        let flow = self.deeper(|ev| ev.block(body, env));
        self.state.calls.autocast = around;
        let flow = flow?;
        if self.has_method(&manager, "__exit__") {
            self.method(&manager, "__exit__", vec![Value::None; 3], Vec::new())?;
        }
        Ok(flow)
    }

    /// A value as the type says that it has.
    pub(crate) fn annotated(&mut self, ty: Option<&Expr>, value: Value) -> Step<Value> {
        match ty {
            Some(ty) => self.annotate(&Type::of(ty), value),
            None => Ok(value),
        }
    }

    fn assign(&mut self, target: &Expr, value: Value, env: &mut Env) -> Step<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                env.insert(name.clone(), value);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let items = match (self.sequence(&value), &value) {
                    (Some(items), _) => items,
                    // PyTorch raises if the list has another length.
                    (None, Value::List(_)) => {
                        let at = (0..targets.len()).map(|i| Value::int(i as i64));
                        at.map(|at| self.get_item(&value, &at)).collect::<Step<_>>()?
                    }
                    _ => return expected("a tuple or list", &value),
                };
                if items.len() != targets.len() {
                    let (found, wanted) = (items.len(), targets.len());
                    return raises(format!("ValueError: {found} values for {wanted}"));
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(target, item, env)?;
                }
                Ok(())
            }
            ExprKind::Attr(base, name) => match self.eval(base, env)? {
                Value::Object(object) => {
                    self.budget.elements = self.budget.elements.saturating_add(1);
                    if let Some(Item::Object { attributes, .. }) = self.state.heap.get_mut(object.0)
                    {
                        attributes.insert(name.clone(), value);
                    }
                    Ok(())
                }
                other => expected("an object", &other),
            },
            ExprKind::Index(base, index) => {
                let (base, index) = (self.eval(base, env)?, self.eval(index, env)?);
                self.set_item(&base, &index, value)
            }
            _ => unsupported("this assignment"),
        }
    }
}

fn locals(body: &[Stmt], env: &Env) -> Vec<Name> {
    let mut names = Vec::new();
    assigned(body, &mut names);
    names.retain(|name| !env.contains_key(name));
    names
}

/// Whether a branch does nothing but raise.
fn only_raises(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Expr(expr) => match &expr.kind {
            ExprKind::Call(call) => {
                call.callee.dotted().is_some_and(|name| name == "ops.prim.RaiseException")
            }
            _ => false,
        },
        StmtKind::If { then, other, .. } => only_raises(then) && only_raises(other),
        _ => false,
    })
}
