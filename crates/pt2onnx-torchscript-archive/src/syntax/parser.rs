//! Tokens to code, by recursive descent with a limit.

use crate::syntax::{
    SyntaxError,
    ast::{Call, Class, Expr, ExprKind, File, Function, Param, Stmt, StmtKind},
    lexer::{Token, tokens},
    line_of,
};
use pt2onnx_fx::Name;
use std::sync::Arc;

/// How deeply expressions and blocks may nest.
const MAX_DEPTH: usize = 100;

type Parse<T> = Result<T, SyntaxError>;

/// Parses a file.
///
/// # Errors
/// The text is not in the language, or nests too deeply.
pub fn parse(text: &str) -> Parse<File> {
    file_of(text, tokens(text)?)
}

/// The same, with 0 for all places.
///
/// # Errors
/// Those of [`parse`].
pub fn parse_without_places(text: &str) -> Parse<File> {
    file_of(text, tokens(text)?.into_iter().map(|(token, _)| (token, 0)).collect())
}

fn file_of(text: &str, tokens: Vec<(Token, u32)>) -> Parse<File> {
    let mut parser = Parser { text, tokens, next: 0, depth: 0 };
    let mut file = File::default();
    while *parser.peek() != Token::End {
        match parser.word() {
            Some("class") => file.classes.push(parser.class()?),
            Some("def") => file.functions.push(Arc::new(parser.function()?)),
            _ => parser.other_line()?,
        }
    }
    Ok(file)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, u32)>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    fn at(&self) -> u32 {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |&(_, at)| at)
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn error<T>(&self, what: impl Into<String>) -> Parse<T> {
        Err(SyntaxError { line: line_of(self.text, self.at()), what: what.into() })
    }

    /// The next token, if it is a name or word.
    fn word(&self) -> Option<&str> {
        match self.peek() {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn is(&self, sign: char) -> bool {
        *self.peek() == Token::Sign(sign)
    }

    fn accept(&mut self, sign: char) -> bool {
        let found = self.is(sign);
        self.next += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        self.next += usize::from(found);
        found
    }

    /// The expression after a sign, if that is next.
    fn after(&mut self, sign: char) -> Parse<Option<Expr>> {
        if self.accept(sign) { self.expression().map(Some) } else { Ok(None) }
    }

    fn expect(&mut self, sign: char) -> Parse<()> {
        if self.accept(sign) { Ok(()) } else { self.error(format!("expected `{sign}`")) }
    }

    fn end_of_line(&mut self) -> Parse<()> {
        if *self.peek() != Token::Newline {
            return self.error("expected the end of the line");
        }
        self.next += 1;
        Ok(())
    }

    fn name(&mut self) -> Parse<Name> {
        let Some(name) = self.word().map(Name::from) else {
            return self.error("expected a name");
        };
        self.next += 1;
        Ok(name)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_DEPTH {
            return self.error("nested too deeply");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `import ...`, `op_version_set = 1`: they say nothing that is needed.
    fn other_line(&mut self) -> Parse<()> {
        if self.word().is_none() {
            return self.error("expected a class or a function");
        }
        while !matches!(self.peek(), Token::Newline | Token::End) {
            self.next += 1;
        }
        self.end_of_line()
    }

    /// A colon and the indented lines after it, or what stands on the same line.
    fn block<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        self.expect(':')?;
        self.end_of_line()?;
        if *self.peek() != Token::Indent {
            return Ok(Vec::new());
        }
        self.next += 1;
        self.deeper(|parser| {
            let mut items = Vec::new();
            while *parser.peek() != Token::Dedent {
                items.push(item(parser)?);
            }
            parser.next += 1;
            Ok(items)
        })
    }

    fn class(&mut self) -> Parse<Class> {
        self.next += 1;
        let name = self.name()?;
        let mut base = None;
        if self.accept('(') {
            base = Some(self.name()?);
            self.expect(')')?;
        }
        let (methods, attributes, values) = Default::default();
        let mut class = Class { name, base, methods, attributes, values };
        self.block(|parser| parser.class_item(&mut class))?;
        Ok(class)
    }

    fn class_item(&mut self, class: &mut Class) -> Parse<()> {
        if self.word() == Some("def") {
            class.methods.push(Arc::new(self.function()?));
            return Ok(());
        }
        if self.accept_word("pass") {
            return self.end_of_line();
        }
        let target = self.expression()?;
        let ty = self.after(':')?;
        let value = if self.accept('=') { Some(self.expressions()?) } else { None };
        match (target.kind, ty, value) {
            (ExprKind::Name(name), Some(ty), value) => class.attributes.push((name, ty, value)),
            (ExprKind::Name(name), None, Some(value)) => class.values.push((name, value)),
            // `__annotations__["0"] = T`: the name is not one of Python's.
            (ExprKind::Index(_, index), None, Some(value)) => match index.kind {
                ExprKind::Str(name) => class.attributes.push(((&*name).into(), value, None)),
                _ => return self.error("expected a string"),
            },
            (_, None, None) => self.expect('=')?,
            _ => return self.error("expected the name of an attribute"),
        }
        self.end_of_line()
    }

    fn function(&mut self) -> Parse<Function> {
        let at = self.at();
        self.next += 1;
        let name = self.name()?;
        self.expect('(')?;
        let mut params = Vec::new();
        self.until(')', |parser| {
            if !parser.accept('*') {
                let name = parser.name()?;
                let (ty, default) = (parser.after(':')?, parser.after('=')?);
                params.push(Param { name, ty, default });
            }
            Ok(())
        })?;
        let returns = self.after('>')?;
        let body = self.block(Self::statement)?;
        Ok(Function { name, params, returns, body, at })
    }

    fn statement(&mut self) -> Parse<Stmt> {
        let at = self.at();
        let kind = match self.word() {
            Some("if") => self.condition()?,
            Some("for") => {
                self.next += 1;
                let target = self.expression()?;
                if !self.accept_word("in") {
                    return self.error("expected `in`");
                }
                let iter = self.expression()?;
                StmtKind::For { target, iter, body: self.block(Self::statement)? }
            }
            Some("while") => {
                self.next += 1;
                let test = self.expression()?;
                StmtKind::While { test, body: self.block(Self::statement)? }
            }
            Some("with") => {
                self.next += 1;
                let context = self.expression()?;
                let target = if self.accept_word("as") { Some(self.expression()?) } else { None };
                StmtKind::With { context, target, body: self.block(Self::statement)? }
            }
            Some("def") => StmtKind::Def(Arc::new(self.function()?)),
            _ => {
                let kind = self.simple()?;
                self.end_of_line()?;
                kind
            }
        };
        Ok(Stmt { at, kind })
    }

    fn condition(&mut self) -> Parse<StmtKind> {
        self.next += 1;
        let test = self.expression()?;
        let then = self.block(Self::statement)?;
        let at = self.at();
        let other = if self.word() == Some("elif") {
            let kind = self.deeper(Self::condition)?;
            vec![Stmt { at, kind }]
        } else if self.accept_word("else") {
            self.block(Self::statement)?
        } else {
            Vec::new()
        };
        Ok(StmtKind::If { test, then, other })
    }

    /// A statement of one line.
    fn simple(&mut self) -> Parse<StmtKind> {
        if self.accept_word("pass") {
            return Ok(StmtKind::Pass);
        }
        if self.accept_word("return") {
            let nothing = *self.peek() == Token::Newline;
            let value = if nothing { None } else { Some(self.expressions()?) };
            return Ok(StmtKind::Return(value));
        }
        let target = self.expressions()?;
        let ty = self.after(':')?;
        if ty.is_none() && !self.is('=') {
            return Ok(StmtKind::Expr(target));
        }
        self.expect('=')?;
        Ok(StmtKind::Assign { target, ty, value: self.expressions()? })
    }

    /// One expression, or a tuple without parentheses.
    fn expressions(&mut self) -> Parse<Expr> {
        let at = self.at();
        let first = self.expression()?;
        if !self.is(',') {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.accept(',') {
            if matches!(self.peek(), Token::Newline | Token::Sign('=')) {
                break;
            }
            items.push(self.expression()?);
        }
        Ok(Expr { at, kind: ExprKind::Tuple(items) })
    }

    fn expression(&mut self) -> Parse<Expr> {
        self.deeper(|parser| {
            let at = parser.at();
            let negative = parser.accept('-');
            if let Some(kind) = parser.complex(negative) {
                return Ok(Expr { at, kind });
            }
            if negative {
                let value = parser.expression()?;
                return Ok(Expr { at, kind: ExprKind::Neg(Box::new(value)) });
            }
            let atom = parser.atom()?;
            parser.suffixes(atom)
        })
    }

    /// A complex number, which is written as a sum or a difference: `1.-2.5j`. The language has no
    /// others.
    fn complex(&mut self, negative: bool) -> Option<ExprKind> {
        let token = |i: usize| self.tokens.get(self.next + i).map(|(token, _)| token);
        let re = match token(0)? {
            Token::Float(value) => *value,
            Token::Int(value) => *value as f64,
            _ => return None,
        };
        let (Token::Sign(sign @ ('+' | '-')), Token::Imaginary(im)) = (token(1)?, token(2)?) else {
            return None;
        };
        let kind = ExprKind::Complex(
            if negative { -re } else { re },
            if *sign == '-' { -im } else { *im },
        );
        self.next += 3;
        Some(kind)
    }

    fn atom(&mut self) -> Parse<Expr> {
        let at = self.at();
        let kind = match self.advance() {
            Token::Name(name) => match &*name {
                "None" => ExprKind::None,
                "True" => ExprKind::Bool(true),
                "False" => ExprKind::Bool(false),
                _ => ExprKind::Name((&*name).into()),
            },
            Token::Int(value) => ExprKind::Int(value),
            Token::Float(value) => ExprKind::Float(value),
            Token::Imaginary(value) => ExprKind::Complex(0.0, value),
            Token::Str(mut text) => {
                while let Token::Str(more) = self.peek() {
                    text = format!("{text}{more}").into();
                    self.next += 1;
                }
                ExprKind::Str(text)
            }
            Token::Sign('(') => {
                let (mut items, comma) = self.items(')')?;
                match (items.len(), comma) {
                    (1, false) => return items.pop().map_or_else(|| self.error("empty"), Ok),
                    _ => ExprKind::Tuple(items),
                }
            }
            Token::Sign('[') => ExprKind::List(self.items(']')?.0),
            Token::Sign('{') => ExprKind::Dict(self.entries()?),
            _ => {
                self.next -= 1;
                return self.error("expected an expression");
            }
        };
        Ok(Expr { at, kind })
    }

    /// Reads items between commas up to a closing bracket. Returns whether there was a comma.
    fn until(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parse<()>) -> Parse<bool> {
        let mut comma = false;
        while !self.accept(close) {
            item(self)?;
            if !self.is(close) {
                self.expect(',')?;
                comma = true;
            }
        }
        Ok(comma)
    }

    /// Expressions up to a closing bracket, and whether there was a comma.
    fn items(&mut self, close: char) -> Parse<(Vec<Expr>, bool)> {
        let mut items = Vec::new();
        let comma = self.until(close, |parser| {
            items.push(parser.expression()?);
            Ok(())
        })?;
        Ok((items, comma))
    }

    fn entries(&mut self) -> Parse<Vec<(Expr, Expr)>> {
        let mut entries = Vec::new();
        self.until('}', |parser| {
            let key = parser.expression()?;
            parser.expect(':')?;
            entries.push((key, parser.expression()?));
            Ok(())
        })?;
        Ok(entries)
    }

    /// Attributes, indices and calls after an expression.
    fn suffixes(&mut self, mut base: Expr) -> Parse<Expr> {
        for _ in 0..MAX_DEPTH {
            let at = base.at;
            let kind = if self.accept('.') {
                ExprKind::Attr(Box::new(base), self.name()?)
            } else if self.accept('(') {
                self.call(base)?
            } else if self.accept('[') {
                self.index(base)?
            } else {
                return Ok(base);
            };
            base = Expr { at, kind };
        }
        self.error("nested too deeply")
    }

    fn call(&mut self, callee: Expr) -> Parse<ExprKind> {
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        self.until(')', |parser| {
            let value = parser.expression()?;
            match value.kind {
                ExprKind::Name(name) if parser.accept('=') => {
                    kwargs.push((name, parser.expression()?));
                }
                _ => args.push(value),
            }
            Ok(())
        })?;
        Ok(ExprKind::Call(Box::new(Call { callee, args, kwargs })))
    }

    fn index(&mut self, base: Expr) -> Parse<ExprKind> {
        let (base, at) = (Box::new(base), self.at());
        let first = if self.is(':') { None } else { Some(self.expression()?) };
        if self.accept(':') {
            let end = if self.is(']') { None } else { Some(Box::new(self.expression()?)) };
            self.expect(']')?;
            return Ok(ExprKind::Slice(base, first.map(Box::new), end));
        }
        let Some(first) = first else { return self.error("expected an expression") };
        if self.accept(']') {
            return Ok(ExprKind::Index(base, Box::new(first)));
        }
        // `Dict[str, Tensor]`.
        self.expect(',')?;
        let mut items = vec![first];
        items.append(&mut self.items(']')?.0);
        Ok(ExprKind::Index(base, Box::new(Expr { at, kind: ExprKind::Tuple(items) })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (u32, String) {
        let error = parse(text).unwrap_err();
        (error.line, error.what)
    }

    #[test]
    fn classes_functions_and_statements() {
        let text = "op_version_set = 1\nclass M(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n  n : Final[int] = 3\n  \
            __annotations__[\"0\"] = __torch__.A\n  def forward(self: __torch__.M,\n      x: Tensor,\n      k: int=-1) -> Tuple[Tensor, int]:\n    \
            a, b, = torch.f(x, [1, 2], alpha=1.), x\n    c: List[int] = []\n    if torch.gt(k, 0):\n      pass\n    else:\n      a = b\n    \
            for i in range(3):\n      self.w = a[0]\n    while True:\n      pass\n    return (a[1:], {\"s\\'\": 1e-5})\ndef f() -> NoneType:\n  return None\n";
        let file = parse(text).unwrap();
        let class = &file.classes[0];
        assert_eq!(class.names("__parameters__"), ["w"]);
        assert_eq!(class.attributes.iter().map(|a| &*a.0).collect::<Vec<_>>(), ["w", "n", "0"]);
        let forward = class.method("forward").unwrap();
        assert_eq!((forward.params.len(), forward.body.len()), (3, 6));
        let StmtKind::Assign { target, value, .. } = &forward.body[0].kind else { panic!() };
        assert!(matches!(&target.kind, ExprKind::Tuple(items) if items.len() == 2));
        assert!(matches!(&value.kind, ExprKind::Tuple(items) if items.len() == 2));
        assert_eq!(file.functions[0].name, "f");
    }

    #[test]
    fn complex_numbers() {
        for (text, re, im) in [
            ("2.5j", 0.0, 2.5),
            ("0.-1.5j", 0.0, -1.5),
            ("-1.+2.j", -1.0, 2.0),
            ("-3-1e-5j", -3.0, -1e-5),
        ] {
            let file = parse(&format!("def f():\n  return {text}\n")).unwrap();
            let StmtKind::Return(Some(value)) = &file.functions[0].body[0].kind else { panic!() };
            assert_eq!(value.kind, ExprKind::Complex(re, im), "{text}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("class M(:\n", (1, "expected a name".to_owned())),
            ("def f():\n  x = \n", (2, "expected an expression".to_owned())),
            ("def f():\n  x = 1 / 2\n", (2, "a character that is not known here".to_owned())),
            ("def f():\n  x = 'a\n", (3, "a string without end".to_owned())),
            (
                "def f():\n    x = 1\n  y = 2\n",
                (3, "the indentation fits no line before".to_owned()),
            ),
            ("def f():\n  return (1\n", (3, "expected `,`".to_owned())),
        ] {
            assert_eq!(error(text), expected, "{text}");
        }
        for open in ["(", "[", "-", "f(", "a["] {
            let text = format!("def f():\n  return {}", open.repeat(10_000));
            assert_eq!(error(&text), (2, "nested too deeply".to_owned()), "{open}");
        }
    }
}
