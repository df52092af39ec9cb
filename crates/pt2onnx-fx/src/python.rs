//! Python's `repr` of plain values.

use std::fmt::{self, Display, Write};

/// Python's `repr` of a bool.
pub(crate) fn py_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Python's `repr` of a string.
#[derive(Clone, Copy, Debug)]
pub struct PyStr<'a>(pub &'a str);

impl Display for PyStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.0.contains('\'') && !self.0.contains('"') { '"' } else { '\'' };
        f.write_char(quote)?;
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\\' => f.write_str("\\\\")?,
                c if c == quote => write!(f, "\\{c}")?,
                c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char(quote)
    }
}

/// Python's `repr` of a float: the shortest digits that read back, with an exponent below 1e-4 and
/// from 1e16 on.
pub(crate) struct PyFloat(pub(crate) f64);

impl Display for PyFloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.0;
        if x.is_nan() {
            return f.write_str("nan");
        }
        if x.is_infinite() {
            return f.write_str(if x > 0.0 { "inf" } else { "-inf" });
        }
        if x == 0.0 || (1e-4..1e16).contains(&x.abs()) {
            return write!(f, "{x:?}");
        }
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        write!(f, "{digits}e{sign}{exponent:0>2}")
    }
}

/// Python's `repr` of a complex number: `(1+2j)`, `2j`.
pub(crate) struct PyComplex(pub(crate) f64, pub(crate) f64);

impl Display for PyComplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |x: f64| {
            let text = PyFloat(x).to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        };
        let (re, im) = (part(self.0), part(self.1));
        if self.0 == 0.0 && self.0.is_sign_positive() {
            return write!(f, "{im}j");
        }
        let plus = if im.starts_with('-') { "" } else { "+" };
        write!(f, "({re}{plus}{im}j)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_as_python_prints_them() {
        for (text, printed) in [
            ("", "''"),
            ("layer1.0", "'layer1.0'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\\\n\u{1}ä", "'a\\\\\\n\\x01ä'"),
        ] {
            assert_eq!(PyStr(text).to_string(), printed);
        }
    }

    #[test]
    fn numbers_as_python_prints_them() {
        for (x, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e16, "1e+16"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (9999999999999998.0, "9999999999999998.0"),
            (-1e300, "-1e+300"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(PyFloat(x).to_string(), text);
        }
        for (re, im, text) in [(1.0, 2.0, "(1+2j)"), (0.0, 2.5, "2.5j"), (-1.0, -0.5, "(-1-0.5j)")]
        {
            assert_eq!(PyComplex(re, im).to_string(), text);
        }
    }
}
