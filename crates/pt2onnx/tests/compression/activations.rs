//! Activations of 8 bits, with ranges from samples.

use crate::models::*;
use pt2onnx::{
    Error, OnnxProgram, SessionOptions,
    ir::{Model, NodeId},
    tensor::{DType, Tensor},
};

/// The model after calibration on these inputs, as its file.
fn calibrated(model: &Model, words: &str, samples: &[Tensor]) -> Result<OnnxProgram, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.npz");
    let names = model.inputs().iter().map(|v| model[*v].name.as_ref().unwrap().to_string());
    let arrays: Vec<(String, Tensor)> = names.zip(samples.iter().cloned()).collect();
    let bytes = pt2onnx::to_npz(arrays.iter().map(|(n, t)| (n, t))).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut program = program(model);
    let options = options(words);
    let mut compression = options.compression();
    compression.calibrated =
        program.calibrate(&compression, options.calibration_method, &[path])?;
    program.compress(&compression)?;
    Ok(program)
}

#[test]
fn activations_of_8_bits() {
    for [place, words, counts] in rows(include_str!("activations.txt")) {
        let [name, opset, tolerance] = *place.split(' ').collect::<Vec<_>>() else { panic!() };
        let words = format!("min-elements=100 quantize=static-int8 {words}");
        let opset: u32 = opset.parse().unwrap();
        let text = match opset {
            ..17 => text(name).replace("LayerNormalization (o, one)", "Mul (o, one)"),
            _ => text(name).to_owned(),
        };
        let model = model(opset, &text);
        let inputs = inputs(&model);
        let mut after =
            calibrated(&model, &words, &inputs).unwrap_or_else(|e| panic!("{words}: {e}"));
        assert_counts(&after, counts, &words);
        // ONNX Runtime makes no `QGemm` of a weight without them.
        assert!(!words.contains("signed") || weights_have_zero_points(after.model()), "{words}");
        let wanted = program(&model).run(&inputs).unwrap();
        if words.contains("tensorrt") || words.contains("signed") {
            // As it is: ONNX Runtime's products of int8 saturate on some processors.
            after.session(&SessionOptions::new().optimize(false), &[]).unwrap();
        }
        let got = after.run(&inputs).unwrap_or_else(|e| panic!("{words}: {e}"));
        assert_near(&wanted, &got, tolerance.parse().unwrap(), &words);
    }
}

/// Whether those that products take have zero points.
fn weights_have_zero_points(model: &Model) -> bool {
    let restored = |node: NodeId| model.producer(model[node].input(1).unwrap());
    let products =
        model.all_nodes().into_iter().filter(|n| ["Gemm", "MatMul"].contains(&model[*n].op()));
    let mut weights = products.filter_map(restored).peekable();
    weights.peek().is_some() && weights.all(|w| model[w].input(2).is_some())
}

/// A model of texts, with samples of them.
#[test]
fn samples_of_texts() {
    let text = "g (string[n, 3] words) => (float[n, 32] y) <float[4,32] w = {4,32}> {
        counts = TfIdfVectorizer <mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0,
          ngram_counts = [0], ngram_indexes = [0, 1, 2, 3], pool_strings = [\"a\", \"bé\", \"c\", \"d\"]> (words)
        y = MatMul (counts, w)
    }";
    let model = model(20, text);
    let words = "a\0béc\0a\0a\0c\0".chars().flat_map(|c| u32::from(c).to_le_bytes());
    let words = words.collect::<Vec<u8>>();
    let head = "{'descr': '<U2', 'fortran_order': False, 'shape': (2, 1, 3), }\n";
    let size = (head.len() as u16).to_le_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.npy");
    let bytes = [b"\x93NUMPY\x01\x00", &size[..], head.as_bytes(), &words].concat();
    std::fs::write(&path, bytes).unwrap();
    let mut program = program(&model);
    let options = options("min-elements=1 quantize=static-int8");
    let mut compression = options.compression();
    compression.calibrated =
        program.calibrate(&compression, options.calibration_method, &[path]).unwrap();
    program.compress(&compression).unwrap();
    let ranges: Vec<_> = compression.calibrated.ranges.values().copied().collect();
    assert_eq!(ranges, [(0.0, 2.0)]);
    assert_counts(&program, "QuantizeLinear=1 DequantizeLinear=2", "texts");
}

/// A channel of zeros keeps its bias, also where the scale of the input makes the steps of other
/// channels coarse.
#[test]
fn bias_of_zeros() {
    let rows = (0..32).map(|i| format!("{}, 0, {}", (i % 5) - 2, i % 3)).collect::<Vec<_>>();
    for opset in [20, 11] {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : {opset}]> g (float[1, 32] x) => (float[1, 3] y)
             <float[32, 3] w = {{{}}}, float[3] b = {{1, 0.75, -0.5}}> {{ y = Gemm (x, w, b) }}",
            rows.join(", ")
        );
        let x: Vec<f32> = numbers(32, 3).iter().map(|x| x * 5000.0).collect();
        let x = Tensor::from_slice(vec![1, 32], &x).unwrap();
        let words = "min-elements=1 quantize=static-int8";
        let mut after =
            calibrated(&text.parse().unwrap(), words, std::slice::from_ref(&x)).unwrap();
        let y = after.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!((y[1] - 0.75).abs() < 0.05, "{opset}: {y:?}");
    }
}

/// ONNX Runtime's products of integers take one scale for a weight on the left, and for several
/// matrices.
#[test]
fn weights_with_one_scale() {
    for (shape, weight, nodes, output) in [
        ("5, 16", "8,5", "y = MatMul (w, x)", "8, 16"),
        ("5, 16", "5,8", "y = Gemm <transA = 1> (w, x)", "8, 16"),
        ("5, 16", "3,16,8", "y = MatMul (x, w)", "3, 5, 8"),
        ("5, 16", "3,8,16", "t = Transpose <perm = [0, 2, 1]> (w) y = MatMul (x, t)", "3, 5, 8"),
    ] {
        let text = format!(
            "g (float[{shape}] x) => (float[{output}] y) <float[{weight}] w = {{{weight}}}> {{ {nodes} }}"
        );
        let model = model(20, &text);
        let inputs = inputs(&model);
        let words = "min-elements=1 quantize=static-int8";
        let got = calibrated(&model, words, &inputs).unwrap().run(&inputs).unwrap();
        let wanted = program(&model).run(&inputs).unwrap();
        assert_near(&wanted, &got, 0.05, nodes);
    }
}

/// A channel whose products hardly count beside its bias gets steps in which the bias fits into
/// int32: of a float, ONNX Runtime would make integers that are too large.
#[test]
fn bias_beside_tiny_weights() {
    let cases = [
        ("float[1, 8, 2, 2] y", "float[8, 4, 1, 1]", "Conv (x, w, b)"),
        ("float[1, 8, 2, 2] y", "float[4, 4, 1, 1]", "ConvTranspose <group = 2> (x, w, b)"),
    ];
    for (opset, more) in [(20, ""), (11, ""), (20, " target=tensorrt")] {
        for (output, shape, layer) in cases {
            // All weights are tiny without scales for channels.
            let large = if opset < 13 { 1e-12 } else { 0.5 };
            let of = |i: usize| if i / 4 % 2 == 1 { 1e-12 * (i % 3) as f32 } else { large };
            let count = if layer.starts_with("ConvT") { 16 } else { 32 };
            let all = (0..count).map(|i| format!("{:e}", of(i))).collect::<Vec<_>>();
            let text = format!(
                "<ir_version: 10, opset_import: [\"\" : {opset}]> g (float[1, 4, 2, 2] x) => ({output})
                 <{shape} w = {{{}}}, float[8] b = {{1, 0.75, -0.5, 0.25, 0, 2, -2, 1}}> {{ c = {layer} y = Neg (c) }}",
                all.join(", ")
            );
            let model: Model = text.parse().unwrap();
            let x = [Tensor::from_slice(vec![1, 4, 2, 2], &numbers(16, 3)).unwrap()];
            let words = format!("min-elements=1 quantize=static-int8{more}");
            let got = calibrated(&model, &words, &x).unwrap().run(&x).unwrap();
            let wanted = program(&model).run(&x).unwrap();
            let (wanted, got) =
                (wanted[0].to_vec::<f32>().unwrap(), got[0].to_vec::<f32>().unwrap());
            let error = wanted.iter().zip(&got).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(error < 0.05, "{opset} {layer} {more}: {wanted:?} {got:?}");
        }
    }
}

/// Arrays of several samples, and samples that are not finite or do not fit.
#[test]
fn samples_may_be_several_and_must_be_finite_and_fit() {
    let words = "min-elements=1 quantize=static-int8";
    let scale = |model: &Model, sizes: &[usize], all: &[f32]| {
        let sample = Tensor::from_slice(sizes, all).unwrap();
        let made = calibrated(model, words, &[sample]).map_err(|e| e.to_string())?;
        let found = made.model().values().find(|(_, d)| d.name.as_deref() == Some("x_scale"));
        Ok(found.map(|(_, data)| data.constant().unwrap().to_vec::<f32>().unwrap()[0] * 255.0))
    };
    let of = |x: &str| -> Model {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[{x}] x) => (float[n, 1] y)
             <float[2, 1] w = {{1, 2}}> {{ y = MatMul (x, w) }}"
        );
        text.parse().unwrap()
    };
    for (x, sizes, all) in [
        ("1, 2", &[1, 2][..], &[0.0, 6.0][..]),
        ("1, 2", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0]),
        ("1, 2", &[2, 1, 2], &[0.0, 1.0, 2.0, 6.0]),
        ("n, 2", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0]),
        ("n, 2", &[2, 1, 2], &[0.0, 6.0, 2.0, 3.0]),
    ] {
        let found: Result<_, String> = scale(&of(x), sizes, all);
        assert!((found.clone().unwrap().unwrap() - 6.0).abs() < 1e-5, "{x} {sizes:?}: {found:?}");
    }
    let none = scale(&of("n, 2"), &[0, 1, 2], &[]).unwrap_err();
    assert!(none.contains("it has no samples"), "{none}");
    // Nothing is known of a range with infinities: the input stays as it is.
    assert_eq!(scale(&of("1, 2"), &[1, 2], &[0.0, f32::INFINITY]), Ok(None));
    for (x, sizes, all) in
        [("1, 2", &[1, 3][..], &[1.0, 2.0, 3.0][..]), ("2, 2", &[3, 2], &[0.0; 6])]
    {
        let error = scale(&of(x), sizes, all).unwrap_err();
        assert!(error.contains(&format!("the input x takes float32[{x}], but float32")), "{error}");
    }
}

/// With samples, codes make up for the errors of others, and for those that count most.
#[test]
fn weights_of_4_bits_lose_less_with_samples() {
    const PRODUCTS: [(usize, &str); 4] = [
        (64, "y = MatMul (h, w)"),
        // Rows that are no multiple of a block, and a bias.
        (70, "b = Neg (c) y = Gemm <transB = 1> (h, w, b)"),
        (70, "t = Transpose <perm = [1, 0]> (w) y = MatMul (h, t)"),
        // Two inputs of one weight.
        (64, "z = Abs (x) p = MatMul (h, w) q = MatMul (z, w) y = Add (p, q)"),
    ];
    for (width, product) in PRODUCTS {
        let is_turned = product.contains("trans") || product.contains("Trans");
        let sizes = if is_turned { format!("48,{width}") } else { format!("{width},48") };
        let text = format!(
            "g (float[16,{width}] x, float[48] c) => (float[16,48] y) < float[{sizes}] w = {{{sizes}}} > {{ h = Neg (x) {product} }}"
        );
        for (opset, words) in [
            (21, "block-size=32"),
            (21, "block-size=16 zero-points"),
            (21, "block-size=32 precision=float16"),
            (20, "target=ort"),
            (20, "target=ort zero-points"),
            (20, "target=ort mixed"),
        ] {
            lose_less(
                &model(opset, &text),
                width,
                &format!("quantize=int4 min-elements=100 {words}"),
            );
        }
    }
}

/// The products of weights of a model lose less with samples.
fn lose_less(model: &Model, width: usize, words: &str) {
    // All numbers of a row come from four.
    let (causes, mixed) = (numbers(16 * 4, 3), numbers(4 * width, 4));
    let of = |i: usize, j: usize| (0..4).map(|k| causes[4 * i + k] * mixed[k * width + j]).sum();
    let x = (0..16 * width).map(|i| of(i / width, i % width)).collect();
    let tensor = |shape: Vec<usize>, numbers: Vec<f32>| {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        Tensor::new(DType::F32, shape, bytes).unwrap()
    };
    let inputs = [tensor(vec![16, width], x), tensor(vec![48], numbers(48, 5))];
    let wanted = program(model).run(&inputs).unwrap();
    let lost = |mut after: OnnxProgram| {
        let got = after.run(&inputs).unwrap();
        let (a, b) = (wanted[0].to_vec::<f32>().unwrap(), got[0].to_vec::<f32>().unwrap());
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>()
    };
    let before = lost(compressed(model, words).unwrap());
    let after = lost(calibrated(model, words, &inputs).unwrap());
    assert!(after < 0.1 * before, "{words}: {before} {after} {model}");
}
