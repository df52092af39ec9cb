//! The text form of a graph of TorchScript: a line for each node, and blocks within nodes.

/// How deeply blocks may nest.
const MAX_NESTING: usize = 64;

/// A value where it is made: `%x : Float(2, 3)`.
pub(super) struct Typed<'t> {
    pub(super) name: &'t str,
    pub(super) ty: &'t str,
}

/// `%y : Tensor = aten::add[a=1](%x, %1), scope: 0/3 # model.py:7:0`.
pub(super) struct Node<'t> {
    /// The byte where its line starts.
    pub(super) at: u32,
    pub(super) outputs: Vec<Typed<'t>>,
    /// `aten::add`.
    pub(super) kind: &'t str,
    /// The text in brackets.
    pub(super) attributes: &'t str,
    pub(super) inputs: Vec<&'t str>,
    /// `0/3`.
    pub(super) scope: &'t str,
    pub(super) blocks: Vec<Block<'t>>,
}

/// The body of a graph, or of a branch or loop.
#[derive(Default)]
pub(super) struct Block<'t> {
    pub(super) inputs: Vec<Typed<'t>>,
    pub(super) nodes: Vec<Node<'t>>,
    pub(super) outputs: Vec<&'t str>,
}

impl Block<'_> {
    /// Where the lines of its nodes start, and those of nodes within them.
    pub(super) fn places(&self) -> Vec<u32> {
        let (mut found, mut pending) = (Vec::new(), vec![self]);
        while let Some(block) = pending.pop() {
            found.extend(block.nodes.iter().map(|node| node.at));
            pending.extend(block.nodes.iter().flat_map(|node| &node.blocks));
        }
        found.sort_unstable();
        found
    }
}

/// Reads a graph. An error has the number of its line.
pub(super) fn read(text: &str) -> Result<Block<'_>, (u32, String)> {
    let mut lines = Lines { text, at: 0, number: 0 };
    let graph = lines.graph();
    graph.map_err(|what| (lines.number, what))
}

/// The line of Python from which a node comes: the file and the number.
pub(super) fn place(line: &str) -> Option<(&str, u64)> {
    let (_, place) = line.rsplit_once(" # ")?;
    let (place, _column) = place.rsplit_once(':')?;
    let (file, number) = place.rsplit_once(':')?;
    Some((file, number.parse().ok()?))
}

struct Lines<'t> {
    text: &'t str,
    at: usize,
    number: u32,
}

impl<'t> Lines<'t> {
    /// The next line that is not empty, without spaces around it, and where it starts.
    fn next(&mut self) -> Result<(u32, &'t str), String> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(line) = rest.lines().next() else {
                return Err("the graph ends before its results".to_owned());
            };
            let at = u32::try_from(self.at).map_err(|_| "the graph is too long".to_owned())?;
            self.at += line.len() + 1;
            self.number += 1;
            let line = line.trim();
            if !line.is_empty() {
                return Ok((at, line));
            }
        }
    }

    fn graph(&mut self) -> Result<Block<'t>, String> {
        let mut inputs = Vec::new();
        loop {
            let (_, line) = self.next()?;
            let line = line.strip_prefix("graph(").unwrap_or(line);
            let is_last = line.ends_with("):");
            let line = line.strip_suffix("):").unwrap_or(line).trim_end_matches(',');
            if !line.is_empty() {
                inputs.extend(typed(line)?);
            }
            if is_last {
                return Ok(Block { inputs, ..self.block(MAX_NESTING)? });
            }
        }
    }

    /// The nodes up to the results of a block.
    fn block(&mut self, levels: usize) -> Result<Block<'t>, String> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(format!("blocks nest more than {MAX_NESTING} levels"));
        };
        let mut nodes: Vec<Node<'t>> = Vec::new();
        loop {
            let (at, line) = self.next()?;
            if let Some(results) = line.strip_prefix("return ").or(line.strip_prefix("-> ")) {
                return Ok(Block { inputs: Vec::new(), nodes, outputs: names(results)? });
            }
            if let (true, Some(node)) = (line.starts_with("block"), nodes.last_mut()) {
                let inputs = line.split_once('(').and_then(|(_, rest)| rest.strip_suffix("):"));
                let inputs = inputs.ok_or_else(|| format!("`{line}` is not a block"))?;
                let inputs = if inputs.is_empty() { Vec::new() } else { typed(inputs)? };
                node.blocks.push(Block { inputs, ..self.block(levels)? });
            } else {
                nodes.push(node(at, line).ok_or_else(|| format!("`{line}` is not a node"))?);
            }
        }
    }
}

fn node(at: u32, line: &str) -> Option<Node<'_>> {
    let (outputs, rest) = match line.strip_prefix("= ") {
        Some(rest) => (Vec::new(), rest),
        None => {
            let (outputs, rest) = line.split_once(" = ")?;
            (typed(outputs).ok()?, rest)
        }
    };
    let (kind, rest) = rest.split_at(rest.find(['[', '('])?);
    let (attributes, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (attributes, rest) = rest.split_at(closing(rest)?);
            (attributes, rest.strip_prefix(']')?)
        }
        None => ("", rest),
    };
    let (inputs, rest) = rest.split_at(rest.find(')')? + 1);
    let rest = rest.split_once(" # ").map_or(rest, |(scope, _)| scope);
    let scope = rest.strip_prefix(", scope: ").unwrap_or_default().trim_end();
    let inputs = names(inputs).ok()?;
    Some(Node { at, outputs, kind, attributes, inputs, scope, blocks: Vec::new() })
}

/// Where the bracket closes that is open at the start. Texts in quotes may hold brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' => depth += 1,
            b']' if depth == 0 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `%x : Tensor, %y : int`.
fn typed(text: &str) -> Result<Vec<Typed<'_>>, String> {
    let wrong = || format!("`{text}` is not a list of values");
    let values = text.strip_prefix('%').ok_or_else(wrong)?.split(", %");
    let pairs = values.map(|value| value.split_once(" : "));
    pairs.map(|pair| pair.map(|(name, ty)| Typed { name, ty }).ok_or_else(wrong)).collect()
}

/// `(%x, %y)`.
fn names(text: &str) -> Result<Vec<&str>, String> {
    let wrong = || format!("`{text}` is not a list of names");
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).ok_or_else(wrong)?;
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    Ok(inner.strip_prefix('%').ok_or_else(wrong)?.split(", %").collect())
}
