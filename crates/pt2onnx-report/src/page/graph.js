// Draws a graph: groups that fold, nodes, edges. Each group is laid out by itself, with dagre.
"use strict";

const element = (tag, settings = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(settings)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

const drawn = (tag, settings = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(settings)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const KINDS = [
  ["flow", /^(If|Loop|Scan|cond|while_loop|scan)$/],
  ["compute", /Conv|MatMul|Gemm|Einsum|Attention|LSTM|GRU|RNN|linear|matmul|^b?mm|addmm|conv|attention|lstm|gru/],
  ["activation", /Relu|Gelu|Sigmoid|Tanh|Softmax|Elu|Swish|Softplus|Mish|HardS|relu|gelu|silu|sigmoid|tanh|softmax|elu|dropout/],
  ["reduce", /Norm|Reduce|Pool|ArgM|TopK|CumSum|norm|sum|mean|pool|argm|topk|var/],
  ["shape", /Shape|Reshape|Transpose|Squeeze|Unsqueeze|Flatten|Slice|Gather|Concat|Split|Expand|Cast|Identity|Pad|Tile|Range|Constant|view|reshape|permute|transpose|slice|select|cat|expand|squeeze|clone|_to_copy|to|size|getitem/],
];

const kindOf = (op) => {
  const name = op.split("::").pop().split(".")[0];
  const kind = KINDS.find(([, names]) => names.test(name));
  return kind ? kind[0] : "math";
};

const short = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

// The most items in one group. Longer runs become parts.
const MOST = 60;

class Item {
  constructor(parent, kind, label) {
    Object.assign(this, { parent, kind, label, kids: null, open: false, node: null, failures: 0, marks: 0, nodes: 0, sub: "" });
  }
  add(item) {
    item.parent = this;
    this.kids.push(item);
    return item;
  }
}

const groupItem = (label, sub) => Object.assign(new Item(null, "group", label), { kids: [], sub });

// The tree of a drawing: groups, nodes, inputs and outputs; and which item makes each value.
const buildTree = (drawing, failures) => {
  const root = groupItem("", "");
  root.open = true;
  const groups = new Map();
  const leaves = [];
  const makers = new Map();
  const readers = new Map();
  const groupOf = (index) => {
    if (index === undefined || index === null) return root;
    if (!groups.has(index)) {
      const group = drawing.groups[index];
      const home = groupOf(group.parent);
      // Within its module, a module has the rest of its path.
      const outer = home.path ? home.path + "." : "";
      const inner = outer && group.name.startsWith(outer) ? group.name.slice(outer.length) : group.name;
      const made = groupItem(inner || group.name, group.class || "");
      made.path = group.name;
      home.add(made);
      groups.set(index, made);
    }
    return groups.get(index);
  };
  const ends = (values, kind) => {
    const home = values.length > 12 ? root.add(groupItem(kind + "s", values.length + " " + kind + "s")) : root;
    for (const value of values) {
      const item = home.add(new Item(null, kind, drawing.values[value].name || kind));
      item.sub = drawing.values[value].type || "";
      leaves.push(item);
      if (kind === "input") makers.set(value, item);
      else item.reads = [value];
    }
  };
  ends(drawing.inputs, "input");
  for (const node of drawing.nodes) {
    const item = groupOf(node.group).add(new Item(null, "node", node.op));
    item.node = node;
    item.sub = node.outputs.length ? drawing.values[node.outputs[0]].type || "" : "";
    item.reads = node.inputs.filter((value) => value !== null);
    item.problems = failures.get(node.name) || [];
    leaves.push(item);
    for (const value of node.outputs) makers.set(value, item);
    for (let up = item; up; up = up.parent) {
      up.nodes += 1;
      up.failures += item.problems.length ? 1 : 0;
      up.marks += node.mark ? 1 : 0;
    }
  }
  ends(drawing.outputs, "output");
  for (const item of leaves) {
    for (const value of item.reads || []) {
      if (!readers.has(value)) readers.set(value, []);
      readers.get(value).push(item);
    }
  }
  const split = (item) => {
    item.kids.filter((kid) => kid.kids).forEach(split);
    while (item.kids.length > MOST) {
      const size = Math.max(20, Math.ceil(item.kids.length / MOST));
      const parts = [];
      for (let i = 0; i < item.kids.length; i += size) {
        const kids = item.kids.slice(i, i + size);
        const part = groupItem("part " + (parts.length + 1), short(kids[0].kids ? `${kids[0].label} – ${kids[kids.length - 1].label}` : [...new Set(kids.map((k) => k.label))].join(", "), 40));
        part.kids = kids;
        for (const kid of kids) {
          kid.parent = part;
          part.nodes += kid.nodes;
          part.failures += kid.failures;
          part.marks += kid.marks;
        }
        part.parent = item;
        parts.push(part);
      }
      item.kids = parts;
    }
  };
  split(root);
  return { root, leaves, makers, readers };
};

// Opens the outermost groups, as long as few items are shown.
const openFirst = (root) => {
  let left = 40 - root.kids.length;
  const queue = root.kids.filter((kid) => kid.kids);
  while (queue.length) {
    const group = queue.shift();
    if (group.kids.length - 1 > left || group.label === "inputs" || group.label === "outputs") continue;
    left -= group.kids.length - 1;
    group.open = true;
    queue.push(...group.kids.filter((kid) => kid.kids));
  }
};

const HEAD = 34;
const MARGIN = 14;

// Sizes and places of what is in an open group; kept until a fold below it changes.
const layout = (view, group) => {
  if (group.laid) return group.laid;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const place = new Map();
  group.kids.forEach((kid, i) => {
    place.set(kid, String(i));
    const inner = kid.kids && kid.open ? layout(view, kid) : null;
    const text = Math.max(short(kid.label, 34).length * 7.2, short(kid.sub, 40).length * 6.1);
    const size = inner
      ? { width: Math.max(inner.width, text + 40), height: inner.height + HEAD }
      : { width: Math.max(90, text + 30), height: kid.sub ? 42 : 30 };
    graph.setNode(String(i), size);
  });
  const within = (item) => {
    let at = item;
    while (at && at.parent !== group) at = at.parent;
    return at;
  };
  const visit = (item, top) => {
    if (item.kids) return item.kids.forEach((kid) => visit(kid, top));
    for (const value of item.reads || []) {
      const maker = view.tree.makers.get(value);
      const from = maker && within(maker);
      if (from && from !== top) graph.setEdge(place.get(from), place.get(top));
    }
  };
  group.kids.forEach((kid) => visit(kid, kid));
  dagre.layout(graph);
  // Edges may run beside all nodes: then the group is wider than in the layout of dagre.
  const { width, height } = graph.graph();
  const bends = graph.edges().flatMap((edge) => graph.edge(edge).points.map((point) => point.x));
  const left = Math.max(0, MARGIN - Math.min(MARGIN, ...bends));
  const right = Math.max(0, Math.max(0, ...bends) + MARGIN - (width || 0));
  const items = group.kids.map((kid, i) => {
    const at = graph.node(String(i));
    return { kid, x: left + at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height };
  });
  const edges = graph.edges().map((edge) => graph.edge(edge).points.map(({ x, y }) => ({ x: x + left, y })));
  group.laid = { width: left + (width || 0) + right, height: height || 0, items, edges };
  return group.laid;
};

// A smooth line through points.
const curve = (points) => {
  let path = `M${points[0].x},${points[0].y}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [at, next] = [points[i], points[i + 1]];
    const last = i === points.length - 2;
    path += `Q${at.x},${at.y} ${last ? next.x : (at.x + next.x) / 2},${last ? next.y : (at.y + next.y) / 2}`;
  }
  return points.length > 2 ? path : path + `L${points[1].x},${points[1].y}`;
};

// A drawing on the page, with its bar. `select` is called with each chosen item.
class View {
  constructor(drawing, { name, failures, select }) {
    Object.assign(this, { drawing, select, tree: buildTree(drawing, failures), at: { x: 0, y: 0, scale: 1 }, chosen: null });
    this.layer = drawn("g");
    this.svg = drawn("svg", { class: "canvas", role: "img", "aria-label": "graph" }, this.layer);
    const button = (text, act) => element("button", { type: "button", onclick: act }, text);
    this.found = element("div", { class: "found" });
    this.input = element("input", { type: "search", placeholder: "Search ops, names, modules, lines", "aria-label": "Search", oninput: () => this.search() });
    const bar = element("div", { class: "bar" }, name ? element("span", { class: "name" }, name) : null,
      element("div", { class: "search" }, this.input, this.found),
      button("Fit", () => this.fit()), button("Unfold", () => this.unfold()), button("Fold all", () => this.fold()));
    this.note = element("span", { class: "soft" });
    bar.append(this.note);
    this.host = element("div", { class: "view" }, bar, this.svg);
    openFirst(this.tree.root);
    this.listen();
  }
  listen() {
    let from = null;
    this.svg.addEventListener("pointerdown", (e) => { from = { x: e.clientX, y: e.clientY, at: { ...this.at } }; this.moved = false; });
    window.addEventListener("pointermove", (e) => {
      if (!from) return;
      this.moved = this.moved || Math.hypot(e.clientX - from.x, e.clientY - from.y) > 4;
      this.at.x = from.at.x + e.clientX - from.x;
      this.at.y = from.at.y + e.clientY - from.y;
      this.move();
    });
    window.addEventListener("pointerup", () => { from = null; });
    this.svg.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
  }
  zoom(by, x, y) {
    const scale = Math.min(3, Math.max(0.02, this.at.scale * by));
    const ratio = scale / this.at.scale;
    this.at = { x: x - (x - this.at.x) * ratio, y: y - (y - this.at.y) * ratio, scale };
    this.move();
  }
  move() {
    this.layer.setAttribute("transform", `translate(${this.at.x},${this.at.y}) scale(${this.at.scale})`);
  }
  draw() {
    this.shown = new Map();
    this.layer.replaceChildren(this.inside(this.tree.root, 0, 0, 0));
    this.move();
  }
  inside(group, x, y, depth) {
    const laid = layout(this, group);
    const layer = drawn("g");
    for (const points of laid.edges) {
      layer.append(drawn("path", { class: "edge", d: curve(points) }));
      const end = points[points.length - 1];
      layer.append(drawn("path", { class: "arrow", d: `M${end.x - 3.5},${end.y - 6}L${end.x + 3.5},${end.y - 6}L${end.x},${end.y}Z` }));
    }
    for (const item of laid.items) layer.append(this.item(item, x, y, depth));
    return layer;
  }
  item({ kid, x, y, width, height }, left, top, depth) {
    const { node } = kid;
    const open = kid.kids && kid.open;
    const classes = ["item", kid.kids ? "group " + (open ? "open" : "folded") : kid.kind, depth % 2 ? "odd" : ""];
    if (kid.failures && !open) classes.push("bad");
    if (node && node.mark) classes.push(node.mark);
    else if (kid.kids && !open && kid.marks) classes.push("changed");
    if (kid === this.chosen) classes.push("selected");
    const made = drawn("g", { class: classes.join(" "), transform: `translate(${x},${y})` });
    made.append(drawn("rect", { class: "box", width, height, rx: kid.kids ? 9 : kid.kind === "node" ? 5 : 15 }));
    if (kid.kind === "node") made.append(drawn("rect", { class: kindOf(kid.label), width: 4, height, rx: 2 }));
    const mark = kid.kids ? (open ? "▾ " : "▸ ") : "";
    const write = (text, at, cls) => {
      const label = drawn("text", { x: open ? 12 : width / 2 + 2, y: at, "text-anchor": open ? "start" : "middle", class: cls });
      label.textContent = text;
      made.append(label);
    };
    const inner = open && width < 200 ? 30 : 60;
    write(mark + short(kid.label, 34), open ? 17 : kid.sub ? 18 : 19, "");
    const count = kid.kids && !open && kid.nodes ? ` · ${kid.nodes}` : "";
    if (kid.sub) write(short(kid.kids ? (kid.path ? kid.sub.split(".").pop() : kid.sub) + count : kid.sub, open ? inner : 40), open ? 30 : 33, "soft");
    if (kid.failures && kid.kids) {
      made.append(drawn("circle", { class: "badge", cx: width - 4, cy: 4, r: 9 }));
      const text = drawn("text", { class: "badgetext", x: width - 4, y: 7.5, "text-anchor": "middle" });
      text.textContent = String(kid.failures);
      made.append(text);
    }
    made.addEventListener("click", (e) => {
      e.stopPropagation();
      if (this.moved) return;
      if (kid.kids) this.toggle(kid);
      else this.choose(kid);
    });
    this.shown.set(kid, { made, x: left + x, y: top + y, width, height });
    if (open) {
      const laid = layout(this, kid);
      const dx = (width - laid.width) / 2;
      const body = this.inside(kid, left + x + dx, top + y + HEAD, depth + 1);
      body.setAttribute("transform", `translate(${dx},${HEAD})`);
      made.append(body);
    }
    return made;
  }
  forget(item) {
    for (let at = item; at; at = at.parent) at.laid = null;
  }
  toggle(item) {
    const before = this.shown.get(item);
    item.open = !item.open;
    this.forget(item);
    this.draw();
    const after = this.shown.get(item);
    // The clicked item stays at its place.
    this.at.x += (before.x - after.x) * this.at.scale;
    this.at.y += (before.y - after.y) * this.at.scale;
    this.move();
    this.select(item, this);
  }
  // Unfolds the next level that is folded, if what is then shown stays small.
  unfold() {
    const folded = [];
    const visit = (item) => item.kids.filter((kid) => kid.kids).forEach((kid) => (kid.open ? visit(kid) : folded.push(kid)));
    visit(this.tree.root);
    let left = 1500 - this.shown.size;
    this.note.textContent = "";
    for (const item of folded) {
      if (item.kids.length > left) {
        this.note.textContent = "Not all are unfolded: about 1,500 items are shown at most.";
        break;
      }
      left -= item.kids.length;
      item.open = true;
      this.forget(item);
    }
    this.draw();
    this.fit();
  }
  fold() {
    this.note.textContent = "";
    const visit = (item) => { item.open = item === this.tree.root; item.laid = null; item.kids.filter((kid) => kid.kids).forEach(visit); };
    visit(this.tree.root);
    this.draw();
    this.fit();
  }
  fit() {
    const box = this.svg.getBoundingClientRect();
    const { width, height } = layout(this, this.tree.root);
    if (!box.width || !width) return;
    const whole = Math.min(box.width / width, box.height / height);
    // A graph that is long stays readable: its beginning is shown.
    const scale = Math.min(1.2, Math.max(whole, Math.min(0.8, box.width / width)));
    this.at = { scale, x: (box.width - width * scale) / 2, y: height * scale > box.height ? 8 : (box.height - height * scale) / 2 };
    this.move();
  }
  choose(item) {
    this.chosen = item;
    this.layer.querySelectorAll(".selected").forEach((old) => old.classList.remove("selected"));
    const shown = this.shown.get(item);
    if (shown) shown.made.classList.add("selected");
    this.select(item, this);
  }
  reveal(item) {
    for (let at = item.parent; at; at = at.parent) {
      at.open = true;
      at.laid = null;
    }
    this.draw();
    this.choose(item);
    const [box, shown] = [this.svg.getBoundingClientRect(), this.shown.get(item)];
    const scale = Math.max(0.9, Math.min(1.2, this.at.scale));
    this.at = { scale, x: box.width / 2 - (shown.x + shown.width / 2) * scale, y: box.height / 2 - (shown.y + shown.height / 2) * scale };
    this.move();
  }
  path(item) {
    const names = [];
    for (let at = item.parent; at && at.parent; at = at.parent) names.unshift(at.path || at.label);
    return names;
  }
  search() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found.replaceChildren();
    if (!words.length) return;
    const text = (item) => item.text || (item.text = [item.label, ...this.path(item),
      ...(item.node ? [item.node.name, item.node.from, item.node.source, ...item.node.outputs.map((v) => this.drawing.values[v].name),
        ...item.node.inputs.map((v) => (v === null ? "" : this.drawing.values[v].name))] : [])].join("\n").toLowerCase());
    const all = this.tree.leaves.filter((item) => words.every((word) => text(item).includes(word)));
    const most = 50;
    this.found.append(element("p", {}, all.length > most ? `${all.length} found, the first ${most}:` : `${all.length} found`));
    for (const item of all.slice(0, most)) {
      const place = [this.path(item).slice(-1)[0], item.node && item.node.name].filter(Boolean).join(" · ");
      this.found.append(element("button", { type: "button", onclick: () => { this.found.replaceChildren(); this.reveal(item); } },
        item.label, element("small", {}, place)));
    }
  }
}
