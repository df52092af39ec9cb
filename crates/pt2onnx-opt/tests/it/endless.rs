//! Rules that would change a model forever are stopped and reported.

use crate::{graph, parse};
use pt2onnx_opt::{Options, Pass, Passes, Rules, optimize};

/// The graph after rules, and the passes that were stopped.
fn rewritten(rules: &[(&str, &str, &str)], nodes: &str) -> (String, Vec<String>) {
    let functions = rules.iter().map(|(name, from, to)| {
        format!(
            "<domain: \"pattern\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {from} }}
             <domain: \"replacement\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {to} }}"
        )
    });
    let rules: Rules = functions.collect::<String>().parse().unwrap();
    let passes = Passes::standard().first(Pass::of_rules("rules", rules));
    let mut model = parse::model(&format!("g (float[n] x) => (float[n] y) {{ {nodes} }}"));
    let stopped = optimize(&mut model, &Options { passes, ..Options::default() });
    (graph(&model), stopped.iter().map(ToString::to_string).collect())
}

const SWAPPED: &str = "a = Neg (x) y = Relu (a)";
const BACK: &str = "a = Relu (x) y = Neg (a)";

#[test]
fn rules_that_undo_each_other() {
    let rules = [("swap", BACK, SWAPPED), ("swap_back", SWAPPED, BACK)];
    let (graph, stopped) = rewritten(&rules, BACK);
    assert_eq!(
        stopped,
        ["passes that undo each other's changes were stopped: rules (swap, swap_back)"]
    );
    assert!(graph.contains("Neg (") && graph.contains("Relu ("), "{graph}");
}

#[test]
fn a_cycle_ends_at_its_smallest_state() {
    let long = "a = Neg (x) b = Abs (a) y = Sign (b)";
    let rules = [("lengthen", BACK, long), ("shorten", long, BACK)];
    for nodes in [BACK, long] {
        let (graph, stopped) = rewritten(&rules, nodes);
        assert_eq!(stopped.len(), 1, "{stopped:?}");
        assert!(graph.contains("Relu (") && !graph.contains("Sign ("), "{graph}");
    }
}

#[test]
fn a_rule_that_makes_the_model_grow() {
    let grow = [("grow", "y = Sigmoid (x)", "a = Sigmoid (x) y = Sigmoid (a)")];
    let (graph, stopped) = rewritten(&grow, "i = Identity (x) y = Sigmoid (i)");
    assert_eq!(
        stopped,
        ["passes that make the model larger and larger were left out: rules (grow)"]
    );
    // The other passes run all the same.
    assert!(graph.contains("y = Sigmoid (x)"), "{graph}");
}

#[test]
fn rules_that_end() {
    let end = [("end", "a = Neg (x) y = Neg (a)", "y = Identity (x)"), ("swap", BACK, SWAPPED)];
    let (graph, stopped) = rewritten(&end, "a = Relu (x) b = Neg (a) c = Neg (b) y = Neg (c)");
    assert!(stopped.is_empty() && graph.contains("y = Relu ("), "{stopped:?} {graph}");
}

/// Forty inputs at each of eight nodes are 40^8 paths.
#[test]
fn paths_through_wide_nodes_are_not_counted() {
    let wide = |i: usize| {
        format!("v{} = Concat <axis = 0> ({}) ", i + 1, vec![format!("v{i}"); 40].join(", "))
    };
    let nodes = format!(
        "v0 = Sin (x) {} three = Constant <value = float {{3.0}}> () \
         third = Constant <value = float {{0.3}}> () m = Mul (v8, three) y = Mul (m, third)",
        (0..8).map(wide).collect::<String>()
    );
    let (graph, stopped) = rewritten(&[], &nodes);
    assert!(stopped.is_empty() && graph.matches("Mul (").count() == 1, "{stopped:?} {graph}");
}
