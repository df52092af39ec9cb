//! TorchScript files of any size, without weights.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use super::Archive;

/// The code of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Script {
    /// Lines that call an operator, as in a trace.
    Trace,
    /// Branches on data in a loop, eight within each other.
    Branches,
}

/// How many branches are within each other.
const NEST: usize = 8;

impl Script {
    /// The lines of `forward` with `count` calls or branches, between `y = x` and `return y`.
    fn lines(self, count: usize) -> String {
        let mut lines = String::new();
        let line = |lines: &mut String, depth: usize, text: &str| {
            let _ = writeln!(lines, "{:1$}{text}", "", 2 * depth + 4);
        };
        match self {
            Self::Trace => (0..count).for_each(|_| line(&mut lines, 0, "y = torch.relu(y)")),
            Self::Branches => {
                line(&mut lines, 0, "for i in range(2):");
                for _ in 0..count.div_ceil(NEST) {
                    for depth in 1..=NEST {
                        line(&mut lines, depth, "if bool(torch.gt(torch.sum(y), i)):");
                        line(&mut lines, depth + 1, "y = torch.relu(y)");
                    }
                    for depth in (1..=NEST).rev() {
                        line(&mut lines, depth, "else:");
                        line(&mut lines, depth + 1, "y = torch.neg(y)");
                    }
                }
            }
        }
        lines
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(self, count: usize, path: &Path) -> Result<()> {
        let code = format!(
            "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  \
             def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    y = x\n{}    return y\n",
            self.lines(count)
        );
        let mut archive = Archive::create(path)?;
        for (name, content) in [
            ("data.pkl", b"\x80\x02c__torch__\nM\n)\x81}b.".as_slice()),
            ("constants.pkl", b"\x80\x02)."),
            ("code/__torch__.py", code.as_bytes()),
            ("version", b"10\n"),
        ] {
            archive.record(name, content)?;
        }
        archive.finish()
    }
}
