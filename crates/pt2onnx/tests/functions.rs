//! Functions of modules: models with them compute what the flat ones do, and are these when they
//! are inlined. `PT2ONNX_FUNCTIONS=FOLDER,..` takes the cases below folders, instead of some of
//! `testdata/cases`.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test may fail so")]

mod bundles;

use pt2onnx::{
    Error, Exporter, OnnxProgram, Options, OutputCheck, Provenance, Tolerance, Weights,
    ir::Model,
    opt::{self, Level},
    read_weights,
    tensor::Tensor,
};
use safetensors::SafeTensors;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

/// An archive, and inputs of up to two sizes.
struct Case {
    name: String,
    archive: Vec<u8>,
    inputs: Vec<Vec<Tensor>>,
}

impl Case {
    fn new(name: &str, archive: &[u8], io: &[u8]) -> Option<Self> {
        let io = SafeTensors::deserialize(io).ok()?;
        let inputs = ["", "alt."].map(|l| bundles::numbered(&io, &format!("{l}input.")));
        let given = |inputs: &Vec<Tensor>| !inputs.is_empty();
        let inputs = inputs.into_iter().filter(given).collect();
        Some(Self { name: name.to_owned(), archive: archive.to_vec(), inputs })
    }
}

fn bundle(name: &str) -> Vec<Case> {
    let all = bundles::unpack(&bundles::testdata().join(format!("cases/{name}.tar.zst")));
    let cases = all
        .iter()
        .map(|(name, files)| Case::new(name, &files["model.pt2"], &files["io.safetensors"]));
    cases.flatten().collect()
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    for path in entries.collect::<BTreeSet<_>>() {
        match path.join("model.pt2").exists() {
            true => found.push(path),
            false if path.is_dir() => below(&path, found),
            false => {}
        }
    }
}

fn cases() -> Vec<Case> {
    let Ok(folders) = env::var("PT2ONNX_FUNCTIONS") else {
        return [bundle("modules"), bundle("models")].into_iter().flatten().collect();
    };
    let mut found = Vec::new();
    folders.split(',').for_each(|folder| below(Path::new(folder), &mut found));
    let read = |path: PathBuf| {
        let file = |name: &str| fs::read(path.join(name)).ok();
        let name = path.display().to_string();
        Case::new(&name, &file("model.pt2")?, &file("io.safetensors")?)
    };
    found.into_iter().filter_map(read).collect()
}

fn case(name: &str) -> Case {
    bundle("modules").into_iter().find(|case| case.name == name).expect("a case")
}

/// How many nodes there are by operator, without `Constant`.
fn operators(model: &Model) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in model.all_nodes().into_iter().filter(|n| !model[*n].is("Constant")) {
        *all.entry(format!("{}.{}", model[node].domain, model[node].op())).or_default() += 1;
    }
    all
}

/// The results for each of the inputs, or why ONNX Runtime has none: it may lack a kernel.
fn results(program: &mut OnnxProgram, case: &Case) -> Result<Vec<Vec<Tensor>>, Error> {
    case.inputs.iter().map(|inputs| program.run(inputs)).collect()
}

/// Whether both are the same but for rounding: ONNX Runtime fuses the nodes of functions in another
/// order.
fn same(a: &[Vec<Tensor>], b: &[Vec<Tensor>]) -> bool {
    let alike = |(a, b): (&Tensor, &Tensor)| {
        let check = OutputCheck::new("", b, a, Tolerance::of(a.dtype()));
        check.is_expected()
    };
    let counts = |all: &[Vec<Tensor>]| all.iter().map(Vec::len).collect::<Vec<_>>();
    counts(a) == counts(b) && a.iter().flatten().zip(b.iter().flatten()).all(alike)
}

/// The model as it is in its file.
fn reread(program: &OnnxProgram) -> OnnxProgram {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    program.save(&path).unwrap();
    OnnxProgram::open(&path).unwrap_or_else(|e| panic!("{e}\n{}", program.model()))
}

fn compare(case: &Case, exporter: fn() -> Exporter) {
    let name = &case.name;
    let Ok(mut flat) = exporter().export(case.archive.clone()) else {
        return;
    };
    let made = exporter().module_functions(["all"]).export(case.archive.clone());
    let mut program = made.unwrap_or_else(|e| panic!("{name}: {e}"));
    let ends = |program: &OnnxProgram| {
        let model = program.model();
        let ends = model.inputs().iter().copied().chain(model.output_values());
        ends.map(|v| format!("{:?}: {:?}", model[v].name, model[v].ty)).collect::<Vec<_>>()
    };
    assert_eq!(ends(&flat), ends(&program), "{name}");
    let expected = results(&mut flat, case);
    if let Ok(expected) = &expected {
        let found = results(&mut program, case).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(same(expected, &found), "{name}: {}", program.to_text());
    }
    // In the file, functions are what they were, and inlined the nodes are those of the flat model.
    let mut kept = reread(&program);
    let names = |p: &OnnxProgram| -> BTreeSet<String> {
        p.model().functions.iter().map(|f| format!("{}.{}", f.domain, f.name)).collect()
    };
    assert_eq!(names(&kept), names(&program), "{name}");
    kept.optimize(opt::Options::default());
    assert_eq!(names(&kept), names(&program), "{name}");
    let mut inlined = reread(&program);
    inlined.inline().unwrap();
    assert!(inlined.model().functions.is_empty() && inlined.model().imports.is_empty());
    assert_eq!(
        operators(inlined.model()),
        operators(flat.model()),
        "{name}: {}",
        program.to_text()
    );
    if let Ok(expected) = &expected {
        for program in [&mut kept, &mut inlined] {
            let found = results(program, case).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(same(expected, &found), "{name}: {}", program.to_text());
        }
    }
}

#[test]
fn functions_compute_what_the_flat_model_does() {
    let all = cases();
    assert!(all.len() > 10);
    all.iter().for_each(|case| compare(case, Exporter::new));
}

#[test]
fn at_other_options() {
    for case in bundle("modules") {
        compare(&case, || Exporter::new().opset(15).optimize(Level::Off));
        compare(&case, || Exporter::new().opset(26).optimize(Level::Simplify));
        compare(&case, || Exporter::new().opset(18).provenance(Provenance::None));
    }
}

#[test]
fn weights_are_applied_and_values_found() {
    let case = case("module_blocks");
    let archive = bundles::temporary(&case.archive);
    let export = |modules: &[&str]| {
        let exporter =
            Exporter::new().weights(Weights::None).module_functions(modules.iter().copied());
        let mut program = exporter.rename("add_1", "middle").export(archive.path()).unwrap();
        program.apply_weights(&read_weights(archive.path()).unwrap()).unwrap();
        program
    };
    let (mut flat, mut program) = (export(&[]), export(&["all"]));
    assert!(same(&results(&mut flat, &case).unwrap(), &results(&mut program, &case).unwrap()));
    let middle = |program: &OnnxProgram| program.compute_values(&["middle"], &case.inputs[0]);
    assert!(same(&[middle(&flat).unwrap()], &[middle(&program).unwrap()]));
}

/// A later stage fails: no earlier one has changed the program.
#[test]
fn stages_change_all_or_nothing() {
    let text = r#"<ir_version: 9, opset_import: ["" : 20, "l" : 1]>
        g (float[n,3] x) => (float[n,3] y) { a = l.f (x) y = Abs (a) }
        <domain: "l", opset_import: ["" : 20]> f (x) => (z) { t = Exp (x) z = Neg (t) }"#;
    let model: Model = text.parse().unwrap();
    let bytes = pt2onnx::writer::to_bytes(&model).unwrap();
    let mut program = OnnxProgram::from_bytes(bytes, []).unwrap();
    let (before, stages) = (program.to_text(), program.report().stages.clone());
    let mut options = Options::default();
    (options.inline, options.fix_dim) = (true, vec![("n".to_owned(), 4)]);
    options.rename = vec![("a".to_owned(), "neg".to_owned()), ("gone".to_owned(), "b".to_owned())];
    let error = program.rewrite(&options, Some(18), None).unwrap_err();
    assert!(matches!(error, Error::Name(_)), "{error}");
    assert_eq!((program.to_text(), &program.report().stages), (before, &stages));
    options.rename.pop();
    program.rewrite(&options, Some(18), None).unwrap();
    let text = program.to_text();
    assert!(text.contains("neg = Neg (val_0)") && text.contains("float[4,3] y"), "{text}");
    assert_eq!((program.model().opset, program.model().functions.len()), (18, 0));
    let names: Vec<&str> =
        program.report().stages[stages.len()..].iter().map(|s| s.name.as_str()).collect();
    let expected = [
        "inline",
        "convert",
        "weight inputs",
        "interface",
        "dimensions",
        "optimise",
        "target",
        "names",
    ];
    assert_eq!(names, expected);
}
