//! Limits of compression: errors, warnings, numbers that a type does not have, and sums that
//! are too long.

use crate::models::*;
use pt2onnx::{ir::Model, tensor::Tensor};

/// Requests that cannot be met.
#[test]
fn what_cannot_be_compressed_as_asked_is_an_error() {
    let plain =
        model(20, &text("turned").replace("y = MatMul (x, b)", "a = MatMul (x, b) y = Relu (a)"));
    for [opset, words, error] in rows(include_str!("refused.txt")) {
        let mut model = plain.clone();
        model.opset = opset.parse().unwrap();
        let refused = compressed(&model, &format!("min-elements=1 {words}"));
        let refused = refused.map(drop).unwrap_err().to_string();
        assert!(refused.contains(error), "{words}: {refused}");
    }
}

/// Numbers that a format does not have are errors when they are written, and zeros stay zeros.
#[test]
fn special_numbers() {
    let of = |ty: &str, numbers: &str| {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : 21]> g ({ty}[1, 2] x) => ({ty}[1, 2] y)
             <{ty}[2, 2] w = {{{numbers}}}> {{ y = MatMul (x, w) }}"
        );
        text.parse::<Model>().unwrap()
    };
    let (text_of, double) = (|numbers| of("float", numbers), |numbers| of("double", numbers));
    for (numbers, words, said) in [
        ("1, 2, inf, 3", "quantize=int8", "the weight `w` has NaN or infinite values"),
        ("1, 2, nan, 3", "quantize=int4 block-size=32", "the weight `w` has NaN"),
        ("1, 2, nan, 3", "quantize=int4 target=ort", "the weight `w` has NaN"),
        ("1, 2, 3, 70000", "cast-weights=float16", "the weight `w` has numbers above 65504"),
    ] {
        let program = compressed(&text_of(numbers), &format!("min-elements=1 {words}")).unwrap();
        let error = program.to_bytes().unwrap_err().to_string();
        assert!(error.contains(said), "{words}: {error}");
    }
    let words = "quantize=int8 min-elements=1";
    let error = compressed(&double("1, 2, 3, 1e39"), words).unwrap().to_bytes().unwrap_err();
    assert!(error.to_string().contains("the weight `w` has numbers above 3.4e38"), "{error}");
    // A mask stays what it is, and so does what is tiny.
    for (mask, to) in [
        (text_of("0, -3e38, 1, 2"), "float16"),
        (text_of("0, -3.4028235e38, 1, 2"), "bfloat16"),
        (double("0, -1.7e308, 1, 2"), "float16"),
        (double("0, -1.7e308, 1, 2"), "bfloat16"),
        (text_of("0, -1e-8, 1e-7, 0"), "float16"),
    ] {
        let cast = format!("cast-weights={to} min-elements=1");
        let program = compressed(&mask, &cast).unwrap();
        assert_eq!(constants(program.model()), constants(&mask));
        assert!(program.compressed().is_empty() && program.to_bytes().is_ok());
    }
    for words in [
        "quantize=int8",
        "quantize=int8 zero-points",
        "quantize=int4 block-size=16",
        "quantize=int4 target=ort zero-points",
        "quantize=float8",
        "cast-weights=float16",
    ] {
        let mut program =
            compressed(&text_of("0, 2, 0, 4"), &format!("min-elements=1 {words}")).unwrap();
        let x = Tensor::from_slice(vec![1, 2], &[1f32, 1.0]).unwrap();
        let y = program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!(y[0] == 0.0 && (y[1] - 6.0).abs() < 0.5, "{words}: {y:?}");
    }
}

/// An option that compresses no weight is a warning that says why, and a weight that would get
/// larger stays as it is.
#[test]
fn no_weight_is_fit() {
    for [name, words, reason] in rows(include_str!("unfit.txt")) {
        let words = format!("min-elements=2 {words}");
        let program = compressed(&model(20, text(name)), &words).unwrap();
        let [warning] = program.warnings() else { panic!("{words}: {:?}", program.warnings()) };
        assert!(warning.message.contains(reason), "{words}: {warning}");
    }
    for (text, words) in [
        (text("tied"), "quantize=int8 compress-include=MatMul"),
        (text("flat_4"), "quantize=int8 min-elements=1"),
    ] {
        let program = compressed(&model(20, text), words).unwrap();
        assert!(program.warnings().is_empty() && program.compressed().len() == 1, "{words}");
    }
}

/// Constant weights stay finite, and near their number.
#[test]
fn stand_ins() {
    for (ty, number, opset) in [
        ("float", "-3.4028235e38", 21),
        ("float", "3.4e38", 21),
        ("float16", "-65504", 21),
        ("float16", "65504", 13),
    ] {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : {opset}]> g (int64[1] i) => (float[1, 32] y)
             <{ty}[3, 32] w = {{{}}}> {{ g = Gather (w, i) y = Cast <to = 1> (g) }}",
            [number; 96].join(", ")
        );
        let wanted: f32 = number.parse().unwrap();
        for words in [
            "quantize=int8",
            "quantize=int8 zero-points",
            "quantize=int8 block-size=16",
            "quantize=int4",
            "quantize=int4 block-size=16 zero-points",
            "quantize=int4 target=ort",
            "quantize=float8",
            "quantize=dynamic-int8",
        ] {
            let Ok(mut program) =
                compressed(&text.parse().unwrap(), &format!("min-elements=1 {words}"))
            else {
                assert!(opset < 21, "{words}");
                continue;
            };
            let y = program.run(&[Tensor::vector(&[0i64])]).unwrap()[0].to_vec::<f32>().unwrap();
            let near = |y: &f32| (y / wanted - 1.0).abs() < 0.01;
            assert!(y.iter().all(near), "{ty} {number} {words}: {y:?}");
        }
    }
}

/// A sum of more products than int32 has room for stays one of floats.
#[test]
fn long_sums() {
    for (long, integers) in [(66_311, 1), (66_312, 0)] {
        let model: Model = format!(
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[1, {long}] x) => (float[1, 1] y)
             <float[{long}, 1] w = {{{}}}> {{ y = MatMul (x, w) }}",
            vec!["1"; long].join(", ")
        )
        .parse()
        .unwrap();
        let mut program = compressed(&model, "quantize=dynamic-int8").unwrap();
        let found = operators(&program).get("MatMulInteger").copied().unwrap_or(0);
        assert_eq!(found, integers, "{long}");
        let x = Tensor::from_slice(vec![1, long], &vec![1f32; long]).unwrap();
        let y = program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap()[0];
        assert!((y / long as f32 - 1.0).abs() < 0.01, "{long}: {y}");
    }
}

/// A weight that is an output keeps its values, and one without values is an error.
#[test]
fn outputs_and_hollow_weights() {
    let plain = "<ir_version: 10, opset_import: [\"\" : 20]> g (float[1, 2] x) => (float[1, 2] y, float[2, 2] w)
        <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }";
    let words = "quantize=int8 min-elements=1";
    let kept = compressed(&plain.parse().unwrap(), words).unwrap();
    assert!(kept.compressed().is_empty());
    let mut hollow = model(20, text("turned"));
    let (value, tensor) = hollow
        .values()
        .find_map(|(v, data)| {
            Some((v, data.constant().filter(|t| t.numel() > 100)?.without_data()))
        })
        .unwrap();
    assert!(hollow.set_constant(value, tensor));
    let options = options(words).compression();
    let error = pt2onnx::compress::compress(&mut hollow, &options).unwrap_err();
    assert!(error.to_string().contains("the weights have no values"), "{error}");
}
