//! Programs that were exported in training mode.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx::{Error, Exporter, Mutations, OnnxProgram, Training, Weights, fx::text};

const NETWORK: &str = "graph(m: f32[3] as BUFFER('bn.running_mean'), v: f32[3] as BUFFER('bn.running_var'), \
    n: i64[] as BUFFER('bn.num_batches_tracked'), steps: i64[] as BUFFER('steps'), x: f32[s0, 3]) {
    add_: i64[] = aten.add_.Tensor(self = n, other = 1)
    steps_1: i64[] = aten.add_.Tensor(self = steps, other = 1)
    batch_norm: f32[s0, 3] = aten.batch_norm.default(input = x, weight = None, bias = None, running_mean = m, running_var = v, \
        training = True, momentum = 0.1, eps = 1e-05, cudnn_enabled = False)
    dropout: f32[s0, 3] = aten.dropout.default(input = batch_norm, p = 0.5, train = True)
    dropout_1: f32[s0, 3] = aten.dropout.default(input = dropout, p = 0.5, train = True)
    return (dropout_1,)
}";

const LOST: &str = "the program writes into the buffer `steps`: the new values are lost, as ONNX models have no state; \
    the option `mutations` keeps them, set to `outputs` or `pairs`";

fn export(exporter: Exporter) -> Result<OnnxProgram, Error> {
    exporter.weights(Weights::None).export(text::parse_program(NETWORK).unwrap())
}

fn texts(program: &OnnxProgram) -> Vec<String> {
    program.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn preserved_with_one_warning() {
    let program = export(Exporter::new().seed(7)).unwrap();
    let training = "exported in training mode: call `model.eval()` before export, or set the option `training` to `eval` \
        (1 batch_norm, 2 dropout)";
    assert_eq!(texts(&program), [training, LOST]);
    let text = program.to_text();
    let seeds = ["Dropout <seed: int = 7>", "Dropout <seed: int = 8>"];
    assert!(seeds.iter().all(|seed| text.contains(seed)), "{text}");
}

#[test]
fn evaluated() {
    let exporter = || Exporter::new().training(Training::Eval);
    let program = export(exporter()).unwrap();
    assert_eq!(texts(&program), [LOST]);
    let text = program.to_text();
    assert!(text.contains("= BatchNormalization (") && !text.contains("Dropout"), "{text}");

    // Statistics do not change, so they are no outputs.
    let program = export(exporter().mutations(Mutations::Outputs)).unwrap();
    assert!(program.warnings().is_empty());
    let text = program.to_text();
    assert!(text.contains("=> (float[s0,3] dropout_1, int64 steps)"), "{text}");
}

#[test]
fn errors_list_all_ops() {
    let error = export(Exporter::new().training(Training::Error)).unwrap_err().to_string();
    for node in ["batch_norm", "dropout", "dropout_1"] {
        let line =
            format!("(node `{node}`): behaves as in training: call `model.eval()` before export");
        assert!(error.contains(&line), "{error}");
    }
}

/// A cache that a program updates and returns, as a static cache of transformers.
#[test]
fn state_that_is_returned_is_not_lost() {
    const CACHE: &str = "graph(seen: i64[] as BUFFER('seen'), keys: f32[3], x: f32[3]) {
        add_: f32[3] = aten.add_.Tensor(self = keys, other = x)
        seen_1: i64[] = aten.add_.Tensor(self = seen, other = 1)
        return (add_, SEEN)
    }";
    for (returned, lost) in [("seen_1", 0), ("x", 1)] {
        let program = text::parse_program(&CACHE.replace("SEEN", returned)).unwrap();
        let program = Exporter::new().weights(Weights::None).export(program).unwrap();
        assert_eq!(program.warnings().len(), lost, "{:?}", program.warnings());
    }
}
