//! Names of functions, from the classes of modules.

use pt2onnx_ir::Model;
use rustc_hash::FxHashSet;

/// Domains of operators that are none of the user's modules.
const TAKEN: [&str; 3] = ["ai.onnx", "com.microsoft", "org.pytorch"];

/// The names of functions and operators that a model has.
pub(super) struct Names {
    taken: FxHashSet<(String, String)>,
}

impl Names {
    pub(super) fn of(model: &Model) -> Self {
        let nodes = model.all_nodes().into_iter().map(|n| &model[n]);
        let operators = nodes.map(|n| (n.domain.to_string(), n.op().to_owned()));
        let functions = model.functions.iter().map(|f| (f.domain.clone(), f.name.clone()));
        Self { taken: operators.chain(functions).collect() }
    }

    /// A name in a domain that no function has yet: with a number after it if there are several.
    pub(super) fn take(&mut self, domain: &str, name: &str) -> String {
        let numbered = (1..).map(|n| format!("{name}_{n}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| self.taken.insert((domain.to_owned(), name.clone())));
        free.unwrap_or_default()
    }
}

/// Domain and name of a class's functions, such as `torch.nn.modules.linear` and `Linear`.
pub(super) fn of_class(class: &str) -> (String, String) {
    // `<locals>` stands for a function in which the class is defined, and TorchScript numbers
    // classes so.
    let parts = class.split('.').filter(|p| *p != "<locals>" && !p.starts_with("___torch_mangle"));
    let mut parts: Vec<String> = parts.map(identifier).filter(|p| !p.is_empty()).collect();
    let name = parts.pop().unwrap_or_else(|| "Module".to_owned());
    let domain = parts.join(".");
    let is_taken = TAKEN.iter().any(|t| domain == *t || domain.starts_with(&format!("{t}.")));
    match (domain.is_empty(), is_taken) {
        (true, _) => ("__main__".to_owned(), name),
        (_, true) => (format!("pkg.{domain}"), name),
        _ => (domain, name),
    }
}

/// The part of a path below another one; `None` if it is not below.
pub(super) fn below<'a>(path: &'a str, around: &str) -> Option<&'a str> {
    match around {
        "" => Some(path),
        _ => path.strip_prefix(around).and_then(|rest| rest.strip_prefix('.')),
    }
}

fn identifier(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_give_domains_and_names() {
        for (class, domain, name) in [
            ("torch.nn.modules.linear.Linear", "torch.nn.modules.linear", "Linear"),
            ("__main__.make.<locals>.Net", "__main__.make", "Net"),
            ("torch.nn.modules.conv.___torch_mangle_7.Conv2d", "torch.nn.modules.conv", "Conv2d"),
            ("Net", "__main__", "Net"),
            ("ai.onnx.Net", "pkg.ai.onnx", "Net"),
            ("a b.C[int]", "ab", "Cint"),
            ("", "__main__", "Module"),
        ] {
            assert_eq!(of_class(class), (domain.to_owned(), name.to_owned()), "{class}");
        }
        assert_eq!(below("a.b.weight", "a.b"), Some("weight"));
        assert_eq!(below("a.b", ""), Some("a.b"));
        assert_eq!(below("a.bc", "a.b"), None);
    }
}
