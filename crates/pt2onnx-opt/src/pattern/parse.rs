//! Reading patterns from text.

use super::part::{NodePart, Part, Pattern, commutes};
use pt2onnx_ir::{
    Name, OpSet,
    schema::{self, OpSchema},
};
use pt2onnx_symbolic::text::MAX_NESTING;
use std::{str::FromStr, sync::Arc};

/// A text is not a [`Pattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{pattern}`: {expected} expected {}", place(rest))]
#[non_exhaustive]
pub struct PatternError {
    /// The text.
    pub pattern: String,
    /// The part that is missing, such as "a name or an operator".
    pub expected: &'static str,
    /// The text from where it should be.
    pub rest: String,
}

fn place(rest: &str) -> String {
    match rest {
        "" => "at the end".to_owned(),
        rest => format!("at `{rest}`"),
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut parser = Parser { rest: text, depth: 0 };
        let parsed = parser.part().and_then(|part| match part {
            _ if !parser.rest.trim().is_empty() => Err("the end"),
            part if part.ends().is_empty() => Err("an operator as the last node"),
            part => Ok(Self(part)),
        });
        parsed.map_err(|expected| PatternError {
            pattern: text.to_owned(),
            expected,
            rest: parser.rest.trim().to_owned(),
        })
    }
}

/// Reads patterns; errors say what is expected at the rest of the text.
struct Parser<'a> {
    rest: &'a str,
    /// How many patterns the current one is inside of.
    depth: u32,
}

impl Parser<'_> {
    fn eat(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Patterns separated by `separator`, up to `close`.
    fn list(
        &mut self,
        separator: char,
        close: char,
        expected: &'static str,
    ) -> Result<Arc<[Part]>, &'static str> {
        let mut all = Vec::new();
        loop {
            all.push(self.part()?);
            if self.eat(close) {
                return Ok(all.into());
            }
            if !self.eat(separator) {
                return Err(expected);
            }
        }
    }

    fn word(&mut self) -> Result<Name, &'static str> {
        self.rest = self.rest.trim_start();
        let inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let end = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err("a name, a number or an operator");
        }
        self.rest = rest;
        Ok(word.into())
    }

    fn part(&mut self) -> Result<Part, &'static str> {
        if self.depth == MAX_NESTING {
            return Err("a pattern of at most 64 levels");
        }
        self.depth += 1;
        let part = self.one();
        self.depth -= 1;
        part
    }

    fn one(&mut self) -> Result<Part, &'static str> {
        if self.eat('?') {
            let with = self.part()?;
            let inner = match &with {
                Part::Node(node) => {
                    node.inputs.iter().find(|p| matches!(p, Part::Node(_) | Part::Either(_)))
                }
                _ => None,
            };
            let without = inner.ok_or("`?` before an operator of another operator")?.clone();
            return Ok(Part::Either([with, without].into()));
        }
        if self.eat('{') {
            return Ok(Part::Either(self.list('|', '}', "`|` or `}`")?));
        }
        if self.eat('#') {
            let name = self.word().ok().filter(|word| word.parse::<f64>().is_err());
            return Ok(Part::Any { name: name.ok_or("a name after `#`")?, constant: true });
        }
        let start = self.rest;
        let word = self.word()?;
        if let Ok(number) = word.parse() {
            return Ok(Part::Number(number));
        }
        if self.eat(':') {
            return match self.part()? {
                Part::Node(mut node) if node.labels == [None] => {
                    node.labels = vec![Some(word)];
                    Ok(Part::Node(node))
                }
                _ => Err("an operator after `:`"),
            };
        }
        if self.eat('(') {
            let inputs = self.list(',', ')', "`,` or `)`")?;
            let (domain, op) = word.rsplit_once('.').unwrap_or(("", &word));
            if domain.is_empty()
                && let Err(expected) = check_operator(op, inputs.len())
            {
                self.rest = start;
                return Err(expected);
            }
            return Ok(Part::Node(NodePart {
                labels: vec![None],
                output: 0,
                domain: domain.into(),
                overload: "".into(),
                op: op.into(),
                ops: OpSet::from_iter([op]),
                commutes: domain.is_empty() && commutes(op) && inputs.len() == 2,
                inputs,
                exactly: None,
            }));
        }
        Ok(Part::Any { name: word, constant: false })
    }
}

/// Checks that some version of ONNX has an operator, with as many inputs.
fn check_operator(op: &str, inputs: usize) -> Result<(), &'static str> {
    let versions = schema::versions(op);
    if versions.is_empty() && !schema::OF_ONNX_RUNTIME.contains(&op) {
        return Err("an operator of ONNX, or one with its domain,");
    }
    let takes = |v: &OpSchema| inputs == 0 || v.input(inputs - 1).is_some();
    if versions.iter().any(takes) || versions.is_empty() {
        Ok(())
    } else {
        Err("an operator with so many inputs")
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn errors_say_what_is_expected_and_where() {
        let nested = |depth| format!("{}x{}", "Relu(".repeat(depth), ")".repeat(depth));
        let deep = format!("{}Relu(x)", "Relu(".repeat(64));
        assert!(nested(63).parse::<Pattern>().is_ok());
        for text in ["my.Relo(x, y, z)", "Concat(a, b, c, d)", "Clip(x, low)", "Upsample(x)"] {
            assert!(text.parse::<Pattern>().is_ok(), "{text}");
        }
        for text in [nested(64), nested(100_000), "?".repeat(100_000), "a:".repeat(100_000)] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert_eq!(error.expected, "a pattern of at most 64 levels");
        }
        for (text, error) in [
            ("", "a name, a number or an operator expected at the end"),
            ("x", "an operator as the last node expected at the end"),
            ("Mul(x", "`,` or `)` expected at the end"),
            ("Mul(x; y)", "`,` or `)` expected at `; y)`"),
            ("{Relu(x), Neg(x)}", "`|` or `}` expected at `, Neg(x)}`"),
            ("Relu(x) y", "the end expected at `y`"),
            ("Mul(x, #)", "a name after `#` expected at `)`"),
            ("Mul(x, #2)", "a name after `#` expected at `)`"),
            (&deep, "a pattern of at most 64 levels expected at `Relu(x)`"),
            ("a:b:Relu(x)", "an operator after `:` expected at the end"),
            ("Relu(?Neg(x))", "`?` before an operator of another operator expected at `)`"),
            ("Neg(Relo(x))", "an operator of ONNX, or one with its domain, expected at `Relo(x))`"),
            ("Neg(Relu(x, y, z))", "an operator with so many inputs expected at `Relu(x, y, z))`"),
        ] {
            let found = text.parse::<Pattern>().unwrap_err().to_string();
            assert_eq!(found, format!("pattern `{text}`: {error}"));
        }
    }
}
