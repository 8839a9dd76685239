"""The package as its users see it: what there is, and that it does what the commands do."""

import importlib
import multiprocessing
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from imports import SOURCES
from nltk.tree import Tree

import tsgkit
from tsgkit.errors import NotFittedError, TreebankError, TsgkitError, UsageError
from tsgkit.evaluation import compare
from tsgkit.models._model import Model
from tsgkit.parsing._product import ProductParser
from tsgkit.raw_text import RawTextSettings
from tsgkit.report import Deriver, derivation_of
from tsgkit.treebank._presets import load_preset

SENTENCE = ["the", "old", "man", "smiled", "."]
BRACKETS = "(S (NP (PRP I)) (VP (VBD ran)))"


@pytest.fixture(scope="module")
def cfg():
    return tsgkit.train("village:train", model="cfg", dev="village:dev")


def test_names():
    assert "Any" not in dir(tsgkit)
    assert set(tsgkit.__all__) | {"__version__"} == set(dir(tsgkit))
    for name in tsgkit.__all__:
        value = getattr(tsgkit, name)
        assert value.__doc__, name
        assert value.__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'parze'"):
        tsgkit.parze  # noqa: B018


ROOT = Path(__file__).parent.parent
PUBLIC = (ROOT / "docs" / "api" / "index.rst").read_text("utf-8")
# The rows of its two tables: a module and its names; a group of entry points and its table.
ROW = re.compile(r"^   \* - (?::doc:)?`+(tsgkit[\w.]*).*`\n     - ((?!``tsgkit)[^*]*?)\n     - ", re.MULTILINE)
NAMES = {module: re.findall(r"``(\w+)``", names) for module, names in ROW.findall(PUBLIC)}
GROUPS = dict(re.findall(r"^   \* - ``(tsgkit\.\w+)``\n     - ``(tsgkit[\w.]+)``$", PUBLIC, re.M))


def test_the_page_lists_all_modules_that_are_not_private():
    public = {name for name in SOURCES if not any(part.startswith("_") for part in name.split("."))}
    assert set(NAMES) == public
    assert len(public) > 20


@pytest.mark.parametrize("module", NAMES)
def test_the_page_lists_the_names_of_a_module(module):
    names = importlib.import_module(module).__all__
    assert NAMES[module] == names
    assert len(set(names)) == len(names)
    for name in names:
        value = getattr(importlib.import_module(module), name)
        assert name.isupper() or value.__doc__, f"{module}.{name} has no docstring"


@pytest.mark.parametrize("module", NAMES)
def test_what_is_not_on_the_page_is_private_by_name(module):
    """Of a public module, not even what it imports can be taken for a part of it."""
    names = {name for name in dir(importlib.import_module(module)) if not name.startswith("_")}
    modules = {name.rpartition(".")[2] for name in NAMES if name.rpartition(".")[0] == module}
    assert names - modules == set(NAMES[module])


PARSERS = {"Parser": {"model"}, "ProductParser": set(), "KnownTreeParser": {"best"}}


@pytest.mark.parametrize("name", PARSERS)
def test_parsers_have_no_more_names_than_their_interface(cfg, name):
    from tsgkit.parsing._base import SentenceParser  # noqa: PLC0415

    made = {
        "Parser": lambda: cfg.parser,
        "ProductParser": lambda: ProductParser([cfg, cfg]),
        "KnownTreeParser": lambda: tsgkit.parsing.KnownTreeParser(cfg.model.grammar),
    }[name]()
    interface = {"grammar"} if name == "KnownTreeParser" else {*dir(SentenceParser), "settings"}
    assert {each for each in dir(made) if not each.startswith("_")} - interface == PARSERS[name]


def test_the_page_lists_all_groups_of_entry_points():
    sources = "".join(map(text_of, SOURCES))
    used = re.findall(r'^[A-Z_]+: Registry.* = Registry\(\s*"[\w -]+",\s*"(tsgkit\.\w+)"', sources, re.MULTILINE)
    assert sorted(GROUPS) == sorted(used)
    for group, table in GROUPS.items():
        module, _, name = table.rpartition(".")
        assert name in NAMES[module]
        assert getattr(importlib.import_module(module), name).group == group


def text_of(module):
    return "".join(path.read_text("utf-8") for path in SOURCES[module] if path.suffix == ".py")


def test_the_manual_imports_nothing_private():
    """Only the pages for those who change tsgkit name private modules."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.rst"), *(ROOT / "docs" / "examples").rglob("*.py")]
    pages += (ROOT / "docs").rglob("*.ipynb")
    for page in pages:
        imports = re.findall(r"(?:from|import) (tsgkit[\w.]*)", page.read_text("utf-8"))
        assert not [name for name in imports if "._" in name], page.name
    assert len(pages) > 30


def test_importing_the_package_imports_nothing_else():
    code = "import sys, tsgkit; dir(tsgkit); print(*({'numpy', 'nltk'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_the_model_is_that_of_the_command(tsgkit, tmp_path):
    options = {"iterations": 3, "average": 1, "seed": 5}
    import tsgkit as package  # noqa: PLC0415 - the fixture has the name of the package

    package.train("village:dev", model="tsg", **options).save(tmp_path / "a.model")
    given = [f"--{name}={value}" for name, value in options.items()]
    tsgkit("train", "--model=tsg", *given, "-o", "b.model", "village:dev")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


CESS = """\
( (S (sn-SUJ (espec.ms (da0ms0 El el)) (grup.nom.ms (ncms000 grupo grupo)))
     (grup.verb (vmis3s0 anunció anunciar))
     (sn-CD (espec.fs (da0fs0 la el)) (grup.nom.fs (ncfs000 compra compra))) (Fp . .)) )
"""


@pytest.mark.parametrize("model", ["cfg", "insertion"])  # the second is binarised by heads
def test_presets_are_those_of_the_command(tsgkit, tmp_path, model):
    import tsgkit as package  # noqa: PLC0415

    (tmp_path / "one.tbf").write_bytes(CESS.encode("iso-8859-1"))
    options = {} if model == "cfg" else {"iterations": 2, "average": 1}
    trained = package.train(tmp_path / "one.tbf", model=model, treebank="cess", dev=tmp_path / "one.tbf", **options)
    trained.save(tmp_path / "a.model")
    given = [f"--{name}={value}" for name, value in options.items()]
    tsgkit("train", f"--model={model}", "--treebank=cess", *given, "-o", "b.model", "one.tbf")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    # The parameters of the preset: Fp is punctuation, and the two nouns and the sentence are brackets.
    assert "Fp" in trained.evaluation_.parameters.delete_labels
    assert trained.evaluate(tmp_path / "one.tbf").f1 == trained.evaluation_.f1
    (tree,) = trained.predict([["El", "grupo", "anunció", "la", "compra", "."]])
    assert [each.head for each in package.draw(tree, heads="cess").dependencies] == [2, 3, 0, 5, 3, 3]
    with pytest.raises(UsageError, match=r"neither a file nor one of alpino, .*cess"):
        package.CFG(treebank="ces").fit(BRACKETS)
    assert package.evaluate(tree, tree, treebank="cess").parameters == trained.evaluation_.parameters
    (tmp_path / "words.txt").write_text("El grupo anunció la compra .\n", "utf-8")
    tsgkit("parse", "-q", "b.model", "-i", "words.txt", "-o", "out.conllu", "--format=conllu")
    heads = [line.split("\t")[6] for line in (tmp_path / "out.conllu").read_text("utf-8").splitlines()[1:-1]]
    assert heads == ["2", "3", "0", "5", "3", "3"]
    scored = tsgkit("parse", "-q", "b.model", "--from-trees", "--treebank=cess", "-i", "one.tbf", "-o", "out.mrg")
    assert f"aligned F1 {trained.evaluation_.aligned.f1:.2f}" in scored.stdout


PARTIAL = "(NP the old man) smiled .\n\nhe saw the dog .\n(FOO the old) man smiled .\n"


def test_sentences_with_partial_brackets_are_those_of_the_command(tsgkit, tmp_path):
    import tsgkit as package  # noqa: PLC0415

    path = tmp_path / "partial.txt"
    path.write_text(PARTIAL)
    options = {"iterations": 3, "average": 1, "seed": 5}
    tsgkit("train", "-q", "--model=tsg", *(f"--{name}={value}" for name, value in options.items()),
           f"--partial={path}", "-o", "m.model", "village:dev")  # fmt: skip
    words = [line.split() for line in ("the old man smiled .", "he saw the dog .", "the old man smiled .")]
    pairs = list(zip(words, ([("NP", 0, 3)], [], [("FOO", 0, 2)]), strict=True))
    for given in (path, str(path), PARTIAL.splitlines(), pairs):
        with pytest.warns(UserWarning, match="1 sentences without trees are left out, the first is number 3"):
            package.train("village:dev", model="tsg", partial=given, **options).save(tmp_path / "a.model")
        assert (tmp_path / "a.model").read_bytes() == (tmp_path / "m.model").read_bytes()
    with pytest.raises(TreebankError, match="partial:1:1: a bracket is not closed"):
        package.train("village:dev", model="tsg", partial=["(NP the old"])
    with pytest.raises(UsageError, match="a cfg needs a tree for every sentence"):
        package.train("village:dev", model="cfg", partial=path)
    with pytest.raises(UsageError, match="partial does not go together with start, raw and minutes"):
        package.train("village:dev", model="tsg", partial=path, minutes=1)


def test_nothing_is_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tsgkit.train("village:dev", model="tsg", iterations=2, average=1)
    assert not list(tmp_path.iterdir())


def test_scores_and_parses(cfg):
    assert cfg.evaluation_.aligned.f1 == cfg.score("village:dev")
    (parse,) = tsgkit.parse([SENTENCE], cfg)
    assert parse.tree == cfg.predict([SENTENCE])[0] == cfg.parse(SENTENCE).tree
    (both,) = tsgkit.parse([SENTENCE], [cfg, cfg.model], k=2)
    assert len(both.trees) == 2


@pytest.mark.parametrize("given", ["El grupo", b"El grupo"])
def test_a_string_is_not_a_sentence(cfg, given):
    for call in (
        lambda: cfg.parser.parse_one(given),
        lambda: cfg.parse(given),
        lambda: cfg.predict([given]),
        lambda: cfg.predict(given.split()),
        lambda: tsgkit.parse([given], cfg),
        lambda: ProductParser([cfg.model, cfg.model]).parse_one(given),
    ):
        with pytest.raises(TypeError, match="a sentence is a sequence of words, not the string"):
            call()
    with pytest.raises(TypeError, match="None is not a string"):
        cfg.parse(["a", None])


def test_a_text_is_not_a_word(cfg):
    for call in (
        lambda: cfg.parse(["El grupo"]),
        lambda: cfg.predict([["I", "ran"], ["El grupo"]]),
        lambda: tsgkit.parse([["El grupo"]], cfg),
        lambda: ProductParser([cfg.model, cfg.model]).parse_one(["El grupo"]),
    ):
        with pytest.warns(match=r"the only word of the sentence is 'El grupo': .* 'El grupo'\.split\(\)$"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cfg.parse(["1\u00a0000"]).tree.leaves() == ["1\u00a0000"]  # a no-break space is part of a word


def test_trees_may_be_given_in_any_form(tmp_path):
    tree = Tree.fromstring(BRACKETS)
    path = tmp_path / "trees.mrg"
    path.write_text(f"{BRACKETS}\n{BRACKETS}\n")
    assert tsgkit.read_trees(tree) == tsgkit.read_trees(BRACKETS) == tsgkit.read_trees([tree]) == [tree]
    assert tsgkit.read_trees(path) == tsgkit.read_trees(str(path)) == tsgkit.read_trees([BRACKETS, tree]) == [tree] * 2
    assert tsgkit.read_trees([path, tree]) == [tree] * 3
    assert len(tsgkit.read_trees("village:dev")) == 65
    for given in (tree, BRACKETS, path, str(path), [tree], [BRACKETS]):
        assert tsgkit.evaluate(given, given).f1 == 100
    assert tsgkit.evaluate([BRACKETS, BRACKETS], [tree, None]).all.skips == 1
    with pytest.raises(TypeError, match="not int"):
        tsgkit.read_trees([3])
    with pytest.raises(TreebankError, match="string:1"):
        tsgkit.read_trees("(S (NP")


def test_parses_are_scored_as_their_trees(cfg):
    gold = ["(TOP (S (NP (PRP I)) (VP (VBD ran)) (. .)))"]
    assert tsgkit.evaluate(gold, tsgkit.parse([["I", "ran", "."]], cfg)).f1 == 100
    assert tsgkit.evaluate(gold[0], cfg.parse(["I", "ran", "."])).f1 == 100
    with pytest.warns(UserWarning, match="test:2: extra line; the gold file has fewer lines"):
        tsgkit.evaluate(gold, gold * 2)


def test_parameters_that_do_not_fit_are_warned_of(cfg, tmp_path):
    gold = ["(TOP (S (NP (PRP I)) (VP (VBD ran)) (PUNCT .)))"] * 20
    with pytest.warns(UserWarning, match="no word of gold has a tag that the parameters delete"):
        tsgkit.evaluate(gold, gold)
    with pytest.warns(UserWarning, match="no word of .* has a tag that the parameters delete"):
        cfg.evaluate(gold)
    (tmp_path / "mine.prm").write_text("DELETE_LABEL PUNCT\nDELETE_LABEL KOMMA\n")
    with pytest.warns(UserWarning, match="the parameters name KOMMA, which occurs neither"):
        assert tsgkit.evaluate(gold, gold, tmp_path / "mine.prm").f1 == 100


def test_reprs_are_one_line(cfg):
    model = cfg.model
    shown = [cfg, model, model.stages[0], model.grammar, model.preparation.lexicon, cfg.parser, cfg.evaluation_]
    shown += [cfg.parse(SENTENCE), tsgkit.draw(BRACKETS), ProductParser([model, model])]
    shown += [cfg.fragments(), Deriver(cfg), derivation_of(cfg, cfg.parse(SENTENCE).tree), load_preset("cess")]
    shown.append(compare(cfg.evaluation_, cfg.evaluation_, n_resamples=10))
    for value in shown:
        assert "\n" not in repr(value)
        assert len(repr(value)) < 250
    assert repr(tsgkit.draw(BRACKETS)) == "<Drawing of 7 nodes: tree of: I ran>"


def test_notebooks_show_models_scores_and_parses(cfg):
    page = cfg._repr_html_()
    assert "312 trees" in page
    assert cfg.evaluation_.headline() in page
    assert "<td>Aligned</td>" in cfg.evaluation_._repr_html_()
    assert cfg.parse(SENTENCE)._repr_svg_().startswith("<svg")
    assert tsgkit.CFG()._repr_html_() == "<code>CFG()</code>"
    tsg = tsgkit.train("village:dev", model="tsg", iterations=5, average=1)
    assert "frequent fragments" in tsg._repr_html_()


def words_of(parser, sentence):
    return parser.parse_one(sentence).leaves()


def test_parsers_can_be_sent_to_other_processes(cfg):
    for parser in (cfg.parser.with_settings(objective="mpd"), ProductParser([cfg.model, cfg.model])):
        copied = pickle.loads(pickle.dumps(parser))
        assert copied.parse_one(SENTENCE) == parser.parse_one(SENTENCE)
        assert copied.settings == parser.settings
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(words_of, (cfg.parser, SENTENCE)) == SENTENCE


def test_a_parser_with_a_correction_of_its_own_is_not_sent(cfg):
    parser = tsgkit.Parser(cfg.model, objective="mer-sampled", correction=lambda *given: 0.0)
    with pytest.raises(TypeError, match="cannot be sent"):
        pickle.dumps(parser)


def test_saved_models_are_loaded(cfg, tmp_path):
    cfg.save(tmp_path / "cfg.model")
    loaded = tsgkit.load(tmp_path / "cfg.model")
    assert repr(loaded) == repr(cfg)
    assert loaded.predict([SENTENCE]) == cfg.predict([SENTENCE])
    assert Model.load("a name", cfg.model.to_bytes()).grammar.n_rules == cfg.model.grammar.n_rules
    saved = tsgkit.train("village:dev", model="tsg", iterations=2, average=1, seed=3)
    saved.save(tmp_path / "tsg.model")
    again = tsgkit.load(tmp_path / "tsg.model")
    assert again.get_params() == saved.get_params()
    assert again.history_["log_joint"] == saved.history_["log_joint"]


@pytest.mark.parametrize("suffix", ["svg", "html", "tex", "txt", "png", "pdf"])
def test_the_suffix_decides_the_format_of_a_drawing(cfg, tmp_path, suffix):
    path = tmp_path / f"tree.{suffix}"
    tsgkit.draw(cfg.parse(SENTENCE), path, model=cfg)
    starts = {"svg": b"<svg", "html": b"<!doctype html>", "tex": b"%", "txt": b" ", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[suffix])


def test_an_estimator_stands_wherever_a_model_does(cfg, tmp_path):
    cfg.save(tmp_path / "cfg.model")
    expected = cfg.parse(SENTENCE).tree
    path = tmp_path / "cfg.model"
    for given in (cfg, cfg.model, path, str(path), tsgkit.load(path)):
        assert tsgkit.Parser(given).analyse(SENTENCE).tree == expected
        assert tsgkit.Parser(given, objective="mpd").settings.objective == "mpd"
        assert ProductParser([given, cfg]).parse_one(SENTENCE).leaves() == SENTENCE
        assert tsgkit.parse([SENTENCE], given)[0].tree == tsgkit.parse([SENTENCE], [given])[0].tree == expected
        assert repr(tsgkit.draw(expected, model=given)) == repr(tsgkit.draw(expected, model=cfg))
        assert len(derivation_of(given, expected).steps) == len(derivation_of(cfg, expected).steps)


def test_what_is_no_model_is_named(cfg, tmp_path):
    for call in (tsgkit.Parser, lambda given: tsgkit.draw(BRACKETS, model=given)):
        with pytest.raises(TypeError, match="path of a model file, not int"):
            call(3)
    with pytest.raises(TypeError, match="not list; several are a ProductParser"):
        tsgkit.Parser([cfg, cfg])
    with pytest.raises(NotFittedError, match="this SRTSG is not trained yet: call fit"):
        tsgkit.Parser(tsgkit.SRTSG())
    with pytest.raises(TypeError, match="sentences are sequences of words, not CFG"):
        tsgkit.parse(cfg, [SENTENCE])
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        tsgkit.load(tmp_path / "no-such-file")


def test_a_drawing_of_another_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"tree.jpg: the suffix of a drawing is .svg, .html, .tex"):
        tsgkit.draw(BRACKETS, tmp_path / "tree.jpg")
    with pytest.raises(UsageError, match=r"head rules 'pen': neither a file nor one of .*; did you mean penn\?"):
        tsgkit.draw(BRACKETS, heads="pen")
    with pytest.raises(TypeError, match=r"trees are nltk\.Tree, strings of brackets or paths, not CFG"):
        tsgkit.draw(tsgkit.CFG())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tsgkit.train("village:dev", model="strsg"), "must be one of .*; did you mean srtsg"),
        (lambda: tsgkit.train("village:dev", model="cfg", splits=3), "CFG has no parameter 'splits', only SRTSG"),
        (lambda: tsgkit.train("village:dev", treebank="pen"), "neither a file nor one of .*; did you mean penn"),
        (lambda: tsgkit.train("village:dev", model="tsg", iterations="5"), "iterations '5': must be a whole number"),
        (lambda: tsgkit.train("village:dev", model="tsg", iterations=2.5), "iterations 2.5: must be a whole number"),
        (lambda: tsgkit.CFG(seed=-1), "seed -1: must be at least 0"),
        (lambda: tsgkit.CFG(seed=None), "seed None: must be a whole number"),
        (lambda: tsgkit.TSG(threads=0), "threads 0: must be at least 1"),
        (lambda: tsgkit.train([]), "the treebank has no trees"),
        (lambda: tsgkit.train("no-such-file"), "no such file or folder"),
        (lambda: tsgkit.train(["(S (NP ) (VP ))"]), "neither words nor children"),
        (lambda: tsgkit.read_trees("village:dev", format="braket"), "did you mean brackets"),
        (lambda: tsgkit.evaluate(BRACKETS, BRACKETS, "colins"), "did you mean collins"),
        (lambda: tsgkit.parse([["I"]], tsgkit.CFG().fit(BRACKETS), objective="mer-sample"), "did you mean mer-sampled"),
        (lambda: tsgkit.CFG().fit(BRACKETS).score([]), "there are no trees to score"),
        (lambda: tsgkit.CFG().fit(BRACKETS).parse(["I", "ran"], "DT"), "one for every word, not the string 'DT'"),
        (lambda: tsgkit.train(BRACKETS, model="CFG"), "did you mean cfg"),
        (lambda: tsgkit.train(BRACKETS, model=tsgkit.CFG), r"not the class CFG; .*, as in tsgkit.CFG\(\).fit\(trees\)"),
        (lambda: tsgkit.CFG(iteration=5), "no parameter 'iteration'; did you mean iterations, of TSG and InsertionTSG"),
        (lambda: tsgkit.TSG(iteration=5), r"no parameter 'iteration'; did you mean iterations\?"),
        (lambda: tsgkit.CFG(cleaning="no"), "cleaning 'no': must be a tsgkit.Cleaning, as in"),
        (lambda: tsgkit.CFG(binarization="right"), "binarization 'right': must be a tsgkit.Binarization, as in"),
        (lambda: tsgkit.CFG(unknown="unicode"), "unknown 'unicode': must be a tsgkit.UnknownWords, as in"),
        (lambda: tsgkit.CFG(parsing={"objective": "mpd"}), "parsing .*: must be a tsgkit.ParserSettings, as in"),
        (lambda: tsgkit.train(BRACKETS, model="tsg", callback=5), "callback is a function of the progress, not int"),
        (lambda: tsgkit.train(BRACKETS, model="tsg", minutes="1"), "minutes '1': must be a number"),
        (lambda: tsgkit.train(BRACKETS.encode()), "paths, not bytes"),
        (lambda: tsgkit.read_trees(""), "^'': there is no such file"),
        (lambda: tsgkit.parse([["I"]], tsgkit.CFG().fit(BRACKETS), treshold=1), "'treshold'; did you mean threshold"),
        (lambda: tsgkit.parse([["I"]], tsgkit.CFG().fit(BRACKETS), k="3"), "k='3': must be a whole number"),
        (lambda: tsgkit.parse([["I"]], tsgkit.CFG().fit(BRACKETS), threads=0), "threads=0: must be at least 1"),
        (lambda: tsgkit.parse([Tree("S", ["I"])], tsgkit.CFG().fit(BRACKETS)), r"not a tree; tree.leaves\(\)"),
        (lambda: tsgkit.train(BRACKETS, model="cfg", params="new"), "params goes with dev: alone it has no effect"),
        (lambda: tsgkit.train(BRACKETS, raw_settings=RawTextSettings()), "raw_settings goes with raw"),
        (lambda: tsgkit.Binarization(horizontal="all"), "horizontal 'all': must be a whole number"),
        (lambda: tsgkit.Cleaning(root=5), "root 5: must be a string"),
        (lambda: tsgkit.Cleaning(empty_tags="-NONE-"), r"must be a sequence of tags, as in \('-NONE-',\)"),
        (lambda: tsgkit.UnknownWords(threshold="2"), "threshold '2': must be a whole number"),
        (lambda: tsgkit.load(5), "what is loaded is the path of a model file, not int"),
        (lambda: tsgkit.load(tsgkit.CFG()), "the path of a model file, not CFG"),
        (lambda: tsgkit.evaluate(None, BRACKETS), "strings of brackets and parses, .* not NoneType"),
        (lambda: tsgkit.evaluate([[BRACKETS]], [BRACKETS]), "not list among several"),
        (lambda: tsgkit.evaluate([Path("a.mrg")], [BRACKETS]), "one file of trees, not PosixPath among several"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises((TsgkitError, TypeError), match=message):
        call()


def test_numbers_of_numpy_are_settings():
    """As scikit-learn's searches pass them."""
    settings = {"iterations": np.int64(2), "average": np.int32(1), "anneal_from": np.float32(1)}
    model = tsgkit.TSG(**settings, seed=np.int64(1)).fit("village:dev")
    same = tsgkit.TSG(iterations=2, average=1, anneal_from=1.0, seed=1).fit("village:dev")
    assert model.model.to_bytes() == same.model.to_bytes()


def test_one_tree_is_drawn_at_a_time():
    with pytest.raises(UsageError, match="one tree is drawn at a time, not 65"):
        tsgkit.draw("village:dev")


def test_the_example_of_the_readme_is_short():
    """Train, parse, score and draw in at most eight lines."""
    text = (ROOT / "README.md").read_text("utf-8")
    (example,) = (part.partition("```")[0] for part in text.split("```python\n")[1:2])
    lines = [line for line in example.splitlines() if line.startswith((">>>", "..."))]
    assert len(lines) <= 8
    for call in ("train(", "parse(", "score(", "draw("):
        assert call in example


def test_the_figures_of_the_readme_are_those_of_the_command(tsgkit):
    """The example is run by the tests of the documents; here the command that its sentence names."""
    text = (ROOT / "README.md").read_text("utf-8")
    (f1,) = re.findall(r"^F1 ([0-9.]+)$", text, flags=re.MULTILINE)
    trained = tsgkit("train", "-q", "--model=cfg", "--dev=village:dev", "-o", "m.model", "village:train")
    assert f"aligned F1 {f1}," in trained.stdout
    parsed = tsgkit("parse", "-q", "m.model", text="The old man opened the door .\n").stdout
    shown = " ".join(text.partition(">>> print(parse.tree)\n")[2].partition("\n>>>")[0].split())
    assert parsed.strip() == shown
