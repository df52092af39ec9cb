//! Benchmarks of each stage of a conversion and of the whole, from a program's JSON to the bytes of
//! the model.
//!
//! The weights are as small as possible.
#![expect(clippy::unwrap_used, reason = "a bench that fails says so best by panicking")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use indexmap::IndexMap;
use pt2onnx::fx::{ExportedProgram, archive, passes};
use pt2onnx::tensor::{DType, Tensor};
use pt2onnx::{Exporter, Registry, aten, ir, opt, writer};
use xtask::synth::{Decoder, Program, Weight};

/// Numbers of decoder layers: a common one, and one with about 5,000 nodes.
const LAYERS: [u64; 2] = [32, 80];

/// The weights of a program.
fn state(program: &Program) -> IndexMap<String, Tensor> {
    let weight = |weight: &Weight| {
        let sizes: Vec<usize> = weight.sizes.iter().map(|size| *size as usize).collect();
        let bytes = vec![1; weight.bytes() as usize];
        (weight.name.clone(), Tensor::new(DType::F32, sizes, bytes).unwrap())
    };
    program.weights.iter().map(weight).collect()
}

fn stages(c: &mut Criterion) {
    for layers in LAYERS {
        let source = Decoder::new(layers, 16).unwrap().program();
        let (json, state) = (source.json(), state(&source));
        let read =
            || archive::from_json(json.as_bytes(), state.clone(), Default::default()).unwrap();
        let mut group = c.benchmark_group(format!("{} nodes", source.nodes));
        group.sample_size(20);

        group.bench_function("read", |b| b.iter(read));
        let program = read();

        let prepare = |mut program: ExportedProgram| {
            passes::prepare(&mut program).unwrap();
            program
        };
        group.bench_function("passes", |b| {
            b.iter_batched(|| program.clone(), prepare, BatchSize::LargeInput);
        });
        let prepared = prepare(program.clone());

        let registry = Registry::default();
        let lower = || aten::lower(&prepared, &registry, aten::Options::default()).unwrap().model;
        group.bench_function("lower", |b| b.iter(lower));

        let options = opt::Options::default();
        let optimise = |mut model: ir::Model| {
            opt::optimize(&mut model, &options);
            model
        };
        group
            .bench_function("optimise", |b| b.iter_batched(lower, optimise, BatchSize::LargeInput));

        let exporter = Exporter::new();
        let finished = exporter.export(program.clone()).unwrap();
        let model = finished.model();
        group.bench_function("verify", |b| b.iter(|| ir::verify(black_box(model)).unwrap()));
        group.bench_function("write", |b| b.iter(|| writer::to_bytes(model).unwrap()));

        group.bench_function("all", |b| {
            b.iter(|| {
                let exported = exporter.export(read()).unwrap();
                writer::to_bytes(exported.model()).unwrap()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
