"""The page of `--report FILE.html` in headless Chromium: it folds, searches, takes keys, and
draws models of 1,000 and 20,000 nodes. Skipped without Chromium.

`PAGE_SCREENSHOTS=FOLDER` keeps pictures of what was tested; docs/pictures has some of them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import onnx
import support

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"]
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

# Runs in the page after its own scripts. Its result is compared.
PROBE = """
<script>
addEventListener("load", () => {
  const result = {};
  const all = (what) => [...document.querySelectorAll(what)];
  const click = (node) => node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const views = all(".view").length;
  try { (() => { %s })(); } catch (error) { result.error = String(error.stack); }
  result.views = views;
  const out = document.createElement("output");
  out.textContent = JSON.stringify(result);
  if (%s) document.body.append(out);
});
</script>
"""

FOLD = """
const group = () => all("svg g.item.group")[0];
result.folded = all("svg g.item").length;
click(group());
result.open = all("svg g.item").length > result.folded && group().classList.contains("open");
click(group());
result.again = all("svg g.item").length === result.folded;
"""

FAILURES = """
result.error = null;
click(document.querySelectorAll("section:not(.graph) button")[0]);
result.selected = all("svg .selected").length;
result.problem = all("aside .problem").length === 1;
result.code = all("aside .problem code").length > 0;
result.backticks = document.querySelector("aside .problem").textContent.includes("`");
"""

LIST = """
const links = () => all("table button");
result.archives = links().map((link) => link.textContent.split("/").pop());
click(links()[1]);
const tabs = all("nav button").map((tab) => tab.textContent);
result.failures = tabs.some((name) => name.startsWith("Failures"));
click(all("header button")[0]);
result.back = links().length === 2 && all("nav").length === 0;
click(links()[0]);
result.good = document.querySelector("header .state").textContent;
"""

SEARCH = """
const input = document.querySelector(".search input");
input.value = "layers.7 tanh";
input.dispatchEvent(new Event("input"));
result.found = document.querySelector(".found p").textContent;
click(document.querySelector(".found button"));
result.selected = all("svg .selected").length;
result.details = document.querySelector("aside .op").textContent;
"""


KEYS = """
const place = () => all("svg > g")[0].getAttribute("transform");
const press = (key, at = document.body) =>
  at.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const seen = [place()];
for (const key of ["ArrowDown", "+", "f"]) { press(key); seen.push(place()); }
result.moved = seen[0] !== seen[1];
result.zoomed = seen[1] !== seen[2];
result.fits = seen[3] === seen[0];
press("/");
result.searches = document.activeElement.tagName === "INPUT";
press("Escape", document.activeElement);
result.left = document.activeElement.tagName !== "INPUT";
"""

MANY = """
const buttons = Object.fromEntries(all(".view button").map((one) => [one.textContent, one]));
const start = performance.now();
click(buttons["Unfold"]);
result.shown = all("svg g.item").length;
const input = document.querySelector(".search input");
input.value = "layers.199 tanh";
input.dispatchEvent(new Event("input"));
result.found = document.querySelector(".found p").textContent;
click(document.querySelector(".found button"));
result.selected = all("svg .selected").length;
"""


def chromium(page, tmp_path, *args):
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=4000",
        f"--user-data-dir={tmp_path / 'profile'}",
        *args,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def probe(html, tmp_path, script, picture):
    """The result of a script in the page; with `PAGE_SCREENSHOTS`, also a picture."""
    # Pictures show names of files without their folders.
    html = html.replace(f"{tmp_path}/", "").replace(f"{support.CASES}/", "")
    page = tmp_path / "page.html"
    page.write_text(html.replace("</body>", PROBE % (script, "true") + "</body>"), encoding="utf-8")
    dom = chromium(page, tmp_path, "--dump-dom")
    if folder := os.environ.get("PAGE_SCREENSHOTS"):
        page.write_text(
            html.replace("</body>", PROBE % (script, "false") + "</body>"), encoding="utf-8"
        )
        for name, args in [("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])]:
            chromium(
                page,
                tmp_path,
                "--window-size=1400,900",
                f"--screenshot={folder}/{picture}-{name}.png",
                *args,
            )
    result = json.loads(re.search("<output>(.*?)</output>", dom, re.DOTALL)[1])
    assert not result.get("error"), result
    return result


def command(*args, code=None):
    run = subprocess.run(
        [sys.executable, "-m", "pt2onnx", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code if code else run.returncode in (0, 6), run.stderr
    return run


def layered(path, layers=50, width=20, last="Tanh"):
    """A model of layers * width nodes, in modules that metadata name as torch.onnx does."""
    nodes, value = [], "x"
    for layer in range(layers):
        for i in range(width):
            op = last if i == width - 1 else ("Relu" if i % 2 else "Abs")
            node = onnx.helper.make_node(
                op, [value], [f"v{layer}_{i}"], name=f"node_{op}_{layer}_{i}"
            )
            scope = f": m.Net/layers.{layer}: m.Layer/n: aten.n.default"
            node.metadata_props.add(key="namespace", value=scope)
            nodes.append(node)
            value = node.output[0]
    ends = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("x", value)
    ]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(
        onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10
        ),
        path,
    )


@unittest.skipIf(BROWSER is None, "Chromium is not installed")
class Page(support.Test):
    def test_a_model_of_1000_nodes_folds_and_searches(self) -> None:
        a, b, page = self.folder / "a.onnx", self.folder / "b.onnx", self.folder / "d.html"
        layered(a)
        layered(b, last="Sin")
        command("diff", a, b, "--html", page)
        html = page.read_text(encoding="utf-8")
        result = probe(html, self.folder, FOLD, "diff")
        # In each model: an input, 50 layers, an output.
        self.assertEqual(result, {"folded": 104, "open": True, "again": True, "views": 2})
        result = probe(html, self.folder, SEARCH, "diff-search")
        self.assertEqual(result, {"found": "1 found", "selected": 1, "details": "Tanh", "views": 2})

    def test_keys_move_zoom_and_search(self) -> None:
        model, page = self.folder / "a.onnx", self.folder / "d.html"
        layered(model, layers=3)
        command("diff", model, model, "--html", page)
        result = probe(page.read_text(encoding="utf-8"), self.folder, KEYS, "keys")
        self.assertEqual(result.pop("views"), 2)
        self.assertTrue(all(result.values()) and len(result) == 5, result)

    def test_a_model_of_20000_nodes(self) -> None:
        """It opens folded, unfolds as far as a page can show, and its last node is found."""
        model, page = self.folder / "a.onnx", self.folder / "d.html"
        layered(model, layers=200, width=100)
        command("diff", model, model, "--html", page)
        result = probe(page.read_text(encoding="utf-8"), self.folder, MANY, "many")
        self.assertEqual((result["found"], result["selected"]), ("1 found", 1))
        self.assertLess(200, result["shown"])
        self.assertLess(result["shown"], 3500)

    def test_a_page_without_scripts_is_a_text(self) -> None:
        archive, page = support.case("custom/mylib_mix").archive, self.folder / "r.html"
        command(archive, "-o", self.folder / "m.onnx", "--report", page, code=4)
        html = page.read_text(encoding="utf-8")
        text = html.split("<noscript>")[1].split("</noscript>")[0]
        self.assertIn("mylib::mix", text)
        self.assertIn("What to do", text)

    def test_failures_are_in_their_places(self) -> None:
        archive, page = support.case("custom/mylib_mix").archive, self.folder / "r.html"
        command(archive, "-o", self.folder / "m.onnx", "--report", page, code=4)
        result = probe(page.read_text(encoding="utf-8"), self.folder, FAILURES, "failures")
        self.assertEqual(
            result,
            {
                "error": None,
                "selected": 1,
                "problem": True,
                "code": True,
                "backticks": False,
                "views": 1,
            },
        )

    def test_a_page_of_all_leads_to_the_page_of_each(self) -> None:
        good, bad, page = (
            support.case("interface/resnet_fixed").archive,
            support.case("custom/mylib_mix").archive,
            self.folder / "r.html",
        )
        command("check", good, bad, "--report", page, code=4)
        result = probe(page.read_text(encoding="utf-8"), self.folder, LIST, "all")
        self.assertEqual(
            result,
            {
                "archives": ["model.pt2", "model.pt2"],
                "failures": True,
                "back": True,
                "good": "converted",
                "views": 0,
            },
        )
