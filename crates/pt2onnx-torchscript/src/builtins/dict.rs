//! Runs methods of dicts.

use crate::{
    error::Problem,
    eval::{Evaluator, Step},
    value::{Ref, Value},
};

impl Evaluator<'_> {
    /// The result of an operator on a dict; `None` if it is another operator.
    pub(crate) fn on_dict(&mut self, name: &str, dict: Ref, args: &[Value]) -> Step<Option<Value>> {
        let entries = self.entries(dict).to_vec();
        self.steps(entries.len())?;
        let find = |ev: &Self, key: &Value| ev.place_of(entries.iter().map(|(k, _)| k), key);
        Ok(Some(match (name, args) {
            ("len", [_]) => Value::int(i64::try_from(entries.len()).unwrap_or(i64::MAX)),
            ("keys", [_]) => self.list(entries.into_iter().map(|(k, _)| k).collect(), None)?,
            ("values", [_]) => self.list(entries.into_iter().map(|(_, v)| v).collect(), None)?,
            ("items", [_]) => {
                let pairs = entries.into_iter().map(|(k, v)| Value::tuple(vec![k, v])).collect();
                self.list(pairs, None)?
            }
            ("copy" | "dict", [_]) => self.dict(entries)?,
            ("__getitem__", [dict, key]) => self.get_item(dict, key)?,
            ("_set_item", [dict, key, value]) => {
                self.set_item(dict, key, value.clone())?;
                Value::None
            }
            ("__contains__" | "contains", [_, key]) => Value::bool(find(self, key)?.is_some()),
            ("get" | "setdefault", [of, key, rest @ ..]) => {
                let found = find(self, key)?.and_then(|at| entries.get(at));
                match found {
                    Some((_, value)) => value.clone(),
                    None => {
                        let default = rest.first().cloned().unwrap_or(Value::None);
                        if name == "setdefault" {
                            self.set_item(of, key, default.clone())?;
                        }
                        default
                    }
                }
            }
            ("pop" | "Delete", [_, key, rest @ ..]) => match (find(self, key)?, rest) {
                (Some(at), _) => self.entries_mut(dict)?.remove(at).1,
                (None, [default, ..]) => default.clone(),
                (None, []) => return Err(Problem::Raises("KeyError".to_owned())),
            },
            ("popitem", [_]) => match self.entries_mut(dict)?.pop() {
                Some((key, value)) => Value::tuple(vec![key, value]),
                None => return Err(Problem::Raises("KeyError".to_owned())),
            },
            ("clear", [_]) => {
                self.entries_mut(dict)?.clear();
                Value::None
            }
            ("update", [of, Value::Dict(other)]) => {
                for (key, value) in self.entries(*other).to_vec() {
                    self.set_item(of, &key, value)?;
                }
                Value::None
            }
            _ => return Ok(None),
        }))
    }
}
