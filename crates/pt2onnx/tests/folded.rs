//! Weights into which arithmetic is folded are computed while they are written.

use pt2onnx::{OnnxProgram, SaveOptions, Weights, ir::Model, opt, tensor::Tensor, writer};

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
}

/// `<float[8,3] w = {...}>` for each name and sizes; variances are positive.
fn constants(all: &[(&str, &[usize])]) -> String {
    let each = all.iter().enumerate().map(|(seed, (name, sizes))| {
        let numbers = numbers(sizes.iter().product(), seed).into_iter();
        let positive = name.starts_with("var");
        let numbers = numbers.map(|x| if positive { x.abs() + 0.5 } else { x });
        let numbers: Vec<String> = numbers.map(|x| format!("{x:?}")).collect();
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        format!("float[{}] {name} = {{{}}}", sizes.join(","), numbers.join(","))
    });
    each.collect::<Vec<_>>().join(", ")
}

#[test]
fn large_weights() {
    let channels = |n: &'static [usize]| [("scale", n), ("bias", n), ("mean", n), ("variance", n)];
    let norm = "BatchNormalization (a, scale, bias, mean, variance)";
    for (x, layer, sizes, count) in [
        ("2, 32, 9, 9", "Conv (x, w)", &[64, 32, 3, 3][..], &[64][..]),
        ("2, 64, 9, 9", "Conv <group = 2> (x, w)", &[64, 32, 3, 3], &[64]),
        ("2, 32, 9, 9", "ConvTranspose <group = 2> (x, w)", &[32, 32, 5, 5], &[64]),
        ("3, 150", "Gemm (x, w)", &[150, 160], &[160]),
        ("3, 150", "Gemm <transB = 1> (x, w)", &[160, 150], &[160]),
        ("3, 150", "MatMul (x, w)", &[150, 160], &[160]),
    ] {
        let mut all = vec![("w", sizes)];
        all.extend(channels(count));
        // The second folding reads a computed tensor.
        let text = format!(
            "<ir_version: 9, opset_import: [\"\" : 20]> g (float[{x}] x) => (float y) <{}, float three = {{3}}>
             {{ a = {layer} b = {norm} y = Mul (b, three) }}",
            constants(&all)
        );
        let model: Model = text.replace("(float y)", "(float[] y)").parse().unwrap();
        let open = || OnnxProgram::from_bytes(writer::to_bytes(&model).unwrap(), []).unwrap();
        let (mut before, mut after) = (open(), open());
        after.optimize(opt::Options::default());
        assert_eq!(after.model().all_nodes().len(), 1, "{layer}: {}", after.to_text());
        let lazy = after
            .model()
            .values()
            .any(|(_, d)| d.constant().is_some_and(|t| t.compute().is_some()));
        assert!(lazy, "{layer}");
        let shape: Vec<usize> = x.split(", ").map(|n| n.parse().unwrap()).collect();
        let input = Tensor::from_slice(shape.clone(), &numbers(shape.iter().product(), 9)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        after.save_with(&path, SaveOptions { threshold: 1, ..Weights::External.into() }).unwrap();
        let mut read = OnnxProgram::open(&path).unwrap();
        let wanted = before.run(std::slice::from_ref(&input)).unwrap()[0].to_vec::<f32>().unwrap();
        for program in [&mut after, &mut read] {
            let got =
                program.run(std::slice::from_ref(&input)).unwrap()[0].to_vec::<f32>().unwrap();
            let worst = wanted
                .iter()
                .zip(&got)
                .fold(0f32, |m, (a, b)| m.max((a - b).abs() / (1.0 + a.abs())));
            assert!(worst < 1e-4 && wanted.len() == got.len(), "{layer}: {worst}");
        }
    }
}
