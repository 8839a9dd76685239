"""``tsgkit report``: the sections that each kind of model has, one file without network, and data as text."""

import re
import sys
from html.parser import HTMLParser

import pytest
from report.conftest import KINDS

from tsgkit.drawing import Drawing
from tsgkit.evaluation import evaluate
from tsgkit.inference.entry import fragments_of
from tsgkit.parsing import Parser
from tsgkit.report.model_panels import useful_fragments
from tsgkit.report.model_report import Report, ReportSettings
from tsgkit.report.plots import Series, bar_plot, line_plot
from tsgkit.tools import report as report_command
from tsgkit.tools import train as train_command
from tsgkit.treebank import Cleaning, load

pytestmark = pytest.mark.xdist_group("pictures")

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

NASTY = "<script>alert(1)</script>"
ALWAYS = ["derivations", "scores", "labels", "lengths", "worst"]
SAMPLED = ["training", "sizes", "fragments"]
SECTIONS = {
    "cfg": ALWAYS,
    "tsg": SAMPLED + ALWAYS,
    "insertion": [*SAMPLED, "auxiliary", *ALWAYS],
    "srtsg": [*SAMPLED, "subcategories", *ALWAYS],
    "srtsg-rules": ["training", "sizes", "subcategories", *ALWAYS],
    "srtsg-insertion": [*SAMPLED, "auxiliary", "subcategories", *ALWAYS],
}


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open_tags = [], [], []
        self.feed(text)
        assert not self.open_tags

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "hr", "img", "input", "link"):
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

    @property
    def sections(self):
        places = [place for place, tag in enumerate(self.tags) if tag == "section"]
        return len(places)


def require_harmless(text):
    """No script, no style of elements, nothing from elsewhere."""
    page = Page(text)
    assert not {"script", "iframe", "link", "img", "object", "form"} & set(page.tags)
    assert page.tags.count("style") == 1
    for name, value in page.attributes:
        assert name != "style"
        assert not name.startswith("on")
        assert not (name in ("href", "xlink:href", "src") and not value.startswith("#"))
    assert "http" not in re.sub(r"http://www\.w3\.org/\d+/\w+|http-equiv", "", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    return page


@pytest.mark.parametrize("kind", KINDS)
def test_sections(paths, tmp_path, kind):
    output = tmp_path / "report.html"
    options = ["--dev=village:dev", "--fragments=5", "--derivations=2", "--worst=3", "--quiet"]
    assert report_command.main([*options, f"--output={output}", str(paths[kind])]) == 0
    text = output.read_text("utf-8")
    require_harmless(text)
    assert re.findall(r'<section id="(\w+)">', text) == SECTIONS[kind]
    parts = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', text, re.DOTALL))
    assert parts["derivations"].count('class="tsg"') == 2
    assert parts["worst"].count('class="tsg"') == 6
    assert "wrong" in parts["worst"]
    if "fragments" in parts:
        assert parts["fragments"].count('class="card"') == 5
    if "training" in parts:
        assert "Log joint probability" in parts["training"]
        assert "Accepted proposals" in parts["training"]
        assert parts["training"].count("<svg") == parts["training"].count("<h3>") >= 3
    gold = [Cleaning().apply(tree) for tree in load("village", "dev")]
    parser = Parser(paths[kind])
    score = evaluate(gold, [parser.analyse(tree.leaves()).tree for tree in gold])
    assert f"<td>{score.f1:.2f}</td>" in parts["scores"]
    for label in score.by_label()[:3]:
        assert f'<td class="text">{label.label}</td><td>{label.gold}</td>' in parts["labels"]


def test_chains_are_plotted_together(models):
    twice = Report([models["tsg"], models["tsg"]], ["one", "two"]).page()
    training = re.search(r'<section id="training">(.*?)</section>', twice, re.DOTALL)[1]
    assert training.count('<td class="text">one</td>') == training.count('<td class="text">two</td>') == 1
    assert "var(--hue1)" in training
    assert re.findall(r'<section id="(\w+)">', twice) == [*SAMPLED, "derivations"]
    assert twice == Report([models["tsg"], models["tsg"]], ["one", "two"]).page()


def test_the_most_useful_fragments_come_first(models):
    report = Report([models["tsg"]], ["m"], ReportSettings(n_fragments=3))
    table = fragments_of(models["tsg"])
    numbers = table.select(min_size=2)
    best = max(numbers, key=lambda number: table.counts[number] * (table.sizes[number] - 1))
    (text,) = list(useful_fragments(report))[1:]
    first = text.index('class="card"')
    picture = Drawing.of_fragment(table.tree(best)).svg(standalone=False)
    assert text.index(picture) < text.index('class="card"', first + 1)


def test_markup_in_the_treebank_is_text(tmp_path):
    bank, model, output = tmp_path / "bank.mrg", tmp_path / "m.model", tmp_path / "report.html"
    label = f"NP{NASTY}"
    tree = f"(S ({label} (NN {NASTY}) (NN b) (NN c)) (VP (VB ran) (RB & ) ) )"
    bank.write_text(f"{tree.replace('alert(1)', 'alert')}\n" * 6)
    options = ["--model=tsg", "--iterations=3", "--average=1", "--threshold=0", "--quiet", f"--output={model}"]
    assert train_command.main([*options, str(bank)]) == 0
    assert report_command.main([f"--dev={bank}", f"--output={output}", "--quiet", str(model)]) == 0
    text = output.read_text("utf-8")
    require_harmless(text)
    assert "&lt;script&gt;alert&lt;/script&gt;" in text


def test_plots_take_the_colours_of_the_page():
    plot = line_plot("a <plot>", [Series("one $x$", [1, 2], [3.0, 4.0]), Series("_two", [1, 2], [1.0, 2.0])], "x", "y")
    assert 'aria-label="a &lt;plot&gt;"' in plot
    for found in ("currentColor", "var(--hue0)", "var(--hue1)"):
        assert found in plot
    assert " style=" not in plot
    assert ">one $x$<" in plot
    assert "_two<" in plot
    assert "<style" not in plot
    bars = bar_plot("b", ["<b>", "$"], [("n", [1.0, 2.0])], "x", "y", is_log=True)
    assert "&lt;b&gt;" in bars
    assert ">$<" in bars


def test_mistakes(paths, models, tmp_path, capsys, monkeypatch):
    output = tmp_path / "report.html"
    command = ["--quiet", f"--output={output}", str(paths["tsg"])]
    assert report_command.main([*command, str(paths["cfg"])]) == 2
    assert "chains are of one kind" in capsys.readouterr().err
    assert report_command.main([*command, "--worst=-1"]) == 2
    assert report_command.main([*command, "--dev=no-such-bank"]) == 2
    assert "no-such-bank" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert report_command.main(command) == 2
    assert "pip install 'tsgkit[plot]'" in capsys.readouterr().err
    assert not output.exists()


def test_a_model_without_history_has_no_training_section(models):
    model = models["tsg"]
    kept = {name: value for name, value in model.state.items() if not name.startswith("history_")}
    assert any(name.startswith("history_") for name in model.state)
    bare = type(model)(model.kind, model.preparation, model.stages, model.info, kept, model.corpus)
    text = Report([bare], ["m"]).page()
    assert 'id="training"' not in text
    assert 'id="sizes"' in text
