//! Pickled objects become values; tensors become inputs of the graph, with their paths as names.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    schema::Type,
    types::Contents,
    value::{EnumMember, Item, Value},
};
use pt2onnx_fx::{
    Constant, InputSpec, Name, TensorMeta,
    archive::{
        StoredTensor,
        pickle::{Id, Pickle, Value as Data},
        storage_type,
    },
};
use pt2onnx_tensor::Tensor;
use pt2onnx_torchscript_archive::{ClassDef, quantized::Kind, syntax};
use rustc_hash::FxHashMap;
use std::{fmt::Display, sync::Arc};

/// Tensors of no more elements than these are known to the interpreter, if they are constants of
/// the code.
const KNOWN_ELEMENTS: usize = 64;
/// The most bytes by which tensors may be larger than their records, because views repeat elements.
const MAX_REPEATED: usize = 1 << 30;
/// How deeply objects may nest.
const MAX_NESTING: usize = 100;

/// The role of a tensor in the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Parameter,
    Buffer,
    /// An attribute that is neither.
    Attribute,
    /// A constant of the code.
    Constant,
}

struct Loader<'p> {
    pickle: &'p Pickle,
    /// Folder of the storages: `data`.
    folder: &'static str,
    made: FxHashMap<Id, Value>,
}

/// Where a value is in the module.
#[derive(Clone, Copy)]
struct Location<'p> {
    path: &'p str,
    /// The role of its tensors.
    role: Role,
    /// How many levels of values may follow.
    levels: usize,
}

impl<'p> Location<'p> {
    /// The path of an item or attribute of this value.
    fn part(self, part: impl Display) -> String {
        if self.path.is_empty() { part.to_string() } else { format!("{}.{part}", self.path) }
    }

    /// The same with another path.
    fn at(self, path: &'p str) -> Self {
        Self { path, ..self }
    }
}

impl Evaluator<'_> {
    /// The value of a pickle, whose storages are in a folder. Parts of it are named by their paths.
    pub(crate) fn load(
        &mut self,
        pickle: &Pickle,
        folder: &'static str,
        role: Role,
    ) -> Step<Value> {
        let mut loader = Loader { pickle, folder, made: FxHashMap::default() };
        let root = Location { path: "", role, levels: MAX_NESTING };
        self.value(&mut loader, pickle.root_id(), root)
    }

    /// The value with this id. One that was made before is the same value.
    fn value(&mut self, loader: &mut Loader<'_>, id: Id, place: Location<'_>) -> Step<Value> {
        self.step()?;
        if let Some(made) = loader.made.get(&id) {
            let made = made.clone();
            self.tied(&made, place.path, place.role);
            return Ok(made);
        }
        let Some(levels) = place.levels.checked_sub(1) else {
            return Err(Problem::Depth(MAX_NESTING));
        };
        let place = Location { levels, ..place };
        let value = match loader.pickle.get(id) {
            Data::None => Value::None,
            Data::Bool(value) => Value::bool(*value),
            Data::Int(value) => Value::int(*value),
            Data::Float(value) => Value::float(*value),
            Data::Text(text) => Value::Str(text.clone()),
            Data::List(items) => {
                let list = self.list(Vec::new(), None)?;
                loader.made.insert(id, list.clone());
                for (at, &item) in items.clone().iter().enumerate() {
                    let item = self.value(loader, item, place.at(&place.part(at)))?;
                    self.items_mut(list.list()?)?.push(item);
                }
                list
            }
            Data::Tuple(items) => {
                let mut made = Vec::with_capacity(items.len());
                for (at, &item) in items.clone().iter().enumerate() {
                    made.push(self.value(loader, item, place.at(&place.part(at)))?);
                }
                self.tuple(made, None)?
            }
            Data::Dict(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for (at, &(key, value)) in entries.clone().iter().enumerate() {
                    let key = self.value(loader, key, place)?;
                    let path = key.as_str().map_or_else(|| place.part(at), |name| place.part(name));
                    made.push((key, self.value(loader, value, place.at(&path))?));
                }
                self.dict(made)?
            }
            Data::Object { class, state } => {
                return self.object(loader, id, (&class.clone(), *state), place);
            }
            Data::Call { global, arguments } => {
                self.called(loader, &global.clone(), *arguments, place)?
            }
            // `torch.per_tensor_affine`.
            Data::Global(name) if name.starts_with("torch.per_") => Value::str(name),
            Data::Bytes | Data::Global(_) | Data::Persistent(_) => {
                return unsupported(format!("{} among the objects", loader.pickle.get(id).kind()));
            }
        };
        loader.made.insert(id, value.clone());
        Ok(value)
    }

    /// An object with its attributes. A class with `__setstate__` makes them itself.
    fn object(
        &mut self,
        loader: &mut Loader<'_>,
        id: Id,
        (class, state): (&str, Option<Id>),
        place: Location<'_>,
    ) -> Step<Value> {
        let plain = Location { role: Role::Attribute, ..place };
        let Some(class) = self.cx.archive.class(class).cloned() else {
            let made = match state {
                Some(state) if class.starts_with("__torch__.torch.classes.") => {
                    let state = self.value(loader, state, plain)?;
                    self.saved_packed(class, &state)?
                }
                _ => Value::Undef(class.into()),
            };
            loader.made.insert(id, made.clone());
            return Ok(made);
        };
        let object = self.new_object(&class, place.path.into())?;
        loader.made.insert(id, object.clone());
        let Some(state) = state else {
            return Ok(object);
        };
        let methods = &class.class;
        if methods.method("__setstate__").is_some() && methods.method("__getstate__").is_some() {
            let state = self.value(loader, state, plain)?;
            self.method(&object, "__setstate__", vec![state], Vec::new())?;
            return Ok(object);
        }
        let Data::Dict(entries) = loader.pickle.get(state) else {
            return unsupported(format!("the state of an object of {}", class.name));
        };
        for (key, value) in entries.clone() {
            let Data::Text(name) = loader.pickle.get(key) else {
                return unsupported("an attribute without name");
            };
            let name = Name::from(&**name);
            let path = place.part(&name);
            let role = role_of(&class, &name);
            let value = self.value(loader, value, Location { role, ..place.at(&path) })?;
            if let Value::Object(object) = &object
                && let Some(Item::Object { attributes, .. }) = self.state.heap.get_mut(object.0)
            {
                attributes.insert(name, value);
            }
        }
        Ok(object)
    }

    /// The result of a call in a pickle: a tensor, a list with its type, a device, a complex
    /// number, or a member of an Enum.
    fn called(
        &mut self,
        loader: &mut Loader<'_>,
        global: &str,
        arguments: Id,
        place: Location<'_>,
    ) -> Step<Value> {
        let items = loader.pickle.tuple(arguments).map_or_else(|| vec![arguments], <[Id]>::to_vec);
        if let (Some(element), &[items, ..]) = (list_element(global), items.as_slice()) {
            let list = self.value(loader, items, place)?;
            return self.annotate(&Type::List(Box::new(element)), list);
        }
        match (global, items.as_slice()) {
            ("torch._utils._rebuild_tensor_v2", _) => {
                let (path, records) = (place.path, self.cx.archive.records());
                let tensor = StoredTensor::of(loader.pickle, &items).and_then(|stored| {
                    let dtype = storage_type(&stored.class)??;
                    stored.view(records, loader.folder, dtype)?.ok()
                });
                match tensor {
                    Some(tensor) => self.tensor(tensor, path, place.role),
                    None => unsupported(format!("the tensor `{path}`, which is not a plain one,")),
                }
            }
            ("torch._utils._rebuild_parameter", &[data, ..]) => self.value(loader, data, place),
            ("torch._utils._rebuild_qtensor", &[.., quantizer, _, _]) => {
                self.rebuilt_quantized(loader, &items, quantizer, place)
            }
            ("torch.jit._pickle.restore_type_tag", &[value, ty]) => {
                let value = self.value(loader, value, place)?;
                if let Data::Text(text) = loader.pickle.get(ty)
                    && let Some(ty) = type_of(text)
                {
                    return self.annotate(&ty, value);
                }
                Ok(value)
            }
            ("torch.device", _) => Ok(Value::cpu()),
            ("builtins.complex", &[re, im]) => {
                let re = self.value(loader, re, place)?;
                let im = self.value(loader, im, place)?;
                match re.as_f64().zip(im.as_f64()) {
                    Some((re, im)) => Ok(Value::Complex(re, im)),
                    None => unsupported("this complex number"),
                }
            }
            (_, &[value]) => {
                let value = self.value(loader, value, place)?;
                match self.cx.archive.class(global).cloned() {
                    Some(class) => self.member_of(&class, value),
                    None => unsupported(format!("{global} among the objects")),
                }
            }
            _ => unsupported(format!("{global} among the objects")),
        }
    }

    /// The quantised tensor of `_rebuild_qtensor`: its integers, and scale and zero point from its
    /// quantizer.
    fn rebuilt_quantized(
        &mut self,
        loader: &mut Loader<'_>,
        items: &[Id],
        quantizer: Id,
        place: Location<'_>,
    ) -> Step<Value> {
        let (path, records) = (place.path, self.cx.archive.records());
        let found = StoredTensor::of(loader.pickle, items).and_then(|mut stored| {
            let kind = Kind::of_storage(&stored.class)?;
            if kind == Kind::Quint4x2 {
                let last = stored.sizes.last_mut().filter(|last| **last % 2 == 0)?;
                *last /= 2;
                let mut stride = 1;
                for (size, place) in stored.sizes.iter().zip(&mut stored.strides).rev() {
                    *place = stride;
                    stride *= size;
                }
            }
            Some((kind, stored.view(records, loader.folder, kind.ints())?.ok()?))
        });
        let Some((kind, tensor)) = found else {
            return unsupported(format!("the quantised tensor `{path}`"));
        };
        let quantizer = self.value(loader, quantizer, place.at(&place.part("quantizer")))?;
        let quantizer = self.sequence(&quantizer).unwrap_or_default();
        let ints = self.tensor(tensor, path, place.role)?;
        self.saved_quantized(ints.tensor()?.clone(), kind, &quantizer)
    }

    /// The member of an Enum that has this value.
    fn member_of(&mut self, class: &Arc<ClassDef>, value: Value) -> Step<Value> {
        for (name, member) in &class.class.values {
            let member = self.eval(member, &crate::eval::Env::default())?;
            if self.same(&member, &value) {
                let class = class.name.clone();
                let name = name.clone();
                return Ok(Value::Enum(Arc::new(EnumMember { class, name, value })));
            }
        }
        Err(Problem::Unbound(format!("a member of {}", class.name)))
    }

    /// Keeps the other names of a tied weight, as state dicts do.
    pub(crate) fn tied(&mut self, value: &Value, path: &str, role: Role) {
        let (Value::Tensor(name), Role::Parameter | Role::Buffer) = (value, role) else { return };
        let spec = self.interface.specs.iter().find(|spec| spec.name() == Some(name));
        let target = spec.and_then(InputSpec::target);
        let weights = &mut self.interface.weights;
        if let Some(tensor) = target.and_then(|target| weights.get(&**target)).cloned()
            && !weights.contains_key(path)
        {
            weights.insert(path.to_owned(), tensor);
        }
    }

    /// An input of the graph for a tensor of the archive.
    pub(crate) fn tensor(&mut self, tensor: Tensor, path: &str, role: Role) -> Step<Value> {
        let held = tensor.storage().map_or(usize::MAX, |storage| storage.bytes().len());
        if tensor.nbytes().saturating_sub(held) > MAX_REPEATED {
            return Err(Problem::Memory(MAX_REPEATED));
        }
        if role == Role::Constant {
            let name = self.add_constant(&format!("CONSTANTS.c{path}"), tensor.clone());
            if tensor.rank() == 0 {
                self.cx.pool_numbers.insert(name.clone());
            }
            if tensor.numel() <= KNOWN_ELEMENTS && tensor.has_data() {
                self.set_contents(name.clone(), Contents::Exact(tensor));
            }
            return Ok(Value::Tensor(name));
        }
        let prefix = if role == Role::Parameter { "p" } else { "b" };
        let mut meta = TensorMeta::of(&tensor);
        meta.requires_grad = role == Role::Parameter;
        let name = self.new_input(&format!("{prefix}_{}", path.replace('.', "_")), meta);
        let target = Name::from(path);
        self.interface.specs.push(match role {
            Role::Parameter => InputSpec::Parameter { name: name.clone(), target },
            _ => InputSpec::Buffer { name: name.clone(), target, persistent: role == Role::Buffer },
        });
        if role == Role::Attribute {
            self.interface.constants.insert(path.to_owned(), Constant::Tensor(tensor));
        } else {
            self.interface.weights.insert(path.to_owned(), tensor);
        }
        Ok(Value::Tensor(name))
    }

    /// A constant of the program; returns the name of its input.
    pub(crate) fn add_constant(&mut self, wish: &str, tensor: Tensor) -> Name {
        let meta = TensorMeta::of(&tensor);
        let name = self.new_input(&format!("c_{}", wish.trim_start_matches('_')), meta);
        let target = if self.interface.constants.contains_key(wish) || wish.starts_with('_') {
            Name::from(format!("{wish}{}", self.interface.constants.len()))
        } else {
            Name::from(wish)
        };
        let spec = InputSpec::TensorConstant { name: name.clone(), target: target.clone() };
        self.interface.specs.push(spec);
        self.interface.constants.insert(target.to_string(), Constant::Tensor(tensor));
        name
    }
}

/// The element type of the lists that a function of pickles makes.
fn list_element(global: &str) -> Option<Type> {
    Some(match global.strip_prefix("torch.jit._pickle.build_")? {
        "intlist" => Type::Int,
        "tensorlist" => Type::Tensor,
        "doublelist" => Type::Float,
        "boollist" => Type::Bool,
        _ => return None,
    })
}

/// The role of the tensors of an attribute.
fn role_of(class: &ClassDef, name: &str) -> Role {
    if class.class.names("__parameters__").contains(&name) {
        Role::Parameter
    } else if class.class.names("__buffers__").contains(&name) {
        Role::Buffer
    } else {
        Role::Attribute
    }
}

/// A type as a pickle writes it: `List[int]`, `Dict[str, Tensor]`, `int?`.
fn type_of(text: &str) -> Option<Type> {
    if text.contains('?') {
        return None;
    }
    let file = syntax::parse(&format!("class T:\n  x : {text}\n")).ok()?;
    file.classes.first()?.attributes.first().map(|(_, ty, _)| Type::of(ty))
}
