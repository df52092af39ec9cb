//! Neither a crate nor the Python package has a circle of files that use each other's items. The
//! files of pt2onnx-lowering and pt2onnx-aten are in layers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sources;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use xtask::modules::{Edge, Graph};

/// The modules of crates, lowest layer first. Modules of one layer may use each other.
const LAYERS: &[(&str, &[&[&str]])] = &[
    (
        "pt2onnx-lowering",
        &[
            &["error", "param_type", "default", "schema"],
            &["cx"],
            &["args"],
            &["op"],
            &["math", "meta"],
            &["lib"],
        ],
    ),
    ("pt2onnx-aten", &[&["checks"], &["ops"], &["registry"], &["driver"], &["infer"], &["lib"]]),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn no_circles() {
    let crates = fs::read_dir(workspace().join("crates")).unwrap();
    let mut folders: Vec<PathBuf> = crates.map(|entry| entry.unwrap().path()).collect();
    folders.push(workspace().join("xtask"));
    folders.sort();
    assert!(folders.len() > 1, "the crates are not found");
    let mut wrong = String::new();
    for folder in &folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        for circle in Graph::of_crate(folder).unwrap().circles() {
            wrong += &format!("{name}: a circle of {} files\n{circle}\n", circle.files().len());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn no_circles_in_python() {
    let graph = Graph::of_python(&workspace().join("python/pt2onnx")).unwrap();
    assert!(graph.edges.len() > 100, "the modules are not found");
    let circles = graph.circles();
    let found: String = circles.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found}");
}

/// The edges between files of a crate for which `allowed` is false.
fn forbidden(name: &str, allowed: impl Fn(&Path, &Path) -> bool) -> Graph {
    let graph = Graph::of_crate(&workspace().join("crates").join(name)).unwrap();
    assert!(graph.edges.len() > 100, "the files of {name} are not found");
    let edges = graph.edges.into_iter().filter(|((from, to), _)| !allowed(from, to));
    Graph { edges: edges.collect() }
}

/// Helpers that several families use are in `math` of pt2onnx-lowering. The `mod.rs` of a folder
/// may name the families below it: it lists their tables.
#[test]
fn a_family_never_imports_a_family() {
    let wrong = forbidden("pt2onnx-aten", |from, to| {
        let lists = from.file_name().is_some_and(|name| name == "mod.rs")
            && to.starts_with(from.parent().unwrap());
        lists || !from.starts_with("ops") || !to.starts_with("ops")
    });
    assert!(wrong.edges.is_empty(), "families that import others:\n{wrong}");
}

/// A lowering has a test beside it: `checks!` shows the nodes that it emits.
#[test]
fn each_family_has_a_check() {
    let files = sources::rust_files(&workspace().join("crates/pt2onnx-aten/src/ops"));
    let mut families = 0;
    for path in files.iter().filter(|path| !path.ends_with("mod.rs")) {
        families += 1;
        let source = fs::read_to_string(path).unwrap();
        assert!(source.contains("checks! {"), "{} has no `checks!`", path.display());
    }
    assert!(families > 50, "the families are not found");
}

#[test]
fn modules_are_in_layers() {
    for (name, layers) in LAYERS {
        let layer = |file: &Path| {
            let top = file.components().next().unwrap().as_os_str().to_str().unwrap();
            let module = top.strip_suffix(".rs").unwrap_or(top);
            layers.iter().position(|layer| layer.contains(&module))
        };
        let wrong = forbidden(name, |from, to| match (layer(from), layer(to)) {
            (Some(from), Some(to)) => to <= from,
            // A module that is in no layer.
            _ => false,
        });
        assert!(wrong.edges.is_empty(), "{name}, against the layers:\n{wrong}");
    }
}

/// The files of a crate import an item from the module that defines it, not from `lib.rs`.
#[test]
fn no_module_imports_from_the_root() {
    for name in ["pt2onnx", "pt2onnx-report", "pt2onnx-ort"] {
        let folder = workspace().join("crates").join(name);
        let entries = fs::read_dir(folder.join("src")).unwrap();
        let modules: BTreeSet<String> = entries
            .map(|e| e.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let graph = Graph::of_crate(&folder).unwrap();
        let of_root = |from: &Path, path: &str| {
            let mut segments = path.split("::");
            let root = match segments.next() {
                Some("super") => from.components().count() == 1,
                start => start == Some("crate"),
            };
            root && segments.next().is_some_and(|name| !modules.contains(name))
        };
        let files = graph.edges.iter().filter(|((from, _), _)| from != Path::new("lib.rs"));
        let uses = files.flat_map(|((from, _), uses)| uses.iter().map(move |u| (from, u)));
        let wrong: Vec<_> = uses.filter(|(from, (_, path))| of_root(from, path)).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}

/// Makes a crate of these files. Returns its graph, and the graph's edges as `from -> to`.
fn edges(files: &[(&str, &str)]) -> (Graph, BTreeSet<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (path, source) in files {
        let path = folder.path().join("src").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
    }
    let graph = Graph::of_crate(folder.path()).unwrap();
    let arrow = |(from, to): &Edge| format!("{} -> {}", from.display(), to.display());
    let arrows = graph.edges.keys().map(arrow).collect();
    (graph, arrows)
}

/// The edges from `a.rs` of a crate in which `b.rs` defines `B` and `f`, and `c/` re-exports
/// `c/inner.rs`.
fn from_a(source: &str) -> Vec<String> {
    let (_, edges) = edges(&[
        ("lib.rs", "mod a; mod b; mod c; #[path = \"e/f.rs\"] mod d; pub use b::B; pub use c::*;"),
        ("a.rs", source),
        ("e/f.rs", "pub const D: u8 = 0;"),
        ("b.rs", "pub enum B { One } pub fn f() {} pub trait T {} macro_rules! m { () => {} }"),
        ("c/mod.rs", "mod inner; pub use inner::{C as Renamed, g}; pub struct Own;"),
        ("c/inner.rs", "pub struct C; pub fn g() {} made!(struct Made;);"),
    ]);
    edges.iter().filter_map(|edge| edge.strip_prefix("a.rs -> ").map(str::to_owned)).collect()
}

#[test]
fn paths_lead_to_the_file_that_defines_them() {
    let cases: &[(&str, &[&str])] = &[
        ("use crate::b::B;", &["b.rs"]),
        ("use crate::B;", &["b.rs"]),
        ("use super::b; fn a() { b::f() }", &["b.rs"]),
        ("use super::b;", &[]),
        ("use super::b::{self as other}; fn a(_: other::B) {}", &["b.rs"]),
        ("fn a() { let _ = crate::B::One; }", &["b.rs"]),
        ("fn a(b: u8) { match b { crate::b::B::One => {} } }", &["b.rs"]),
        ("impl crate::b::T for u8 {}", &["b.rs"]),
        ("fn a<X: super::b::T>(_: Vec<Option<crate::Own>>) {}", &["b.rs", "c/mod.rs"]),
        ("use crate::c::Renamed;", &["c/inner.rs"]),
        ("use crate::*; fn a(_: Renamed) {}", &["c/inner.rs"]),
        ("use crate::*;", &[]),
        ("fn a() { use crate::c::*; g() }", &["c/inner.rs"]),
        ("fn a() { println!(\"{}\", crate::c::g()); }", &["c/inner.rs"]),
        ("use crate::c::*; fn a() { vec![g()]; }", &["c/inner.rs"]),
        ("fn a() { m!(); }", &["b.rs"]),
        ("macro_rules! mine { () => { $crate::B::One } }", &["b.rs"]),
        ("type A = super::c::inner::Made;", &["c/inner.rs"]),
        ("const A: u8 = crate::d::D;", &["e/f.rs"]),
        // Not of this crate, not resolved, or for tests.
        ("use b::B;", &[]),
        ("use std::b::B; fn a(x: u8) { x.f() }", &[]),
        ("#[cfg(test)] mod tests { use crate::B; }", &[]),
        ("#[cfg(not(test))] mod shipped { use crate::B; }", &["b.rs"]),
        ("use crate::c::*; fn a(g: u8) -> u8 { g }", &[]),
    ];
    for (source, expected) in cases {
        assert_eq!(from_a(source), *expected, "{source}");
    }
}

#[test]
fn circles_are_found() {
    let (graph, edges) = edges(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A;"),
        ("a.rs", "pub struct A(crate::b::B);"),
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "pub struct C(\n    crate::A,\n);"),
        ("d.rs", "pub struct D(crate::A);"),
    ]);
    assert_eq!(edges.len(), 4, "{edges:?}");
    let [circle] = &graph.circles()[..] else { panic!("one circle") };
    assert_eq!(circle.files(), ["a.rs", "b.rs", "c.rs"].map(Path::new).into());
    assert!(circle.to_string().contains("  c.rs -> a.rs: 2 crate::A (1)\n"), "{circle}");
}

/// The edges from `a.py` of a package `p` with `b.py`, `c/__init__.py` and `c/d.py`.
fn imported_by_a(source: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("p");
    fs::create_dir_all(package.join("c")).unwrap();
    let c = "from .d import D\nfrom ..b import B\n";
    for (path, text) in
        [("__init__.py", ""), ("a.py", source), ("b.py", ""), ("c/__init__.py", c), ("c/d.py", "")]
    {
        fs::write(package.join(path), text).unwrap();
    }
    let graph = Graph::of_python(&package).unwrap();
    assert!(graph.edges.contains_key(&("c/__init__.py".into(), "c/d.py".into())));
    assert!(graph.edges.contains_key(&("c/__init__.py".into(), "b.py".into())));
    let from_a = graph.edges.keys().filter(|(from, _)| from == Path::new("a.py"));
    from_a.map(|(_, to)| to.display().to_string()).collect()
}

#[test]
fn imports_lead_to_files() {
    let cases: &[(&str, &[&str])] = &[
        ("from . import b", &["b.py"]),
        ("from .b import B as C", &["b.py"]),
        ("from .c import D", &["c/__init__.py"]),
        ("from .c import d", &["c/d.py"]),
        ("from .c.d import D", &["c/d.py"]),
        ("from . import (\n    b,\n    c,\n)", &["b.py", "c/__init__.py"]),
        ("from . import __version__", &["__init__.py"]),
        ("import p.b as b, sys", &["b.py"]),
        ("from p.c import d", &["c/d.py"]),
        ("def a():\n    from . import b\n", &["b.py"]),
        ("if TYPE_CHECKING:\n    from . import b\n\n    from .c import d\n", &[]),
        ("if TYPE_CHECKING:\n    import sys\nfrom . import b", &["b.py"]),
        ("\"\"\"\nfrom . import b\n\"\"\"\nx = 'from . import b'  # from . import b", &[]),
        ("import b\nfrom b import a\nfrom other import c", &[]),
    ];
    for (source, expected) in cases {
        assert_eq!(imported_by_a(source), *expected, "{source}");
    }
}

#[test]
fn circles_of_imports_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("p");
    fs::create_dir_all(&package).unwrap();
    for (path, source) in [
        ("a.py", "from .b import B\n"),
        ("b.py", "from . import c\n"),
        ("c.py", "def late():\n    from .a import A\n    return A\n"),
        ("d.py", "from . import a\n"),
    ] {
        fs::write(package.join(path), source).unwrap();
    }
    let graph = Graph::of_python(&package).unwrap();
    let [circle] = &graph.circles()[..] else { panic!("one circle") };
    assert_eq!(circle.files(), ["a.py", "b.py", "c.py"].map(Path::new).into());
    assert!(circle.to_string().contains("  c.py -> a.py: 2 a.A (1)\n"), "{circle}");
}
