//! Pickles as data: reads the part of Python's pickle format that `torch.save` writes for nested
//! values and tensors.
//!
//! Nothing is called or imported. An opcode or a class that is not listed here is an error that
//! names it. Values are stored in one arena, whose bytes have a limit. Values may contain
//! themselves: code that walks them must have a limit.

use crate::error::PickleProblem as Problem;
use rustc_hash::FxHashMap;
use std::{borrow::Cow, sync::Arc};

/// The result of reading a pickle.
type Read<T> = Result<T, Problem>;

/// A place in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(u32);

/// A Python value. Containers refer to their parts by place, since a pickle may change them after
/// it has used them.
#[derive(Clone, Debug)]
pub enum Value {
    /// None.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A str.
    Text(Arc<str>),
    /// Bytes. Their values are not kept.
    Bytes,
    /// A list.
    List(Vec<Id>),
    /// A tuple.
    Tuple(Arc<[Id]>),
    /// Keys and values in the order set; a dict's or an `OrderedDict`'s.
    Dict(Vec<(Id, Id)>),
    /// `module.name`.
    Global(Arc<str>),
    /// An object that is kept outside of the pickle: what `pickle` calls a persistent id.
    Persistent(Id),
    /// A call of a class or function. It is not executed.
    Call {
        /// `module.name`.
        global: Arc<str>,
        /// A tuple of arguments; the only argument if [`Rules::objects`] allows that.
        arguments: Id,
    },
    /// An object that is made without arguments. No method of its class is run.
    Object {
        /// `module.name`.
        class: Arc<str>,
        /// The state that it is given: mostly a dict of its attributes.
        state: Option<Id>,
    },
}

impl Value {
    /// Python's name of its type.
    pub fn kind(&self) -> &str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an int",
            Value::Float(_) => "a float",
            Value::Text(_) => "a str",
            Value::Bytes => "bytes",
            Value::List(_) => "a list",
            Value::Tuple(_) => "a tuple",
            Value::Dict(_) => "a dict",
            Value::Global(name)
            | Value::Call { global: name, .. }
            | Value::Object { class: name, .. } => name,
            Value::Persistent(_) => "a storage",
        }
    }
}

/// A read pickle.
#[derive(Debug)]
pub struct Pickle {
    arena: Vec<Value>,
    root: Id,
    length: usize,
}

impl Pickle {
    /// The pickled value.
    pub fn root(&self) -> &Value {
        self.get(self.root)
    }

    /// Its place.
    pub fn root_id(&self) -> Id {
        self.root
    }

    /// How many bytes it has.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The value at a place.
    pub fn get(&self, id: Id) -> &Value {
        self.arena.get(id.0 as usize).unwrap_or(&Value::None)
    }

    /// The items of a tuple.
    pub fn tuple(&self, id: Id) -> Option<&[Id]> {
        if let Value::Tuple(items) = self.get(id) { Some(items) } else { None }
    }

    /// A text.
    pub fn text(&self, id: Id) -> Option<&Arc<str>> {
        if let Value::Text(text) = self.get(id) { Some(text) } else { None }
    }

    /// An int that is not negative.
    pub fn size(&self, id: Id) -> Option<usize> {
        if let Value::Int(i) = self.get(id) { usize::try_from(*i).ok() } else { None }
    }

    /// A tuple of sizes, or a `torch.Size` of one.
    pub fn sizes(&self, id: Id) -> Option<Vec<usize>> {
        let items = match self.get(id) {
            Value::Call { global, arguments } if &**global == "torch.Size" => {
                self.tuple(*self.tuple(*arguments)?.first()?)?
            }
            _ => self.tuple(id)?,
        };
        items.iter().map(|&item| self.size(item)).collect()
    }
}

/// Opcodes, as pickletools names them.
mod op {
    pub const MARK: u8 = b'(';
    pub const STOP: u8 = b'.';
    pub const POP: u8 = b'0';
    pub const POP_MARK: u8 = b'1';
    pub const BINFLOAT: u8 = b'G';
    pub const BININT: u8 = b'J';
    pub const BININT1: u8 = b'K';
    pub const BININT2: u8 = b'M';
    pub const NONE: u8 = b'N';
    pub const BINPERSID: u8 = b'Q';
    pub const REDUCE: u8 = b'R';
    pub const BINUNICODE: u8 = b'X';
    pub const DICT: u8 = b'd';
    pub const LIST: u8 = b'l';
    pub const APPEND: u8 = b'a';
    pub const BUILD: u8 = b'b';
    pub const GLOBAL: u8 = b'c';
    pub const APPENDS: u8 = b'e';
    pub const BINGET: u8 = b'h';
    pub const LONG_BINGET: u8 = b'j';
    pub const BINPUT: u8 = b'q';
    pub const LONG_BINPUT: u8 = b'r';
    pub const SETITEM: u8 = b's';
    pub const TUPLE: u8 = b't';
    pub const SETITEMS: u8 = b'u';
    pub const EMPTY_DICT: u8 = b'}';
    pub const EMPTY_LIST: u8 = b']';
    pub const EMPTY_TUPLE: u8 = b')';
    pub const BINBYTES: u8 = b'B';
    pub const SHORT_BINBYTES: u8 = b'C';
    pub const PROTO: u8 = 0x80;
    pub const TUPLE1: u8 = 0x85;
    pub const TUPLE2: u8 = 0x86;
    pub const TUPLE3: u8 = 0x87;
    pub const NEWOBJ: u8 = 0x81;
    pub const NEWTRUE: u8 = 0x88;
    pub const NEWFALSE: u8 = 0x89;
    pub const LONG1: u8 = 0x8a;
    pub const SHORT_BINUNICODE: u8 = 0x8c;
    pub const BINUNICODE8: u8 = 0x8d;
    pub const STACK_GLOBAL: u8 = 0x93;
    pub const MEMOIZE: u8 = 0x94;
    pub const FRAME: u8 = 0x95;
}

/// The objects that a pickle may hold.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether it may name this class or function, `module.name`.
    pub allowed: fn(&str) -> bool,
    /// Whether it may hold objects with a state, and calls with one argument that is not in a
    /// tuple, as TorchScript writes them.
    pub objects: bool,
}

/// The bytes of memory that an opcode takes, without its items and texts: an opcode of one byte can
/// make a value.
const OPCODE: usize = size_of::<Value>() + 8;

/// Reads a pickle of protocol 2 to 5 into at most `limit` bytes of memory. `used` of them are not
/// free.
///
/// # Errors
/// The bytes are not a pickle, hold what the rules do not allow, or expand too much.
pub(super) fn read(bytes: &[u8], rules: &Rules, limit: usize, used: usize) -> Read<Pickle> {
    let mut machine = Machine {
        bytes,
        rules: *rules,
        limit,
        room: limit.saturating_sub(used),
        at: 0,
        arena: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: FxHashMap::default(),
    };
    let root = machine.run()?;
    Ok(Pickle { arena: machine.arena, root, length: bytes.len() })
}

struct Machine<'a> {
    bytes: &'a [u8],
    rules: Rules,
    /// The most bytes of memory, and those that are left.
    limit: usize,
    room: usize,
    at: usize,
    arena: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack at each mark.
    marks: Vec<usize>,
    memo: FxHashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Read<Id> {
        loop {
            self.spend(OPCODE)?;
            let at = self.at;
            let code = self.byte()?;
            if code == op::STOP {
                return self.pop();
            }
            let value = match code {
                _ if let Some(value) = self.value(code)? => value,
                _ if self.change(code)? => continue,
                _ => return Err(Problem::Opcode { code, at }),
            };
            self.push(value)?;
        }
    }

    // Where opcodes are frequent, an error that is not needed is not made: it would be dropped.

    fn spend(&mut self, bytes: usize) -> Read<()> {
        let Some(left) = self.room.checked_sub(bytes) else {
            return Err(Problem::Large { limit: self.limit });
        };
        self.room = left;
        Ok(())
    }

    /// The value that an opcode pushes; `None` if it is another opcode.
    fn value(&mut self, code: u8) -> Read<Option<Value>> {
        Ok(Some(match code {
            op::NONE => Value::None,
            op::NEWTRUE => Value::Bool(true),
            op::NEWFALSE => Value::Bool(false),
            op::BININT1 => Value::Int(self.byte()?.into()),
            op::BININT2 => Value::Int(u16::from_le_bytes(self.array()?).into()),
            op::BININT => Value::Int(i32::from_le_bytes(self.array()?).into()),
            op::LONG1 => Value::Int(self.long()?),
            op::BINFLOAT => Value::Float(f64::from_be_bytes(self.array()?)),
            op::SHORT_BINUNICODE | op::BINUNICODE | op::BINUNICODE8 => {
                let text = std::str::from_utf8(self.counted(code)?).map_err(|_| Problem::Utf8)?;
                Value::Text(text.into())
            }
            op::SHORT_BINBYTES | op::BINBYTES => {
                self.counted(code)?;
                Value::Bytes
            }
            op::EMPTY_TUPLE => Value::Tuple([].into()),
            op::TUPLE => Value::Tuple(self.marked()?.into()),
            op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => {
                let from = self.floor(usize::from(code - op::TUPLE1) + 1)?;
                Value::Tuple(self.stack.drain(from..).collect())
            }
            op::EMPTY_LIST => Value::List(Vec::new()),
            op::LIST => Value::List(self.marked()?),
            op::EMPTY_DICT => Value::Dict(Vec::new()),
            op::DICT => Value::Dict(pairs(&self.marked()?)?),
            op::GLOBAL => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(&module, &name)?
            }
            op::STACK_GLOBAL => {
                let (name, module) = (self.pop_text()?, self.pop_text()?);
                self.global(&module, &name)?
            }
            op::BINPERSID => Value::Persistent(self.pop()?),
            op::REDUCE => self.reduce()?,
            op::NEWOBJ if self.rules.objects => self.new_object()?,
            _ => return Ok(None),
        }))
    }

    /// Runs an opcode that changes the value on top of the stack, the stack or the memo. Returns
    /// whether it is one.
    fn change(&mut self, code: u8) -> Read<bool> {
        match code {
            op::APPEND => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            op::APPENDS => {
                let items = self.marked()?;
                self.append(items)?;
            }
            op::SETITEM => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            op::SETITEMS => {
                let items = self.marked()?;
                self.set(&items)?;
            }
            op::BUILD => self.build()?,
            op::PROTO => match self.byte()? {
                2..=5 => {}
                version => return Err(Problem::Protocol(version)),
            },
            op::FRAME => _ = self.take(8)?,
            op::MARK => self.marks.push(self.stack.len()),
            op::POP => _ = self.pop()?,
            op::POP_MARK => _ = self.marked()?,
            op::BINGET | op::LONG_BINGET => {
                let key = self.key(code == op::BINGET)?;
                let Some(&value) = self.memo.get(&key) else {
                    return Err(Problem::Memo(key));
                };
                self.stack.push(value);
            }
            op::BINPUT | op::LONG_BINPUT => {
                let key = self.key(code == op::BINPUT)?;
                self.memo.insert(key, self.top()?);
            }
            op::MEMOIZE => {
                let key = u32::try_from(self.memo.len()).map_err(|_| Problem::Truncated)?;
                self.memo.insert(key, self.top()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A key of the memo.
    fn key(&mut self, short: bool) -> Read<u32> {
        Ok(if short { self.byte()?.into() } else { u32::from_le_bytes(self.array()?) })
    }

    /// The bytes of a text or of bytes, whose length has the width of the opcode.
    fn counted(&mut self, code: u8) -> Read<&'a [u8]> {
        let length = match code {
            op::SHORT_BINUNICODE | op::SHORT_BINBYTES => self.byte()?.into(),
            op::BINUNICODE8 => u64::from_le_bytes(self.array()?),
            _ => u32::from_le_bytes(self.array()?).into(),
        };
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Read<&'a [u8]> {
        let end = usize::try_from(length).ok().and_then(|l| self.at.checked_add(l));
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(Problem::Truncated);
        };
        self.at += taken.len();
        self.spend(taken.len())?;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| Problem::Truncated)
    }

    fn byte(&mut self) -> Read<u8> {
        let Some(&byte) = self.bytes.get(self.at) else {
            return Err(Problem::Truncated);
        };
        self.at += 1;
        Ok(byte)
    }

    /// A little-endian two's complement number of up to 8 bytes.
    fn long(&mut self) -> Read<i64> {
        let length = self.byte()?;
        let digits = self.take(length.into())?;
        if digits.len() > 8 {
            return Err(Problem::Number);
        }
        let negative = digits.last().is_some_and(|&last| last >= 0x80);
        let mut bytes = [if negative { 0xff } else { 0 }; 8];
        for (byte, &digit) in bytes.iter_mut().zip(digits) {
            *byte = digit;
        }
        Ok(i64::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Read<Cow<'a, str>> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&b| b == b'\n');
        let line = self.take(length.ok_or(Problem::Truncated)? as u64)?;
        self.at += 1;
        Ok(String::from_utf8_lossy(line))
    }

    fn push(&mut self, value: Value) -> Read<()> {
        let limit = self.limit;
        let id = u32::try_from(self.arena.len()).map_err(|_| Problem::Large { limit })?;
        self.stack.push(Id(id));
        self.arena.push(value);
        Ok(())
    }

    /// Where the topmost `count` values start. They must be above the last mark.
    fn floor(&self, count: usize) -> Read<usize> {
        let lowest = self.marks.last().copied().unwrap_or_default();
        match self.stack.len().checked_sub(count) {
            Some(from) if from >= lowest => Ok(from),
            _ => Err(Problem::Stack),
        }
    }

    fn top(&self) -> Read<Id> {
        self.floor(1)?;
        match self.stack.last() {
            Some(&top) => Ok(top),
            None => Err(Problem::Stack),
        }
    }

    fn pop(&mut self) -> Read<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Removes the last mark and the values above it, and returns these.
    fn marked(&mut self) -> Read<Vec<Id>> {
        let Some(mark) = self.marks.pop() else {
            return Err(Problem::Stack);
        };
        let items = self.stack.split_off(mark);
        self.spend(size_of_val(&*items))?;
        Ok(items)
    }

    fn pop_text(&mut self) -> Read<Arc<str>> {
        let id = self.pop()?;
        match self.arena.get(id.0 as usize) {
            Some(Value::Text(text)) => Ok(text.clone()),
            _ => Err(Problem::Stack),
        }
    }

    /// The value on top of the stack, to be changed in place.
    fn top_mut(&mut self) -> Read<&mut Value> {
        let top = self.top()?;
        self.arena.get_mut(top.0 as usize).ok_or(Problem::Stack)
    }

    fn append(&mut self, mut items: Vec<Id>) -> Read<()> {
        match self.top_mut()? {
            Value::List(list) => {
                list.append(&mut items);
                Ok(())
            }
            _ => Err(Problem::Stack),
        }
    }

    fn set(&mut self, items: &[Id]) -> Read<()> {
        match self.top_mut()? {
            Value::Dict(dict) => {
                dict.extend(pairs(items)?);
                Ok(())
            }
            _ => Err(Problem::Stack),
        }
    }

    fn global(&self, module: &str, name: &str) -> Read<Value> {
        let global = format!("{module}.{name}");
        if (self.rules.allowed)(&global) {
            Ok(Value::Global(global.into()))
        } else {
            Err(Problem::Global(global))
        }
    }

    fn reduce(&mut self) -> Read<Value> {
        let (arguments, callable) = (self.pop()?, self.pop()?);
        let global =
            match (self.arena.get(callable.0 as usize), self.arena.get(arguments.0 as usize)) {
                (Some(Value::Global(global)), Some(Value::Tuple(_))) => global.clone(),
                (Some(Value::Global(global)), Some(_)) if self.rules.objects => global.clone(),
                _ => return Err(Problem::Call),
            };
        match self.arena.get(arguments.0 as usize) {
            _ if &*global != "collections.OrderedDict" => Ok(Value::Call { global, arguments }),
            Some(Value::Tuple(items)) if items.is_empty() => Ok(Value::Dict(Vec::new())),
            _ => Err(Problem::Call),
        }
    }

    fn new_object(&mut self) -> Read<Value> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        match (self.arena.get(class.0 as usize), self.arena.get(arguments.0 as usize)) {
            (Some(Value::Global(class)), Some(Value::Tuple(none))) if none.is_empty() => {
                Ok(Value::Object { class: class.clone(), state: None })
            }
            _ => Err(Problem::Call),
        }
    }

    /// Gives an object its state, or a dict attributes. Those of dicts (`OrderedDict._metadata`)
    /// are ignored.
    fn build(&mut self) -> Read<()> {
        let given = self.pop()?;
        match self.top_mut()? {
            Value::Dict(_) => Ok(()),
            Value::Object { state, .. } => {
                *state = Some(given);
                Ok(())
            }
            other => Err(Problem::Attributes(other.kind().to_owned())),
        }
    }
}

/// Keys and values that follow each other.
fn pairs(items: &[Id]) -> Read<Vec<(Id, Id)>> {
    match items.as_chunks::<2>() {
        (pairs, []) => Ok(pairs.iter().map(|&[key, value]| (key, value)).collect()),
        _ => Err(Problem::Stack),
    }
}
