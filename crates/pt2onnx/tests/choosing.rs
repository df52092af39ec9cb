//! Several models of one program as one, which chooses by sizes: graphs, and numbers in ONNX
//! Runtime.

#![expect(clippy::unwrap_used, reason = "tests")]

use pt2onnx::{
    OnnxProgram, Session, SessionOptions, SizesOfInputs, Tree,
    ir::Model,
    opt::Level,
    symbolic::{Expr, Range},
    tensor::Tensor,
    writer,
};

fn program(text: &str) -> OnnxProgram {
    let model: Model = text.parse().unwrap();
    OnnxProgram::from_bytes(writer::to_bytes(&model).unwrap(), []).unwrap()
}

fn decide(condition: &str, yes: Tree, no: Tree) -> Tree {
    Tree::If(Expr::parse(condition).unwrap(), Box::new((yes, no)))
}

fn sizes(places: &[(&str, &str, usize)]) -> SizesOfInputs {
    let place = |(name, input, axis): &(&str, &str, usize)| {
        ((*name).to_owned(), ((*input).to_owned(), Some(*axis)))
    };
    SizesOfInputs { places: places.iter().map(place).collect(), ..SizesOfInputs::default() }
}

/// The graph, without the header.
fn graph(program: &OnnxProgram) -> String {
    let text = program.to_text();
    text.split_once("\n>\n").map_or(text.clone(), |(_, graph)| graph.to_owned())
}

/// The only output for an input of ones with `t` rows, or the error.
fn run(program: &OnnxProgram, t: usize) -> Result<Vec<f32>, String> {
    let mut session =
        Session::new(program.model(), &SessionOptions::new(), &[]).map_err(|e| e.to_string())?;
    let ones = Tensor::from_slice(vec![t, 2], &vec![1f32; 2 * t]).unwrap();
    let outputs = session.run(&[ones]).map_err(|e| e.to_string())?;
    Ok(outputs[0].to_vec().unwrap())
}

/// A model with a head, a tail and two weights; only the middle differs.
fn layers(middle: &str, rows: &str) -> OnnxProgram {
    program(&format!(
        "g (float[{rows},2] x) => (float[{rows},2] y)
        <float[2,2] first = {{1, 2, 3, 4}}, float[2,2] second = {{0.5, 0.25, 0.125, 1}}>
        {{
            a = MatMul (x, first)
            b = Relu (a)
            c = {middle} (b)
            d = MatMul (c, second)
            y = Neg (d)
        }}"
    ))
}

#[test]
fn equal_heads_and_tails_are_there_once() {
    let (short, long) = (layers("Exp", "t"), layers("Sqrt", "t"));
    let tree = decide("t <= 8", Tree::Model(0), Tree::Model(1));
    let merged = OnnxProgram::choose(&[&short, &long], &tree, &sizes(&[("t", "x", 0)])).unwrap();
    let text = graph(&merged);
    for op in ["MatMul", "Relu", "Neg", "Exp", "Sqrt", "If"] {
        let count = if op == "MatMul" { 2 } else { 1 };
        assert_eq!(text.matches(&format!("= {op} ")).count(), count, "{op}: {text}");
    }
    assert!(text.starts_with("g (float[t,2] x) => (float[t,2] y)\n"), "{text}");
    let constants = merged.model().values().filter_map(|(_, data)| data.constant());
    assert_eq!(constants.filter(|tensor| tensor.numel() == 4).count(), 2, "{text}");
    for t in [1, 8, 9] {
        let expected = if t <= 8 { &short } else { &long };
        assert_eq!(run(&merged, t), run(expected, t), "{t}");
    }
    let (_, regions) =
        merged.model().metadata.iter().find(|(key, _)| key == "pkg.pt2onnx.regions").unwrap();
    assert_eq!(
        &**regions,
        r#"{"regions":[{"model":0,"where":["t <= 8"]},{"model":1,"where":["t > 8"]}],"tested":[]}"#
    );
}

/// Sizes of no region fail, with the reason; before and after optimising.
#[test]
fn refused_sizes_fail_with_the_reason() {
    let (short, long) = (layers("Exp", "t"), layers("Sqrt", "t"));
    let reason = "no model is for a t of 5 to 8";
    let tree = decide(
        "t < 5",
        Tree::Model(0),
        decide("t > 8", Tree::Model(1), Tree::Refused(reason.into())),
    );
    let mut merged =
        OnnxProgram::choose(&[&short, &long], &tree, &sizes(&[("t", "x", 0)])).unwrap();
    for _ in 0..2 {
        for (t, expected) in [(0, &short), (4, &short), (9, &long)] {
            assert_eq!(run(&merged, t), run(expected, t), "{t}");
        }
        for t in [5, 8] {
            let error = run(&merged, t).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(graph(&merged).contains("(float[t,2] y)"), "{}", graph(&merged));
        merged.optimize(Level::Fuse);
    }
}

/// A model that takes its input through, and one that is only for one size.
#[test]
fn a_size_that_is_a_number_in_a_region() {
    let three = program(
        "g (float[3,2] x) => (float[3,2] y) <int64[2] s = {2, 3}, int64[2] r = {3, 2}>
        { a = Reshape (x, s) b = Neg (a) y = Reshape (b, r) }",
    );
    let any = program("g (float[s27,2] x) => (float[s27,2] y) { y = Identity (x) }");
    let tree = decide(
        "rows == 3",
        Tree::Model(0),
        decide("rows % 2 == 0", Tree::Model(1), Tree::Refused("odd".into())),
    );
    let merged = OnnxProgram::choose(&[&three, &any], &tree, &sizes(&[("rows", "x", 0)])).unwrap();
    let text = graph(&merged);
    assert!(text.starts_with("g (float[rows,2] x) => (float[rows,2] y)\n"), "{text}");
    assert_eq!(run(&merged, 3), Ok(vec![-1.0; 6]));
    assert_eq!(run(&merged, 4), Ok(vec![1.0; 8]));
    assert!(run(&merged, 5).unwrap_err().contains("odd"));
}

/// Conditions are computed as Python does. Where ranges decide, there are no branches.
#[test]
fn conditions_are_as_in_python() {
    let (first, second) = (layers("Exp", "t"), layers("Sqrt", "t"));
    let programs = [&first, &second];
    for condition in [
        "(t - 9)//4 >= -1",
        "(t - 9) % 4 == 3",
        "Max(t, 5) + Min(t, 3) < 10 or t == 12",
        "not (t > 3 and t <= 7)",
        "3.5*t > 20",
        "t / 4 == 2",
        "CeilToInt(IntTrueDiv(t, 4)) == 2",
        "t*t < 30",
    ] {
        let tree = decide(condition, Tree::Model(0), Tree::Model(1));
        let merged = OnnxProgram::choose(&programs, &tree, &sizes(&[("t", "x", 0)])).unwrap();
        let condition = Expr::parse(condition).unwrap();
        for t in 1..15 {
            let holds = condition.eval(&|_| Some(t)).unwrap() != 0;
            let expected = if holds { &first } else { &second };
            let t = usize::try_from(t).unwrap();
            assert_eq!(run(&merged, t), run(expected, t), "{condition} at {t}");
        }
    }
    let mut known = sizes(&[("t", "x", 0)]);
    known.ranges.push(("t".into(), Range::new(Some(1), Some(8))));
    let tree = decide("t <= 8", Tree::Model(0), Tree::Refused("long".into()));
    let merged = OnnxProgram::choose(&programs, &tree, &known).unwrap();
    assert!(!graph(&merged).contains("If"));
}

#[test]
fn an_input_of_one_element_chooses() {
    let made = |op: &str, more: &str| {
        program(&format!("g (float[n] x{more}, bool[1] used) => (float[n] y) {{ y = {op} (x) }}"))
    };
    let models = [made("Exp", ", float[n] past"), made("Neg", "")];
    let tree = decide("used >= 1", Tree::Model(0), Tree::Model(1));
    let mut known = SizesOfInputs::default();
    known.places.insert("used".into(), ("used".into(), None));
    let both = OnnxProgram::choose(&models.each_ref(), &tree, &known).unwrap();
    let text = graph(&both);
    assert!(text.contains("y = If") && text.contains("> (used)"), "{text}");
    assert!(text.contains("past"), "{text}");
}

#[test]
fn models_that_do_not_belong_together() {
    let one = layers("Exp", "t");
    let choose = |other: &OnnxProgram, condition: &str, places: &[(&str, &str, usize)]| {
        let tree = decide(condition, Tree::Model(0), Tree::Model(1));
        let made = OnnxProgram::choose(&[&one, other], &tree, &sizes(places));
        made.unwrap_err().to_string()
    };
    let place = [("t", "x", 0)];
    let other = program("g (float16[t,2] x) => (float16[t,2] y) { y = Neg (x) }");
    assert_eq!(
        choose(&other, "t < 4", &place),
        "the input `x` is float[t,2] in one model and float16[t,2] in another"
    );
    let other = program("g (float[t,2] x) => (float[t,2] z) { z = Neg (x) }");
    assert_eq!(choose(&other, "t < 4", &place), "the outputs are y in one model and z in another");
    assert_eq!(
        choose(&one, "h < 4", &place),
        "the condition `h < 4` is about `h`, which is not a size of an input: these are t"
    );
    assert_eq!(
        choose(&one, "t < 4", &[("t", "x", 7)]),
        "the size `t` is the axis 7 of `x`, but no input has it"
    );
    assert_eq!(
        choose(&one, "t < 4", &[("t", "x", 0), ("u", "z", 0)]),
        "the size `u` is the axis 0 of `z`, but no input has it"
    );
}

#[test]
fn models_one_by_one() {
    let (short, long, never) = (layers("Exp", "t"), layers("Sqrt", "t"), layers("Cos", "t"));
    let both = decide("t <= 4", Tree::Model(0), Tree::Refused("no model".into()));
    let tree = decide("t > 8", Tree::Model(1), both);
    let tree = decide("t < 0", Tree::Model(2), tree);
    let places = sizes(&[("t", "x", 0)]);
    let models = OnnxProgram::split(&[&short, &long, &never], &tree, &places).unwrap();
    let found: Vec<(usize, String)> =
        models.iter().map(|(at, conditions, _)| (*at, conditions.join(" and "))).collect();
    assert_eq!(found, [(1, "t > 8".to_owned()), (0, "t <= 8 and t <= 4".to_owned())]);
    // They are merged by their conditions.
    let programs: Vec<&OnnxProgram> = models.iter().map(|(_, _, program)| program).collect();
    let merged = OnnxProgram::choose_by_conditions(&programs).unwrap();
    for (t, model) in [(3, &short), (9, &long)] {
        assert_eq!(run(&merged, t), run(model, t), "{t}");
    }
    assert!(run(&merged, 6).unwrap_err().contains("no model is for this size"));
}
