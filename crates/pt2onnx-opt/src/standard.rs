//! Lists the standard passes, and gives their options defaults.

use crate::{
    Level, Options, Pass, Passes, Target, cleanup, cse, cse_layers, dead, fold, fold_control_flow,
    fuse, tail_merge,
};
use pt2onnx_ir::schema::CANONICAL_OPSET;

/// The standard passes in the order of their phases; each has its static in the file of its name.
static STANDARD: &[&Pass] = &[
    &cleanup::CLEANUP,
    &fold::FOLD,
    &fold_control_flow::FOLD_CONTROL_FLOW,
    &tail_merge::TAIL_MERGE,
    &cse::CSE,
    &dead::DEAD,
    &fuse::batch_norm::BATCH_NORM,
    &fuse::reassociate::REASSOCIATE,
    &fuse::floor_division::FLOOR_DIVISION,
    &fuse::fold_scale_into_weight::FOLD_SCALE_INTO_WEIGHT,
    &fuse::pad::PAD,
    &fuse::commute_reshape_transpose::COMMUTE_RESHAPE_TRANSPOSE,
    &fuse::gemm::GEMM,
    &fuse::clip::CLIP,
    &fuse::gelu::GELU,
    &fuse::hard_swish::HARD_SWISH,
    &fuse::layer_norm::LAYER_NORM,
    &fuse::rms_norm::RMS_NORM,
    &fuse::instance_norm::INSTANCE_NORM,
    &fuse::gather_quantized::GATHER_QUANTIZED,
    &fuse::gather_rows::GATHER_ROWS,
    &fuse::grid::GRID,
    &fuse::reduce_stack::REDUCE_STACK,
    &fuse::reduce_sum_square::REDUCE_SUM_SQUARE,
    &fuse::softmax_before_transpose::SOFTMAX_BEFORE_TRANSPOSE,
    &fuse::multi_head::MULTI_HEAD,
    &fuse::attention::ATTENTION,
    &fuse::decoder_attention::DECODER_ATTENTION,
    &fuse::rotary::ROTARY,
    &cse_layers::CSE_LAYERS,
    &fuse::fold_input_scale::FOLD_INPUT_SCALE,
    &fuse::conv1d_to_conv2d::CONV1D_TO_CONV2D,
    &fuse::projections::PROJECTIONS,
    &fuse::merge_linears::MERGE_LINEARS,
    &fuse::split_linears::SPLIT_LINEARS,
    &fuse::group_query_attention::GROUP_QUERY_ATTENTION,
    &fuse::packed_qkv::PACKED_QKV,
    &fuse::linear_attention::LINEAR_ATTENTION,
    &fuse::split::SPLIT,
    &fuse::skip_rms_norm::SKIP_RMS_NORM,
    &fuse::branchwise_rms_norm::BRANCHWISE_RMS_NORM,
    &fuse::causal_conv::CAUSAL_CONV,
    &fuse::simplified_layer_norm::SIMPLIFIED_LAYER_NORM,
];

impl Passes {
    /// The standard passes, in the order they run. Threads share them: the patterns of a pass are
    /// read when it first runs.
    pub fn standard() -> Self {
        Self::shared(STANDARD)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::default(),
            passes: Passes::standard(),
            opset: CANONICAL_OPSET,
            target: Target::Standard,
            max_folded_bytes: 8 << 10,
            max_generated_bytes: 0,
            max_read_bytes: 1 << 20,
            max_neutral_bytes: 1 << 10,
            replace_weights: true,
            dedup_weights: false,
            share_weights: false,
            join_weights: false,
            imported: false,
            to_float16: false,
            max_positions: None,
            max_rounds: 16,
            stats: None,
        }
    }
}

/// The defaults of a level.
impl From<Level> for Options {
    fn from(level: Level) -> Self {
        Self { level, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fuse::double_relu::DOUBLE_RELU, optimize};
    use pt2onnx_ir::Model;
    use std::{collections::BTreeSet, fs, path::Path};

    /// The standard passes, and the example of docs/adding-a-pass.md.
    fn all() -> impl Iterator<Item = &'static Pass> {
        STANDARD.iter().copied().chain([&DOUBLE_RELU])
    }

    #[test]
    fn all_patterns_are_read() {
        for pass in all() {
            if let Some(fusions) = pass.fusions() {
                let read = fusions.read();
                assert!(read.is_ok_and(|all| !all.is_empty()), "{}: {read:?}", pass.name);
            }
        }
    }

    #[test]
    fn all_passes_say_what_they_do_and_need() {
        for pass in all() {
            for text in [pass.description, pass.precondition] {
                assert!(text.ends_with('.'), "{}: {text}", pass.name);
            }
        }
    }

    #[test]
    fn passes_are_in_the_order_of_their_phases() {
        assert!(STANDARD.is_sorted_by_key(|pass| pass.phase));
    }

    /// `fuse/gelu.rs` has `static GELU` with the name `gelu`.
    #[test]
    fn file_static_and_pass_have_one_name() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for pass in all() {
            let file = pass.name.replace('-', "_");
            let files = [format!("{file}.rs"), format!("fuse/{file}.rs"), format!("{file}/mod.rs")];
            let text = files.iter().find_map(|file| fs::read_to_string(src.join(file)).ok());
            let item = format!("pub(crate) static {}: Pass = Pass {{", file.to_uppercase());
            let row = format!("\n    name: \"{}\",\n", pass.name);
            let right = text.is_some_and(|text| text.contains(&item) && text.contains(&row));
            assert!(right, "{}", pass.name);
        }
    }

    /// A pass in a file that is not listed never runs.
    #[test]
    fn all_passes_are_listed() {
        let known: BTreeSet<String> =
            all().map(|pass| pass.name.replace('-', "_").to_uppercase()).collect();
        let src = concat!(env!("CARGO_MANIFEST_DIR"), "/src/**/*.rs");
        let mut found = BTreeSet::new();
        for path in glob::glob(src).unwrap() {
            let text = fs::read_to_string(path.unwrap()).unwrap();
            let lines = text.lines().filter_map(|l| l.strip_prefix("pub(crate) static "));
            found.extend(lines.filter_map(|l| Some(l.strip_suffix(": Pass = Pass {")?.to_owned())));
        }
        assert_eq!(found, known);
    }

    #[test]
    fn the_page_on_passes_shows_a_fusion_that_works() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = fs::read_to_string(root.join("../../docs/adding-a-pass.md")).unwrap();
        assert!(page.contains(include_str!("fuse/double_relu.rs")));
        let mut model: Model =
            "g (float[2] x) => (float[2] y) { a = Relu (x) b = Relu (a) y = Relu (b) }"
                .parse()
                .unwrap();
        let passes = [DOUBLE_RELU.clone(), dead::DEAD.clone()].into_iter().collect();
        optimize(&mut model, &Options { passes, ..Options::default() });
        assert_eq!(model.graph_nodes().len(), 1);
    }
}
