//! Calls: of names that are built in, functions, classes and methods, and of the root module with
//! its hooks.

use crate::{
    eval::{Env, Evaluator, Flow, Step, expected, is_plain, raises, unbound, unsupported},
    schema::Type,
    state::Frame,
    value::{Callee, Item, Ref, Value},
};
use indexmap::IndexMap;
use pt2onnx_fx::{ModuleFrame, Name};
use pt2onnx_torchscript_archive::{
    ClassDef, FunctionDef, python_name,
    syntax::{Call, ExprKind, Operator},
};
use std::sync::Arc;

pub(crate) type Kwargs = Vec<(Name, Value)>;

impl Evaluator<'_> {
    pub(crate) fn call(&mut self, call: &Call, env: &Env) -> Step<Value> {
        if let ExprKind::Name(name) = &call.callee.kind
            && !env.contains_key(name)
        {
            return self.word(name, call, env);
        }
        let callee = self.eval(&call.callee, env)?;
        let args = self.eval_all(&call.args, env)?;
        let mut kwargs = Kwargs::with_capacity(call.kwargs.len());
        for (name, value) in &call.kwargs {
            kwargs.push((name.clone(), self.eval(value, env)?));
        }
        self.set_at(call.callee.at);
        self.apply(&callee, args, kwargs)
    }

    /// A node of a graph, whose arguments are all those of the schema.
    pub(crate) fn call_operator(&mut self, call: &Operator, env: &Env) -> Step<Value> {
        let Operator { name, args } = call;
        let mut args = self.eval_all(args, env)?;
        let (namespace, own) = name.split_once("::").unwrap_or(("aten", name));
        let kwargs = self.keywords(name, &mut args);
        self.operator(namespace, own, args, kwargs)
    }

    /// A call of a name that is built in: `annotate(List[int], [])`.
    fn word(&mut self, name: &str, call: &Call, env: &Env) -> Step<Value> {
        match (name, call.args.as_slice()) {
            ("annotate", [ty, value]) => {
                let value = self.eval(value, env)?;
                return self.annotate(&Type::of(ty), value);
            }
            ("unchecked_cast", [ty, value]) => {
                return Ok(match (self.eval(value, env)?, Type::of(ty)) {
                    (value, Type::Optional(_)) => value,
                    (Value::Optional(maybe), _) => maybe.value.clone(),
                    (value, _) => value,
                });
            }
            ("uninitialized", _) => return Ok(Value::Undef("an uninitialised value".into())),
            ("isinstance", [value, types]) => {
                let value = self.eval(value, env)?;
                if let Value::Optional(_) = value {
                    return expected("a value of one type", &value);
                }
                let types = match &types.kind {
                    ExprKind::Tuple(types) | ExprKind::List(types) => types.as_slice(),
                    _ => std::slice::from_ref(types),
                };
                let mut types = types.iter().map(Type::of);
                return Ok(types.any(|ty| self.is_instance(&value, &ty)).into());
            }
            ("getattr", [base, name, ..]) => {
                let base = self.eval(base, env)?;
                let ExprKind::Str(name) = &name.kind else {
                    return unsupported("getattr of a computed name");
                };
                return self.attribute(&base, &(**name).into());
            }
            ("fork", [callee, args @ ..]) => {
                let callee = self.eval(callee, env)?;
                let args = self.eval_all(args, env)?;
                return self.apply(&callee, args, Kwargs::new());
            }
            _ => {}
        }
        let args = self.eval_all(&call.args, env)?;
        match (name, args.first()) {
            ("int", Some(value)) => self.as_whole(value),
            ("float", Some(value)) => self.real_of(value),
            ("bool", Some(value)) => self.truth_of(value),
            ("str", Some(value)) => Ok(self.text_of(value).value()),
            ("print", _) => Ok(Value::None),
            ("sorted" | "len" | "complex" | "abs" | "min" | "max", _) => self.aten(name, args),
            ("range", _) => {
                let items = self.range(&args)?;
                self.list(items, Some(Type::Int))
            }
            _ => unbound(name),
        }
    }

    pub(crate) fn apply(
        &mut self,
        callee: &Value,
        args: Vec<Value>,
        kwargs: Kwargs,
    ) -> Step<Value> {
        let Value::Callee(callee) = callee else {
            return match callee {
                Value::Object(_) => self.method(callee, "forward", args, kwargs),
                other => expected("a function", other),
            };
        };
        match &**callee {
            Callee::Namespace(path) => self.named(path, args, kwargs),
            Callee::Function(def) => self.function(def, None, args, kwargs, Env::default()),
            Callee::Closure(def, seen) => {
                self.function(def, None, args, kwargs, seen.iter().cloned().collect())
            }
            Callee::Class(class) => self.construct(class, args, kwargs),
            Callee::Method(value, name) => self.method(value, name, args, kwargs),
            Callee::Unbound(class, name) if name == "__new__" => self.new_object(class, "".into()),
            Callee::Unbound(class, name) => {
                self.function(&method_of(class, name)?, None, args, kwargs, Env::default())
            }
        }
    }

    /// `torch.add`, `ops.prim.data`, `torch.autograd.grad`.
    fn named(&mut self, path: &str, args: Vec<Value>, kwargs: Kwargs) -> Step<Value> {
        let (namespace, name) = path.rsplit_once('.').unwrap_or(("", path));
        match namespace.strip_prefix("ops.") {
            Some(namespace) => self.operator(namespace, name, args, kwargs),
            None if namespace.starts_with("torch") => self.operator("aten", name, args, kwargs),
            None => unbound(path),
        }
    }

    pub(crate) fn new_object(&mut self, class: &Arc<ClassDef>, path: Name) -> Step<Value> {
        let attributes = IndexMap::default();
        let object = Item::Object { class: class.clone(), attributes, path };
        Ok(Value::Object(self.alloc(object)?))
    }

    fn construct(
        &mut self,
        class: &Arc<ClassDef>,
        mut args: Vec<Value>,
        kwargs: Kwargs,
    ) -> Step<Value> {
        if class.class.base.as_deref() == Some("NamedTuple") {
            for (name, _, default) in class.class.attributes.iter().skip(args.len()) {
                let given = kwargs.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
                let value = match (given, default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => self.eval(default, &Env::default())?,
                    (None, None) => return unbound(format!("{}.{name}", class.name)),
                };
                args.push(value);
            }
            return self.tuple(args, Some(class.clone()));
        }
        let object = self.new_object(class, "".into())?;
        if class.class.method("__init__").is_some() {
            self.method(&object, "__init__", args, kwargs)?;
        }
        Ok(object)
    }

    pub(crate) fn has_method(&self, value: &Value, name: &str) -> bool {
        let Value::Object(object) = value else { return false };
        self.object_at(*object).is_ok_and(|(class, ..)| class.class.method(name).is_some())
    }

    /// Calls a method of an object, or an operator as the method of a plain value.
    pub(crate) fn method(
        &mut self,
        value: &Value,
        name: &str,
        mut args: Vec<Value>,
        kwargs: Kwargs,
    ) -> Step<Value> {
        args.insert(0, value.clone());
        let Value::Object(object) = value else {
            return match value {
                Value::Packed(packed) => self.packed_method(packed, name, &args, &kwargs),
                Value::Undef(what) => unsupported(format!("a call of {what}.{name}")),
                _ => self.operator("aten", name, args, kwargs),
            };
        };
        let (class, _, path) = self.object_at(*object)?;
        let (class, path) = (class.clone(), path.clone());
        let def = method_of(&class, name)?;
        let module = class.is_module().then(|| self.module_frame(path, &class.python_name()));
        self.function(&def, module, args, kwargs, Env::default())
    }

    /// The frame of a call of a module. As PyTorch does, it marks each further call. A method that
    /// another method of the module calls is part of that call.
    fn module_frame(&mut self, path: Name, class: &str) -> ModuleFrame {
        let around = self.state.calls.frames.iter().rev().find_map(|frame| frame.module.as_ref());
        if let Some(around) = around.filter(|around| around.path == path) {
            return around.clone();
        }
        self.next_frame(path, class)
    }

    /// The frame of the next call of a module.
    fn next_frame(&mut self, path: Name, class: &str) -> ModuleFrame {
        let calls = self.names.calls.entry(path.clone()).or_default();
        let mark = if *calls > 0 { format!("@{calls}") } else { String::new() };
        *calls += 1;
        let key = format!("L__self___{}{mark}", path.replace('.', "_")).into();
        ModuleFrame { key, path, ty: class.into() }
    }

    /// Says in which calls of modules the nodes that follow were traced. The first is that of the
    /// traced module, whose method runs.
    pub(crate) fn enter_modules(&mut self, calls: &[u32]) {
        let modules = self.cx.archive.trace().map_or(&[][..], |trace| &trace.modules);
        let mut frames = Vec::with_capacity(calls.len());
        for &call in calls.iter().skip(1) {
            let Some((path, class)) = modules.get(call as usize) else { continue };
            let known = self.names.traced.get(&call).cloned();
            let frame = known.unwrap_or_else(|| self.next_frame(path.clone(), &python_name(class)));
            self.names.traced.insert(call, frame.clone());
            frames.push(frame);
        }
        if let Some(frame) = self.state.calls.frames.last_mut() {
            frame.traced = frames;
        }
    }

    fn function(
        &mut self,
        def: &FunctionDef,
        module: Option<ModuleFrame>,
        args: Vec<Value>,
        kwargs: Kwargs,
        mut env: Env,
    ) -> Step<Value> {
        let function = &def.function;
        let mut given = args.into_iter();
        for param in &function.params {
            let by_name = || kwargs.iter().find(|(name, _)| *name == param.name);
            let value = match (given.next(), by_name(), &param.default) {
                (Some(value), ..) => value,
                (None, Some((_, value)), _) => value.clone(),
                (None, None, Some(default)) => self.eval(default, &Env::default())?,
                (None, None, None) => return unbound(format!("argument {}", param.name)),
            };
            let value = self.annotated(param.ty.as_ref(), value)?;
            env.insert(param.name.clone(), value);
        }
        if given.next().is_some() {
            return unsupported(format!("a call of {} with more arguments", function.name));
        }
        let (file, at) = (def.file, function.at);
        let (name, heap) = (function.name.clone(), self.state.heap.len());
        self.state.calls.frames.push(Frame {
            file,
            function: name,
            at,
            heap,
            module,
            traced: Vec::new(),
        });
        // If it fails, the frame stays, so that the message can name it.
        let flow = self.deeper(|ev| ev.block(&function.body, &mut env))?;
        self.state.calls.frames.pop();
        Ok(match flow {
            Flow::Return(value) => value,
            Flow::Next => Value::None,
        })
    }

    pub(crate) fn is_instance(&self, value: &Value, ty: &Type) -> bool {
        match (ty, value) {
            (Type::Any, _) => true,
            (Type::Optional(inner), _) => {
                matches!(value, Value::None) || self.is_instance(value, inner)
            }
            (Type::Union(types), _) => types.iter().any(|ty| self.is_instance(value, ty)),
            (Type::List(inner), Value::List(list)) if self.dyn_list(*list).is_some() => {
                **inner == Type::Any || self.element(value).as_ref() == Some(&**inner)
            }
            (Type::List(inner), Value::List(list)) => {
                let items = self.items(*list);
                match self.element(value) {
                    Some(element) if items.is_empty() => **inner == Type::Any || element == **inner,
                    _ => items.iter().all(|item| self.is_instance(item, inner)),
                }
            }
            (Type::Tuple(types), Value::Tuple(tuple)) => {
                types.is_empty()
                    || (types.len() == tuple.items.len()
                        && types.iter().zip(&tuple.items).all(|(t, v)| self.is_instance(v, t)))
            }
            (Type::Dict(key, item), Value::Dict(dict)) => self
                .entries(*dict)
                .iter()
                .all(|(k, v)| self.is_instance(k, key) && self.is_instance(v, item)),
            (Type::Named(name), Value::Object(object)) => {
                self.object_at(*object).is_ok_and(|(class, ..)| *class.name == **name)
            }
            (Type::Named(name), Value::Tuple(tuple)) => {
                tuple.class.as_ref().is_some_and(|class| *class.name == **name)
            }
            (Type::Named(name), Value::Enum(member)) => member.class == **name,
            _ => is_plain(value, ty),
        }
    }

    /// The class, the attributes and the path of an object.
    pub(crate) fn object_at(
        &self,
        at: Ref,
    ) -> Step<(&Arc<ClassDef>, &IndexMap<Name, Value>, &Name)> {
        match self.state.heap.get(at.0) {
            Some(Item::Object { class, attributes, path }) => Ok((class, attributes, path)),
            _ => unsupported("this object"),
        }
    }

    /// `modules[index]`.
    pub(crate) fn module_item(&mut self, object: Ref, index: &Value) -> Step<Value> {
        if self.has_method(&Value::Object(object), "__getitem__") {
            let args = vec![index.clone()];
            return self.method(&Value::Object(object), "__getitem__", args, Vec::new());
        }
        let modules =
            self.object_at(object)?.1.iter().filter(|(_, value)| matches!(value, Value::Object(_)));
        let modules: Vec<(&Name, &Value)> = modules.collect();
        let found = match (index, index.as_int()) {
            (Value::Str(name), _) => modules.iter().find(|(n, _)| ***n == **name),
            (_, Some(at)) => {
                pt2onnx_symbolic::axis(at, modules.len()).and_then(|at| modules.get(at))
            }
            (_, None) => return expected("a known index", index),
        };
        let missing = || raises("IndexError: no such module");
        found.map_or_else(missing, |(_, value)| Ok((*value).clone()))
    }

    /// Calls a method of the root module, with its hooks.
    pub(crate) fn run_root(
        &mut self,
        root: &Value,
        method: &str,
        mut args: Vec<Value>,
    ) -> Step<Value> {
        let Value::Object(object) = root else {
            return expected("a module", root);
        };
        let class = self.object_at(*object)?.0.clone();
        let hooks =
            |list: &str| if method == "forward" { class.class.names(list) } else { Vec::new() };
        for hook in hooks("__forward_pre_hooks__") {
            let given = self.tuple(args.clone(), None)?;
            match self.method(root, hook, vec![given], Vec::new())? {
                Value::None => {}
                Value::Tuple(tuple) => args = tuple.items.clone(),
                other => args = vec![other],
            }
        }
        let mut result = self.method(root, method, args.clone(), Vec::new())?;
        for hook in hooks("__forward_hooks__") {
            let given = self.tuple(args.clone(), None)?;
            match self.method(root, hook, vec![given, result.clone()], Vec::new())? {
                Value::None => {}
                other => result = other,
            }
        }
        Ok(result)
    }
}

fn method_of(class: &ClassDef, name: &str) -> Step<FunctionDef> {
    match class.class.method(name) {
        Some(function) => Ok(FunctionDef { file: class.file, function: function.clone() }),
        None => unbound(format!("{}.{name}", class.name)),
    }
}
