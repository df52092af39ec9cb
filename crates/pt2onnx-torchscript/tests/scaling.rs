//! The cost of programs of twice the size: steps and nodes are counted, not time.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

mod common;

use common::{archive, flat};
use pt2onnx_torchscript::Policy;

/// The steps that a method with these lines takes.
fn steps(lines: &[String]) -> u64 {
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    let body =
        format!("  def forward(self, x: Tensor) -> Tensor:\n    y = x\n{lines}    return y\n");
    flat(&archive(&body).unwrap(), "x=float32[n,4]", Policy::default()).unwrap().steps
}

/// A program of twice the size takes at most this many times the steps.
const FACTOR: f64 = 2.2;

fn is_linear(program: impl Fn(usize) -> Vec<String>, size: usize) {
    let (once, twice) = (steps(&program(size)), steps(&program(2 * size)));
    let factor = twice as f64 / once as f64;
    assert!(factor < FACTOR, "{once} steps became {twice}");
}

#[test]
fn traces_take_linear_time() {
    is_linear(|size| vec!["y = torch.relu(y)".to_owned(); size], 2000);
    is_linear(|size| vec!["y = torch.add_(torch.relu(y), 1)".to_owned(); size], 1000);
}

#[test]
fn nested_branches_in_loops_take_linear_time() {
    let nested = |depth: usize| {
        let mut lines = vec![
            "z = torch.relu(x)".to_owned(),
            "c = bool(torch.gt(torch.sum(x), 0))".to_owned(),
            "for i in range(2):".to_owned(),
        ];
        for at in 1..=depth {
            lines.push(format!("{}if c:", "  ".repeat(at)));
            lines.push(format!("{}_0 = torch.add_(z, {at})", "  ".repeat(at + 1)));
        }
        lines.push(format!("{}y = torch.relu(y)", "  ".repeat(depth + 1)));
        for at in (1..=depth).rev() {
            lines.push(format!("{}else:", "  ".repeat(at)));
            lines.push(format!("{}y = torch.neg(y)", "  ".repeat(at + 1)));
        }
        lines
    };
    is_linear(nested, 40);
}

#[test]
fn branches_in_loops_take_linear_time() {
    let program = |count: usize| {
        let text = format!(
            "a = torch.mul([0], 1000)\nb = [1]\nfor i in range({count}):\n  \
            c = bool(torch.gt(torch.sum(y), i))\n  if c:\n    y = torch.relu(y)\n    \
            _0 = torch._set_item(b, 0, 2)\n  else:\n    y = torch.neg(y)\n    _1 = torch.add_(y, 1)"
        );
        text.lines().map(str::to_owned).collect()
    };
    is_linear(program, 100);
}

#[test]
fn loops_on_data_take_linear_time() {
    let program = |count: usize| {
        let text = format!(
            "a = torch.mul([0], 1000)\nfor i in range({count}):\n  \
            go = bool(torch.gt(torch.sum(y), 0))\n  while go:\n    y = torch.sub(y, 1)\n    \
            if bool(torch.gt(torch.sum(y), i)):\n      y = torch.relu(y)\n    else:\n      pass\n    \
            go = bool(torch.gt(torch.sum(y), 0))"
        );
        text.lines().map(str::to_owned).collect()
    };
    is_linear(program, 50);
}
