//! The conditions on sizes of inputs under which a program is right: warnings, metadata and checks.

use crate::regions::CONDITIONS;
use pt2onnx_fx::SizeCondition;
use pt2onnx_ir::{Model, Value, is_unknown};
use pt2onnx_opt::{SizeCheck, check_sizes};
use pt2onnx_report::{Warning, WarningKind};
use pt2onnx_symbolic::{Constraints, Expr, Func, Range, Symbol, View};
use std::collections::BTreeSet;

/// Sizes up to this one are tried to find the range that conditions allow.
const MAX_TRIED: i64 = 4096;

/// The range is not searched for more conditions than these.
const MAX_SEARCHED: usize = 64;

/// So many conditions on one symbol are usually there because it has one size only.
const MANY: usize = 8;

/// At most so many conditions leave out others, which follow from them.
const MAX_KNOWN: usize = 64;

/// At most so many conditions are listed in a warning.
const MAX_LISTED: usize = 4;

/// A name of a node has at most so many characters.
const MAX_NAME: usize = 200;

/// The conditions of a program, and where its symbols are in the model.
#[derive(Debug, Default)]
pub(crate) struct SizeConditions {
    all: Vec<SizeCondition>,
    places: Vec<(Symbol, Value, usize)>,
}

impl SizeConditions {
    pub fn new(all: Vec<SizeCondition>) -> Self {
        Self { all, places: Vec::new() }
    }

    /// Notes the places of symbols in the inputs, before these get other names.
    pub fn find_places(&mut self, model: &Model) {
        if !self.all.is_empty() {
            self.places = places(model);
        }
    }

    /// Gives symbols the names or numbers that the dimensions of the model have now, and leaves out
    /// what is then known to hold.
    pub fn rename(&mut self, model: &Model) {
        let size = |symbol: &str| {
            let (_, input, axis) = self.places.iter().find(|(known, ..)| **known == *symbol)?;
            model.shape(*input)?.get(*axis).cloned()
        };
        let mut known = Constraints::new();
        for (symbol, ..) in places(model) {
            known.constrain(&Expr::symbol(&symbol), Range::at_least(2));
        }
        for one in &mut self.all {
            let renamed = |s: &Symbol| size(s).is_some_and(|now| now.as_symbol() != Some(s));
            if one.holds.as_ref().is_some_and(|holds| holds.symbols().iter().any(renamed)) {
                one.holds = one.holds.take().map(|holds| holds.substitute(&size));
            }
        }
        self.fix();
        // Simple ones first: others often follow from them.
        self.all.sort_by_cached_key(|one| {
            let holds = one.holds.as_ref();
            holds.map_or((0, 0), |holds| (holds.symbols().len(), holds.to_string().len()))
        });
        let mut assumed = 0;
        self.all.retain(|one| {
            let Some(holds) = &one.holds else { return true };
            let follows = known.decide(holds) == Some(true);
            if !follows && assumed < MAX_KNOWN {
                known.assume(holds);
                assumed += 1;
            }
            !follows
        });
    }

    /// Where many conditions on one symbol allow one number, gives the symbol that number in all
    /// others. Numbers beyond [`MAX_TRIED`] are not looked at, and count as not allowed.
    fn fix(&mut self) {
        let symbols: BTreeSet<Symbol> = self.holds().flat_map(Expr::symbols).collect();
        for symbol in symbols {
            let alone = |one: &SizeCondition| {
                let symbols = one.holds.as_ref().map(Expr::symbols);
                symbols.is_some_and(|all| all.iter().eq([&symbol]))
            };
            let own: Vec<&Expr> = self
                .all
                .iter()
                .filter(|one| alone(one))
                .filter_map(|one| one.holds.as_ref())
                .collect();
            let many = own.len() >= MANY;
            let Some(number) = many.then(|| only_size(&symbol, &own)).flatten() else { continue };
            let equal = Expr::call(Func::Eq, vec![Expr::symbol(&symbol), Expr::int(number)]);
            let mut first = Some(equal);
            for one in &mut self.all {
                let fixed = |name: &str| (*name == *symbol).then(|| Expr::int(number));
                one.holds = match alone(one).then(|| first.take()).flatten() {
                    Some(equal) => Some(equal),
                    None => one.holds.take().map(|holds| holds.substitute(&fixed)),
                };
            }
        }
    }

    fn holds(&self) -> impl Iterator<Item = &Expr> {
        self.all.iter().filter_map(|one| one.holds.as_ref())
    }

    /// The conditions in words: `t` is 1 to 8, and `h % 4 == 0`.
    fn described(&self) -> String {
        let mut texts: Vec<String> = Vec::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        let symbols: BTreeSet<Symbol> = self.holds().flat_map(Expr::symbols).collect();
        for symbol in symbols {
            let of =
                self.all.iter().enumerate().filter_map(|(i, one)| Some((i, one.holds.as_ref()?)));
            let alone = |holds: &Expr| holds.symbols().iter().all(|s| *s == symbol);
            let own: Vec<(usize, &Expr)> = of.filter(|(_, holds)| alone(holds)).collect();
            let conditions: Vec<&Expr> = own.iter().map(|(_, holds)| *holds).collect();
            if let Some(range) = range_of(&symbol, &conditions) {
                texts.push(format!("`{symbol}` is {range}"));
                done.extend(own.iter().map(|(i, _)| *i));
            }
        }
        for (_, one) in self.all.iter().enumerate().filter(|(i, _)| !done.contains(i)) {
            let holds = one.holds.as_ref().filter(|holds| !holds.is_static());
            let text = holds.map_or_else(|| one.text.clone(), in_python);
            texts.push(format!("`{text}`"));
        }
        let more = texts.len().saturating_sub(MAX_LISTED);
        texts.truncate(MAX_LISTED);
        if more > 0 {
            texts.push(format!("{more} more conditions hold"));
        }
        match texts.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        }
    }

    /// A warning if the model is right for some sizes only.
    pub fn warning(&self, checked: bool) -> Option<Warning> {
        if self.all.is_empty() {
            return None;
        }
        let places: BTreeSet<&String> =
            self.all.iter().filter_map(|one| one.place.as_ref()).collect();
        let places: Vec<String> = places.into_iter().take(MAX_LISTED).cloned().collect();
        let lines =
            if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
        let outside = if checked {
            "it fails for others"
        } else {
            "others give wrong results or fail; the option `size-checks` makes it fail for them"
        };
        let text = format!(
            "the model holds only where {}{lines}, for which the program was exported: {outside}",
            self.described()
        );
        Some(Warning::new(WarningKind::Specialised, text))
    }

    /// Writes the conditions into the metadata, from where they are read to merge models.
    pub fn write(&self, model: &mut Model) {
        let texts: Vec<String> = self.holds().map(ToString::to_string).collect();
        let readable =
            |(text, holds): (&String, &Expr)| Expr::parse(text).is_ok_and(|e| e == *holds);
        if !texts.is_empty() && texts.iter().zip(self.holds()).all(readable) {
            model
                .metadata
                .push((CONDITIONS.into(), serde_json::json!(texts).to_string().as_str().into()));
        }
    }

    /// Makes the model fail at run time where the conditions do not hold. Returns the conditions
    /// that nodes cannot compute.
    pub fn check(&self, model: &mut Model) -> Vec<String> {
        let places = places(model);
        let mut left: Vec<String> = Vec::new();
        let unread = self.all.iter().filter(|one| one.holds.is_none());
        left.extend(unread.map(|one| one.text.clone()));
        let all: Vec<Expr> = self.holds().cloned().collect();
        if all.is_empty() {
            return left;
        }
        let mut reason =
            format!("the model holds only where {}", self.described()).replace('`', "");
        if let Some((end, _)) = reason.char_indices().nth(MAX_NAME) {
            reason.truncate(end);
        }
        let check = |holds: Vec<Expr>| SizeCheck { holds, reason: reason.clone() };
        if check_sizes(model, &[check(all.clone())], &places).is_ok() {
            return left;
        }
        for holds in all {
            let text = in_python(&holds);
            if check_sizes(model, &[check(vec![holds])], &places).is_err() {
                left.push(text);
            }
        }
        left
    }
}

/// The symbols that are sizes of inputs, with their first places.
fn places(model: &Model) -> Vec<(Symbol, Value, usize)> {
    let mut places: Vec<(Symbol, Value, usize)> = Vec::new();
    for &input in model.inputs() {
        for (axis, size) in model.shape(input).into_iter().flatten().enumerate() {
            if let Some(symbol) = size.as_symbol().filter(|_| !is_unknown(size))
                && !places.iter().any(|(known, ..)| **known == *symbol)
            {
                places.push((symbol.into(), input, axis));
            }
        }
    }
    places
}

/// The only size up to [`MAX_TRIED`] that conditions on one symbol allow.
fn only_size(symbol: &Symbol, conditions: &[&Expr]) -> Option<i64> {
    let value = |size: i64| move |name: &str| (*name == **symbol).then_some(size);
    let holds = |size: &i64| conditions.iter().all(|c| c.eval(&value(*size)) == Some(1));
    let mut sizes = (0..=MAX_TRIED).filter(holds);
    sizes.next().filter(|_| sizes.next().is_none())
}

/// The sizes that conditions on one symbol allow, in words; `None` if they are no range.
fn range_of(symbol: &Symbol, conditions: &[&Expr]) -> Option<String> {
    if conditions.is_empty() || conditions.len() > MAX_SEARCHED {
        return None;
    }
    let mut known = Constraints::new();
    let size = Expr::symbol(symbol);
    known.constrain(&size, Range::at_least(0));
    conditions.iter().for_each(|condition| known.assume(condition));
    let range = known.range(symbol);
    let mut within = Constraints::new();
    within.constrain(&size, range);
    let (min, max) = if conditions.iter().all(|c| within.decide(c) == Some(true)) {
        (range.min.unwrap_or(0), range.max)
    } else {
        let value = |size: i64| move |name: &str| (*name == **symbol).then_some(size);
        let holds = |size: &i64| conditions.iter().all(|c| c.eval(&value(*size)) == Some(1));
        let sizes: Vec<i64> = (0..=MAX_TRIED).filter(holds).collect();
        let (first, last) = (*sizes.first()?, *sizes.last()?);
        let is_range = last - first + 1 == i64::try_from(sizes.len()).ok()?;
        if !is_range || last == MAX_TRIED {
            return None;
        }
        (first, Some(last))
    };
    Some(match max {
        Some(max) if max == min => min.to_string(),
        Some(max) if min == 0 => format!("at most {max}"),
        Some(max) => format!("{min} to {max}"),
        None => format!("at least {min}"),
    })
}

/// A condition as Python writes it.
fn in_python(condition: &Expr) -> String {
    let relation = match condition.view() {
        View::Call(Func::Eq, [a, b]) => Some((a, "==", b)),
        View::Call(Func::Ne, [a, b]) => Some((a, "!=", b)),
        _ => None,
    };
    let Some((a, sign, b)) = relation else { return condition.to_string() };
    match a.view() {
        View::Call(Func::Mod | Func::PythonMod, [x, k])
            if x.as_symbol().is_some() && k.is_static() =>
        {
            format!("{x} % {k} {sign} {b}")
        }
        _ => format!("{a} {sign} {b}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(texts: &[String]) -> SizeConditions {
        let read = |text: &String| {
            let holds = Expr::parse(text).ok();
            SizeCondition { holds, text: text.clone(), place: None }
        };
        SizeConditions::new(texts.iter().map(read).collect())
    }

    #[test]
    fn a_size_that_many_conditions_fix_is_put_in() {
        let padded = "s + PythonMod(8 - PythonMod(s, 8), 8)";
        let mut texts = vec![format!("8 >= {padded}"), "PythonMod(s, 8) <= 0".into()];
        texts.extend((1..7).map(|i| format!("s >= {i}")));
        let mut few = holding(&texts[..7]);
        texts.push(format!("t >= ({padded})//4"));
        let mut many = holding(&texts);
        few.fix();
        many.fix();
        assert_eq!(few.holds().map(|e| e.symbols().len()).sum::<usize>(), 7);
        assert_eq!(many.described(), "`s` is 8 and `t` is at least 2");
    }
}
