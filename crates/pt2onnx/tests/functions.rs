//! Functions of modules: models with them compute what the flat ones do, and are these when they
//! are inlined. `PT2ONNX_FUNCTIONS=FOLDER,..` takes the cases below folders, instead of some of
//! `testdata/cases`.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test may fail so")]

mod bundles;

use pt2onnx::{
    Detail, Error, Exporter, OnnxProgram, Options, OutputCheck, Tolerance, WarningKind, Weights,
    ir::{Model, NodeId},
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
        compare(&case, || Exporter::new().opset(18).provenance(Detail::None));
    }
}

fn exported(name: &str, modules: &[&str]) -> OnnxProgram {
    let exporter = Exporter::new().module_functions(modules.iter().copied());
    exporter.export(case(name).archive).unwrap()
}

/// The functions, and how often each is called.
fn calls(model: &Model) -> Vec<String> {
    let nodes = model.all_nodes();
    let functions = model.functions.iter().map(|f| {
        let calls = nodes.iter().filter(|n| f.is_called_by(&model[**n])).count();
        let attributes = f.attributes.iter().map(|a| format!(" {a}")).collect::<String>();
        format!("{} {calls}{attributes}", f.name)
    });
    functions.collect()
}

#[test]
fn equal_blocks_are_one_function() {
    let program = exported("module_blocks", &["all"]);
    assert_eq!(
        calls(program.model()),
        [
            "Embedding 1",
            "LayerNorm 2",
            "Linear 6",
            "GELU 1",
            "LayerNorm_1 1",
            "Attention 1",
            "Feed 1",
            "Block 3",
        ]
    );
    let model = program.model();
    let named = |n: &NodeId| model[*n].name.as_deref() == Some("blocks.1");
    let node = model.nodes(Model::MAIN).find(named).expect("the call of the second block");
    let metadata = &model[model[node].origins[0]].metadata;
    let metadata: Vec<String> = metadata.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    assert_eq!(
        metadata,
        [
            "namespace = : modules.register.<locals>.module_blocks.<locals>.Encoder/\
             blocks.1: modules.register.<locals>.Block",
            "pkg.torch.onnx.class_hierarchy = ['modules.register.<locals>.module_blocks.<locals>.Encoder', \
             'modules.register.<locals>.Block']",
            "pkg.torch.onnx.name_scopes = ['', 'blocks.1']",
        ]
    );
}

#[test]
fn modules_by_class_and_path() {
    for (modules, expected) in [
        (&["Block"][..], &["Block 3"][..]),
        (&["blocks.1", "modules.register.*.Feed"], &["Feed 3", "Block 1"]),
        (&["blocks.1"], &["Block 1"]),
        (&["blocks.*"], &["Block 3"]),
        (&["blocks.2.feed", "torch.nn.modules.activation.GELU"], &["GELU 3", "Feed 1"]),
        (&["blocks.*.attention.*"], &["Linear 12"]),
    ] {
        let exporter = Exporter::new().module_functions(modules.iter().copied());
        let made = exporter.export(case("module_blocks").archive);
        assert_eq!(calls(made.unwrap().model()), expected, "{modules:?}");
    }
}

#[test]
fn attributes_where_values_differ() {
    let program = exported("module_attributes", &["all"]);
    assert_eq!(
        calls(program.model()),
        [
            "Conv2d 3 kernel_shape pads strides",
            "LeakyReLU 3 alpha",
            "MaxPool2d 2 kernel_shape strides",
            "Scale 3 value axis shape",
        ]
    );
    let program = exported("module_control", &["all"]);
    assert_eq!(calls(program.model()), ["Gate 2", "Repeat 1"]);
}

#[test]
fn modules_that_are_not_there() {
    let archive = || case("module_control").archive;
    let failed = Exporter::new().module_functions(["Gate", "Gates"]).export(archive());
    let Err(Error::Module(error)) = failed else { panic!("{failed:?}") };
    assert_eq!(
        error.to_string(),
        "no module is called `Gates`: give `all`, a class (modules.register.<locals>.module_control.<locals>.Gate, \
         modules.register.<locals>.module_control.<locals>.Repeat) or a path (first, repeat, second)"
    );
    let flat = bundles::testdata().join("models/symbolic.pt2");
    let program = Exporter::new().module_functions(["all"]).export(flat).unwrap();
    let kinds: Vec<WarningKind> = program.warnings().iter().map(|w| w.kind).collect();
    assert!(kinds.contains(&WarningKind::Functions), "{kinds:?}");
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

#[test]
fn reports_count_calls() {
    let program = exported("module_control", &["all"]);
    let report = program.report();
    let functions = &report.model.as_ref().unwrap().functions;
    let counts: Vec<usize> = functions.values().copied().collect();
    assert_eq!(counts, [2, 1], "{functions:?}");
    assert!(report.to_markdown().contains("### Functions"));
}

#[test]
fn functions_that_call_themselves_are_not_inlined() {
    let text = r#"<ir_version: 9, opset_import: ["" : 20, "my" : 1]>
        g (float[2] x) => (float[2] y) { y = my.f (x) }
        <domain: "my", opset_import: ["" : 20, "my" : 1]> f (x) => (y) { y = my.f (x) }"#;
    let model: Model = text.parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    pt2onnx::writer::save(&model, &path, pt2onnx::SaveOptions::default()).unwrap();
    let mut program = OnnxProgram::open(&path).unwrap();
    assert!(matches!(program.inline(), Err(Error::Domain(_))));
    assert_eq!(program.model().functions.len(), 1);
}

/// A model has one version of each domain, and takes those that only its functions in use import.
#[test]
fn versions_of_functions() {
    let program = |imports: &str, call: &str, own: &str, body: &str| {
        let text = format!(
            r#"<ir_version: 9, opset_import: [{imports}]> g (float[2,3] x) => (float[2,3] y) {{ {call} }}
            <domain: "l", opset_import: [{own}]> f (x) => (a) {{ {body} }}"#
        );
        let model: Model = text.parse().unwrap();
        OnnxProgram::from_bytes(pt2onnx::writer::to_bytes(&model).unwrap(), [])
    };
    let (both, gelu) = (r#""" : 17, "l" : 1"#, "a = com.microsoft.Gelu (x)");
    let own = r#""" : 17, "com.microsoft" : 1"#;
    let mut imported = program(both, "y = l.f (x)", own, gelu).unwrap();
    imported.inline().unwrap();
    assert_eq!(imported.model().imports.get("com.microsoft"), Some(&1));
    let two = r#""" : 17, "l" : 1, "c" : 1"#;
    let mut other =
        program(two, "t = l.f (x) y = c.g (t)", r#""" : 17, "c" : 2"#, "a = c.g (x)").unwrap();
    let error = other.inline().unwrap_err().to_string();
    assert_eq!(error, "the function l.f imports the domain c at version 2, and the model at 1");
    let mut alone =
        program(r#""l" : 1"#, "y = l.f (x)", r#""" : 11"#, "a = Softmax <axis = 0> (x)").unwrap();
    alone.inline().unwrap();
    assert_eq!(alone.model().opset, 11);
    let unused =
        || program(both, "y = Neg (x)", r#""" : 11"#, "a = Softmax <axis = 0> (x)").unwrap();
    unused().inline().unwrap();
    unused().convert_opset(18).unwrap();
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
