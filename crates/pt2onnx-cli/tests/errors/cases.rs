//! What provokes the errors of docs/errors.md: an archive and a command line.

use crate::{
    common::{edited, mlp, zip},
    inputs::*,
};

/// A run that fails.
pub struct Case {
    /// The bytes of `MODEL`; without any there is no such file.
    pub archive: fn() -> Option<Vec<u8>>,
    /// Arguments; `MODEL`, `OUT` and `FOLDER` stand for paths in a folder that has nothing else but
    /// a file called `file`, `HERE` for the folder of these cases.
    pub args: &'static str,
}

const fn case(archive: fn() -> Option<Vec<u8>>, args: &'static str) -> Case {
    Case { archive, args }
}

/// The plain conversion.
pub const CONVERT: &str = "MODEL -o OUT";

pub const CASES: &[Case] = &[
    // TorchScript.
    case(|| Some(zip([("m/model.json", &b"{}"[..])])), CONVERT),
    case(|| script("    return (\n"), CONVERT),
    case(|| script("    return torch.relu(x)\n"), CONVERT),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --input x=3"),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --input y=3"),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --method encode"),
    case(
        || script("    ops.prim.RaiseException(\"too small\")\n    return x\n"),
        "MODEL -o OUT --input x=float32[n]",
    ),
    case(|| script("    return torch.nothing(x)\n"), "MODEL -o OUT --input x=float32[n]"),
    case(
        || {
            script(
                "    if torch.gt(torch.size(x, 0), 1):\n      y = torch.relu(x)\n    else:\n      y = torch.sum(x)\n    return y\n",
            )
        },
        "MODEL -o OUT --input x=float32[n]",
    ),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --input x=float32[-3]"),
    case(
        || script("    return torch.relu(x)\n"),
        "MODEL -o OUT --input x=float32[99999999999999999999]",
    ),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --input x=float32[n>=x]"),
    case(
        || script("    return torch.relu(x)\n"),
        "MODEL -o OUT --input x=float32[9223372036854775807,8]",
    ),
    case(good, "MODEL -o OUT --input x=none"),
    case(relu, "MODEL -o OUT --input x=float99[1]"),
    case(relu, "MODEL -o OUT --input x=float32[batch,3"),
    case(relu, "MODEL -o OUT --input x="),
    case(relu, "MODEL -o OUT --input x=1e999"),
    case(relu, "MODEL -o OUT --input x.0=float32[1]"),
    case(relu, "MODEL -o OUT --input x=3 --input x=4"),
    case(relu, "MODEL -o OUT --input x=float32[2] --input 0=float32[2]"),
    case(
        || {
            script(
                "    n = torch.size(x, 0)\n    for i in range(3000):\n      n = torch.add(torch.mul(n, n), i)\n    return torch.add(x, n)\n",
            )
        },
        "MODEL -o OUT --input x=float32[n,m]",
    ),
    case(
        || script("    return torch.expand(x, [1000000000, 1000000000])\n"),
        "MODEL -o OUT --input x=float32[1,1]",
    ),
    // Options that would be ignored.
    case(good, "MODEL -o OUT --allow-external-paths"),
    case(good, "MODEL -o OUT --aten-nodes"),
    case(good, "MODEL -o OUT --fix-dim s18=1 --rename-dim s18=batch"),
    case(good, "MODEL -o OUT --rename-dim s18=1"),
    case(good, "MODEL -o OUT --metadata-prop a=b --metadata-prop a=c"),
    case(good, "MODEL -o OUT --input-names from-tree,x"),
    case(good, "MODEL -o OUT --compress-exclude x"),
    case(good, "MODEL -o OUT --precision float16 --min-elements 1"),
    case(good, "MODEL -o OUT --precision float16 --quantize dynamic-int8"),
    case(small, "optimize MODEL -o OUT --connect a=b"),
    case(small, "show MODEL --input x=1"),
    case(product, "run MODEL --fix-dim N=2 --fix-dim N=3"),
    case(good, "MODEL -o OUT --shard-size 0"),
    case(good, "MODEL -o OUT --min-elements -1"),
    case(good, "MODEL -o OUT --accuracy-level x"),
    case(good, "MODEL -o OUT --rules HERE/run/huge.npy"),
    case(good, "MODEL -o OUT --options HERE/options/word.toml"),
    case(good, "MODEL -o OUT --options HERE/options/count.toml"),
    // Usage.
    case(none, "-o OUT"),
    case(good, "MODEL -o OUT --nonsense"),
    case(good, "MODEL -o OUT --opset 5000"),
    case(good, "MODEL -o OUT --opset=latest"),
    case(good, "MODEL -o OUT --opset"),
    case(good, "MODEL -o OUT --dynamic_axes [1]"),
    case(good, "MODEL -o OUT --wieghts none"),
    case(good, "MODEL -o OUT --fp16"),
    case(good, "MODEL -o OUT --json"),
    case(good, "MODEL -o OUT -o OUT"),
    case(good, "inspct MODEL"),
    case(good, "version"),
    case(good, "convert"),
    case(good, "check MODEL -o OUT"),
    case(good, "check MODEL MODEL --report FOLDER/r/"),
    case(good, "inspect FOLDER"),
    case(good, "verify MODEL --inputs FOLDER/none --seed 1"),
    case(good, "MODEL -o OUT --ir-version 2"),
    case(good, "MODEL -o OUT --op-functions HERE/newer.onnxtxt --ir-version 7"),
    case(good, "MODEL -o OUT --weights nowhere"),
    case(good, "MODEL -o OUT --metadata-prop author"),
    case(good, "MODEL -o OUT --rename a"),
    case(good, "MODEL -o OUT --fix-dim s18=x"),
    case(good, "MODEL -o OUT --seed x"),
    case(good, "run MODEL --seed -1"),
    case(good, "MODEL -o OUT --weights external --weights-file="),
    case(good, "MODEL -o OUT --program="),
    case(good, "MODEL -o OUT --fix-dim s18=4611686018427387904"),
    case(good, "MODEL -o OUT --input-shape tensor_x=99999999999999999999,8"),
    case(good, "MODEL -o OUT --input-shape tensor_x=1.5,8"),
    case(good, "MODEL -o OUT --op-functions MODEL"),
    case(good, "show FOLDER"),
    case(good, "diff FOLDER MODEL"),
    case(|| Some(Vec::new()), "optimize MODEL -o OUT"),
    case(|| Some(Vec::new()), "show MODEL"),
    case(good, "MODEL -o OUT --model-version x"),
    case(good, "MODEL -o OUT --custom-opset a=b"),
    case(good, "MODEL -o OUT --report r.txt"),
    case(good, "diff a.onnx b.onnx --html r.txt"),
    case(good, "MODEL -o OUT --dynamic-axes [1]"),
    case(good, "MODEL -o OUT --optimize 3"),
    case(good, "MODEL -o OUT --kv-names past,present"),
    case(good, "MODEL -o OUT --all"),
    case(good, "MODEL -o OUT --program other"),
    case(good, "show --types MODEL"),
    case(hollow, "show --raw MODEL"),
    case(|| script("    return torch.relu(x)\n"), "MODEL -o OUT --program other"),
    case(good, "MODEL -o OUT --rules FOLDER/missing"),
    case(good, "MODEL -o OUT --rules HERE/newer.onnxtxt"),
    case(good, "MODEL -o OUT --rules HERE/alone.onnxtxt"),
    case(good, "MODEL -o OUT --skip-pass x"),
    case(good, "MODEL -o OUT --shard-size 1XB"),
    case(good, "MODEL -o OUT --alignment 100"),
    case(good, "MODEL -o OUT --weights link --weights-file w"),
    case(good, "check MODEL --jobs 0"),
    case(good, "MODEL -o MODEL"),
    case(good, "MODEL -o FOLDER/x --weights-file m.pt2"),
    case(good, "MODEL -o FOLDER/r.md --report FOLDER/r.md"),
    case(good, "MODEL -o - --weights external"),
    case(good, "MODEL -o OUT --report OUT.md --report OUT.md"),
    // Files of options.
    case(good, "MODEL -o OUT --options FOLDER/none.toml"),
    case(good, "MODEL -o OUT --options HERE/options/syntax.toml"),
    case(good, "MODEL -o OUT --options HERE/options/unknown.toml"),
    case(good, "MODEL -o OUT --options HERE/options/type.toml"),
    case(good, "MODEL -o OUT --options HERE/options/nested.toml"),
    case(good, "MODEL -o OUT --options HERE/options/range.toml"),
    case(good, "MODEL -o OUT --options HERE/options/pass.toml"),
    case(good, "MODEL -o OUT --options HERE/options/version.toml"),
    case(good, "MODEL -o OUT --options HERE/options/alignment.toml"),
    case(good, "MODEL -o OUT --options HERE/options/target.toml --opset 26"),
    case(good, "MODEL -o OUT --options HERE/options/functions.toml"),
    case(good, "MODEL -o OUT --options HERE/options/rules.toml"),
    case(good, "MODEL -o OUT --options HERE/options/no-rules.toml"),
    case(good, "MODEL -o OUT --module-functions all --opset 14"),
    case(good, "MODEL -o OUT --quantize static-int8"),
    case(good, "MODEL -o OUT --calibration-data FOLDER/none.npz"),
    case(good, "MODEL -o OUT --calibration-method entropy"),
    case(small, "optimize MODEL -o OUT --quantize static-int8 --calibration-data FOLDER/none.npz"),
    case(small, "optimize MODEL -o OUT --opset 26 --target tract"),
    case(
        small,
        "optimize MODEL -o OUT --quantize static-int8 --calibration-data HERE/run/other.npz",
    ),
    case(small, "optimize MODEL -o OUT --input-shape z=1"),
    case(small, "optimize MODEL -o OUT --input-shape x=1,2,3"),
    case(small, "optimize MODEL -o OUT --input-shape x"),
    case(good, "MODEL -o OUT --quantize int8 --block-size 33"),
    case(good, "MODEL -o OUT --quantize int4 --target ort --accuracy-level 5"),
    case(good, "MODEL -o OUT --block-size 32"),
    case(good, "MODEL -o OUT --quantize int8 --weights none"),
    case(good, "MODEL -o OUT --quantize int8 --compress-include nothing"),
    case(good, "MODEL -o OUT --quantize int8 --compress-include Sigmoid"),
    case(
        good,
        "MODEL -o OUT --quantize int8 --compress-include fc0.weight --compress-exclude fc0.*",
    ),
    case(good, "MODEL -o OUT --quantize int4 --min-elements 1"),
    case(hollow, "optimize MODEL -o OUT --quantize int8 --min-elements 1"),
    case(good, "MODEL -o OUT --options HERE/options/functions-of.toml"),
    // Names and dimensions.
    case(good, "MODEL -o OUT --input-names 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"),
    case(good, "MODEL -o OUT --input-names a,a"),
    case(good, "MODEL -o OUT --input-names a --rename tensor_x=b"),
    case(good, "MODEL -o OUT --output-names tensor_x"),
    case(good, "MODEL -o OUT --rename nope=x"),
    case(good, "MODEL -o OUT --input-names a,,c"),
    case(good, "MODEL -o OUT --module-functions Linear,Conv"),
    case(|| json(r#""fqn": """#, r#""fqn": "x""#), "MODEL -o OUT --output-names from-tree"),
    case(good, "MODEL -o OUT --rename-dim s77=n"),
    case(good, "MODEL -o OUT --rename-dim x.0=n"),
    case(good, "MODEL -o OUT --dynamic-axes {\"y\":[0]}"),
    case(good, "MODEL -o OUT --rename-dim tensor_x.2=n"),
    case(good, "MODEL -o OUT --rename-dim tensor_x.1=n"),
    case(|| given("dynamic.pt2"), "MODEL -o OUT --rename-dim x.1=n"),
    case(|| given("dynamic.pt2"), "MODEL -o OUT --rename-dim s17=s77"),
    case(
        || changed("dynamic.pt2", &[(r#""s17": {"min_val": 0"#, r#""s17": {"min_val": 65"#)]),
        "MODEL -o OUT --rename-dim s17=n --rename-dim s77=n",
    ),
    case(good, "MODEL -o OUT --rename-dim s18=?"),
    case(good, "MODEL -o OUT --rename-dim s18=a --rename-dim tensor_x.0=b"),
    case(good, "MODEL -o OUT --fix-dim s18=-1"),
    case(good, "MODEL -o OUT --custom-opset ai.onnx=20"),
    case(good, "MODEL -o OUT --opset 18 --op-functions HERE/newer.onnxtxt"),
    case(good, "MODEL -o OUT --inline --op-functions HERE/circle.onnxtxt"),
    case(good, "MODEL -o OUT --op-functions FOLDER/missing"),
    case(good, "MODEL -o OUT --opset 26 --target tensorrt"),
    case(|| given("data_dependent.pt2"), "MODEL -o OUT --target tensorrt"),
    // Archives.
    case(none, CONVERT),
    case(|| Some(Vec::new()), CONVERT),
    case(|| Some(b"some text that is no archive".to_vec()), CONVERT),
    case(|| Some(b"\0\xff\0\xff".to_vec()), CONVERT),
    case(|| Some(b"GGUF\x03\0\0\0".to_vec()), CONVERT),
    case(|| Some(b"\x89HDF\r\n\x1a\n".to_vec()), CONVERT),
    case(|| Some(b"\x1c\0\0\0TFL3".to_vec()), CONVERT),
    case(|| Some(b"\x2c\0\0\0PTMF".to_vec()), CONVERT),
    case(|| Some(b"\x93NUMPY\x01\0".to_vec()), CONVERT),
    case(|| Some(b"\x1f\x8b\x08\0".to_vec()), CONVERT),
    case(|| Some(b"version https://git-lfs.github.com/spec/v1\n".to_vec()), CONVERT),
    case(|| Some(b"<!DOCTYPE html>".to_vec()), CONVERT),
    case(|| Some(b"{\"graph_module\": {}}".to_vec()), CONVERT),
    case(|| Some(b"\x08\x0a\x12\x07pytorch".to_vec()), CONVERT),
    case(|| Some([&8u64.to_le_bytes()[..], b"{\"a\":{}}"].concat()), CONVERT),
    case(|| Some(b"\x80\x02}q\x00.".to_vec()), CONVERT),
    case(|| zipped(&[("m/data.pkl", b"."), ("m/version", b"3")]), CONVERT),
    case(|| zipped(&[("m/data/aotinductor/model/x.so", b"x")]), CONVERT),
    case(|| zipped(&[("hello.txt", b"hello")]), CONVERT),
    case(|| record("archive_format", |_| b"pt3".to_vec()), CONVERT),
    case(|| record("byteorder", |_| b"big".to_vec()), CONVERT),
    case(|| good().map(|b| b[..b.len() - 30].to_vec()), CONVERT),
    case(|| record("data/weights/weight_0", |b| b[..40].to_vec()), CONVERT),
    // The name in the zip's headers, not in the table of weights.
    case(
        || {
            let mut bytes = good()?;
            let name = b"data/weights/weight_0";
            for at in 0..bytes.len() - name.len() {
                if bytes[at..].starts_with(name) {
                    bytes[at + name.len() - 1] = b'x';
                }
            }
            Some(bytes)
        },
        CONVERT,
    ),
    case(|| given("two_models.pt2"), CONVERT),
    case(|| record("models/model.json", |b| b[..b.len() / 2].to_vec()), CONVERT),
    case(|| record("models/model.json", without_arguments), CONVERT),
    case(|| json(r#""schema_version": {"major": 8"#, r#""schema_version": {"major": 9"#), CONVERT),
    case(
        || {
            Some(edited(&mlp(), |name, bytes| {
                if name.ends_with("_config.json") {
                    String::from_utf8(bytes).unwrap().replace("fc0.weight", "fc9.weight").into()
                } else {
                    bytes
                }
            }))
        },
        CONVERT,
    ),
    case(
        || {
            Some(edited(&mlp(), |name, bytes| {
                if name.ends_with("_config.json") {
                    String::from_utf8(bytes)
                        .unwrap()
                        .replace("\"use_pickle\": false", "\"use_pickle\": true")
                        .into()
                } else {
                    bytes
                }
            }))
        },
        CONVERT,
    ),
    case(
        || {
            let huge = r#""sizes": [{"as_int": 1099511627776}, {"as_int": 8}]"#;
            Some(edited(&mlp(), |name, bytes| {
                if name.ends_with("weights_config.json") {
                    String::from_utf8(bytes)
                        .unwrap()
                        .replace(r#""sizes": [{"as_int": 8}, {"as_int": 8}]"#, huge)
                        .replace(r#""strides": [{"as_int": 8}"#, r#""strides": [{"as_int": 0}"#)
                        .into()
                } else {
                    bytes
                }
            }))
        },
        CONVERT,
    ),
    case(
        || {
            json(
                r#""sizes": [{"as_int": 8}, {"as_int": 8}]"#,
                r#""sizes": [{"as_int": 9223372036854775807}, {"as_int": 8}]"#,
            )
        },
        CONVERT,
    ),
    case(|| json(r#""dtype": 7"#, r#""dtype": 99"#), CONVERT),
    case(|| json(r#""range_constraints": {"s18""#, r#""range_constraints": {"s18 +""#), CONVERT),
    // ONNX models.
    case(none, "run MODEL"),
    case(good, "run MODEL --ort FOLDER/none"),
    case(product, "run MODEL --inputs FOLDER/file"),
    case(product, "run MODEL --inputs FOLDER/none"),
    case(product, "run MODEL --inputs HERE/run/other.npz"),
    case(product, "run MODEL --inputs HERE/run/wide.npz"),
    case(product, "run MODEL --inputs HERE/run/objects.npz"),
    case(product, "run MODEL --inputs HERE/run/cut.npz"),
    case(product, "run MODEL --inputs HERE/run/huge.npy"),
    case(product, "run MODEL --inputs HERE/run/bomb.npz"),
    case(apart, "optimize MODEL -o OUT"),
    case(nested, "show MODEL"),
    case(not_finite, "optimize MODEL -o OUT --quantize int8 --min-elements 1"),
    case(product, "run MODEL --archive HERE/../../../../testdata/models/mlp.pt2"),
    case(product, "run MODEL --fix-dim M=3"),
    case(good, "run MODEL"),
    case(product, "run FOLDER"),
    case(|| Some(b"hello".to_vec()), "run MODEL"),
    case(|| Some(b"{\"a\": 1}".to_vec()), "show MODEL"),
    case(product, "run MODEL --fix-dim N=-3"),
    case(product, "run MODEL --fix-dim N=99999999999999999"),
    case(product, "run MODEL -o OUT"),
    case(product, "verify MODEL --each"),
    case(product, "verify MODEL --rtol -1"),
    case(product, "verify MODEL --outputs FOLDER/file"),
    case(none, "show MODEL"),
    case(good, "optimize MODEL -o OUT"),
    case(|| Some(b"\x08\x0a".to_vec()), "show MODEL"),
    case(|| Some(b"\0\xff\0\xff".to_vec()), "show MODEL"),
    case(none, "optimize MODEL -o OUT"),
    case(
        || {
            onnx(
                r#"<ir_version: 9, opset_import: ["" : 20]>
                g (float x) => (float y) { y = Relu <alpha = 1.0> (x) }"#,
            )
        },
        "optimize MODEL -o OUT",
    ),
    case(old_softmax, "optimize MODEL -o OUT --opset 20"),
    case(old_softmax, "optimize MODEL -o OUT --opset 6"),
    case(
        || {
            onnx(
                r#"<ir_version: 13, opset_import: ["" : 99]>
                g (float[2] x) => (float[2] y) { y = Relu (x) }"#,
            )
        },
        "optimize MODEL -o OUT --opset 20",
    ),
    case(
        || {
            onnx(
                r#"<ir_version: 9, opset_import: ["" : 20, "my" : 1]>
                g (float[2] x) => (float[2] y) { y = my.same (x) }
                <domain: "my", opset_import: ["" : 20]> same (x) => (y) { y = Relu (x) }"#,
            )
        },
        "optimize MODEL -o OUT --opset 18",
    ),
    case(parts, "optimize MODEL -o OUT --extract x:none"),
    case(parts, "optimize MODEL -o OUT --extract w:y"),
    case(parts, "optimize MODEL -o OUT --extract a:y"),
    case(parts, "optimize MODEL -o OUT --extract x:c"),
    case(parts, "optimize MODEL -o OUT --extract x"),
    case(parts, "optimize --merge MODEL -o OUT"),
    case(small, "optimize --merge MODEL:MODEL -o OUT --connect n=x"),
    case(small, "optimize --merge MODEL:MODEL -o OUT --connect y=n"),
    case(small, "optimize --merge MODEL:MODEL -o OUT --connect y=x --connect y=x"),
    case(small, "optimize --merge MODEL:MODEL -o OUT"),
    case(small, "optimize --merge MODEL:MODEL -o OUT --connect y=i"),
    case(parts, "optimize MODEL -o OUT --extract x,x:y"),
    // Weights.
    case(
        || {
            onnx(
                r#"<ir_version: 9, opset_import: ["" : 20]>
                g (float[2] x) => (float[2] y) { y = Relu (x) }"#,
            )
        },
        "apply-weights MODEL --weights HERE/weights/bias.safetensors",
    ),
    case(hollow, "apply-weights MODEL --weights FOLDER/none"),
    case(hollow, "apply-weights MODEL --weights FOLDER/file"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/six_bits.safetensors"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/none.index.json"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/outside.index.json"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/elsewhere.index.json"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/twice"),
    case(hollow, "apply-weights MODEL --weights FOLDER"),
    case(hollow, "apply-weights MODEL --weights HERE/weights/other.safetensors"),
    case(|| converted(&[]), "apply-weights MODEL --weights HERE/weights/bias.safetensors"),
    // Programs.
    case(|| json("torch.ops.aten.sigmoid.default", "torch.ops.aten.sigmoidd.default"), CONVERT),
    case(|| json("torch.ops.aten.sigmoid.default", "torch.ops.mylib.foo.default"), CONVERT),
    case(|| given("writes_repeated.pt2"), CONVERT),
    case(|| given("writes_buffer.pt2"), "MODEL -o OUT --mutations error"),
    case(|| given("batch_norm.pt2"), "MODEL -o OUT --training error"),
    case(|| script("    return torch.erf(x)\n"), "MODEL -o OUT --input x=float32[3] --opset 8"),
    case(|| bit_cast("5"), CONVERT),
    case(
        || {
            let other = |value| format!(r#"{{"name": "other", "arg": {{{value}}}, "kind": 1}}"#);
            let (from, to) = (other(r#""as_int": 2"#), other(r#""as_string": "x""#));
            changed("writes_buffer.pt2", &[(&from, &to)])
        },
        CONVERT,
    ),
    case(|| given("writes_buffer.pt2"), "MODEL -o OUT --warnings-as-errors"),
    case(|| given("fake_weights.pt2"), "MODEL -o OUT --weights external"),
    case(none, "explain mylib::nothing"),
    case(none, "explain aten::add.nothing"),
    case(none, "explain torch.nn.functional.relu"),
    case(none, "explain nothing"),
    case(counter, "MODEL -o OUT --input x=float32[2] --mutations error"),
    // What is written where.
    case(good, "MODEL"),
    case(good, "MODEL OUT"),
    case(good, "OUT"),
    case(good, "MODEL MODEL"),
    case(good, "convert MODEL -o OUT"),
    case(good, "MODEL MODEL -o OUT"),
    case(good, "MODEL MODEL -o FOLDER"),
    case(good, "MODEL -o OUT --report FOLDER/file/r/"),
    case(good, "MODEL -o FOLDER --weights-file w.bin"),
    case(good, "MODEL -o FOLDER/file/models/"),
    case(good, "FOLDER/*.pth -o OUT"),
    case(good, "FOLDER/[ -o OUT"),
    case(good, "FOLDER -o OUT"),
    case(good, "FOLDER"),
    // Outputs.
    case(good, "MODEL -o FOLDER/none/m.onnx"),
    case(
        || {
            onnx(
                r#"<ir_version: 9, opset_import: ["" : 20]>
                g (float x) => (float y) { y = Relu (x) }"#,
            )
        },
        "optimize MODEL -o FOLDER",
    ),
    case(good, "MODEL -o FOLDER/none/.."),
    case(good, "MODEL -o /dev/full"),
    case(good, "MODEL -o OUT --weights-file a/b"),
    case(good, "MODEL -o HERE/m.onnx --weights link --external-threshold 0"),
    case(good, "MODEL -o OUT --report FOLDER/none/r.md"),
];
