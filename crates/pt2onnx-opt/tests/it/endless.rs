//! Rules that would change a model forever are stopped and reported.

use crate::{cases::run, graph, parse};
use pt2onnx_opt::{Options, Pass, Passes, Rules, optimize};

/// Before the nodes, a line for each rule has its name, what it replaces, and the replacement.
#[test]
fn endless() {
    run("endless", |text, _| {
        let (rules, nodes) = text.trim_end().rsplit_once('\n').unwrap_or(("", text));
        let functions = rules.lines().map(|line| {
            let (name, rule) = line.split_once(": ").unwrap();
            let (from, to) = rule.split_once(" => ").unwrap();
            format!(
                "<domain: \"pattern\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {from} }}
                 <domain: \"replacement\", opset_import: [\"\" : 20]> {name} (x) => (y) {{ {to} }}"
            )
        });
        let rules: Rules = functions.collect::<String>().parse().unwrap();
        let passes = Passes::standard().first(Pass::of_rules("rules", rules));
        let mut model = parse::model(&format!("g (float[n] x) => (float[n] y) {{ {nodes} }}"));
        let stopped = optimize(&mut model, &Options { passes, ..Options::default() });
        stopped.iter().map(|passes| format!("{passes}\n")).collect::<String>() + &graph(&model)
    });
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
    let mut model = parse::model(&format!("g (float[n] x) => (float[n] y) {{ {nodes} }}"));
    let stopped = optimize(&mut model, &Options::default());
    let graph = graph(&model);
    assert!(stopped.is_empty() && graph.matches("Mul (").count() == 1, "{stopped:?} {graph}");
}
