//! Defines the flags that name values and dimensions.

use super::{
    merge::{set, set_list, set_some},
    values,
};
use clap::Args;
use pt2onnx::{DynamicAxes, InputNames, KvNames, Options, OutputNames};

/// Names of values, names and sizes of dimensions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names and dims")]
pub struct Names {
    /// Names of the inputs, in order; `from-tree` uses the parameters of `forward` and the keys of
    /// dicts
    #[arg(long, value_name = "A,B", value_parser = values::names)]
    input_names: Option<InputNames>,
    /// Names of the outputs, in order; `from-tree` uses the keys of the dict or dataclass that the
    /// program returns
    #[arg(long, value_name = "A,B", value_parser = values::names)]
    output_names: Option<OutputNames>,
    /// Names of keys and values in caches [default with `from-tree`:
    /// past_key_values.{layer}.{part},present.{layer}.{part}]
    #[arg(long, value_name = "IN,OUT")]
    kv_names: Option<KvNames>,
    /// Rename any value; can be given several times
    #[arg(long, value_name = "OLD=NEW", value_parser = values::pair)]
    rename: Vec<(String, String)>,
    /// Name a dynamic dimension, by its symbol or an axis: `s77=batch`, `x.0=batch`; can be given
    /// several times
    #[arg(long, alias = "dim", value_name = "DIM=NAME", value_parser = values::pair)]
    rename_dim: Vec<(String, String)>,
    /// Name axes as torch.onnx.export does: `{"x": {"0": "batch"}}`, or `{"x": [0]}` for
    /// `x_dynamic_axes_1`
    #[arg(long, value_name = "JSON")]
    dynamic_axes: Option<DynamicAxes>,
    /// Make a dynamic dimension static: `batch=1`, `s77=1`, `x.0=1`; can be given several times
    #[arg(long, alias = "fix", value_name = "DIM=N", value_parser = values::size)]
    fix_dim: Vec<(String, i64)>,
    /// Sizes of all dimensions of an input: `x=1,3,h,?`. A name names the dimension, `?` leaves it
    /// as it is; can be given several times
    #[arg(long, value_name = "INPUT=SIZES", value_parser = values::shape)]
    input_shape: Vec<(String, String)>,
}

impl Names {
    /// Puts the flags that are given into the options.
    pub fn put(self, options: &mut Options) {
        let Self {
            input_names,
            output_names,
            kv_names,
            rename,
            rename_dim,
            dynamic_axes,
            fix_dim,
            input_shape,
        } = self;
        set(&mut options.input_names, input_names);
        set(&mut options.output_names, output_names);
        set_some(&mut options.kv_names, kv_names);
        set_list(&mut options.rename, rename);
        set_list(&mut options.rename_dim, rename_dim);
        set(&mut options.dynamic_axes, dynamic_axes);
        set_list(&mut options.fix_dim, fix_dim);
        set_list(&mut options.input_shape, input_shape);
    }
}
