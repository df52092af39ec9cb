//! Normalisation in training mode and observers of quantisation, which update running statistics.

use super::{memory::Writer, pass::Pass, variants::Statistics};
use crate::{
    error::{PassProblem, Result},
    graph::{Argument, Name, Node, OpName, TensorMeta},
    passes::problem::problem,
    strides,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// Parameters of the functional variants of batch normalisation.
const BATCH_NORM: &[&str] =
    &["input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"];

impl Pass<'_> {
    /// Replaces an operator by operators that return the new running statistics.
    pub(super) fn statistics(&mut self, node: Node, kind: Statistics) -> Result<()> {
        match kind {
            Statistics::Batch => self.batch_norm(node),
            Statistics::Instance => self.instance_norm(node),
            Statistics::Observer => self.observer(node),
        }
    }

    /// `_native_batch_norm_legit_functional` returns the normalised input, the mean and inverse
    /// deviation of the batch, and the new running mean and variance.
    /// `_batch_norm_with_update_functional` has a reserve before the last two.
    fn batch_norm(&mut self, mut node: Node) -> Result<()> {
        let (variant, results) = if node.target.is_aten("_batch_norm_with_update") {
            ("_batch_norm_with_update_functional", 4)
        } else {
            ("_native_batch_norm_legit_functional", 3)
        };
        if node.outputs.len() > results {
            return Err(problem(&node, PassProblem::NoVariant));
        }
        let mean = self.meta_of(&node, "running_mean")?;
        let absent = ["out", "save_mean", "save_invstd"].iter().skip(node.outputs.len());
        let absent = absent.map(|hint| (*hint, mean.clone())).collect();
        node.args.retain(|arg| BATCH_NORM.contains(&&*arg.name));
        self.returning(node, variant, absent, &["running_mean", "running_var"])
    }

    /// `_fused_moving_avg_obs_fq_helper_functional` returns the quantised input, which of its
    /// elements are in range, and the new statistics.
    fn observer(&mut self, node: Node) -> Result<()> {
        let mask = TensorMeta { dtype: DType::Bool, ..self.meta_of(&node, "self")? };
        let absent =
            [("mask", mask)].into_iter().skip(node.outputs.len().saturating_sub(1)).collect();
        let written = ["running_min", "running_max", "scale", "zero_point"];
        self.returning(node, "_fused_moving_avg_obs_fq_helper_functional", absent, &written)
    }

    fn meta_of(&self, node: &Node, arg: &str) -> Result<TensorMeta> {
        let name = node.arg(arg).and_then(Argument::name);
        let name = name.ok_or_else(|| problem(node, PassProblem::NoVariant))?;
        self.emit.meta(name).map_err(|p| problem(node, p))
    }

    /// Makes a node its functional variant, which also returns `results`, and then what the
    /// arguments `written` become.
    fn returning(
        &mut self,
        mut node: Node,
        variant: &str,
        mut results: Vec<(&str, TensorMeta)>,
        written: &[&'static str],
    ) -> Result<()> {
        let mut olds = Vec::new();
        for &arg in written {
            results.push((arg, self.meta_of(&node, arg)?));
            olds.extend(node.arg(arg).and_then(Argument::name).cloned());
        }
        let mut names = Vec::new();
        for (hint, meta) in results {
            names.push(self.emit.value(hint, meta));
        }
        let by = Writer::by(&node);
        node.target = OpName::new("aten", variant, "default");
        node.outputs.extend(names.iter().cloned().map(Argument::Tensor));
        self.emit.nodes.push(node);
        let news = &names[names.len() - olds.len()..];
        for (old, new) in olds.iter().zip(news) {
            let id = self.memory.tensor(old);
            self.memory.write(id, new, by.clone(), &mut self.emit);
        }
        Ok(())
    }

    /// Instance normalisation has no variant that returns running statistics, so other nodes
    /// compute them. They move towards the mean over the batch of each instance's mean and unbiased
    /// variance.
    fn instance_norm(&mut self, node: Node) -> Result<()> {
        let name = |arg: &str| node.arg(arg).and_then(Argument::name).cloned();
        let (input, mean, var) = (name("input"), name("running_mean"), name("running_var"));
        let (Some(mut x), Some(mean), Some(momentum)) =
            (input, mean, node.arg("momentum").cloned())
        else {
            return Err(problem(&node, PassProblem::NoVariant));
        };
        let meta = |name: &Name| self.emit.meta(name).map_err(|p| problem(&node, p));
        let (mut of, kept) = (meta(&x)?, meta(&mean)?);
        let (by, from) = (Writer::by(&node), node.meta.clone());
        self.emit.nodes.push(node);
        if of.dtype != kept.dtype {
            of.dtype = kept.dtype;
            let args = [("self", Argument::Tensor(x)), ("*dtype", Argument::DType(kept.dtype))];
            x = self.emit.op(("_to_copy", "default"), args, of.clone(), &from);
        }
        let rank = i64::try_from(of.sizes.len()).unwrap_or(i64::MAX);
        let left = of.sizes.get(0..2).unwrap_or_default().to_vec();
        let of = TensorMeta {
            strides: strides::contiguous(&left),
            sizes: left,
            storage_offset: Expr::ZERO,
            requires_grad: false,
            ..of
        };
        let args = [
            ("self", Argument::Tensor(x)),
            ("dim", Argument::Ints((2..rank).collect())),
            ("*correction", Argument::Int(1)),
            ("*keepdim", Argument::Bool(false)),
        ];
        let results = vec![of.clone(), of];
        let results = self.emit.node(("var_mean", "correction"), args, results, &from);
        // The variance comes first.
        let pairs = [var, Some(mean)].into_iter().zip(results);
        for (old, new) in pairs.filter_map(|(old, new)| Some((old?, new))) {
            let args = [("self", Argument::Tensor(new)), ("dim", Argument::Ints(vec![0]))];
            let new = self.emit.op(("mean", "dim"), args, kept.clone(), &from);
            let args = [
                ("self", Argument::Tensor(old.clone())),
                ("end", Argument::Tensor(new)),
                ("weight", momentum.clone()),
            ];
            let new = self.emit.op(("lerp", "Scalar"), args, kept.clone(), &from);
            let id = self.memory.tensor(&old);
            self.memory.write(id, &new, by.clone(), &mut self.emit);
        }
        Ok(())
    }
}
