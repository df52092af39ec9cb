//! Runs the cases in older opsets: all cases of `first`, and a part of the others.
//!
//! The others may need a newer opset, or kernels that ONNX Runtime lacks, but must not go wrong.
//! `known-failures.txt` may name a case at an opset: `case, opset 11: reason`.

use super::{case::Case, run, verdict};
use libtest_mimic::Trial;
use pt2onnx::{Error, Target};
use std::{collections::BTreeMap, sync::Arc};

const OPSETS: [u32; 5] = [9, 11, 13, 15, 17];

pub fn trials(cases: &[Arc<Case>], known: &BTreeMap<String, String>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let sound = cases.iter().filter(|c| !known.contains_key(&c.name) && c.refused.is_none());
    for case in sound {
        let first = case.name.starts_with("first/");
        let place = place(&case.name);
        for (k, opset) in (0..).zip(OPSETS) {
            let name = format!("{}, opset {opset}", case.name);
            let reason = known.get(&name).cloned();
            if first || place % 240 == 48 * k || reason.is_some() {
                let case = Arc::clone(case);
                trials.push(Trial::test(name, move || {
                    verdict(check(&case, opset, first && opset > 9), reason)
                }));
            }
        }
    }
    trials
}

/// A number that the name gives (FNV-1a): a new case does not change which of the others are in the
/// sample.
fn place(name: &str) -> u32 {
    let start = 0x811c_9dc5_u32;
    name.bytes().fold(start, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `expressible`: that a newer opset is needed, or another kernel, is a failure, too.
fn check(case: &Case, opset: u32, expressible: bool) -> Result<(), String> {
    let exporter = case.exporter(opset).target(Target::OrtCpu);
    let program = match exporter.export(case.archive.path()) {
        Err(Error::Legalise(_) | Error::Domain(_)) if !expressible => return Ok(()),
        result => result.map_err(|e| format!("convert: {e}"))?,
    };
    match run(case, program) {
        Err(e) if !expressible && e.contains("Could not find an implementation") => Ok(()),
        result => result,
    }
}
