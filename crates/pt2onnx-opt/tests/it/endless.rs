//! Rules that would change a model forever are stopped and reported.

use crate::{cases::run, graph, parse, valid};
use pt2onnx_opt::{Options, Pass, Passes, Rules, optimize};
use std::sync::{Arc, Mutex};

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

/// A pass that makes many more edits than the graph has nodes stops before its next node, and does
/// not run again; other passes run.
#[test]
fn a_pass_stops_after_too_many_edits() {
    let text = "g (float[n] x) => (float[n] y) { a = Identity (x) b = Relu (a) y = Neg (b) }";
    let mut model = parse::model(text);
    let visited = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&visited);
    let busy = Pass::new("busy", move |graph, _| {
        let mut walk = graph.walk();
        while let Some(id) = walk.next(graph.model) {
            noted.lock().unwrap().push(graph.model[id].op().to_owned());
            let input = graph.model[id].input(0);
            for _ in 0..100_000 {
                graph.model.replace_input(id, 0, input);
            }
        }
        true
    });
    let passes = Passes::standard().with(busy);
    let stopped = optimize(&mut model, &Options { passes, ..Options::default() });
    let stopped: Vec<_> = stopped.into_iter().map(|e| e.to_string()).collect();
    assert_eq!(
        stopped,
        [
            "the pass busy was stopped after too many edits for the size of the model, which is right \
             but may be larger or slower than it could be"
        ]
    );
    assert_eq!(*visited.lock().unwrap(), ["Relu"]);
    valid(&model);
    assert_eq!(model.graph_nodes().len(), 2);
}
