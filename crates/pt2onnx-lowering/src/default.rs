//! Reads the default of a parameter, by the parameter's type.

use crate::param_type::ParamType;
use pt2onnx_fx::{
    archive::{dtype_of_c10, element_type},
    graph::{Argument, Device, Layout, MemoryFormat},
};
use pt2onnx_schemas::items;
use pt2onnx_tensor::DType;

/// The default `text` of a parameter of type `ty`, which has `length` elements if it is a list of a
/// fixed length. `None` if the text is not a value of that type.
pub(crate) fn read(ty: &ParamType, length: Option<usize>, text: &str) -> Option<Argument> {
    if text == "None" {
        return ty.optional.then_some(Argument::None);
    }
    if !ty.list {
        return one(&ty.base, text);
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let elements: Option<Vec<Argument>> = match inner {
        Some(inner) => items(inner).into_iter().map(|item| one(&ty.base, item)).collect(),
        // One value stands for all elements of a list of a fixed length.
        None => length.and_then(|length| Some(vec![one(&ty.base, text)?; length])),
    };
    list(&ty.base, elements?)
}

/// A list of values of type `base`.
fn list(base: &str, elements: Vec<Argument>) -> Option<Argument> {
    fn all<T>(elements: Vec<Argument>, pick: impl Fn(Argument) -> Option<T>) -> Option<Vec<T>> {
        elements.into_iter().map(pick).collect()
    }
    let int = |element| match element {
        Argument::Int(i) => Some(i),
        _ => None,
    };
    let float = |element| match element {
        Argument::Int(i) => Some(i as f64),
        Argument::Float(f) => Some(f),
        _ => None,
    };
    let truth = |element| match element {
        Argument::Bool(b) => Some(b),
        _ => None,
    };
    let string = |element| match element {
        Argument::String(s) => Some(s),
        _ => None,
    };
    match base {
        "int" | "SymInt" => all(elements, int).map(Argument::Ints),
        "float" => all(elements, float).map(Argument::Floats),
        "bool" => all(elements, truth).map(Argument::Bools),
        "str" => all(elements, string).map(Argument::Strings),
        _ if elements.is_empty() => Some(Argument::Tensors(Vec::new())),
        "Scalar" => all(elements.clone(), int)
            .map(Argument::Ints)
            .or_else(|| all(elements, float).map(Argument::Floats)),
        _ => None,
    }
}

/// A value of type `base`. The losses' `Mean` and `Sum` are numbers.
fn one(base: &str, text: &str) -> Option<Argument> {
    let int = || match text {
        "Mean" => Some(1),
        "Sum" => Some(2),
        _ => text.parse().ok(),
    };
    let float = || text.parse().ok();
    let truth = || match text {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    match base {
        "int" | "SymInt" => int().map(Argument::Int),
        "float" => float().map(Argument::Float),
        "bool" => truth().map(Argument::Bool),
        "complex" => complex(text).map(|(re, im)| Argument::Complex(re, im)),
        "Scalar" => {
            ["int", "float", "bool", "complex"].into_iter().find_map(|base| one(base, text))
        }
        "str" => string(text).map(|text| Argument::String(text.into())),
        "ScalarType" => element_type_of(text).map(Argument::DType),
        "MemoryFormat" => memory_format(text).map(Argument::MemoryFormat),
        "Layout" => matches!(text, "strided" | "0").then_some(Argument::Layout(Layout::Strided)),
        "Device" => string(text).map(|text| {
            let (kind, index) = match text.split_once(':') {
                Some((kind, index)) => (kind, index.parse().ok()),
                None => (text.as_str(), None),
            };
            Argument::Device(Device { kind: kind.into(), index })
        }),
        _ => None,
    }
}

/// The real and imaginary part of `2.5`, `1j` or `2.5+1j`.
fn complex(text: &str) -> Option<(f64, f64)> {
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let Some(text) = text.strip_suffix('j') else {
        return Some((text.parse().ok()?, 0.0));
    };
    // The sign of the imaginary part is the last one that is not that of an exponent.
    let sign = text.char_indices().rev().find(|(at, c)| {
        matches!(c, '+' | '-') && !text.get(..*at).is_some_and(|t| t.ends_with(['e', 'E']))
    });
    match text.split_at(sign.map_or(0, |(at, _)| at)) {
        ("", imaginary) => Some((0.0, imaginary.parse().ok()?)),
        (real, imaginary) => Some((real.parse().ok()?, imaginary.parse().ok()?)),
    }
}

/// The contents of a string in quotes.
fn string(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut result = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        result.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'f' => '\x0c',
                'v' => '\x0b',
                other => other,
            },
            c if c == quote => return None,
            c => c,
        });
    }
    Some(result)
}

/// An element type by its name in Python, by its other name there, or by its number.
fn element_type_of(text: &str) -> Option<DType> {
    let name = match text.strip_prefix("torch.").unwrap_or(text) {
        "double" => "float64",
        "float" => "float32",
        "half" => "float16",
        "long" => "int64",
        "int" => "int32",
        "short" => "int16",
        "chalf" => "complex32",
        "cfloat" | "complex" => "complex64",
        "cdouble" => "complex128",
        other => other,
    };
    let numbered = || dtype_of_c10(text.parse().ok()?);
    element_type(&format!("torch.{name}")).or_else(numbered)
}

/// A memory format by its name in Python or its number.
fn memory_format(text: &str) -> Option<MemoryFormat> {
    use MemoryFormat::{ChannelsLast, ChannelsLast3d, Contiguous, Preserve};
    let formats = [Contiguous, Preserve, ChannelsLast, ChannelsLast3d].into_iter().enumerate();
    let named = |format: &MemoryFormat| {
        format.to_string().strip_prefix("torch.") == text.strip_prefix("torch.").or(Some(text))
    };
    let mut found = formats.filter(|(number, f)| named(f) || number.to_string() == text);
    found.next().map(|(_, format)| format)
}

#[cfg(test)]
mod tests {
    use crate::Schema;
    use pt2onnx_fx::printer::repr;

    #[test]
    fn defaults_of_all_types() {
        for (param, expected) in [
            ("float[] s=[0.5, 0.25]", "[0.5, 0.25]"),
            ("float[] s=[1, 0.5]", "[1.0, 0.5]"),
            ("float[2] s=0.5", "[0.5, 0.5]"),
            ("float[]? s=None", "None"),
            ("float s=1", "1.0"),
            ("float s=1e-05", "1e-05"),
            ("int[2] s=1", "[1, 1]"),
            ("int[] s=[]", "[]"),
            ("int[1]? s=[-2, -1]", "[-2, -1]"),
            ("int s=Mean", "1"),
            ("SymInt s=-100", "-100"),
            ("bool[2] s=[True, False]", "[True, False]"),
            ("bool? s=False", "False"),
            ("Scalar s=1", "1"),
            ("Scalar s=1.", "1.0"),
            ("Scalar s=True", "True"),
            ("Scalar s=2j", "2j"),
            ("Scalar[] s=[1, 2]", "[1, 2]"),
            ("Scalar[] s=[1, 2.5]", "[1.0, 2.5]"),
            ("complex s=1j", "1j"),
            ("complex s=1.5-2e+1j", "(1.5-20j)"),
            ("str s=\"Mean\"", "'Mean'"),
            ("str s='a, b'", "'a, b'"),
            ("str s='a=b(c'", "'a=b(c'"),
            ("str s=\"\\\"\\'\\\\\"", "'\"'\\'"),
            ("str[] s=['a', 'b]']", "[a, b]]"),
            ("ScalarType s=double", "torch.float64"),
            ("ScalarType s=torch.bfloat16", "torch.bfloat16"),
            ("ScalarType? s=4", "torch.int64"),
            ("MemoryFormat s=contiguous_format", "torch.contiguous_format"),
            ("MemoryFormat s=2", "torch.channels_last"),
            ("Layout s=strided", "torch.strided"),
            ("Device s='cuda:1'", "cuda:1"),
            ("Tensor[] s=[]", "[]"),
            // No values of these types.
            ("int s=None", "-"),
            ("int s=0x10", "-"),
            ("int s=1.5", "-"),
            ("int[] s=1", "-"),
            ("int[] s=[a]", "-"),
            ("int[] s=[1, 2.5]", "-"),
            ("int[][] s=[[1]]", "-"),
            ("bool[] s=[True, 2]", "-"),
            ("str s=a", "-"),
            ("ScalarType s=quint8", "-"),
            ("Tensor s=1", "-"),
            ("Tensor[] s=[x]", "-"),
        ] {
            let schema = Schema::parse(&format!("m::f(Tensor x, {param}) -> Tensor"));
            let found =
                schema.map(|schema| schema.params[1].default.as_ref().map(|d| repr(d).to_string()));
            assert_eq!(found.ok().flatten().as_deref().unwrap_or("-"), expected, "{param}");
        }
    }

    #[test]
    fn all_defaults_of_pytorch_can_be_read() {
        let texts = pt2onnx_schemas::LIST.lines();
        let texts = texts.filter(|text| pt2onnx_schemas::Schema::parse(text).is_ok());
        let wrong: Vec<_> = texts.filter_map(|text| Schema::parse(text).err()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
