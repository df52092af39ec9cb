//! Decision trees on sizes, and what is left of one when impossible paths are closed.

use super::facts::{Facts, negated};
use pt2onnx_symbolic::{Constraints, Expr, Func};
use std::{collections::BTreeSet, fmt};

/// Trees of more leaves than this are refused.
pub(super) const MAX_LEAVES: usize = 256;

/// Trees that are deeper than this are refused.
pub(super) const MAX_DEPTH: usize = 64;

/// A decision between models by the sizes of inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// The model at this position.
    Model(usize),
    /// No model is for these sizes: the reason.
    Refused(String),
    /// The first where the condition holds, else the second.
    If(Expr, Box<(Tree, Tree)>),
}

impl Tree {
    /// The first model whose conditions all hold; other sizes are refused for this reason.
    pub fn first_of(conditions: &[Vec<Expr>], reason: &str) -> Self {
        let last = Self::Refused(reason.to_owned());
        let models = conditions.iter().enumerate().rev();
        models.fold(last, |rest, (model, all)| {
            if all.is_empty() {
                return Self::Model(model);
            }
            let condition = Expr::call(Func::And, all.clone());
            Self::If(condition, Box::new((Self::Model(model), rest)))
        })
    }

    /// Whether it has more leaves or is deeper than a tree may be.
    pub(super) fn is_too_large(&self) -> bool {
        let (mut leaves, mut todo) = (0, vec![(self, 1)]);
        while let Some((tree, depth)) = todo.pop() {
            match tree {
                Self::If(_, both) if depth < MAX_DEPTH => {
                    todo.extend([(&both.0, depth + 1), (&both.1, depth + 1)]);
                }
                Self::If(..) => return true,
                _ => leaves += 1,
            }
        }
        leaves > MAX_LEAVES
    }

    /// Calls a function with each condition.
    pub(super) fn each_condition<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        if let Self::If(condition, both) = self {
            visit(condition);
            both.0.each_condition(visit);
            both.1.each_condition(visit);
        }
    }

    /// Without the paths that no sizes take. `None` if no sizes come here.
    fn closed(&self, facts: &Facts) -> Option<Self> {
        if facts.is_impossible() {
            return None;
        }
        let Self::If(condition, both) = self else { return Some(self.clone()) };
        if let Some(known) = facts.decide(condition) {
            return if known { both.0.closed(facts) } else { both.1.closed(facts) };
        }
        let yes = both.0.closed(&facts.with(condition));
        let no = both.1.closed(&facts.with(&negated(condition)));
        match (yes, no) {
            (Some(yes), Some(no)) if yes != no => {
                Some(Self::If(condition.clone(), Box::new((yes, no))))
            }
            (yes, no) => yes.or(no),
        }
    }

    /// The leaves with the conditions on the way to them, in order.
    fn leaves(&self, path: &mut Vec<Expr>, leaves: &mut Vec<(Self, Vec<Expr>)>) {
        match self {
            Self::If(condition, both) => {
                for (part, condition) in
                    [(&both.0, condition.clone()), (&both.1, negated(condition))]
                {
                    path.push(condition);
                    part.leaves(path, leaves);
                    path.pop();
                }
            }
            leaf => leaves.push((leaf.clone(), path.clone())),
        }
    }

    /// Without refused leaves: sizes that lead there take any of the others.
    fn accepted(self) -> Option<Self> {
        match self {
            Self::Refused(_) => None,
            Self::Model(_) => Some(self),
            Self::If(condition, both) => {
                let (yes, no) = *both;
                match (yes.accepted(), no.accepted()) {
                    (Some(yes), Some(no)) if yes != no => {
                        Some(Self::If(condition, Box::new((yes, no))))
                    }
                    (yes, no) => yes.or(no),
                }
            }
        }
    }

    /// Where one of some leaves is reached: a list of conditions that hold together. Each condition
    /// of the tree is there once or twice.
    fn reaches(&self, wanted: &impl Fn(&Self) -> bool) -> Vec<Expr> {
        let Self::If(condition, both) = self else {
            return if wanted(self) { Vec::new() } else { vec![Expr::ZERO] };
        };
        let (yes, no) = (both.0.reaches(wanted), both.1.reaches(wanted));
        let never = |all: &[Expr]| all == [Expr::ZERO];
        let opposite = negated(condition);
        if never(&yes) && never(&no) {
            return no;
        }
        if never(&no) {
            return [vec![condition.clone()], yes].concat();
        }
        if never(&yes) {
            return [vec![opposite], no].concat();
        }
        match (yes.is_empty(), no.is_empty()) {
            (true, true) => yes,
            (true, false) => vec![Expr::call(Func::Or, vec![condition.clone(), together(no)])],
            (false, true) => vec![Expr::call(Func::Or, vec![opposite, together(yes)])],
            (false, false) => {
                let yes = together([vec![condition.clone()], yes].concat());
                let no = together([vec![opposite], no].concat());
                vec![Expr::call(Func::Or, vec![yes, no])]
            }
        }
    }

    /// Whether a model is at several leaves.
    fn repeats(leaves: &[(Self, Vec<Expr>)]) -> bool {
        let rest = |i: usize| leaves.iter().skip(i + 1);
        leaves.iter().enumerate().any(|(i, (leaf, _))| rest(i).any(|(other, _)| other == leaf))
    }

    /// A test for each leaf: whether any of its paths is taken. The one with most paths is last.
    fn by_leaf(self) -> Self {
        let mut leaves = Vec::new();
        self.leaves(&mut Vec::new(), &mut leaves);
        if !Self::repeats(&leaves) {
            return self;
        }
        let mut groups = grouped(leaves);
        groups.sort_by_key(|group| group.paths.iter().map(Vec::len).sum::<usize>());
        let mut chain: Option<Self> = None;
        for Region { leaf, .. } in groups.into_iter().rev() {
            let reached = together(self.reaches(&|other| *other == leaf));
            if is_too_large(&reached) {
                return self;
            }
            chain = Some(match chain {
                None => leaf,
                Some(rest) => Self::If(reached, Box::new((leaf, rest))),
            });
        }
        chain.unwrap_or(self)
    }
}

/// A leaf, and the conditions of each path to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub leaf: Tree,
    pub paths: Vec<Vec<Expr>>,
}

impl Region {
    /// Facts about sizes in the region.
    pub fn known(&self, known: &Constraints) -> Constraints {
        let mut facts = Facts::all(known);
        match &self.paths[..] {
            [path] => path.iter().for_each(|condition| facts = facts.with(condition)),
            paths => facts = facts.with(&any_of(paths)),
        }
        facts.constraints().clone()
    }

    /// Where sizes are not in the region: conditions that hold together, one for each path. These
    /// are longer than those of [`Tree::reaches`], but each has the conditions of a path only.
    fn is_left(&self) -> Vec<Expr> {
        let leaves = |path: &Vec<Expr>| Expr::call(Func::Or, path.iter().map(negated).collect());
        self.paths.iter().map(leaves).collect()
    }

    /// Whether sizes are in the region, as text.
    pub fn conditions(&self) -> Vec<String> {
        match &self.paths[..] {
            [path] => path.iter().map(ToString::to_string).collect(),
            paths => vec![any_of(paths).to_string()],
        }
    }
}

/// Whether a condition has more parts than an expression may have.
fn is_too_large(condition: &Expr) -> bool {
    condition.symbols().iter().any(|symbol| Expr::is_opaque(symbol))
}

fn grouped(leaves: Vec<(Tree, Vec<Expr>)>) -> Vec<Region> {
    let mut groups: Vec<Region> = Vec::new();
    for (leaf, path) in leaves {
        match groups.iter_mut().find(|group| group.leaf == leaf) {
            Some(group) => group.paths.push(path),
            None => groups.push(Region { leaf, paths: vec![path] }),
        }
    }
    groups
}

/// Whether all conditions hold.
fn together(all: Vec<Expr>) -> Expr {
    Expr::call(Func::And, all)
}

/// Whether all conditions of some path hold.
fn any_of(paths: &[Vec<Expr>]) -> Expr {
    Expr::call(Func::Or, paths.iter().map(|path| together(path.clone())).collect())
}

/// A tree for the sizes that are possible: each model is there once, and none is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub tree: Tree,
    /// Reasons why sizes are refused, each with conditions that do not all hold there.
    pub checks: Vec<(String, Vec<Expr>)>,
    /// All leaves.
    pub regions: Vec<Region>,
}

impl Plan {
    /// The plan for sizes with these facts; `None` if no model is for any of them.
    pub fn new(tree: &Tree, known: &Constraints) -> Option<Self> {
        let mut symbols = BTreeSet::new();
        tree.each_condition(&mut |condition| symbols.extend(condition.symbols()));
        let closed = tree.closed(&Facts::new(known, symbols))?;
        let mut leaves = Vec::new();
        closed.leaves(&mut Vec::new(), &mut leaves);
        let regions = grouped(leaves);
        let checks = regions.iter().filter_map(|region| match &region.leaf {
            Tree::Refused(reason) => {
                let holds = closed.reaches(&|leaf| *leaf != region.leaf);
                let is_large = holds.iter().any(is_too_large);
                Some((reason.clone(), if is_large { region.is_left() } else { holds }))
            }
            _ => None,
        });
        let checks = checks.collect();
        let tree = closed.accepted()?.by_leaf();
        Some(Self { tree, checks, regions })
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(model) => write!(f, "{model}"),
            Self::Refused(reason) => write!(f, "{reason:?}"),
            Self::If(condition, both) => write!(f, "({condition} ? {} : {})", both.0, both.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_symbolic::Range;

    fn parse(text: &str) -> Expr {
        Expr::parse(text).unwrap()
    }

    fn decide(condition: &str, yes: Tree, no: Tree) -> Tree {
        Tree::If(parse(condition), Box::new((yes, no)))
    }

    fn within(ranges: &[(&str, i64, Option<i64>)]) -> Constraints {
        let mut known = Constraints::new();
        for (name, min, max) in ranges {
            known.constrain(&Expr::symbol(name), Range::new(Some(*min), *max));
        }
        known
    }

    fn holds(condition: &Expr, point: &[(&str, i64)]) -> bool {
        let value = |name: &str| point.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
        condition.eval(&value).unwrap() != 0
    }

    fn reached<'a>(tree: &'a Tree, point: &[(&str, i64)]) -> &'a Tree {
        match tree {
            Tree::If(condition, both) if holds(condition, point) => reached(&both.0, point),
            Tree::If(_, both) => reached(&both.1, point),
            leaf => leaf,
        }
    }

    /// The leaf that a plan leads to.
    fn planned(plan: &Plan, point: &[(&str, i64)]) -> Tree {
        let fails = |all: &[Expr]| all.iter().any(|condition| !holds(condition, point));
        let refused = plan.checks.iter().find(|(_, all)| fails(all));
        match refused {
            Some((reason, _)) => Tree::Refused(reason.clone()),
            None => reached(&plan.tree, point).clone(),
        }
    }

    fn shown(tree: &Tree, known: &Constraints) -> String {
        let plan = Plan::new(tree, known).unwrap();
        let check = |all: &Vec<Expr>| together(all.clone());
        let checks =
            plan.checks.iter().map(|(reason, all)| format!("; {reason} unless {}", check(all)));
        format!("{}{}", plan.tree, checks.collect::<String>())
    }

    #[test]
    fn paths_are_closed_by_proof() {
        let two = |second| Tree::first_of(&[vec![parse("t <= 8")], vec![parse(second)]], "no size");
        let any = within(&[("t", 0, None)]);
        assert_eq!(shown(&two("t > 8"), &any), "(t <= 8 ? 0 : 1)");
        assert_eq!(
            shown(&two("t > 9"), &any),
            "(t <= 8 ? 0 : 1); no size unless (t > 9) | (t <= 8)"
        );
        // All but one of several alternatives are impossible.
        let three =
            [vec![parse("t > 4"), parse("t <= 12")], vec![parse("t <= 4")], vec![parse("t > 12")]];
        assert_eq!(
            shown(&Tree::first_of(&three, "no size"), &any),
            "((t > 4) & (t <= 12) ? 0 : (t <= 4 ? 1 : 2))"
        );
        // Few sizes are tried one by one.
        let multiples = decide("t % 4 == 0", Tree::Model(0), Tree::Model(1));
        assert_eq!(shown(&multiples, &within(&[("t", 1, Some(3))])), "1");
        let same = decide("t % 2 == 0", multiples.clone(), multiples.clone());
        assert_eq!(shown(&same, &any), shown(&multiples, &any));
    }

    #[test]
    fn a_model_is_there_once() {
        let tree = decide(
            "t <= 8",
            decide("h < 4", Tree::Model(0), Tree::Model(1)),
            decide("h < 2", Tree::Model(1), Tree::Refused("long".into())),
        );
        let known = within(&[("t", 0, None), ("h", 0, None)]);
        let plan = Plan::new(&tree, &known).unwrap();
        assert_eq!(plan.tree.to_string().matches('1').count(), 1, "{}", plan.tree);
        for t in [0, 8, 9, 20] {
            for h in 0..6 {
                let point = [("t", t), ("h", h)];
                assert_eq!(planned(&plan, &point), *reached(&tree, &point), "{point:?}");
            }
        }
        let nowhere = decide("t < 0", Tree::Model(0), Tree::Refused("all".into()));
        assert_eq!(Plan::new(&nowhere, &known), None);
    }

    /// A refusal does not depend on how large the tree is, nor on where sizes are refused.
    #[test]
    fn sizes_of_long_trees_are_refused() {
        let refused = || Box::new(Tree::Refused("no size".into()));
        let long = |at: usize| format!("(t + {at})//7*(t//{at} + h%{at}) != {at}*(h//{at} + {at})");
        let mut tree = Tree::Model(0);
        for at in 2..40 {
            let condition = (0..4).map(|step| parse(&long(at + 50 * step))).collect();
            let condition = Expr::call(Func::And, condition);
            tree = Tree::If(condition, Box::new((tree, *refused())));
        }
        let mut bushy = decide("h > 3", Tree::Model(0), Tree::Refused("no size".into()));
        for at in 2..50 {
            let end = decide(&long(at + 50), Tree::Model(1), Tree::Refused("no size".into()));
            bushy = decide(&long(at), bushy, end);
        }
        let points = [[("t", 2), ("h", 5)], [("t", 9), ("h", 5)], [("t", 9), ("h", 2)]];
        for tree in [decide("t > 3", tree, Tree::Refused("no size".into())), bushy] {
            let plan = Plan::new(&tree, &within(&[("t", 1, None), ("h", 1, None)])).unwrap();
            let [(_, all)] = &plan.checks[..] else { panic!("{:?}", plan.checks) };
            assert!(!all.iter().any(is_too_large));
            for point in points {
                assert_eq!(planned(&plan, &point), *reached(&tree, &point), "{point:?}");
            }
        }
    }

    /// A generator of numbers that are the same each time.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn condition(&mut self) -> Expr {
            let k = self.below(12) + 1;
            let name = ["t", "h"][self.below(2) as usize];
            let simple = match self.below(8) {
                0 => format!("{name} <= {k}"),
                1 => format!("{name} > {k}"),
                2 => format!("{name} == {k}"),
                3 => format!("{name} % {k} == 0"),
                4 => format!("{name}//{k} >= 2"),
                5 => format!("t + {k} < 2*h"),
                6 => format!("Max(t, {k}) > h"),
                _ => format!("{name} != {k}"),
            };
            match self.below(6) {
                0 => Expr::call(Func::And, vec![parse(&simple), self.condition()]),
                1 => Expr::call(Func::Or, vec![parse(&simple), self.condition()]),
                2 => negated(&parse(&simple)),
                _ => parse(&simple),
            }
        }

        fn tree(&mut self, depth: u64) -> Tree {
            match self.below(if depth == 0 { 4 } else { 10 }) {
                0..3 => Tree::Model(self.below(4) as usize),
                3 => Tree::Refused(["first", "second"][self.below(2) as usize].into()),
                _ => Tree::If(
                    self.condition(),
                    Box::new((self.tree(depth - 1), self.tree(depth - 1))),
                ),
            }
        }
    }

    /// Each size takes the leaf that it took before. If all sizes are known, leaves that none takes
    /// are left out.
    #[test]
    fn random_trees_decide_as_before() {
        let (mut random, mut planned_trees) = (Random(7), 0);
        for case in 0..400 {
            let tree = random.tree(5);
            let few = case % 2 == 0;
            let max = |max| few.then_some(max);
            let known = within(&[("t", 1, max(14)), ("h", 0, max(9))]);
            let mut leaves: BTreeSet<String> = BTreeSet::new();
            let plan = Plan::new(&tree, &known);
            planned_trees += usize::from(plan.is_some());
            for (t, h) in (1..=14).flat_map(|t| (0..=9).map(move |h| (t, h))) {
                let point = [("t", t), ("h", h)];
                let leaf = reached(&tree, &point);
                leaves.insert(leaf.to_string());
                match &plan {
                    Some(plan) => assert_eq!(planned(plan, &point), *leaf, "{tree}\n{plan:?}"),
                    None => assert!(matches!(leaf, Tree::Refused(_)), "{tree}"),
                }
            }
            if let Some(plan) = plan.filter(|_| few) {
                let kept: BTreeSet<String> =
                    plan.regions.iter().map(|r| r.leaf.to_string()).collect();
                assert_eq!(kept, leaves, "{tree}");
            }
        }
        assert!(planned_trees > 300, "{planned_trees}");
    }
}
