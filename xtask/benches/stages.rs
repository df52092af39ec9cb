//! Each stage of a conversion, and all of them: from a program's JSON to the bytes of the model, weights left out.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that fails says so best by panicking"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pt2onnx::fx::{ExportedProgram, archive, passes};
use pt2onnx::tensor::{DType, Tensor};
use pt2onnx::{Exporter, Registry, aten, ir, opt, writer};
use xtask::synth::{Decoder, Program};

/// Layers of the decoders: a usual one, and one of about 5,000 nodes.
const LAYERS: [u64; 2] = [32, 80];

/// The JSON read, with the weights' types and shapes.
fn read(program: &Program, json: &str) -> ExportedProgram {
    let weight = |weight: &xtask::synth::Weight| {
        let sizes: Vec<usize> = weight.sizes.iter().map(|size| *size as usize).collect();
        (
            weight.name.clone(),
            Tensor::absent(DType::F32, sizes).unwrap(),
        )
    };
    let state = program.weights.iter().map(weight).collect();
    archive::from_json(json.as_bytes(), state, Default::default()).unwrap()
}

fn stages(c: &mut Criterion) {
    for layers in LAYERS {
        let source = Decoder::new(layers, 256).unwrap().program();
        let json = source.json();
        let mut group = c.benchmark_group(format!("{} nodes", source.nodes));
        group.sample_size(20);

        group.bench_function("read", |b| b.iter(|| read(&source, &json)));
        let program = read(&source, &json);

        let prepare = |mut program: ExportedProgram| {
            passes::prepare(&mut program).unwrap();
            program
        };
        group.bench_function("passes", |b| {
            b.iter_batched(|| program.clone(), prepare, BatchSize::LargeInput);
        });
        let prepared = prepare(program.clone());

        let registry = Registry::default();
        let lower = || {
            aten::lower(&prepared, &registry, aten::Options::default())
                .unwrap()
                .model
        };
        group.bench_function("lower", |b| b.iter(lower));

        let options = opt::Options::default();
        let optimise = |mut model: ir::Model| {
            opt::optimize(&mut model, &options);
            model
        };
        group.bench_function("optimise", |b| {
            b.iter_batched(lower, optimise, BatchSize::LargeInput)
        });

        let exporter = Exporter::new();
        let finished = exporter.export_program(program.clone()).unwrap();
        let model = finished.model();
        group.bench_function("verify", |b| {
            b.iter(|| ir::verify(black_box(model)).unwrap())
        });
        group.bench_function("write", |b| b.iter(|| writer::to_bytes(model).unwrap()));

        group.bench_function("all", |b| {
            b.iter(|| {
                let exported = exporter.export_program(read(&source, &json)).unwrap();
                writer::to_bytes(exported.model()).unwrap()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
