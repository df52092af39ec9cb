//! Weights of fewer bits: results stay near, and weights are read back as they were.

use crate::models::*;
use pt2onnx::{OnnxProgram, Options, SaveOptions, Weights, ir, opt::Level, tensor::DType};

#[test]
fn results_stay_near() {
    for [place, words, counts] in rows(include_str!("weights.txt")) {
        let [name, opset, tolerance] = *place.split(' ').collect::<Vec<_>>() else { panic!() };
        // Half precision has no smallest weight.
        let precise = words == "precision=float16";
        let words = if precise { words.to_owned() } else { format!("min-elements=100 {words}") };
        let model = model(opset.parse().unwrap(), text(name));
        let mut before = program(&model);
        let mut after = compressed(&model, &words).unwrap_or_else(|e| panic!("{words}: {e}"));
        assert_counts(&after, counts, &words);
        let inputs = inputs(&model);
        let wanted = before.run(&inputs).unwrap();
        let got = after.run(&inputs).unwrap_or_else(|e| panic!("{words}: {e}"));
        assert_near(&wanted, &got, tolerance.parse().unwrap(), &words);
        // Bytes do not depend on the way to write them.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        let save = SaveOptions { threshold: 1, ..Weights::External.into() };
        after.save_with(&path, save).unwrap();
        let read = OnnxProgram::open(&path).unwrap();
        assert_eq!(constants(read.model()), constants(after.model()), "{words}");
    }
}

#[test]
fn what_is_lost_is_told() {
    let program =
        compressed(&model(21, text("turned")), "quantize=int8 block-size=32 min-elements=1")
            .unwrap();
    assert!(program.compressed()[0].snr_db.is_none());
    program.to_bytes().unwrap();
    let all = program.compressed();
    let [weight] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((weight.name.as_str(), weight.form.as_str()), ("t", "int8, blocks of 32"));
    assert_eq!((weight.bytes, weight.compressed_bytes), (5120, 1280 + 160));
    assert!(weight.snr_db.is_some_and(|snr| (40.0..50.0).contains(&snr)), "{weight}");
    assert!(weight.max_error.is_some_and(|e| e > 0.0 && e <= 0.5 / 127.0 + 1e-6), "{weight}");
}

/// They are not run: their products saturate on some processors.
#[test]
fn signed_codes_are_the_others_less_128() {
    for text in ["products", "tied", "turned", "body"].map(text) {
        let weights = |words: &str| {
            let program = compressed(&model(20, text), words).unwrap();
            // The result is valid.
            program.to_bytes().unwrap();
            let codes = |v: &ir::ValueData| {
                let codes = v.constant().filter(|t| t.dtype().bits() == 8 && t.numel() >= 100)?;
                Some((codes.dtype(), codes.to_bytes().into_owned()))
            };
            program.model().values().filter_map(|(_, v)| codes(v)).collect::<Vec<_>>()
        };
        let unsigned = weights("min-elements=100 quantize=dynamic-int8");
        let signed = weights("min-elements=100 quantize=dynamic-int8 signed");
        assert!(unsigned.iter().any(|(dtype, _)| *dtype == DType::U8));
        let moved = unsigned.into_iter().map(|(dtype, codes)| match dtype {
            DType::U8 => (DType::I8, codes.into_iter().map(|c| c.wrapping_sub(128)).collect()),
            _ => (dtype, codes),
        });
        assert_eq!(signed, moved.collect::<Vec<_>>());
    }
}

/// Weights that the optimiser computes, here with the factors behind a convolution in them, are
/// compressed as others are.
#[test]
fn computed_weights_are_compressed() {
    let text = "g (float[1,64,8,8] x) => (float[1,128,6,6] y)
        <float[128,64,3,3] w = {128,64,3,3}, float[128,1,1] s = {128,1,1}> { c = Conv (x, w) y = Mul (c, s) }";
    let model = model(20, text);
    let inputs = inputs(&model);
    let optimised = || {
        let mut program = program(&model);
        program.optimize(Level::Fuse);
        let computed = |v: &ir::ValueData| v.constant().is_some_and(|t| t.compute().is_some());
        assert!(program.model().values().any(|(_, v)| computed(v)));
        program
    };
    let before = optimised().to_bytes().unwrap().len();
    let wanted = program(&model).run(&inputs).unwrap();
    for (words, share, tolerance) in [
        ("cast-weights=float16", 0.55, 1e-3),
        ("cast-weights=bfloat16", 0.55, 1e-2),
        ("quantize=int8 cast-weights=float16", 0.35, 2e-2),
        ("precision=float16", 0.55, 5e-3),
    ] {
        let mut after = optimised();
        after.compress(&options(words).compression()).unwrap();
        let size = after.to_bytes().unwrap().len();
        assert!((size as f64) < share * before as f64, "{words}: {size} of {before}");
        assert_near(&wanted, &after.run(&inputs).unwrap(), tolerance, words);
    }
    // A warning counts them, too.
    let mut after = optimised();
    let none = options("cast-weights=float16 min-elements=1000000");
    after.compress(&none.compression()).unwrap();
    let warning = after.warnings()[0].to_string();
    assert!(warning.contains("1 of fewer than 1000000 elements"), "{warning}");
}

/// Optimising a model again keeps its small weights.
#[test]
fn casts_of_weights_stay() {
    let text = text("turned").replace("40", "80");
    let mut program = compressed(&model(20, &text), "cast-weights=float16").unwrap();
    program.rewrite(&Options::default(), None, None).unwrap();
    let bytes = program.to_bytes().unwrap();
    let mut again = OnnxProgram::from_bytes(bytes.clone(), []).unwrap();
    again.rewrite(&Options::default(), None, None).unwrap();
    assert_eq!(operators(&again).get("Cast"), Some(&1));
    assert!(again.to_bytes().unwrap().len() <= bytes.len());
}
