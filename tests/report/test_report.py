"""``tsgkit report``: the sections that each kind of model has, one file without network, and data as text."""

import base64
import hashlib
import html
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from report.conftest import KINDS

from tsgkit._tools import report as report_command
from tsgkit._tools import train as train_command
from tsgkit.drawing import Drawing
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.inference._convergence import plain_r_hat
from tsgkit.inference.entry import fragments_of
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing import Parser
from tsgkit.report._model_panels import useful_fragments
from tsgkit.report._page import html_page, plot_script
from tsgkit.report._plots import Mark, Series, bar_plot, line_plot
from tsgkit.report._training import diagnoses_of, marks_of, phases_of
from tsgkit.report.model_report import Report, ReportSettings
from tsgkit.report.panels import PANELS
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
    """No script but ours, no style of elements, nothing from elsewhere."""
    page = Page(text)
    assert not {"iframe", "link", "img", "object", "form"} & set(page.tags)
    assert page.tags.count("script") == text.count("<script>") == (" data-plot=" in text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert ("script-src" in policy) == ("<script>" in text)
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        assert script == plot_script()
        assert f"script-src '{digest(script)}';" in policy
    assert page.tags.count("style") == 1
    for name, value in page.attributes:
        assert name != "style"
        assert not name.startswith("on")
        assert not (name in ("href", "xlink:href", "src") and not value.startswith("#"))
    assert "http" not in re.sub(r"http://www\.w3\.org/\d+/\w+|http-equiv", "", text)
    assert "default-src 'none'; style-src 'sha256-" in text
    return page


def digest(text):
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_of(report, *names):
    """A page with some of the sections of a report."""
    parts = (f'<section id="{name}">{"".join(PANELS.require(name).content(report))}</section>' for name in names)
    return html_page("t", [report.summary(), *parts])


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
        # One plot is the trace of the last phase.
        assert parts["training"].count("<svg") == parts["training"].count("<h3>") >= 3
    gold = [Cleaning().apply(tree) for tree in load("village", "dev")]
    parser = Parser(paths[kind])
    score = evaluate(gold, [parser.analyse(tree.leaves()).tree for tree in gold])
    assert f"<td>{score.f1:.2f}</td>" in parts["scores"]
    summary = text[: text.index("<nav")]
    assert f"<dt>F1</dt><dd>{score.aligned.f1:.2f}" in summary
    for name in ("Sentences per second", "Rules of the grammar"):
        assert f"<dt>{name}</dt>" in summary
    assert "Trained on 312 trees with 4,295 words" in summary
    assert ("parses with a model of the labels of spans" in summary) == kind.startswith("srtsg")
    for label in score.by_label()[:3]:
        assert f'<td class="text">{label.label}</td><td>{label.gold}</td>' in parts["labels"]


def test_chains_are_plotted_together(models):
    settings = ReportSettings(n_derivations=1)
    twice = Report([models["tsg"], models["tsg"]], ["one", "two"], settings).page()
    training = re.search(r'<section id="training">(.*?)</section>', twice, re.DOTALL)[1]
    assert training.count('<td class="text">one</td>') == training.count('<td class="text">two</td>') == 1
    assert "var(--hue1)" in training
    assert re.findall(r'<section id="(\w+)">', twice) == [*SAMPLED, "derivations"]
    assert twice == Report([models["tsg"], models["tsg"]], ["one", "two"], settings).page()


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
    with pytest.raises(UsageError, match="chains are of one kind"):
        Report([models["tsg"], models["cfg"]], ["a", "b"])
    assert report_command.main([*command, "--worst=-1"]) == 2
    assert report_command.main([*command, "--dev=no-such-bank"]) == 2
    assert "no-such-bank" in capsys.readouterr().err
    for option in ("--params=new", "--treebank=penn"):
        assert report_command.main([*command, option]) == 2
        assert f"{option.partition('=')[0]} goes with --dev=TREEBANK" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert report_command.main(command) == 2
    assert "pip install 'tsgkit[plot]'" in capsys.readouterr().err
    assert not output.exists()


def changed(model, info=None, state=None):
    """A model whose file says something else of its training."""
    return replace(model, info={**model.info, **(info or {})}, state={**model.state, **(state or {})})


@pytest.fixture
def odd_model(tmp_path, capsys):
    """A place for a model, and the message of a report on it that fails."""

    def report():
        assert report_command.main(["--quiet", f"--output={tmp_path / 'report.html'}", str(found.path)]) == 2
        return capsys.readouterr().err

    found = SimpleNamespace(path=tmp_path / "odd.model", report=report)
    return found


@pytest.mark.parametrize(
    ("info", "state", "message"),
    [
        ({"trees": "many"}, {}, "trees is 'many' instead of a whole number"),
        ({"tokens": 1.5}, {}, "tokens is 1.5"),
        ({"samples": True}, {}, "samples is True"),
        ({"seed": {"a": [1] * 100}}, {}, "seed is {'a': [1, 1"),
        ({"iterations": None}, {}, "iterations is None"),
        ({"settings": "none"}, {}, "its settings are 'none'"),
        ({"settings": [1]}, {}, "its settings are [1]"),
        ({}, {"history_log_joint": np.zeros((3, 2))}, "the record of log_joint is not a list of numbers"),
        ({}, {"history_log_joint": np.zeros(3)}, "of different lengths"),
    ],
)
def test_facts_that_cannot_be_are_refused(models, odd_model, info, state, message):
    changed(models["tsg"], info, state).save(odd_model.path)
    error = odd_model.report()
    assert "odd.model: " in error
    assert message in error
    assert "the file is damaged" in error


@pytest.mark.parametrize("settings", [{}, {"iterations": "many"}, {"iterations": -3}, {"splits": 3}, {"other": None}])
def test_settings_of_other_versions_are_shown(models, settings):
    odd = changed(models["tsg"], {"settings": settings})
    text = Report([odd], ["odd"], ReportSettings(n_derivations=0)).page()
    require_harmless(text)
    assert "Trace of the log joint" in text
    assert all(f">{name}<" in text for name in settings)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_records_that_are_not_finite(models, value):
    values = models["tsg"].state["history_log_joint"].copy()
    values[[3, 19]] = value
    for state in ({"history_log_joint": values}, {"history_acceptance": np.full(20, value)}):
        text = page_of(Report([changed(models["tsg"], state=state)], ["odd"]), "training")
        require_harmless(text)
        for data in re.findall(r'data-plot="([^"]*)"', text):
            json.loads(html.unescape(data), parse_constant=pytest.fail)
        assert ("<h3>Accepted proposals</h3>" in text) == ("history_log_joint" in state)


def test_phases_are_marked(models):
    def marks(kind):
        return [(mark.x, mark.name) for mark in marks_of(phases_of(models[kind]))]

    assert marks("tsg") == []
    assert marks("srtsg") == [(1, "split 1"), (5, "split 2"), (9, "joint")]
    assert marks("srtsg-insertion") == [(1, "split 1"), (5, "insertion")]
    assert marks("cfg") == []
    training = page_of(Report([models["srtsg"]], ["m"]), "training")
    assert all(f">{name}<" in training for name in ("split 1", "split 2", "joint"))
    assert "the log joint falls" in training
    assert "the log joint falls" not in page_of(Report([models["tsg"]], ["m"]), "training")
    # A training that began with another model has the last phases only.
    late = {name: values[8:] for name, values in models["srtsg"].state.items() if name.startswith("history_")}
    begun = changed(models["srtsg"], state=late)
    assert [phase.title for phase in phases_of(begun)] == ["joint"]
    odd = changed(models["srtsg"], state={name: values[:3] for name, values in late.items()})
    assert phases_of(odd) == []


def test_convergence_of_one_chain(models):
    report = Report([models["tsg"]], ["m"])
    found = {one.quantity: one for one in diagnoses_of(report)}
    draws = models["tsg"].state["history_log_joint"][10:]
    assert found["log_joint"].n_draws == len(draws) == 10
    assert found["log_joint"].r_hat == plain_r_hat(draws[None])
    text = page_of(report, "training")
    assert f"<dd>{found['log_joint'].r_hat:.3f}" in text
    assert "Trace of the log joint" in text
    assert "halves of one chain" in text
    assert f"{draws.mean():,.1f}</td>" in text


def test_chains_are_compared_in_the_last_phase(models):
    """The log joint of the splits is that of other variables."""
    model = models["srtsg"]
    joint = model.state["history_log_joint"]
    last = joint[8:][len(joint[8:]) // 2 :]
    higher = changed(model, state={"history_log_joint": np.where(np.arange(len(joint)) < 8, 0.0, joint)})
    for each in (model, higher):
        text = page_of(Report([each], ["m"]), "training")
        assert f"{last.mean():,.1f}</td>" in text
        assert f"{last.max():,.1f}</td>" in text


def test_values_of_plots_are_in_the_page():
    plot = line_plot("p", [Series("one", range(1, 4), [3.0, 4.0, 5.0])], "x", "y", [Mark(2, "mi<d")])
    (data,) = re.findall(r'data-plot="([^"]*)"', plot)
    values = json.loads(html.unescape(data))
    assert (values["x"], values["series"]) == ([1, 2, 3], [{"name": "one", "y": [3.0, 4.0, 5.0]}])
    left, top, right, bottom = values["box"]
    width, height = (float(size) for size in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', plot).groups())
    assert 0 < left < right < width
    assert 0 < top < bottom < height
    assert values["limits"][0] < 1
    assert values["limits"][1] > 3
    assert "mi&lt;d" in plot
    long = line_plot("p", [Series("one", range(1, 10001), [0.5] * 10000)], "x", "y")
    assert len(json.loads(html.unescape(re.search(r'data-plot="([^"]*)"', long)[1]))["x"]) <= 1500
    bars = bar_plot("b", ["<b>", "c"], [("n", [1.0, 2.5]), ("m", [3.0, 4.0])], "x", "y")
    assert re.findall("<title>(.*?)</title>", bars) == ["&lt;b&gt;: n 1", "c: n 2.50", "&lt;b&gt;: m 3", "c: m 4"]


def test_models_of_different_kinds_side_by_side(paths, tmp_path):
    output = tmp_path / "report.html"
    chosen = [str(paths[kind]) for kind in ("cfg", "tsg", "srtsg")]
    assert report_command.main(["--dev=village:dev", "--worst=2", "--quiet", f"--output={output}", *chosen]) == 0
    text = output.read_text("utf-8")
    require_harmless(text)
    assert re.findall(r'<section id="(\w+)">', text) == ["labels", "lengths", "differences"]
    gold = [Cleaning().apply(tree) for tree in load("village", "dev")]
    for kind in ("cfg", "tsg", "srtsg"):
        parser = Parser(paths[kind])
        score = evaluate(gold, [parser.analyse(tree.leaves()).tree for tree in gold])
        assert f"{score.aligned.f1:.2f} (EVALB {score.all.f1:.2f}" in text
    assert text.count('class="tsg"') == 2 * 4
    # Without test sentences there are sizes and training alone; chains of one kind are one column.
    assert report_command.main(["--quiet", f"--output={output}", chosen[0], chosen[1], chosen[1]]) == 0
    text = output.read_text("utf-8")
    assert "<section" not in text
    assert text.count("Trained on") == 2
    assert "2 chains with the seeds 0, 0" in text


def test_phrases_are_examples_of_subcategories(models):
    table = SubcategoryTable.of_model(models["srtsg"])
    corpus = table.corpus
    trees = list(corpus.trees())
    names = [name for name in table.names if name.startswith("NP-")]
    assert names
    total = Counter()
    for name in names:
        found = table.phrases(name, 10_000)
        assert found == sorted(found, key=lambda item: -item[1])
        assert sum(count for _, count in found) == int((table.symbols == table.names.index(name)).sum())
        total.update(dict(found))
    # The words of the text, not the classes of rare words.
    expected = Counter(" ".join(node.leaves()) for tree in trees for node in tree.subtrees() if node.label() == "NP")
    assert total == expected
    part = page_of(Report([models["srtsg"]], ["m"]), "subcategories")
    phrase, count = table.phrases(names[0], 1)[0]
    assert f"{html.escape(phrase)} {count}" in part


def test_a_model_without_history_has_no_training_section(models):
    model = models["tsg"]
    kept = {name: value for name, value in model.state.items() if not name.startswith("history_")}
    assert any(name.startswith("history_") for name in model.state)
    bare = type(model)(model.kind, model.preparation, model.stages, model.info, kept, model.corpus)
    text = Report([bare], ["m"], ReportSettings(n_derivations=0)).page()
    assert 'id="training"' not in text
    assert 'id="sizes"' in text


def test_parameters_that_do_not_fit_the_treebank(paths, tmp_path, capsys):
    bank, output = tmp_path / "bank.mrg", tmp_path / "report.html"
    bank.write_text("(TOP (S (NP (PRP I)) (VP (VBD ran)) (PUNCT .)))\n" * 20)
    parameters = tmp_path / "mine.prm"
    parameters.write_text("DELETE_LABEL TOP\nDELETE_LABEL PUNCT\n")
    options = [f"--dev={bank}", f"--output={output}", "--derivations=0", "--fragments=0", str(paths["cfg"])]
    assert report_command.main(options) == 0
    assert "punctuation counts as words; --params=FILE" in capsys.readouterr().err
    assert report_command.main([f"--params={parameters}", *options]) == 0
    assert "punctuation counts" not in capsys.readouterr().err
    assert "Aligned" in output.read_text("utf-8")
