//! The table of builtins: operators that the interpreter runs itself. To add one, write its
//! function, and a row here.

use super::{
    Call, Found, bytes, data_dependent as data, dict as d, environment as e, format as f,
    list as l, numbers as n, resize, str as s, tensor as t,
};
use crate::{
    eval::{Evaluator, Step, unsupported},
    schema::Type,
    value::{Layout, Value, args},
};
use Run::{Call as Many, One, Three, Try, Two};
use ValueKind::{
    Any, Device, Dict, DynList as Rows, Jagged, List, Number, Optional, Sequence, Str, Tensor,
    Tuple,
};
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The kind of value that the first argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueKind {
    Any,
    Device,
    Dict,
    /// A list whose length depends on data.
    DynList,
    /// Such a list of tensors of different sizes.
    Jagged,
    List,
    Number,
    Optional,
    /// A list that is one value.
    Sequence,
    Str,
    Tensor,
    Tuple,
}

/// The function of a builtin, by the number of arguments.
enum Run {
    One(fn(&mut Evaluator<'_>, &Value) -> Step<Value>),
    Two(fn(&mut Evaluator<'_>, &Value, &Value) -> Step<Value>),
    Three(fn(&mut Evaluator<'_>, &Value, &Value, &Value) -> Step<Value>),
    /// Some arguments have defaults.
    Call(fn(&mut Evaluator<'_>, Call<'_>) -> Step<Value>),
    /// It does not take all arguments.
    Try(fn(&mut Evaluator<'_>, Call<'_>) -> Found),
}

/// A builtin. Its names are separated by spaces.
struct Builtin {
    on: &'static [ValueKind],
    names: &'static str,
    run: Run,
}

const fn on(on: &'static [ValueKind], names: &'static str, run: Run) -> Builtin {
    Builtin { on, names, run }
}

const FALSE: Run = Many(|_, _| Ok(false.into()));
const TRUE: Run = Many(|_, _| Ok(true.into()));
/// Nothing that has an effect on the program.
const NOTHING: Run = Many(|_, _| Ok(Value::None));
/// The first argument.
const SAME: Run = Many(|_, call| Ok(call.get(0)));

/// All builtins, by kind.
static BUILTINS: &[Builtin] = &[
    on(&[Any], "Bool", One(|ev, x| ev.truth_of(x))),
    on(&[Any], "Complex complex", Try(n::complex)),
    on(&[Any], "ConstantMKLDNNTensor to_mkldnn", Try(e::mkldnn)),
    on(&[Any], "Float FloatImplicit", One(|ev, x| ev.real_of(x))),
    on(&[Any], "Int IntImplicit", One(|ev, x| ev.as_whole(x))),
    on(&[Any], "NumToTensor", One(|ev, x| ev.number_tensor(x))),
    on(&[Any], "Print _set_grad_enabled manual_seed set_grad_enabled warn", NOTHING),
    on(&[Any], "RaiseException", Try(e::raise)),
    on(&[Any], "__derive_index", Try(n::derive_index)),
    on(&[Any], "__interpolate", Many(resize::interpolate)),
    on(&[Any], "__is__", Two(|ev, a, b| Ok(n::negated(n::differs(ev, a, b))))),
    on(&[Any], "__isnot__", Two(|ev, a, b| Ok(Value::Bool(n::differs(ev, a, b))))),
    on(&[Any], "__not__", Try(n::not)),
    on(&[Any], "__range_length", Try(n::range_length)),
    on(&[Any], "__upsample __upsample_bilinear __upsample_nearest", Try(e::upsample)),
    on(
        &[Any],
        "_is_tracing is_autocast_cpu_enabled is_autocast_enabled is_grad_enabled \
        is_scripting_unset is_tracing",
        FALSE,
    ),
    on(&[Any], "_nested_tensor_from_mask_left_aligned", Many(e::nested_tensor)),
    on(&[Any], "_unwrap_optional", One(n::unwrap)),
    on(&[Any], "as_tensor tensor", Many(t::new_tensor)),
    on(&[Any], "device", Try(e::device)),
    on(&[Any], "dict", Try(d::empty)),
    on(&[Any], "eq", Try(|ev, call| Ok(n::equal(ev, call)?.map(Value::Bool)))),
    on(&[Any], "get_autocast_dtype", One(e::autocast_dtype)),
    on(&[Any], "is_scripting", TRUE),
    on(&[Any], "ne", Try(|ev, call| Ok(n::equal(ev, call)?.map(n::negated)))),
    on(&[Any], "rangelist", One(n::range_list)),
    on(&[Any], "str", One(|ev, x| Ok(ev.text_of(x).value()))),
    on(&[Any], "unchecked_cast unchecked_unwrap_optional wait", SAME),
    on(&[Dict], "Delete pop", Try(d::pop)),
    on(&[Dict], "__contains__ contains", Two(d::contains)),
    on(&[Dict], "__getitem__", Two(|ev, dict, key| ev.get_item(dict, key))),
    on(&[Dict], "_set_item", Three(d::set_item)),
    on(&[Dict], "clear", One(d::clear)),
    on(&[Dict], "copy dict", One(d::copy)),
    on(&[Dict], "get", Many(d::get)),
    on(
        &[Dict],
        "items",
        One(|ev, dict| d::listed(ev, dict, |(key, value)| Value::tuple(vec![key, value]))),
    ),
    on(&[Dict], "keys", One(|ev, dict| d::listed(ev, dict, |(key, _)| key))),
    on(&[Dict], "len", One(|ev, dict| Ok(d::entries(ev, dict)?.len().into()))),
    on(&[Dict], "popitem", One(d::pop_item)),
    on(&[Dict], "setdefault", Many(d::set_default)),
    on(&[Dict], "update", Two(d::update)),
    on(&[Dict], "values", One(|ev, dict| d::listed(ev, dict, |(_, value)| value))),
    on(&[Rows], "Delete pop", Many(|ev, call| ev.pop_row(call))),
    on(&[Rows], "as_tensor tensor", Many(|ev, call| ev.tensor_of_parts(call))),
    on(&[Rows], "cat concat stack", Many(|ev, call| ev.join_parts(call))),
    on(&[Rows], "insert", Three(|ev, list, index, item| ev.insert_row(list, index, item))),
    on(&[Rows], "reverse", One(|ev, list| ev.reverse_rows(list))),
    on(&[Rows, Jagged], "add", Two(|ev, list, other| ev.add_dyn_list(list, other))),
    on(&[Rows, Jagged], "add_ extend", Two(|ev, list, other| ev.extend_dyn_list(list, other))),
    on(&[Rows, Jagged], "len", One(|ev, list| ev.dyn_len(list))),
    on(&[Rows, Jagged, List], "__getitem__", Two(|ev, list, index| ev.get_item(list, index))),
    on(&[Rows, Jagged, Sequence], "append", Two(|ev, list, item| ev.append_row(list, item))),
    on(&[Rows, Jagged, Sequence], "copy list", One(|ev, list| ev.copied_dyn_list(list))),
    on(&[Rows, List], "_set_item", Three(l::set_item)),
    on(&[Rows, List], "slice", Many(l::slice)),
    on(&[Jagged], "cat concat", Try(|ev, call| ev.cat_jagged(call))),
    on(&[Jagged], "pad_sequence", Try(|ev, call| ev.pad_jagged(call))),
    on(&[Jagged], "stack", Try(|ev, call| ev.stack_jagged(call))),
    on(&[List], "Delete pop", Many(l::pop)),
    on(&[List], "Size", SAME),
    on(&[List], "__contains__ contains", Two(l::contains)),
    on(&[List], "_infer_size broadcast_shapes", Two(l::broadcast)),
    on(&[List], "add", Two(l::add)),
    on(&[List], "add_ extend", Two(l::extend)),
    on(&[List], "all any", Try(l::all_or_any)),
    on(&[List], "append", Two(l::append)),
    on(&[List], "clear", One(|ev, list| l::change(ev, list, Vec::clear))),
    on(&[List], "copy list", One(l::copy)),
    on(&[List], "count", Two(l::count)),
    on(&[List], "dict", One(d::of_pairs)),
    on(&[List], "index", Two(|ev, list, item| Ok(l::index(ev, list, item)?.into()))),
    on(&[List], "insert", Three(l::insert)),
    on(&[List], "len", One(|ev, list| Ok(l::items(ev, list)?.len().into()))),
    on(&[List], "max min", Try(l::fold)),
    on(&[List], "mul", Two(l::mul)),
    on(&[List], "mul_", Two(l::mul_)),
    on(&[List], "remove", Two(l::remove)),
    on(&[List], "reverse", One(|ev, list| l::change(ev, list, |items| items.reverse()))),
    on(&[List], "sort", Many(l::sort)),
    on(&[List], "sorted", One(l::sorted)),
    on(&[List], "sum", Try(l::sum)),
    on(&[Number], "bin hex oct", Many(|_, call| f::digits(call))),
    on(&[Number], "chr", One(|_, x| f::chr(x))),
    on(&[Number], "factorial", One(n::factorial)),
    on(&[Number], "frexp modf", Many(n::apart)),
    on(&[Number], "gcd", Try(n::gcd)),
    on(&[Optional], "_unwrap_optional unchecked_cast unchecked_unwrap_optional", Try(n::present)),
    on(&[Str], "__contains__ contains", Two(|_, x, y| s::contains(x, y))),
    on(&[Str], "__getitem__", Two(|_, x, index| s::get_item(x, index))),
    on(&[Str], "add add_", Two(s::add)),
    on(&[Str], "capitalize", One(|_, x| s::mapped(x, s::capitalize))),
    on(&[Str], "center ljust rjust zfill", Many(s::justified)),
    on(&[Str], "count", Many(|_, call| Ok(s::Search::of(call)?.count()?.into()))),
    on(&[Str], "endswith startswith", Many(|_, call| s::Search::of(call)?.starts_or_ends())),
    on(&[Str], "expandtabs", Many(s::expand_tabs)),
    on(&[Str], "find rfind", Many(|_, call| Ok(s::Search::of(call)?.find()?.into()))),
    on(
        &[Str],
        "format",
        Many(|ev, call| s::formatted(call, |text, args| ev.formatted(text, args))),
    ),
    on(&[Str], "ge", Two(|_, x, y| Ok((bytes(x)? >= bytes(y)?).into()))),
    on(&[Str], "gt", Two(|_, x, y| Ok((bytes(x)? > bytes(y)?).into()))),
    on(&[Str], "index rindex", Many(|_, call| Ok(s::Search::of(call)?.index()?.into()))),
    on(&[Str], "isalnum", One(|_, x| s::all(x, u8::is_ascii_alphanumeric))),
    on(&[Str], "isalpha", One(|_, x| s::all(x, u8::is_ascii_alphabetic))),
    on(&[Str], "isdecimal isdigit isnumeric", One(|_, x| s::all(x, u8::is_ascii_digit))),
    on(&[Str], "isidentifier", One(|_, x| s::is_identifier(x))),
    on(&[Str], "islower", One(|_, x| s::cased(x, u8::is_ascii_lowercase))),
    on(&[Str], "isprintable", One(|_, x| s::is_printable(x))),
    on(&[Str], "isspace", One(|_, x| s::all(x, s::is_space))),
    on(&[Str], "istitle", One(|_, x| s::is_title(x))),
    on(&[Str], "isupper", One(|_, x| s::cased(x, u8::is_ascii_uppercase))),
    on(&[Str], "join", Two(s::join)),
    on(&[Str], "le", Two(|_, x, y| Ok((bytes(x)? <= bytes(y)?).into()))),
    on(&[Str], "len", One(|_, x| Ok(bytes(x)?.len().into()))),
    on(&[Str], "list", One(s::chars)),
    on(&[Str], "lower", One(|_, x| s::mapped(x, |_, c| c.to_ascii_lowercase()))),
    on(&[Str], "lt", Two(|_, x, y| Ok((bytes(x)? < bytes(y)?).into()))),
    on(&[Str], "ord", One(|_, x| s::ord(x))),
    on(&[Str], "partition rpartition", Many(s::partition)),
    on(
        &[Str],
        "percentFormat",
        Many(|ev, call| s::formatted(call, |text, args| ev.percent(text, args))),
    ),
    on(&[Str], "replace", Many(s::replace)),
    on(&[Str], "slice", Many(|_, call| s::slice(call))),
    on(&[Str], "rsplit split", Many(s::split)),
    on(&[Str], "splitlines", Many(s::lines)),
    on(&[Str], "lstrip rstrip strip", Many(|_, call| s::strip(call))),
    on(&[Str], "swapcase", One(|_, x| s::mapped(x, s::swap_case))),
    on(&[Str], "title", One(|_, x| s::mapped(x, s::title))),
    on(&[Str], "upper", One(|_, x| s::mapped(x, |_, c| c.to_ascii_uppercase()))),
    on(&[Tensor], "ScalarImplicit item", One(|ev, x| ev.scalar_of(x, &Type::Number))),
    on(&[Tensor], "_pad_packed_sequence", Try(t::pad_packed)),
    on(
        &[Tensor],
        "_reshape_from_tensor",
        Many(|ev, call| ev.formula(call.name, call.args.to_vec())),
    ),
    on(&[Tensor], "allclose", Many(t::all_close)),
    on(&[Tensor], "alpha_dropout dropout feature_dropout", Try(t::dropout)),
    on(&[Tensor], "cpu cuda pin_memory requires_grad_", SAME),
    on(&[Tensor], "dim", One(t::rank)),
    on(&[Tensor], "element_size", One(t::item_size)),
    on(&[Tensor], "equal", Two(t::equal)),
    on(&[Tensor], "get_device", One(|_, _| Ok((-1).into()))),
    on(&[Tensor], "is_complex", One(|ev, x| Ok(ev.meta(x.tensor()?)?.dtype.is_complex().into()))),
    on(&[Tensor], "is_contiguous", Many(t::is_contiguous)),
    on(
        &[Tensor],
        "is_floating_point",
        One(|ev, x| Ok(ev.meta(x.tensor()?)?.dtype.is_float().into())),
    ),
    on(&[Tensor], "len", One(t::len)),
    on(&[Tensor], "numel", One(|ev, x| Ok(Expr::product(&ev.meta(x.tensor()?)?.sizes).into()))),
    on(&[Tensor], "one_hot unsqueeze", Try(data::by_formula)),
    on(&[Tensor], "size sym_size", Many(t::size)),
    on(&[Tensor], "squeeze", Try(data::squeeze)),
    on(&[Tensor], "stride", Many(t::stride)),
    on(&[Tensor], "tolist", Many(|ev, call| ev.tolist(call.get(0).tensor()?))),
    on(&[Tuple], "len", One(|ev, x| Ok(ev.sequence(x).map_or(0, |items| items.len()).into()))),
];

/// Attributes of values, which `prim` has as operators.
static PROPERTIES: &[Builtin] = &[
    on(&[Device], "index", NOTHING),
    on(&[Device], "type", One(e::device_type)),
    on(&[Tensor], "H mH", One(|ev, x| ev.aten("adjoint", args![x]))),
    on(&[Tensor], "T", One(|ev, x| ev.aten("numpy_T", args![x]))),
    on(&[Tensor], "data", One(|ev, x| ev.aten("detach", args![x]))),
    on(&[Tensor], "device", Many(|_, _| Ok(Value::cpu()))),
    on(&[Tensor], "dtype", One(t::dtype)),
    on(&[Tensor], "grad name", NOTHING),
    on(&[Tensor], "is_cpu is_leaf", TRUE),
    on(
        &[Tensor],
        "is_cuda is_hpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized \
        is_sparse is_sparse_csr is_vulkan is_xla is_xpu requires_grad",
        FALSE,
    ),
    on(&[Tensor], "itemsize", One(t::item_size)),
    on(&[Tensor], "layout", One(|_, _| Ok(0.into()))),
    on(&[Tensor], "mT", One(|ev, x| ev.aten("mT", args![x]))),
    on(&[Tensor], "nbytes", One(t::byte_count)),
    on(&[Tensor], "ndim", One(t::rank)),
    on(&[Tensor], "shape", Many(t::size)),
];

/// The functions by kind and name.
type Index = LazyLock<FxHashMap<(ValueKind, &'static str), &'static Run>>;

static FUNCTIONS: Index = LazyLock::new(|| indexed(BUILTINS).collect());
static GETTERS: Index = LazyLock::new(|| indexed(PROPERTIES).collect());

fn indexed(
    table: &'static [Builtin],
) -> impl Iterator<Item = ((ValueKind, &'static str), &'static Run)> {
    table.iter().flat_map(|Builtin { on, names, run }| {
        names.split(' ').flat_map(move |name| on.iter().map(move |kind| ((*kind, name), run)))
    })
}

impl Evaluator<'_> {
    /// The result of an operator that makes no node, or another one than its own; `None` if it is
    /// to be matched with the schemas.
    pub(crate) fn builtin(&mut self, namespace: &str, call: Call<'_>) -> Found {
        match namespace {
            "aten" | "prim" => {}
            "profiler" => return Ok(Some(Value::Undef("a record of the profiler".into()))),
            _ => return Ok(None),
        }
        if let Some(Value::Str(text) | Value::UnknownStr(text)) = call.args.first() {
            // Bytes are looked at faster than values.
            self.steps(text.len() / 16)?;
        }
        if call.kwargs.is_empty()
            && let Some(value) = n::on_complex(call)
        {
            return Ok(Some(value));
        }
        let kind = call.args.first().map_or(Any, |first| self.kind_of(first));
        if let Some(found) = self.run(FUNCTIONS.get(&(kind, call.name)), call)? {
            return Ok(Some(found));
        }
        let lists = match kind {
            Rows => "a list whose length depends on data",
            Jagged => "a list of tensors of different sizes, whose length depends on data",
            Sequence => "a list of tensors of several sizes, whose length depends on data or sizes",
            _ => "",
        };
        if !lists.is_empty() {
            let plain = call.kwargs.is_empty();
            return if plain { unsupported(format!("{} of {lists}", call.name)) } else { Ok(None) };
        }
        if kind != Any
            && let Some(found) = self.run(FUNCTIONS.get(&(Any, call.name)), call)?
        {
            return Ok(Some(found));
        }
        match call.args {
            [value] if namespace == "prim" && matches!(kind, Device | Tensor) => {
                self.property(value, call.name)
            }
            _ if call.kwargs.is_empty() => self.on_numbers(call),
            _ => Ok(None),
        }
    }

    /// A property such as `x.dtype`; `None` if there is none of this name.
    pub(crate) fn property(&mut self, of: &Value, name: &str) -> Found {
        let call = Call { name, args: std::slice::from_ref(of), kwargs: &Vec::new() };
        self.run(GETTERS.get(&(self.kind_of(of), name)), call)
    }

    fn run(&mut self, run: Option<&&Run>, call: Call<'_>) -> Found {
        match (run, call.args) {
            (Some(One(run)), [a]) => run(self, a).map(Some),
            (Some(Two(run)), [a, b]) => run(self, a, b).map(Some),
            (Some(Three(run)), [a, b, c]) => run(self, a, b, c).map(Some),
            (Some(Many(run)), _) => run(self, call).map(Some),
            (Some(Try(run)), _) => run(self, call),
            _ => Ok(None),
        }
    }

    fn kind_of(&self, value: &Value) -> ValueKind {
        match value {
            Value::Device(_) => Device,
            Value::Dict(_) => Dict,
            Value::List(list) => match self.dyn_list(*list).map(|parts| parts.layout) {
                None => List,
                Some(Layout::Jagged(_)) => Jagged,
                Some(Layout::Sequence(_)) => Sequence,
                Some(Layout::Slices | Layout::Parts(_)) => Rows,
            },
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Number,
            Value::Optional(_) => Optional,
            Value::Str(_) | Value::UnknownStr(_) => Str,
            Value::Tensor(_) => Tensor,
            Value::Tuple(_) => Tuple,
            _ => Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_once() {
        assert_eq!(indexed(BUILTINS).count(), FUNCTIONS.len());
        assert_eq!(indexed(PROPERTIES).count(), GETTERS.len());
    }
}
