//! Operators that change the sizes of a tensor in place: `x.t_()`, `x.unsqueeze_(0)`, `torch.mul(a,
//! b, out=x)`. Their result takes the place of the tensor by all of its names.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, overload::Bound, unsupported},
    schema::Schema,
    value::Value,
};
use pt2onnx_fx::{InputSpec, Name, archive::c10_number};
use pt2onnx_schemas::Writes;

impl Evaluator<'_> {
    /// Calls such an operator; `None` if it is another one.
    pub(crate) fn view_in_place(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        let (Some(Value::Tensor(tensor)), Some(view)) = (args.first(), name.strip_suffix('_'))
        else {
            return Ok(None);
        };
        let is_view = || match pt2onnx_schemas::writes(&format!("aten::{name}")) {
            Some(Writes::First(Some(variant))) => variant.is_view,
            _ => false,
        };
        // `detach_` changes no sizes.
        if namespace != "aten" || view == "detach" || !is_view() {
            return Ok(None);
        }
        let made = self.operator("aten", view, args.to_vec(), kwargs.clone())?;
        if let Value::Tensor(view) = &made {
            self.take_place(tensor, view)?;
        }
        Ok(Some(made))
    }

    /// A call with `out=`: the result is written into it, or takes its place if the sizes differ.
    pub(crate) fn in_place_of(
        &mut self,
        full: &str,
        schema: &Schema,
        mut bound: Bound,
        at: usize,
    ) -> Step<Value> {
        let Some(Value::Tensor(out)) = bound.get_mut(at).and_then(Option::take) else {
            return self.emit(schema, bound);
        };
        let (mut args, mut kwargs) = (Vec::new(), Kwargs::new());
        for (value, param) in bound.into_iter().zip(&schema.params) {
            match value {
                Some(value) if param.keyword => kwargs.push((param.name.clone(), value)),
                Some(value) => args.push(value),
                None => {}
            }
        }
        let (namespace, name) = full.split_once("::").unwrap_or(("aten", full));
        let made = self.operator(namespace, name, args, kwargs)?;
        let dtype = c10_number(self.meta(&out)?.dtype).map_or(Value::None, Value::int);
        let made = self.operator("aten", "to", vec![made, dtype], Kwargs::new())?;
        let Value::Tensor(name) = &made else { return Ok(made) };
        let meta = self.meta(&self.current(&out))?.clone();
        if self.same_type(self.meta(name)?, (meta.dtype, &meta.sizes)).is_ok() {
            return self.operator("aten", "copy_", vec![Value::Tensor(out), made], Kwargs::new());
        }
        self.take_place(&out, name)?;
        Ok(made)
    }

    fn take_place(&mut self, old: &Name, new: &Name) -> Step<()> {
        let object = self.object_of(old);
        if !self.state.is_of_region(&object) {
            return unsupported("changing the sizes of a tensor in place where data decide");
        }
        let is_state = |spec: &InputSpec| {
            let state = matches!(spec, InputSpec::Parameter { .. } | InputSpec::Buffer { .. });
            state && spec.name() == Some(&object)
        };
        if self.interface.specs.iter().any(is_state) {
            return unsupported("changing the sizes of a parameter or buffer in place");
        }
        self.memory.newest.insert(object.clone(), new.clone());
        self.memory.identity.insert(new.clone(), object);
        Ok(())
    }

    /// The tensor that this one is by another name: that of its first value.
    fn object_of(&self, name: &Name) -> Name {
        let whole = self.memory.write_base_of(name);
        self.memory.identity.get(&whole).cloned().unwrap_or(whole)
    }
}
