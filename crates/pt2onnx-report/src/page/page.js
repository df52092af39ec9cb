// Fills the page: the head, one tab for each part, details of what is chosen.
"use strict";

(() => {
  const whole = JSON.parse(document.getElementById("data").textContent);
  const size = (bytes) => {
    const units = ["B", "KB", "MB", "GB", "TB"];
    let [n, i] = [bytes, 0];
    while (n >= 1000 && i < units.length - 1) [n, i] = [n / 1000, i + 1];
    return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
  };
  const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
  const code = (text) => element("code", {}, text);
  // A text whose parts in backticks are code.
  const prose = (text) => {
    const parts = text.split("`");
    return parts.length % 2 ? parts.map((part, i) => (i % 2 ? code(part) : part)) : [text];
  };
  const table = (heads, rows) => element("table", {},
    element("tr", {}, ...heads.map((head) => element("th", head.startsWith("#") ? { class: "n" } : {}, head.replace("#", "")))),
    ...rows.map((row) => element("tr", {}, ...row.map((cell, i) => element("td", heads[i].startsWith("#") ? { class: "n" } : {}, cell ?? "")))));
  const meter = (part) => {
    const bar = element("i");
    bar.style.width = `${100 * part}%`;
    return element("div", { class: "meter" }, bar);
  };
  // Equal ones together, in the order of the first.
  const grouped = (all, key) => {
    const groups = new Map();
    for (const one of all) {
      if (!groups.has(key(one))) groups.set(key(one), []);
      groups.get(key(one)).push(one);
    }
    return [...groups.values()];
  };

  const modelFacts = (model) => `opset ${model.opset} · ${count(model.nodes, "node")} · ${count(model.weights.count, "weight")}, ${size(model.weights.bytes)}`;

  // Shows one report or comparison. `back` leads to the list that it is in, if it is in one.
  const open = (data, back) => {
    const report = data.report;
    const aside = element("aside", { "aria-label": "details" }, element("p", { class: "soft" }, "Click a module to unfold it, a node for its details. Drag to move, turn the wheel to zoom; or press the arrows, + and -, f to fit, / to search."));
    const problem = (failure) => element("div", { class: "problem" }, element("p", {}, ...prose(failure.reason)),
      failure.suggestion ? element("p", {}, element("b", {}, "What to do: "), ...prose(failure.suggestion)) : null);

    const details = (item, view) => {
      const link = (to, text) => (to ? element("button", { type: "button", class: "link", onclick: () => view.reveal(to) }, text) : element("span", {}, text));
      const values = view.drawing.values;
      const parts = [element("p", { class: "op" }, item.label)];
      const add = (head, ...content) => parts.push(element("h3", {}, head), ...content);
      const valueLine = (value, targets) => {
        const { name, type, bytes } = values[value];
        return element("p", {}, link(targets[0], name || "(no name)"), " ", element("span", { class: "soft mono" }, type || ""),
          bytes === undefined ? null : element("span", { class: "soft" }, ` weight, ${size(bytes)}`));
      };
      const node = item.node;
      if (node) {
        if (node.name) parts.push(element("p", { class: "mono" }, node.name));
        if (node.mark) parts.push(element("p", {}, element("b", { class: node.mark }, node.mark)));
        parts.push(...item.problems.map(problem));
        const path = view.path(item);
        if (path.length) add("Module", element("p", { class: "mono" }, path[path.length - 1]));
        if (node.source) add("Source line", element("p", { class: "mono" }, node.source));
        if (node.from) add("Made from", ...node.from.split("\n").map((line) => element("p", { class: "mono" }, line)));
        if (node.inputs.length) {
          add("Inputs", ...node.inputs.map((value) => (value === null ? element("p", { class: "soft" }, "(left out)") : valueLine(value, [view.tree.makers.get(value)]))));
        }
        if (node.outputs.length) add("Outputs", ...node.outputs.map((value) => valueLine(value, view.tree.readers.get(value) || [])));
        if (node.attributes) add("Attributes", ...node.attributes.map(([key, value]) => element("p", {}, code(key), " ", element("span", { class: "mono" }, value))));
        if (node.metadata) {
          const texts = view.drawing.texts;
          parts.push(element("details", {}, element("summary", {}, "Metadata"),
            ...node.metadata.flatMap(([key, value]) => [element("h3", {}, texts[key]), element("pre", {}, texts[value])])));
        }
      } else if (item.kids) {
        parts.push(element("p", { class: "mono" }, item.path || ""), element("p", { class: "mono" }, item.sub), element("p", { class: "soft" }, count(item.nodes, "node")));
        if (item.failures) parts.push(element("p", { class: "failed" }, `${count(item.failures, "node")} cannot be converted`));
      } else {
        parts.push(element("p", { class: "mono" }, item.sub), element("p", { class: "soft" }, item.kind));
      }
      aside.replaceChildren(...parts);
    };

    // The tabs.
    const nav = element("nav", { role: "tablist" });
    const main = element("main");
    const tabs = [];
    const show = (tab) => {
      for (const other of tabs) {
        other.section.hidden = other !== tab;
        other.button.setAttribute("aria-selected", String(other === tab));
      }
      if (tab.shown) tab.shown();
    };
    const tab = (name, section, shown) => {
      const made = { section, shown };
      made.button = element("button", { type: "button", role: "tab", onclick: () => show(made) }, name);
      tabs.push(made);
      nav.append(made.button);
      main.append(section);
      return made;
    };
    const views = [];
    const graphTab = (drawings) => {
      let first = true;
      const section = element("section", { class: "graph" });
      for (const [name, drawing, failures] of drawings) {
        const view = new View(drawing, { name, failures, select: details });
        views.push(view);
        section.append(view.host);
      }
      section.append(aside);
      return tab("Graph", section, () => {
        if (first) views.forEach((view) => { view.draw(); view.fit(); });
        first = false;
      });
    };

    const operators = () => {
      const most = Math.max(1, ...Object.values(report.model.operators));
      const rows = Object.entries(report.model.operators).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      const section = element("section", {}, element("h2", {}, "Operators of the model"), table(["operator", "#nodes", ""], rows.map(([op, n]) => [code(op), n.toLocaleString("en"), meter(n / most)])));
      const functions = Object.entries(report.model.functions || {});
      if (functions.length) section.append(element("h2", {}, "Functions"), table(["function", "#calls"], functions.map(([name, n]) => [code(name), String(n)])));
      return section;
    };
    const ops = () => element("section", {}, element("h2", {}, "Ops of the program"),
      table(["op", "#nodes", "translated", "becomes"], report.ops.map((op) => [code(op.op), String(op.count),
        !op.supported ? element("b", { class: "failed" }, "no") : op.failed ? element("b", { class: "failed" }, `${op.failed} failed`) : "yes", op.becomes.join(", ")])));
    const weights = (drawing) => {
      const all = drawing.values.filter((value) => value.bytes !== undefined).sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
      const most = 500;
      const total = all.reduce((sum, value) => sum + value.bytes, 0);
      const kinds = grouped(all, (value) => (value.type || "").split("[")[0]).map((group) => [group[0].type.split("[")[0], group.length, group.reduce((s, v) => s + v.bytes, 0)]);
      const section = element("section", {}, element("h2", {}, `${count(all.length, "weight")}, ${size(total)}`),
        table(["element type", "#weights", "#size"], kinds.map(([kind, n, bytes]) => [code(kind), n.toLocaleString("en"), size(bytes)])),
        element("h2", {}, "By size"),
        table(["weight", "type", "#size", ""], all.slice(0, most).map((w) => [code(w.name), code(w.type || ""), size(w.bytes), meter(w.bytes / (all[0].bytes || 1))])));
      if (all.length > most) section.append(element("p", { class: "soft" }, `The ${most} largest are shown; ${all.length - most} more are left out.`));
      return section;
    };
    const failures = (graph) => {
      const section = element("section");
      for (const group of grouped(report.failures, (f) => JSON.stringify([f.op, f.reason, f.suggestion]))) {
        const first = group[0];
        const item = views[0] && views[0].tree.leaves.find((leaf) => leaf.node && leaf.node.name === first.node);
        section.append(element("h2", {}, first.op || "The model", group.length > 1 ? element("span", { class: "soft" }, ` · ${group.length} nodes`) : null), problem(first));
        const place = [first.node, first.module && `in ${first.module}`, first.file && `${first.file}:${first.line}`].filter(Boolean).join(", ");
        if (place) section.append(element("p", {}, group.length > 1 ? "for example " : "", code(place), " ", item ? element("button", { type: "button", onclick: () => { show(graph); views[0].reveal(item); } }, "Show it") : null));
        if (first.code) section.append(element("pre", {}, first.code));
      }
      return section;
    };
    const warnings = () => {
      const section = element("section");
      for (const kind of grouped(data.warnings, (w) => w.kind)) {
        section.append(element("h2", {}, kind[0].kind.replace("_", " ")), ...kind.map((w) => element("p", {}, ...prose(w.text))));
      }
      return section;
    };
    const ends = (head, all) => [element("h2", {}, head), table(["name", "type"], all.map((end) => [end.name ? code(end.name) : "", code(end.type)]))];
    const about = () => {
      const section = element("section");
      const { program, model, environment, options, stages } = report;
      if (model) section.append(...ends("Inputs of the model", model.inputs), ...ends("Outputs of the model", model.outputs));
      if (program) {
        section.append(...ends("Inputs of the program", program.inputs), ...ends("Outputs of the program", program.outputs));
        if (program.dimensions.length) section.append(element("h2", {}, "Dynamic dimensions"), table(["symbol", "#smallest", "#largest"], program.dimensions.map((d) => [code(d.symbol), String(d.min ?? "any"), String(d.max ?? "any")])));
        const weights = ["parameters", "buffers", "constants"].flatMap((what) => Object.entries(program[what].dtypes || {}).map(([dtype, of]) => [what, code(dtype), String(of.count), String(of.elements), size(of.bytes)]));
        if (weights.length) section.append(element("h2", {}, "Weights by type"), table(["", "type", "#tensors", "#elements", "#size"], weights));
        for (const [head, texts] of [["What it writes into", program.mutations], ["What it checks, and the model does not", program.checks]]) {
          if (texts.length) section.append(element("h2", {}, head), ...texts.map((text) => element("p", {}, code(text))));
        }
        section.append(element("p", { class: "soft" }, `PyTorch ${program.torch}, schema ${program.schema}`));
      }
      if (model && model.files.length) section.append(element("h2", {}, "Files"), table(["file", "#size"], model.files.map((f) => [code(f.path), size(f.bytes)])));
      if (report.compressed) section.append(element("h2", {}, "Compressed weights"), table(["weight", "form", "#before", "#after", "#SNR in dB"], report.compressed.map((w) => [code(w.name), String(w.form), size(w.bytes), size(w.compressed_bytes), typeof w.snr_db === "number" ? w.snr_db.toFixed(1) : ""])));
      section.append(element("h2", {}, "Time"), table(["stage", "#ms"], stages.map((s) => [s.name, (s.seconds * 1e3).toFixed(1)])));
      if (options) section.append(element("details", {}, element("summary", {}, "Options"), element("pre", {}, JSON.stringify(options, null, 2))));
      section.append(element("p", { class: "soft" }, `pt2onnx ${environment.pt2onnx} on ${environment.os}, ${environment.arch}`));
      return section;
    };
    const text = (content) => element("section", {}, element("pre", {}, content));
    // Keys: / searches, Escape leaves the search, f fits, + and - zoom, arrows move.
    document.onkeydown = (event) => {
      const input = document.querySelector(".search input");
      if (event.target.matches("input")) {
        if (event.key === "Escape") { event.target.value = ""; event.target.dispatchEvent(new Event("input")); event.target.blur(); }
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || !input || !views.length || input.closest("[hidden]")) return;
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      const by = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
      if (step) views.forEach((view) => { view.at.x += step[0]; view.at.y += step[1]; view.move(); });
      else if (by) views.forEach((view) => { const box = view.svg.getBoundingClientRect(); view.zoom(by, box.width / 2, box.height / 2); });
      else if (event.key === "f") views.forEach((view) => view.fit());
      else if (event.key === "/") input.focus();
      else return;
      event.preventDefault();
    };

    const header = element("header", {}, element("h1", {}, data.title));
    document.body.replaceChildren(header);
    if (back) header.prepend(element("button", { type: "button", onclick: back }, "All archives"));
    if (data.kind === "diff") {
      const marks = { added: 0, removed: 0, changed: 0 };
      for (const [i, drawing] of data.drawings.entries()) for (const node of drawing.nodes) if (node.mark && !(i === 0 && node.mark === "changed")) marks[node.mark] += 1;
      header.append(element("span", { class: "key" }, ...Object.entries(marks).flatMap(([mark, n]) => [element("b", { class: mark }, `${n} ${mark}`), " "])));
      document.body.append(nav, main);
      const graph = graphTab(data.drawings.map((drawing, i) => [data.names[i], drawing, new Map()]));
      const section = element("section");
      const sections = data.differences.sections;
      if (!sections.length && !data.differences.graph) section.append(element("p", {}, "The models do not differ."));
      for (const { name, changes } of sections) {
        section.append(element("h2", {}, `${name} · ${changes.length}`), table(["", data.names[0], data.names[1]], changes.slice(0, 500).map((c) => [code(c.what), code(c.a ?? "–"), code(c.b ?? "–")])));
        if (changes.length > 500) section.append(element("p", { class: "soft" }, `${changes.length - 500} more are left out; pt2onnx diff prints them.`));
      }
      tab("Differences", section);
      if (data.differences.graph) tab("Text", text(data.differences.graph));
      show(graph);
      return;
    }
    header.append(element("span", { class: "state " + (report.success ? "done" : "failed") }, report.success ? "converted" : "failed"));
    const model = report.model;
    if (model && report.success) header.append(element("span", { class: "facts" }, modelFacts(model)));
    else if (report.program) header.append(element("span", { class: "facts" }, `${count(report.program.nodes, "node")} in the program`));
    if (report.error && !report.failures.length) document.body.append(element("p", { class: "message" }, ...prose(report.error.message)));
    document.body.append(nav, main);
    const failing = new Map();
    for (const failure of report.failures) if (failure.node) failing.set(failure.node, [...(failing.get(failure.node) || []), failure]);
    let graph = null;
    if (data.drawing) graph = graphTab([["", data.drawing, failing]]);
    const failed = report.failures.length ? tab(`Failures ${report.failures.length}`, failures(graph)) : null;
    if (report.warnings.length) tab(`Warnings ${report.warnings.length}`, warnings());
    if (model) tab("Operators", operators());
    if (report.ops.length) tab("Ops", ops());
    if (data.drawing) tab("Weights", weights(data.drawing));
    if (report.program_text) tab("Program", text(report.program_text));
    if (report.model_text) tab("ONNX", text(report.model_text));
    const rest = tab("About", about());
    show(failed || graph || rest);
  };

  // Shows what became of several archives; each leads to its report.
  const list = (data) => {
    document.body.replaceChildren(element("header", {}, element("h1", {}, data.title)));
    const section = element("section");
    const facts = ({ good, why, page }) => {
      const model = page && page.report.model;
      return good && model ? modelFacts(model) : why.replaceAll("`", "");
    };
    section.append(table(["archive", "result", "", "#warnings"], data.reports.map((one) => [
      one.page ? element("button", { type: "button", class: "link mono", onclick: () => open(one.page, () => list(data)) }, one.title) : code(one.title),
      element("b", { class: one.good ? "done" : "failed" }, one.good ? "converted" : "failed"), facts(one), one.page ? String(one.page.report.warnings.length) : ""])));
    if (data.blockers.length) {
      section.append(element("h2", {}, "Ops that prevent conversion"), table(["op", "#nodes", "#archives"], data.blockers.map((b) => [code(b.op), String(b.nodes), String(b.archives)])));
    }
    document.body.append(element("main", {}, section));
  };

  if (whole.kind === "reports") list(whole);
  else open(whole);
})();
