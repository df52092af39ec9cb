//! State: attributes that a method gives tensors of other types or sizes, or other numbers.
//! Later calls see what the first one left.

use crate::{
    control::phi::plain_meta,
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    note::Note,
    schema::Type,
    types::of_data,
    value::{Item, Value},
};
use indexmap::IndexMap;
use pt2onnx_fx::{Argument, InputSpec, Name, OutputKind, OutputSpec};
use pt2onnx_symbolic::{Expr, Range};
use pt2onnx_tensor::DType;
use std::mem::discriminant;

/// How deeply lists and tuples of state may nest.
const MAX_NESTING: usize = 8;

/// An attribute: the object's place in the heap, which is the same whenever the archive is loaded,
/// and its name.
pub(crate) type Slot = (usize, Name);

/// The types of attributes when the method is called.
pub(crate) type ModuleState = IndexMap<Slot, StateType>;

/// The type of an attribute when the method is called.
#[derive(Clone, Debug)]
pub(crate) enum StateType {
    /// A tensor: an input of the model.
    Tensor(DType, Vec<Expr>),
    /// A number that changes from call to call: a 0-d input of the model.
    Number(DType),
    /// The same in all calls but the first.
    Fixed(Value),
    Parts(Container, Vec<StateType>),
}

/// The kind of a value with parts; that of a list has the type of its elements.
#[derive(Clone, Debug)]
pub(crate) enum Container {
    Tuple,
    List(Option<Type>),
}

/// An attribute as the method found it.
pub(crate) struct AttributeValue {
    pub(crate) slot: Slot,
    pub(crate) value: Value,
}

impl Evaluator<'_> {
    /// All attributes of objects that may be state.
    pub(crate) fn attributes(&self) -> Vec<AttributeValue> {
        let mut found = Vec::new();
        for (at, item) in self.state.heap.iter().enumerate() {
            let Item::Object { attributes, .. } = item else { continue };
            for (name, value) in attributes {
                if !matches!(value, Value::Object(_) | Value::Callee(_) | Value::Packed(_)) {
                    let slot = (at, name.clone());
                    found.push(AttributeValue { slot, value: value.clone() });
                }
            }
        }
        found
    }

    pub(crate) fn attribute_now(&self, slot: &Slot) -> Option<Value> {
        match self.state.heap.get(slot.0)? {
            Item::Object { attributes, .. } => attributes.get(&slot.1).cloned(),
            _ => None,
        }
    }

    fn path_of(&self, slot: &Slot) -> String {
        match self.state.heap.get(slot.0) {
            Some(Item::Object { path, .. }) if !path.is_empty() => format!("{path}.{}", slot.1),
            _ => slot.1.to_string(),
        }
    }

    /// Gives attributes what they hold before a later call.
    pub(crate) fn assume(&mut self, state: &ModuleState) -> Step<()> {
        for (slot, held) in state {
            let path = self.path_of(slot);
            if let Some(old) = self.attribute_now(slot) {
                self.drop_input(slot, &old);
            }
            let value = self.assumed(held, &path)?;
            if let Some(Item::Object { attributes, .. }) = self.state.heap.get_mut(slot.0) {
                attributes.insert(slot.1.clone(), value);
            }
        }
        Ok(())
    }

    /// Drops the input of a tensor that only this attribute held.
    fn drop_input(&mut self, slot: &Slot, old: &Value) {
        let others = self.attributes();
        let mut others = others.iter().filter(|found| found.slot != *slot);
        if !others.any(|found| self.same(&found.value, old))
            && let Value::Tensor(name) = old
            && let Some(at) = self.interface.specs.iter().position(|spec| spec.name() == Some(name))
        {
            self.interface.specs.remove(at);
            self.interface.inputs.remove(at);
        }
    }

    fn assumed(&mut self, held: &StateType, path: &str) -> Step<Value> {
        Ok(match held {
            StateType::Fixed(value) => value.clone(),
            StateType::Tensor(dtype, sizes) => Value::Tensor(self.state_input(path, *dtype, sizes)),
            StateType::Number(dtype) => {
                let name = self.state_input(path, *dtype, &[]);
                self.scalar_of(&Value::Tensor(name), &Type::Number)?
            }
            StateType::Parts(container, items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(at, held)| self.assumed(held, &format!("{path}.{at}")));
                let items = items.collect::<Step<_>>()?;
                match container {
                    Container::Tuple => self.tuple(items, None)?,
                    Container::List(element) => self.list(items, element.clone())?,
                }
            }
        })
    }

    fn state_input(&mut self, path: &str, dtype: DType, sizes: &[Expr]) -> Name {
        for symbol in sizes.iter().flat_map(Expr::symbols) {
            self.state.facts.constraints.constrain(&Expr::symbol(&symbol), Range::at_least(0));
        }
        let wish = format!("b_{}", path.replace('.', "_"));
        let name = self.new_input(&wish, plain_meta(dtype, sizes.to_vec()));
        let taken = |spec: &InputSpec| {
            matches!(spec, InputSpec::Buffer { target, .. } | InputSpec::Parameter { target, .. }
                if **target == *path)
        };
        let taken = self.interface.specs.iter().any(taken);
        let target = Name::from(format!("{path}{}", if taken { ".state" } else { "" }));
        self.interface.state_inputs.push((path.to_owned(), name.clone(), target.clone()));
        let spec = InputSpec::Buffer { name: name.clone(), target, persistent: false };
        self.interface.specs.push(spec);
        name
    }

    /// Learns from a run what later calls find in attributes. Returns whether they find something
    /// else than this run did.
    pub(crate) fn record_state(
        &mut self,
        before: &[AttributeValue],
        state: &mut ModuleState,
    ) -> Step<bool> {
        let mut changed = false;
        for AttributeValue { slot, value: old } in before {
            let Some(new) = self.attribute_now(slot) else { continue };
            if self.same(old, &new) || self.is_ordinary(old, &new) && !state.contains_key(slot) {
                continue;
            }
            let path = self.path_of(slot);
            let Some(held) = self.held(&new, MAX_NESTING) else {
                return unsupported(format!(
                    "the attribute `{path}`, which becomes {}, as state",
                    new.kind()
                ));
            };
            let known = state.get(slot).cloned().or_else(|| {
                let meta = self.meta(old.tensor().ok()?).ok()?;
                if meta.sizes.contains(&Expr::ZERO) { None } else { self.held(old, MAX_NESTING) }
            });
            let mut grew = !state.contains_key(slot);
            let next = match &known {
                Some(known) => self.joined_state(known, &held, &path, &mut grew),
                None => Some(held),
            };
            let Some(next) = next else {
                return unsupported(format!(
                    "the attribute `{path}`, whose type changes from call to call,"
                ));
            };
            state.insert(slot.clone(), next);
            changed |= grew;
        }
        Ok(changed)
    }

    /// Whether a tensor is replaced by one of the same type and sizes, which needs no second run.
    pub(crate) fn is_ordinary(&self, old: &Value, new: &Value) -> bool {
        let type_of = |value: &Value| {
            let meta = self.meta(value.tensor().ok()?).ok()?;
            Some((meta.dtype, &meta.sizes))
        };
        type_of(old).is_some_and(|old| type_of(new) == Some(old))
    }

    /// The type of a value for a later call; `None` if it cannot be state.
    fn held(&self, value: &Value, depth: usize) -> Option<StateType> {
        let parts = |container, items: &[Value]| {
            let items = items.iter().map(|item| self.held(item, depth.checked_sub(1)?));
            Some(StateType::Parts(container, items.collect::<Option<_>>()?))
        };
        Some(match value {
            Value::Tensor(name) => {
                let meta = self.meta(name).ok()?;
                StateType::Tensor(meta.dtype, meta.sizes.clone())
            }
            Value::Int(e) | Value::Bool(e) | Value::Float(e) if of_data(e) => {
                StateType::Number(value.number_dtype()?)
            }
            Value::None
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Enum(_)
            | Value::Device(_) => StateType::Fixed(value.clone()),
            Value::Tuple(tuple) => parts(Container::Tuple, &tuple.items)?,
            Value::List(list) => parts(Container::List(self.element(value)), self.items(*list))?,
            _ => return None,
        })
    }

    /// The type that holds before each call, given those before and after one. `grew` becomes true
    /// if it is not the first one.
    fn joined_state(
        &self,
        a: &StateType,
        b: &StateType,
        path: &str,
        grew: &mut bool,
    ) -> Option<StateType> {
        Some(match (a, b) {
            (StateType::Tensor(a, x), StateType::Tensor(b, y)) if a == b && x.len() == y.len() => {
                let sizes = x.iter().zip(y).enumerate().map(|(at, (x, y))| {
                    let equal = self.state.facts.constraints.prove_eq(x, y) == Some(true);
                    if equal && !of_data(x) {
                        return x.clone();
                    }
                    let legal = |c: char| if c.is_alphanumeric() { c } else { '_' };
                    let name: String = path.chars().map(legal).collect();
                    let size = Expr::symbol(&format!("{}_{at}", name.trim_start_matches('_')));
                    *grew |= size != *x;
                    size
                });
                StateType::Tensor(*a, sizes.collect())
            }
            (StateType::Fixed(x), StateType::Fixed(y)) if self.same(x, y) => a.clone(),
            (StateType::Fixed(x), StateType::Fixed(y)) => {
                let dtype = x.number_dtype().filter(|dtype| y.number_dtype() == Some(*dtype))?;
                *grew = true;
                StateType::Number(dtype)
            }
            (StateType::Number(x), StateType::Number(y)) if x == y => a.clone(),
            (StateType::Number(x), StateType::Fixed(y)) if y.number_dtype() == Some(*x) => {
                a.clone()
            }
            (StateType::Fixed(x), StateType::Number(y)) if x.number_dtype() == Some(*y) => {
                *grew = true;
                b.clone()
            }
            (StateType::Parts(container, a), StateType::Parts(other, b))
                if discriminant(container) == discriminant(other) && a.len() == b.len() =>
            {
                let pairs = a.iter().zip(b).enumerate();
                let joined = pairs
                    .map(|(at, (a, b))| self.joined_state(a, b, &format!("{path}.{at}"), grew));
                StateType::Parts(container.clone(), joined.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// The outputs of what is held: the values that a later call finds.
    pub(crate) fn state_outputs(&mut self, state: &ModuleState) -> Step<Vec<OutputSpec>> {
        let mut outputs = Vec::new();
        for slot in state.keys() {
            let path = self.path_of(slot);
            if let Some(value) = self.attribute_now(slot) {
                self.state_output(&value, &path, &mut outputs)?;
            }
        }
        Ok(outputs)
    }

    fn state_output(
        &mut self,
        value: &Value,
        path: &str,
        outputs: &mut Vec<OutputSpec>,
    ) -> Step<()> {
        if let Some(items) = self.sequence(value) {
            for (at, item) in items.iter().enumerate() {
                self.state_output(item, &format!("{path}.{at}"), outputs)?;
            }
            return Ok(());
        }
        let input = self.interface.state_inputs.iter().find(|(held, ..)| held == path);
        let Some((_, _, target)) = input.cloned() else {
            return Ok(());
        };
        let value = Argument::Tensor(self.number_tensor(value)?.tensor()?.clone());
        outputs.push(OutputSpec { kind: OutputKind::BufferMutation, value, target });
        Ok(())
    }

    /// The types of attributes in the archive.
    pub(crate) fn saved_state(&self, found: &[AttributeValue]) -> ModuleState {
        let held = found.iter().map(|found| (found, self.held(&found.value, MAX_NESTING)));
        held.filter_map(|(found, held)| Some((found.slot.clone(), held?))).collect()
    }

    /// Whether a value is one of those that the model takes.
    fn is_case_of(&self, value: &StateType, held: &StateType) -> bool {
        match (value, held) {
            (StateType::Tensor(a, x), StateType::Tensor(b, y)) => {
                let fits = |(x, y): (&Expr, &Expr)| {
                    x == y
                        || y.as_symbol().is_some()
                            && !self.state.facts.constraints.prove_ge(y, &Expr::ONE)
                };
                a == b && x.len() == y.len() && x.iter().zip(y).all(fits)
            }
            (StateType::Fixed(value), StateType::Number(dtype)) => {
                value.number_dtype() == Some(*dtype)
            }
            (StateType::Parts(_, a), StateType::Parts(_, b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is_case_of(a, b))
            }
            _ => false,
        }
    }

    /// Says of each state what the model takes for it.
    pub(crate) fn explain_state(&mut self, state: &ModuleState, saved: &ModuleState, alike: bool) {
        for (slot, held) in state {
            let fits = saved.get(slot).is_some_and(|saved| self.is_case_of(saved, held));
            let path = self.path_of(slot);
            let text = match held {
                StateType::Fixed(_) => continue,
                StateType::Number(dtype) => {
                    format!("`{path}` is a number that changes: the model takes it as {dtype}[]")
                }
                StateType::Tensor(dtype, sizes) => {
                    let sizes: Vec<String> = sizes.iter().map(Expr::to_string).collect();
                    format!(
                        "`{path}` is {dtype}[{}] after the first call, and the model takes it so",
                        sizes.join(",")
                    )
                }
                StateType::Parts(..) => {
                    format!(
                        "`{path}` holds other tensors after the first call, and the model takes those"
                    )
                }
            };
            let first = match (fits, alike) {
                (true, _) => "begin with the module's value",
                (_, true) => "begin with zeros, which give what the first call gives",
                (_, false) => {
                    "the first call of the module finds none, and may compute something else than the model does with any start"
                }
            };
            let text = format!("the state {text}; {first}");
            self.state.warnings.push(Note { site: None, text });
        }
    }

    /// The paths of attributes that change without being kept.
    pub(crate) fn lost_attributes(&self, before: &[AttributeValue]) -> Vec<String> {
        let lost = before.iter().filter(|AttributeValue { slot, value: old }| {
            self.attribute_now(slot)
                .is_some_and(|new| !self.same(old, &new) && !self.is_ordinary(old, &new))
        });
        lost.map(|found| self.path_of(&found.slot)).collect()
    }
}

/// The problem that the types of state do not settle.
pub(crate) fn unsettled() -> Problem {
    Problem::Unsupported("state whose type changes with each call".to_owned())
}
