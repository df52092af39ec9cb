//! Several models of one program as one model that chooses between them by the sizes of inputs.

use super::OnnxProgram;
use crate::{
    dims::Scope,
    error::Error,
    merge_models::import_domains,
    regions::{self, CONDITIONS, Decision, Places, Tree},
};
use indexmap::IndexMap;
use pt2onnx_ir::{Model, Type, is_unknown};
use pt2onnx_report::Report;
use pt2onnx_symbolic::{Constraints, Expr, Range};
use pt2onnx_writer::SaveOptions;

/// The sizes by which [`OnnxProgram::choose`] chooses.
#[derive(Clone, Debug, Default)]
pub struct SizesOfInputs {
    /// Where each size is read, by its name in conditions: an input and its axis, or None for an
    /// input of one element, whose condition is whether it is true.
    pub places: IndexMap<String, (String, Option<usize>)>,
    /// The values that sizes may have; any size is 0 or more.
    pub ranges: Vec<(String, Range)>,
    /// Conditions that only tests have joined, for the metadata of the model.
    pub tested: Vec<String>,
}

impl SizesOfInputs {
    /// The facts about the sizes.
    fn known(&self) -> Constraints {
        let mut known = Constraints::new();
        for symbol in self.places.keys() {
            known.constrain(&Expr::symbol(symbol), Range::at_least(0));
        }
        for (symbol, range) in &self.ranges {
            known.constrain(&Expr::symbol(symbol), *range);
        }
        known
    }

    fn decision<'a>(&'a self, tree: &'a Tree, known: &'a Constraints) -> Decision<'a> {
        Decision { tree, places: &self.places, known, tested: &self.tested }
    }
}

impl OnnxProgram {
    /// Merges models of one program that are each right in a region of sizes into one, which
    /// chooses by a decision tree. All have the same inputs and outputs by name.
    ///
    /// - Conditions are over the names in `sizes`. Paths that no sizes take are left out.
    /// - Where a leaf is refused, the model fails at run time before it computes anything else, by
    ///   a node that has the reason as its name.
    /// - Weights of equal content are stored once. Nodes that branches begin or end with are there
    ///   once, before and behind the `If`.
    /// - Axes in `sizes` have these names in the inputs of the model, also where some of the models
    ///   have a number.
    /// - The key `pkg.pt2onnx.regions` in the metadata lists the regions.
    ///
    /// ```
    /// use pt2onnx::{OnnxProgram, SizesOfInputs, Tree, symbolic::Expr, writer};
    ///
    /// let made = |op: &str| -> Result<OnnxProgram, Box<dyn std::error::Error>> {
    ///     let text = format!("g (float[n] x) => (float[n] y) {{ y = {op} (x) }}");
    ///     let model: pt2onnx::ir::Model = text.parse()?;
    ///     Ok(OnnxProgram::from_bytes(writer::to_bytes(&model)?, [])?)
    /// };
    /// let (short, long) = (made("Exp")?, made("Tanh")?);
    /// let leaves = Box::new((Tree::Model(0), Tree::Model(1)));
    /// let tree = Tree::If(Expr::parse("n <= 8")?, leaves);
    /// let mut sizes = SizesOfInputs::default();
    /// sizes.places.insert("n".into(), ("x".into(), Some(0)));
    /// let both = OnnxProgram::choose(&[&short, &long], &tree, &sizes)?;
    /// assert!(both.to_text().contains("y = If"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Choose`]; [`Error::Join`] if the models import other versions of a domain or have
    /// different functions of one name; [`Error::Legalise`] if the opset of one cannot be raised.
    pub fn choose(programs: &[&Self], tree: &Tree, sizes: &SizesOfInputs) -> Result<Self, Error> {
        let mut models: Vec<Model> = programs.iter().map(|p| p.model().clone()).collect();
        let opset = models.iter().map(|model| model.opset).max().unwrap_or_default();
        for model in &mut models {
            if ![0, opset].contains(&model.opset) {
                pt2onnx_opt::convert(model, opset)?;
            }
            model.opset = opset;
            model.assign_names();
            pt2onnx_opt::infer_types(model);
        }
        for i in 1..models.len() {
            let (before, rest) = models.split_at_mut(i);
            for (first, second) in before.iter_mut().zip(std::iter::repeat(&rest[0])) {
                import_domains(first, second)?;
            }
        }
        let known = sizes.known();
        let imported = programs.iter().any(|program| program.imported);
        let decision = sizes.decision(tree, &known);
        let model = regions::merge(models, Scope::of(imported), &decision)?;
        let mut merged = Self::new(model, Report::default(), SaveOptions::default());
        (merged.imported, merged.edited) = (imported, true);
        for program in programs {
            merged.inputs.extend(program.inputs());
            merged.report.warnings.extend_from_slice(program.warnings());
        }
        Ok(merged)
    }

    /// The models of a decision tree one by one, for runtimes without `If`: each has the conditions
    /// under which the tree chooses it in its metadata, from where
    /// [`choose_by_conditions`](Self::choose_by_conditions) takes them.
    ///
    /// # Returns
    /// Each model that sizes take, with its position and its conditions.
    ///
    /// # Errors
    /// [`Error::Choose`].
    pub fn split(
        programs: &[&Self],
        tree: &Tree,
        sizes: &SizesOfInputs,
    ) -> Result<Vec<(usize, Vec<String>, Self)>, Error> {
        let models: Vec<Model> = programs.iter().map(|p| p.model().clone()).collect();
        let known = sizes.known();
        let mut found = Vec::new();
        for (at, conditions) in regions::regions(&models, &sizes.decision(tree, &known))? {
            let Some(program) = programs.get(at) else { continue };
            let mut one = program.shared();
            one.model.metadata.retain(|(key, _)| **key != *CONDITIONS);
            if !conditions.is_empty() {
                let text = serde_json::json!(conditions).to_string();
                one.model.metadata.push((CONDITIONS.into(), text.as_str().into()));
            }
            found.push((at, conditions, one));
        }
        Ok(found)
    }

    /// A copy of the model with its warnings, without the program that it was made from. Weights
    /// are shared.
    pub fn shared(&self) -> Self {
        let mut copy = Self::new(self.model.clone(), self.report.clone(), SaveOptions::default());
        (copy.imported, copy.edited) = (self.imported, self.edited);
        copy.lenient = self.lenient;
        copy.inputs.extend(self.inputs());
        copy
    }

    /// Merges models by the conditions on sizes that conversions wrote into their metadata: the
    /// first model whose conditions all hold is chosen. Where those of none hold, the model fails
    /// at run time.
    ///
    /// # Errors
    /// Those of [`choose`](Self::choose).
    pub fn choose_by_conditions(programs: &[&Self]) -> Result<Self, Error> {
        let mut sizes = SizesOfInputs::default();
        let mut conditions = Vec::new();
        for program in programs {
            let names = program.sizes_in(&mut sizes.places);
            let name = |symbol: &str| names.get(symbol).cloned();
            let own = program.conditions().into_iter().map(|c| c.substitute(&name));
            conditions.push(own.collect::<Vec<Expr>>());
        }
        let symbols: Vec<String> =
            conditions.iter().flatten().flat_map(Expr::symbols).map(|s| s.to_string()).collect();
        let mut named: Vec<&str> = sizes.places.keys().map(String::as_str).collect();
        named.retain(|name| symbols.iter().any(|symbol| symbol == name));
        let reason = format!("no model is for this size of {}", named.join(", "));
        let tree = Tree::first_of(&conditions, &reason);
        Self::choose(programs, &tree, &sizes)
    }

    /// Notes where the sizes of the inputs are read. Returns the name that each symbol has there:
    /// an axis has one in all models.
    fn sizes_in(&self, places: &mut Places) -> IndexMap<String, Expr> {
        let mut names = IndexMap::new();
        for &input in self.model.inputs() {
            let data = &self.model[input];
            let shape = data.ty.as_ref().and_then(Type::as_tensor).and_then(|t| t.shape.as_ref());
            for (axis, size) in shape.into_iter().flatten().enumerate() {
                let Some(symbol) = size.as_symbol().filter(|_| !is_unknown(size)) else { continue };
                let place = (data.name.as_deref().unwrap_or_default().to_owned(), Some(axis));
                let same = places.iter().find(|(_, known)| **known == place);
                let name = match same {
                    Some((name, _)) => name.clone(),
                    None if names.contains_key(symbol) => continue,
                    None if !places.contains_key(symbol) => symbol.to_owned(),
                    None => {
                        let mut free = (2..).map(|i| format!("{symbol}_{i}"));
                        let free = free.find(|name| !places.contains_key(name));
                        free.unwrap_or_else(|| symbol.to_owned())
                    }
                };
                places.entry(name.clone()).or_insert(place);
                names.entry(symbol.to_owned()).or_insert_with(|| Expr::symbol(&name));
            }
        }
        names
    }

    /// The conditions on sizes in the metadata.
    fn conditions(&self) -> Vec<Expr> {
        let own = self.model.metadata.iter().find(|(key, _)| *key == *CONDITIONS);
        let texts: Vec<String> =
            own.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
        texts.iter().filter_map(|text| Expr::parse(text).ok()).collect()
    }
}
