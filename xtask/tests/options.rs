//! docs/adding-an-option.md, tried literally: one field gives the flag, the key in files, the
//! setter, the row of the documentation and the keyword of Python.

use clap::Command;
use pt2onnx::Bytes;
use serde_json::json;
use xtask::options::{Described, python, tables};

pt2onnx::declare_options! {
    /// Options with one more.
    pub struct Extended, setters tool_setters;

    "Weights" for [Convert, Optimize] {
        /// Compress blocks of this size.
        ///
        /// A second paragraph, for the documentation of the library.
        #[alias = "chunk"]
        pub block_bytes: Bytes = 4096, value_name = "BYTES";
    }
}

/// Holds the options.
#[derive(Default)]
pub struct Tool {
    options: Extended,
}

impl Tool {
    tool_setters!();
}

#[test]
fn one_field_is_an_option() {
    assert_eq!(Extended::default().block_bytes, 4096);
    assert_eq!(Tool::default().block_bytes(7).options.block_bytes, 7);
    for key in ["block-bytes", "chunk"] {
        let read: Extended = serde_json::from_value(json!({ key: "64KiB" })).unwrap();
        assert_eq!(read.block_bytes, 65536);
    }
    assert!(serde_json::from_value::<Extended>(json!({ "blocks": 1 })).is_err());

    let defaults = serde_json::to_value(Extended::default()).unwrap();
    assert_eq!(defaults, json!({ "block-bytes": 4096 }));
    let [option] = Extended::META else { unreachable!() };
    let mut command = Command::new("tool").arg(option.arg(&defaults));
    let help = command.render_help().to_string();
    let lines =
        "Weights:\n      --block-bytes <BYTES>  Compress blocks of this size [default: 4096]";
    assert!(help.contains(lines), "{help}");
    for (text, expected) in
        [("--block-bytes=2kB", Some(2000)), ("--chunk=5", Some(5)), ("--chunk=x", None)]
    {
        let matches = command.try_get_matches_from_mut(["tool", text]);
        let value = matches.ok().map(|matches| {
            let mut read = Extended::default();
            let text: &String = matches.get_one("block-bytes").unwrap();
            (option.read)(&[text]).unwrap()(&mut read);
            read.block_bytes
        });
        assert_eq!(value, expected, "{text}");
    }

    let described: Vec<Described> =
        vec![serde_json::from_value(option.to_json(&defaults)).unwrap()];
    let row = "| `block-bytes BYTES` | 4096 | Compress blocks of this size | convert, optimize |\n";
    assert!(tables(&described).ends_with(row), "{}", tables(&described));
    let keyword = "class RewriteOptions(TypedDict, total=False):\n    \
        \"\"\"Options that ``export`` and ``optimize`` share.\"\"\"\n\n    \
        block_bytes: int | str | None\n    \
        \"\"\"Compress blocks of this size. Default: 4096.\"\"\"\n";
    assert!(python(&described).contains(keyword), "{}", python(&described));
}
