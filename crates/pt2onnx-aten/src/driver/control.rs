//! Higher-order ops: their bodies become regions of `If`, `Loop` and `Scan`.
//!
//! In PyTorch, a body gets all values that it uses as operands. In ONNX, a region can use the
//! values around it, so operands that are the same in each iteration are not passed.

use super::{lower_graph::Driver, types::onnx_type};
use crate::{
    Cx, FromArg, LowerError, Lowered, TensorOrScalar,
    cx::{Call, Mode, Outputs, Scope},
};
use pt2onnx_fx::graph::{Argument, Graph, Name, Node, SymArg, ValueMeta};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl<'a> Driver<'a> {
    /// Translates a higher-order op.
    pub(super) fn higher_order(&mut self, node: &'a Node) -> Lowered<Outputs> {
        let args: Vec<&'a Argument> = node.args.iter().map(|a| &a.value).collect();
        match (&*node.target.name, args.as_slice()) {
            (
                "cond",
                [
                    predicate,
                    Argument::Graph { graph: yes, .. },
                    Argument::Graph { graph: no, .. },
                    rest @ ..,
                ],
            ) => self.cond(node, predicate, [yes, no], rest),
            (
                "while_loop",
                [
                    Argument::Graph { graph: test, .. },
                    Argument::Graph { graph: body, .. },
                    carried,
                    rest @ ..,
                ],
            ) => self.while_loop(test, body, carried, rest),
            (
                "scan",
                [
                    Argument::Graph { graph, .. },
                    init,
                    xs,
                    Argument::Int(dim),
                    Argument::Bool(reverse),
                    rest @ ..,
                ],
            ) => self.scan(graph, init, xs, *dim, *reverse, rest),
            ("scan", [Argument::Graph { graph, .. }, init, xs, rest @ ..]) => {
                self.scan(graph, init, xs, 0, false, rest)
            }
            ("map_impl", [Argument::Graph { graph, .. }, xs, rest @ ..]) => {
                self.scan(graph, &Argument::Tensors(Vec::new()), xs, 0, false, rest)
            }
            ("associative_scan", [Argument::Graph { graph, .. }, xs, rest @ ..]) => {
                self.associative_scan(graph, xs, rest)
            }
            (name, _) => Err(LowerError::unsupported(format!(
                "the higher-order op {name} with these arguments is not supported"
            ))),
        }
    }

    /// `If`. The branches use the operands as values of the graph around them.
    fn cond(
        &mut self,
        node: &'a Node,
        predicate: &Argument,
        branches: [&'a Graph; 2],
        operands: &[&Argument],
    ) -> Lowered<Outputs> {
        let operands = self.operands(operands)?;
        let predicate = self.predicate(predicate)?;
        let mut regions = Vec::new();
        for branch in branches {
            let (region, _) = self.builder.open_region(&[]);
            let outputs = self.body(branch, &[], &operands, 0);
            self.builder.close_region(outputs.as_deref().unwrap_or_default());
            outputs?;
            regions.push(region);
        }
        let count = self.results(node).len();
        Ok(self.builder.if_op(count, predicate, regions[0], regions[1]).to_vec().into())
    }

    /// The condition as a 0-d bool.
    fn predicate(&self, predicate: &Argument) -> Lowered {
        let value = match predicate {
            Argument::SymBool(SymArg::Name(name)) => match self.scope.meta(name) {
                Some(ValueMeta::SymBool { expr, .. }) => self.builder.number(expr),
                _ => {
                    return Err(LowerError::unsupported(format!("`{name}` has no expression")));
                }
            },
            other => Value::from_arg(&self.context(), other).map_err(LowerError::Unsupported)?,
        };
        Ok(self.builder.reshape(self.builder.cast(value, DType::Bool), &[]))
    }

    /// `Loop` without a trip count. The condition is computed before the first iteration and at the
    /// end of each one.
    fn while_loop(
        &mut self,
        test: &'a Graph,
        body: &'a Graph,
        carried: &Argument,
        rest: &[&Argument],
    ) -> Lowered<Outputs> {
        let carried = self.tensors_of(carried)?;
        let additional = self.operands(rest)?;
        let go_on = |driver: &mut Self, carried: &[Value]| -> Lowered {
            // The test is translated twice, over other values.
            driver.builder.open_scope();
            let verdict = driver.body(test, carried, &additional, carried.len());
            driver.builder.close_scope();
            let verdict = verdict?
                .first()
                .copied()
                .ok_or_else(|| LowerError::unsupported("its condition gives no result"))?;
            Ok(driver.builder.reshape(driver.builder.cast(verdict, DType::Bool), &[]))
        };
        let start = go_on(self, &carried)?;

        let mut types = vec![Type::tensor(DType::I64, []), Type::tensor(DType::Bool, [])];
        types.extend(self.input_types(body, &carried));
        let (region, inputs) = self.builder.open_region(&types);
        let next: Lowered<Vec<Value>> = (|| {
            let next = self.body(body, &inputs[2..], &additional, carried.len())?;
            let mut outputs = vec![go_on(self, &next)?];
            outputs.extend(next);
            Ok(outputs)
        })();
        self.builder.close_region(next.as_deref().unwrap_or_default());
        next?;
        Ok(self.builder.loop_op(carried.len(), None, start, &carried, region).to_vec().into())
    }

    /// `Scan` over slices of `xs` along `dim`. The carried values start as `init`. The other
    /// results of the body are stacked along dimension 0.
    fn scan(
        &mut self,
        body: &'a Graph,
        init: &Argument,
        xs: &Argument,
        dim: i64,
        reverse: bool,
        rest: &[&Argument],
    ) -> Lowered<Outputs> {
        let init = self.tensors_of(init)?;
        let xs = self.tensors_of(xs)?;
        let xs = xs
            .iter()
            .map(|&x| Ok(self.to_front(x, self.context().axis(x, dim)?)))
            .collect::<Lowered<Vec<_>>>()?;
        let additional = self.operands(rest)?;
        Ok(self.emit_scan(body, &init, &xs, &additional, reverse, false)?.into())
    }

    /// `Scan` over dimension 0 of `xs`. If the results are `doubled`, the body gives them twice: as
    /// carried values, and to be stacked.
    fn emit_scan(
        &mut self,
        body: &'a Graph,
        init: &[Value],
        xs: &[Value],
        additional: &[TensorOrScalar],
        reverse: bool,
        doubled: bool,
    ) -> Lowered<Vec<Value>> {
        let inputs = [init, xs].concat();
        let (region, slices) = self.builder.open_region(&self.input_types(body, &inputs));
        let outputs = self.body(body, &slices, additional, 0);
        let outputs = outputs.map(|all| if doubled { all.repeat(2) } else { all });
        self.builder.close_region(outputs.as_deref().unwrap_or_default());
        let count = outputs?.len();
        let direction = |n: usize| reverse.then(|| vec![1; n]);
        let options = pt2onnx_ir::attrs::Scan {
            scan_input_directions: direction(xs.len()),
            scan_output_directions: direction(count - init.len().min(count)),
            ..Default::default()
        };
        Ok(self.builder.scan_op(count, &inputs, region, xs.len() as i64, options).to_vec())
    }

    /// `Scan` over all slices but the first. It carries the combination of all slices so far, and
    /// stacks these.
    fn associative_scan(
        &mut self,
        body: &'a Graph,
        xs: &Argument,
        rest: &[&Argument],
    ) -> Lowered<Outputs> {
        let xs = self.tensors_of(xs)?;
        let additional = self.operands(rest)?;
        // Some bodies get slices that keep dimension 0, with size 1.
        let slices_keep_dim = body.inputs.first().and_then(|a| self.body_rank(body, a))
            == xs.first().map(|&x| self.builder.rank(x));
        let first = |x: Value| {
            if slices_keep_dim {
                self.builder.slice(x, 0, &Expr::int(0), &Expr::int(1), 1)
            } else {
                self.builder.take(x, 0, &Expr::int(0))
            }
        };
        let init: Vec<Value> = xs.iter().map(|&x| first(x)).collect();
        let tail: Vec<Value> = xs
            .iter()
            .map(|&x| self.builder.slice(x, 0, &Expr::int(1), &self.builder.dim(x, 0), 1))
            .collect();
        let scanned: Vec<Value> = tail
            .iter()
            .map(|&x| if slices_keep_dim { self.builder.unsqueeze(x, &[1]) } else { x })
            .collect();
        let results = self.emit_scan(body, &init, &scanned, &additional, false, true)?;
        let rows =
            results.into_iter().skip(init.len()).zip(&init).zip(&xs).map(|((rows, &head), &x)| {
                let (head, rows) = if slices_keep_dim {
                    (head, self.builder.squeeze(rows, &[1]))
                } else {
                    (self.builder.unsqueeze(head, &[0]), rows)
                };
                let all = self.builder.concat(&[head, rows], 0);
                self.builder
                    .set_type(all, Type::tensor(self.builder.dtype(x), self.builder.shape(x)));
                Some(all)
            });
        Ok(Outputs(rows.collect()))
    }

    /// The rank of an input of a body, with the dimension of real/imaginary pairs.
    fn body_rank(&self, body: &Graph, input: &Argument) -> Option<usize> {
        match body.values.get(input.name()?)? {
            ValueMeta::Tensor(meta) => {
                Some(meta.sizes.len() + usize::from(meta.dtype.is_complex()))
            }
            _ => None,
        }
    }

    /// `x` with dimension `axis` moved to the front.
    fn to_front(&self, x: Value, axis: usize) -> Value {
        let others = (0..self.builder.rank(x)).filter(|&a| a != axis);
        let perm: Vec<usize> = std::iter::once(axis).chain(others).collect();
        self.builder.transpose(x, &perm)
    }

    /// The types of a body's first inputs, which are these values or slices of them: as recorded,
    /// or else those of the values.
    fn input_types(&self, body: &Graph, values: &[Value]) -> Vec<Type> {
        let recorded = |input: Option<&Argument>| match body.values.get(input?.name()?)? {
            ValueMeta::Tensor(meta) => Some(onnx_type(meta)),
            ValueMeta::SymInt { .. } => Some(Type::tensor(DType::I64, [])),
            ValueMeta::SymFloat { .. } => Some(Type::tensor(DType::F64, [])),
            ValueMeta::SymBool { .. } => Some(Type::tensor(DType::Bool, [])),
            ValueMeta::CustomObj { .. } => None,
        };
        let or_given = |v: &Value| {
            self.builder.type_of(*v).unwrap_or(Type::tensor(self.builder.dtype(*v), []))
        };
        values
            .iter()
            .enumerate()
            .map(|(i, v)| recorded(body.inputs.get(i)).unwrap_or_else(|| or_given(v)))
            .collect()
    }

    /// The operands. A list gives several.
    fn operands(&self, args: &[&Argument]) -> Lowered<Vec<TensorOrScalar>> {
        let mut operands = Vec::new();
        let cx = self.pairs_context();
        let mut push = |arg: Argument| -> Lowered<()> {
            operands.push(TensorOrScalar::from_arg(&cx, &arg).map_err(LowerError::Unsupported)?);
            Ok(())
        };
        for arg in args {
            match arg {
                Argument::Tensors(names) => {
                    names.iter().try_for_each(|n| push(Argument::Tensor(n.clone())))?
                }
                Argument::Ints(all) => all.iter().try_for_each(|&i| push(Argument::Int(i)))?,
                Argument::SymInts(all) => {
                    all.iter().try_for_each(|s| push(Argument::SymInt(s.clone())))?
                }
                other => push((*other).clone())?,
            }
        }
        Ok(operands)
    }

    /// An operand that is a list of tensors or numbers, as tensors.
    fn tensors_of(&self, arg: &Argument) -> Lowered<Vec<Value>> {
        Ok(self.operands(&[arg])?.iter().map(|o| self.tensor_of(o)).collect())
    }

    /// An operand as a tensor. Numbers become 0-d tensors; lists that are one value stay what they
    /// are.
    fn tensor_of(&self, operand: &TensorOrScalar) -> Value {
        if let TensorOrScalar::Tensor(value) = operand
            && self.builder.type_of(*value).is_some_and(|ty| ty.as_tensor().is_none())
        {
            return *value;
        }
        let dtype = self.context().result_type(std::slice::from_ref(operand));
        self.context().as_tensor(operand, dtype)
    }

    /// Translates a body into the open region, with values and operands as its inputs. The first
    /// `carried` inputs have another value each time. Returns its outputs.
    fn body(
        &mut self,
        graph: &'a Graph,
        values: &[Value],
        operands: &[TensorOrScalar],
        carried: usize,
    ) -> Lowered<Vec<Value>> {
        let operands = operands.iter().map(|o| self.tensor_of(o));
        let values: Vec<Value> = values.iter().copied().chain(operands).collect();
        let outer = std::mem::replace(&mut self.scope, Scope::of(graph));
        for (at, (input, &value)) in graph.inputs.iter().zip(&values).enumerate() {
            if let Some(name) = input.name() {
                self.body_input(name, value, at < carried);
            }
        }
        let origin = self.builder.origin();
        self.nodes(graph);
        self.builder.set_origin(origin);
        let outputs = graph.outputs.iter().map(|o| self.body_output(o)).collect();
        self.scope = outer;
        outputs
    }

    /// Binds an input of a body to its value, and the symbols in its type to their places. A
    /// carried input can have another value and other sizes in each iteration.
    fn body_input(&mut self, name: &'a Name, value: Value, is_carried: bool) {
        match self.scope.meta(name) {
            Some(
                ValueMeta::SymInt { expr, .. }
                | ValueMeta::SymFloat { expr, .. }
                | ValueMeta::SymBool { expr, .. },
            ) => match expr.as_symbol() {
                Some(symbol) if is_carried => self.builder.rebind_scalar(symbol, value),
                _ => self.builder.bind_scalar(expr.clone(), value),
            },
            Some(ValueMeta::Tensor(meta)) => {
                let own = self.builder.shape(value);
                for (axis, (size, own)) in meta.sizes.iter().zip(&own).enumerate() {
                    if let Some(symbol) = size.as_symbol().filter(|_| is_carried && size != own) {
                        self.builder.rebind_dim(symbol, value, axis);
                    }
                }
                let bound = |d: &Expr| d.all_symbols(|s| self.builder.is_bound(s));
                if !meta.sizes.iter().all(bound) {
                    self.builder.bind_recorded_dims(value, &meta.sizes);
                }
                self.scope.define(name, value);
            }
            _ => self.scope.define(name, value),
        }
    }

    /// An output of a body as a tensor.
    fn body_output(&self, output: &Argument) -> Lowered {
        let operand = TensorOrScalar::from_arg(&self.pairs_context(), output);
        Ok(self.tensor_of(&operand.map_err(LowerError::Unsupported)?))
    }

    /// A context in which complex tensors are real/imaginary pairs, as bodies take and give them.
    fn pairs_context(&self) -> Cx<'_, 'a> {
        self.cx(Call { mode: Mode::Complex, ..Call::default() })
    }
}
