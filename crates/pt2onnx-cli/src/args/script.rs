//! Defines the flags that tell what an archive leaves open.

use super::{
    choices,
    merge::{set, set_list, set_some},
    values,
};
use clap::{Args, builder::NonEmptyStringValueParser};
use pt2onnx::DefaultDtype;

/// What an archive leaves open.
#[derive(Debug, Args)]
pub struct Script {
    /// TorchScript: the type or value of an input, by name, position or path:
    /// `x=float32[batch,3,224,224]`, `1=16000`, `images.0=none`; can be given several times
    /// [default: those of the trace]
    #[arg(long, value_name = "NAME=TYPE", value_parser = values::key_value, help_heading = "Input and output")]
    input: Vec<(String, String)>,
    /// TorchScript: the method to convert
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Input and output")]
    method: Option<String>,
    /// TorchScript: the type of floats that have no other: `torch.get_default_dtype()`
    #[arg(long, value_parser = choices::default_dtype(), value_name = "TYPE", help_heading = "Input and output")]
    default_dtype: Option<DefaultDtype>,
    /// The program to convert, of an archive that has several [default: the only one, or `model`]
    #[arg(long, alias = "model", value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Input and output")]
    program: Option<String>,
}

impl Script {
    /// One of the flags that is given.
    pub fn given(&self) -> Option<&'static str> {
        let Self { input, method, default_dtype, program } = self;
        let flags = [
            ("--input", !input.is_empty()),
            ("--method", method.is_some()),
            ("--default-dtype", default_dtype.is_some()),
            ("--program", program.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// Puts the flags that are given into the options.
    pub fn put(self, to: &mut pt2onnx::Options) {
        set_list(&mut to.input, self.input);
        set(&mut to.method, self.method);
        set(&mut to.default_dtype, self.default_dtype);
        set_some(&mut to.program, self.program);
    }
}
