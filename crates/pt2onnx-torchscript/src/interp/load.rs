//! Pickled objects become values; tensors become inputs of the graph, with their paths as names.

use super::{Interp, Step, unsupported};
use crate::{
    archive::ClassDef,
    error::Problem,
    quantized::Kind,
    schema::Type,
    syntax,
    types::Contents,
    value::{EnumMember, Item, Value},
};
use pt2onnx_fx::{
    Argument, Constant, Device, InputSpec, Name, TensorMeta, ValueMeta,
    archive::{
        pickle::{Id, Pickle, Value as Data},
        storage_type,
    },
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Tensors of no more elements than these are known to the interpreter, if they are constants of the code.
const KNOWN_ELEMENTS: usize = 64;
/// The most bytes by which tensors may be larger than their records, because views repeat elements.
const MAX_REPEATED: usize = 1 << 30;
/// How deeply objects may nest.
const MAX_NESTING: usize = 100;

/// What a tensor is in the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
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

impl Interp<'_> {
    /// The value of a pickle, whose storages are in a folder. Parts of it are named by their paths.
    pub(super) fn load(
        &mut self,
        pickle: &Pickle,
        folder: &'static str,
        role: Role,
    ) -> Step<Value> {
        let mut loader = Loader { pickle, folder, made: FxHashMap::default() };
        self.value(&mut loader, pickle.root_id(), "", role, MAX_NESTING)
    }

    fn value(
        &mut self,
        loader: &mut Loader<'_>,
        id: Id,
        path: &str,
        role: Role,
        depth: usize,
    ) -> Step<Value> {
        self.step()?;
        if let Some(made) = loader.made.get(&id) {
            let made = made.clone();
            self.tied(&made, path, role);
            return Ok(made);
        }
        if depth == 0 {
            return Err(Problem::Depth(MAX_NESTING));
        }
        let part =
            |at: usize| if path.is_empty() { at.to_string() } else { format!("{path}.{at}") };
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
                    let item = self.value(loader, item, &part(at), role, depth - 1)?;
                    if let Value::List(list) = &list {
                        self.items_mut(*list)?.push(item);
                    }
                }
                list
            }
            Data::Tuple(items) => {
                let mut made = Vec::with_capacity(items.len());
                for (at, &item) in items.clone().iter().enumerate() {
                    made.push(self.value(loader, item, &part(at), role, depth - 1)?);
                }
                self.tuple(made, None)?
            }
            Data::Dict(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for (at, &(key, value)) in entries.clone().iter().enumerate() {
                    let key = self.value(loader, key, path, role, depth - 1)?;
                    let path = match &key {
                        Value::Str(name) if path.is_empty() => name.to_string(),
                        Value::Str(name) => format!("{path}.{name}"),
                        _ => part(at),
                    };
                    made.push((key, self.value(loader, value, &path, role, depth - 1)?));
                }
                self.dict(made)?
            }
            Data::Object { class, state } => {
                return self.object(loader, id, (&class.clone(), *state), path, depth);
            }
            Data::Call { global, arguments } => {
                self.called(loader, &global.clone(), *arguments, path, role, depth)?
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
        path: &str,
        depth: usize,
    ) -> Step<Value> {
        let Some(class) = self.archive.class(class).cloned() else {
            let made = match state {
                Some(state) if class.starts_with("__torch__.torch.classes.") => {
                    let state = self.value(loader, state, path, Role::Attribute, depth - 1)?;
                    self.saved_packed(class, &state)?
                }
                _ => Value::Opaque(class.into()),
            };
            loader.made.insert(id, made.clone());
            return Ok(made);
        };
        let object = self.new_object(&class, path.into())?;
        loader.made.insert(id, object.clone());
        let Some(state) = state else {
            return Ok(object);
        };
        let methods = &class.class;
        if methods.method("__setstate__").is_some() && methods.method("__getstate__").is_some() {
            let state = self.value(loader, state, path, Role::Attribute, depth - 1)?;
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
            let role = role_of(&class, &name);
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            let value = self.value(loader, value, &path, role, depth - 1)?;
            if let Value::Object(object) = &object
                && let Some(Item::Object { attributes, .. }) = self.heap.get_mut(object.0)
            {
                attributes.insert(name, value);
            }
        }
        Ok(object)
    }

    fn called(
        &mut self,
        loader: &mut Loader<'_>,
        global: &str,
        arguments: Id,
        path: &str,
        role: Role,
        depth: usize,
    ) -> Step<Value> {
        let items: Vec<Id> = match loader.pickle.get(arguments) {
            Data::Tuple(items) => items.to_vec(),
            _ => vec![arguments],
        };
        let element = |global: &str| match global {
            "torch.jit._pickle.build_intlist" => Some(Type::Int),
            "torch.jit._pickle.build_tensorlist" => Some(Type::Tensor),
            "torch.jit._pickle.build_doublelist" => Some(Type::Float),
            "torch.jit._pickle.build_boollist" => Some(Type::Bool),
            _ => None,
        };
        match (global, items.as_slice()) {
            ("torch._utils._rebuild_tensor_v2", _) => {
                match view(self.archive.records(), loader.pickle, loader.folder, &items) {
                    Some(tensor) => self.tensor(tensor, path, role),
                    None => unsupported(format!("the tensor `{path}`, which is not a plain one,")),
                }
            }
            ("torch._utils._rebuild_parameter", &[data, ..]) => {
                self.value(loader, data, path, role, depth - 1)
            }
            ("torch._utils._rebuild_qtensor", &[.., quantizer, _, _]) => {
                let found = quantized(self.archive.records(), loader.pickle, loader.folder, &items);
                let Some((kind, tensor)) = found else {
                    return unsupported(format!("the quantised tensor `{path}`"));
                };
                let part = format!("{path}.quantizer");
                let quantizer = self.value(loader, quantizer, &part, role, depth - 1)?;
                let quantizer = self.sequence(&quantizer).unwrap_or_default();
                match self.tensor(tensor, path, role)? {
                    Value::Tensor(ints) => self.saved_quantized(ints, kind, &quantizer),
                    other => super::expected("a tensor", &other),
                }
            }
            ("torch.jit._pickle.restore_type_tag", &[value, ty]) => {
                let value = self.value(loader, value, path, role, depth - 1)?;
                if let Data::Text(text) = loader.pickle.get(ty)
                    && let Some(ty) = type_of(text)
                {
                    return self.annotate(&ty, value);
                }
                Ok(value)
            }
            ("torch.device", _) => {
                Ok(Value::Device(Arc::new(Device { kind: "cpu".into(), index: None })))
            }
            ("builtins.complex", &[re, im]) => {
                let re = self.value(loader, re, path, role, depth - 1)?;
                let im = self.value(loader, im, path, role, depth - 1)?;
                match re.as_f64().zip(im.as_f64()) {
                    Some((re, im)) => Ok(Value::Complex(re, im)),
                    None => unsupported("this complex number"),
                }
            }
            (_, &[items, ..]) if element(global).is_some() => {
                let value = self.value(loader, items, path, role, depth - 1)?;
                match element(global) {
                    Some(ty) => self.annotate(&Type::List(Box::new(ty)), value),
                    None => Ok(value),
                }
            }
            (_, &[value]) => {
                let value = self.value(loader, value, path, role, depth - 1)?;
                match self.archive.class(global).cloned() {
                    Some(class) => self.member_of(&class, value),
                    None => unsupported(format!("{global} among the objects")),
                }
            }
            _ => unsupported(format!("{global} among the objects")),
        }
    }

    /// The member of an Enum that has this value.
    fn member_of(&mut self, class: &Arc<ClassDef>, value: Value) -> Step<Value> {
        for (name, member) in &class.class.values {
            let member = self.eval(member, &super::Env::default())?;
            if self.same(&member, &value) {
                let class = class.name.clone();
                let name = name.clone();
                return Ok(Value::Enum(Arc::new(EnumMember { class, name, value })));
            }
        }
        Err(Problem::Unbound(format!("a member of {}", class.name)))
    }

    /// Keeps the other names of a tied weight, as state dicts do.
    fn tied(&mut self, value: &Value, path: &str, role: Role) {
        let Value::Tensor(name) = value else { return };
        let own = matches!(role, Role::Parameter | Role::Buffer);
        let specs = self.specs.iter();
        let target = specs.filter_map(|spec| match spec {
            InputSpec::Parameter { name, target } | InputSpec::Buffer { name, target, .. } => {
                Some((name, target))
            }
            _ => None,
        });
        let mut target = target.filter(|(n, _)| *n == name).map(|(_, target)| target);
        if let Some(tensor) = target.next().and_then(|target| self.state.get(&**target)).cloned()
            && own
            && !self.state.contains_key(path)
        {
            self.state.insert(path.to_owned(), tensor);
        }
    }

    /// An input of the graph for a tensor of the archive.
    fn tensor(&mut self, tensor: Tensor, path: &str, role: Role) -> Step<Value> {
        let held = tensor.storage().map_or(usize::MAX, |storage| storage.bytes().len());
        if tensor.nbytes().saturating_sub(held) > MAX_REPEATED {
            return Err(Problem::Memory(MAX_REPEATED));
        }
        if role == Role::Constant {
            let name = self.add_constant(&format!("CONSTANTS.c{path}"), tensor.clone());
            if tensor.rank() == 0 {
                self.pool_numbers.insert(name.clone());
            }
            if tensor.numel() <= KNOWN_ELEMENTS && tensor.has_data() {
                self.facts.contents.insert(name.clone(), Contents::Exact(tensor));
            }
            return Ok(Value::Tensor(name));
        }
        let prefix = if role == Role::Parameter { "p" } else { "b" };
        let name = self.fresh(&format!("{prefix}_{}", path.replace('.', "_")));
        let target = Name::from(path);
        let mut meta = TensorMeta::of(&tensor);
        meta.requires_grad = role == Role::Parameter;
        self.facts.values.insert(name.clone(), ValueMeta::from(meta));
        self.roots.insert(name.clone(), name.clone());
        self.inputs.push(Argument::Tensor(name.clone()));
        self.specs.push(match role {
            Role::Parameter => InputSpec::Parameter { name: name.clone(), target },
            _ => InputSpec::Buffer { name: name.clone(), target, persistent: role == Role::Buffer },
        });
        if role == Role::Attribute {
            self.constants.insert(path.to_owned(), Constant::Tensor(tensor));
        } else {
            self.state.insert(path.to_owned(), tensor);
        }
        Ok(Value::Tensor(name))
    }

    /// A constant of the program; returns the name of its input.
    pub(super) fn add_constant(&mut self, wish: &str, tensor: Tensor) -> Name {
        let name = self.fresh(&format!("c_{}", wish.trim_start_matches('_')));
        let target = match self.constants.contains_key(wish) || wish.starts_with('_') {
            true => Name::from(format!("{wish}{}", self.constants.len())),
            false => Name::from(wish),
        };
        self.facts.values.insert(name.clone(), ValueMeta::from(TensorMeta::of(&tensor)));
        self.roots.insert(name.clone(), name.clone());
        self.inputs.push(Argument::Tensor(name.clone()));
        self.specs.push(InputSpec::TensorConstant { name: name.clone(), target: target.clone() });
        self.constants.insert(target.to_string(), Constant::Tensor(tensor));
        name
    }
}

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

/// The tensor that the arguments of `_rebuild_tensor_v2` describe; `None` if it is not a plain one.
pub(super) fn view(
    records: &pt2onnx_fx::archive::Records,
    pickle: &Pickle,
    folder: &str,
    items: &[Id],
) -> Option<Tensor> {
    let (dtype, record, offset, sizes, strides) = described(pickle, items)?;
    let storage = records.get(&format!("{folder}/{record}"))?;
    // A tensor without values is saved as no bytes.
    if storage.bytes().is_empty() && !sizes.contains(&0) {
        return Tensor::absent(dtype, sizes).ok();
    }
    Tensor::strided(dtype, sizes, strides, offset, storage).ok()
}

/// The integers of the quantised tensor that the arguments of `_rebuild_qtensor` describe, and their kind.
fn quantized(
    records: &pt2onnx_fx::archive::Records,
    pickle: &Pickle,
    folder: &str,
    items: &[Id],
) -> Option<(Kind, Tensor)> {
    let (class, record, offset, mut sizes, mut strides) = layout(pickle, items)?;
    let kind = Kind::of_storage(&class)?;
    let dtype = kind.ints();
    if kind == Kind::Quint4x2 {
        let last = sizes.last_mut().filter(|last| **last % 2 == 0)?;
        *last /= 2;
        let mut stride = 1;
        for (size, place) in sizes.iter().zip(&mut strides).rev() {
            *place = stride;
            stride *= size;
        }
    }
    let storage = records.get(&format!("{folder}/{record}"))?;
    let tensor = match storage.bytes().is_empty() && !sizes.contains(&0) {
        true => Tensor::absent(dtype, sizes),
        false => Tensor::strided(dtype, sizes, strides, offset, storage),
    };
    Some((kind, tensor.ok()?))
}

/// Element type or class of the storage, record, offset, sizes and strides of a tensor.
type Layout<T> = (T, Arc<str>, usize, Vec<usize>, Vec<usize>);

/// Element type, record, offset, sizes and strides of a tensor.
pub(super) type Described = Layout<DType>;

pub(super) fn described(pickle: &Pickle, items: &[Id]) -> Option<Described> {
    let (class, record, offset, sizes, strides) = layout(pickle, items)?;
    Some((storage_type(&class)??, record, offset, sizes, strides))
}

/// The element type of the integers of a quantised tensor, and its sizes.
pub(super) fn described_quantized(pickle: &Pickle, items: &[Id]) -> Option<(DType, Vec<usize>)> {
    let (class, _, _, sizes, _) = layout(pickle, items)?;
    Some((Kind::of_storage(&class)?.ints(), sizes))
}

/// Class of the storage, record, offset, sizes and strides of a tensor.
fn layout(pickle: &Pickle, items: &[Id]) -> Option<Layout<String>> {
    let &[storage, offset, sizes, strides, ..] = items else {
        return None;
    };
    let tuple = |id: Id| match pickle.get(id) {
        Data::Tuple(items) => Some(items.clone()),
        _ => None,
    };
    let number = |id: Id| match pickle.get(id) {
        Data::Int(i) => usize::try_from(*i).ok(),
        _ => None,
    };
    let Data::Persistent(storage) = pickle.get(storage) else {
        return None;
    };
    let storage = tuple(*storage)?;
    let &[_, class, record, ..] = &*storage else {
        return None;
    };
    let (Data::Global(class), Data::Text(record)) = (pickle.get(class), pickle.get(record)) else {
        return None;
    };
    let sizes = tuple(sizes)?.iter().map(|&id| number(id)).collect::<Option<Vec<_>>>()?;
    let strides = tuple(strides)?.iter().map(|&id| number(id)).collect::<Option<Vec<_>>>()?;
    Some((class.to_string(), record.clone(), number(offset)?, sizes, strides))
}

/// The bytes of known numbers as elements of this type; `None` if there is no conversion.
pub(super) fn encode(
    elements: &[Expr],
    numbers: &[f64],
    dtype: DType,
    wide: bool,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (element, &number) in elements.iter().zip(numbers) {
        let scalar = match element.as_int() {
            Some(i) if wide || !dtype.is_float() => pt2onnx_tensor::Scalar::Int(i),
            _ => pt2onnx_tensor::Scalar::Float(number),
        };
        bytes.extend_from_slice(&scalar.to_tensor(dtype)?.to_bytes());
    }
    Some(bytes)
}
