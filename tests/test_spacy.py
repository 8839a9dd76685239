"""The component of spaCy, in a blank pipeline; `make test-integrations` runs these tests with spaCy installed."""

import pickle

import pytest

import tsgkit

spacy = pytest.importorskip("spacy")

TEXT = "The old man smiled. He opened the door."
TEXTS = [TEXT, "", "I ran.", "  ", "She saw the dog  and ran away."]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("spacy") / "cfg.model"
    tsgkit.train("village:train", model="cfg").save(path)
    return str(path)


@pytest.fixture
def nlp(model):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("tsgkit", config={"model": model})
    return pipeline


def test_the_factory_is_found_by_entry_point():
    from importlib.metadata import entry_points  # noqa: PLC0415

    (point,) = entry_points(group="spacy_factories", name="tsgkit")
    assert point.value == "tsgkit._spacy_component:make_component"


def test_parse_strings_are_those_of_the_parser(nlp, model):
    first, second = nlp(TEXT).sents
    assert first._.parse_string == "(S (NP (DT The) (JJ old) (NN man)) (VP (VBD smiled)) (. .))"
    (tree,) = tsgkit.load(model).predict([[token.text for token in second]])
    assert tsgkit.read_trees(second._.parse_string) == list(tree)


def test_labels_and_constituents(nlp):
    doc = nlp(TEXT)
    sent = next(doc.sents)
    assert sent._.labels == ("S",)
    assert doc[0:3]._.labels == ("NP",)
    assert doc[3]._.labels == ("VP",)
    assert doc[1]._.labels == ()
    assert doc[1]._.parse_string == "(JJ old)"
    assert [span.text for span in sent._.constituents] == [
        *("The old man smiled.", "The old man", "The", "old", "man", "smiled", "."),
    ]
    assert [span.text for span in sent._.children] == ["The old man", "smiled", "."]
    assert list(doc[1]._.children) == []
    assert doc[0:3]._.parent.text == sent.text
    assert sent._.parent is None
    with pytest.raises(ValueError, match="'old man' is not a constituent"):
        doc[1:3]._.labels  # noqa: B018


def test_pipes_and_processes_give_the_same(nlp):
    alone = [nlp(text)._.trees for text in TEXTS]
    assert [doc._.trees for doc in nlp.pipe(TEXTS, batch_size=2)] == alone
    assert [doc._.trees for doc in nlp.pipe(TEXTS, n_process=2)] == alone
    assert alone[1] == []
    # White space is not parsed, and spans reach over it.
    assert "(CC and)" in alone[4][0][2]


def test_documents_and_pipelines_are_saved(nlp, tmp_path):
    doc = nlp(TEXT)
    copied = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert next(copied.sents)._.parse_string == next(doc.sents)._.parse_string
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline")(TEXT)._.trees == doc._.trees
    other = spacy.blank("en")
    other.add_pipe("sentencizer")
    other.add_pipe("tsgkit")
    with pytest.raises(Exception, match="has no model"):
        other(TEXT)
    assert other.from_bytes(nlp.to_bytes())(TEXT)._.trees == doc._.trees
    assert pickle.loads(pickle.dumps(nlp.get_pipe("tsgkit")))(nlp.make_doc("I ran."))._.trees


def test_tags_of_a_tagger_are_used_if_asked(model):
    trees = {}
    for mode in ("none", "hard"):
        pipeline = spacy.blank("en")
        pipeline.add_pipe("tsgkit", config={"model": model, "tags": mode, "objective": "mpd"})
        doc = pipeline.make_doc("Time flies")
        doc[0].tag_, doc[1].tag_ = "NN", "NNS"
        trees[mode] = pipeline.get_pipe("tsgkit")(doc)._.trees[0][2]
    assert "(NNS flies)" in trees["hard"]


def test_a_document_without_boundaries_is_one_sentence(model):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("tsgkit", config={"model": model})
    doc = pipeline("I ran")
    assert doc[:]._.labels
    assert len(doc._.trees) == 1


def test_brackets_are_escaped(nlp):
    assert "(" not in nlp("He ran (away).")._.trees[0][2].replace("-LRB-", "").partition("away")[2][:1]
    assert "-LRB-" in next(nlp("He ran (away).").sents)._.parse_string


def test_spaces_in_tokens_are_underscores(nlp):
    """As of merged names, or of numbers in French."""
    doc = spacy.tokens.Doc(nlp.vocab, words=["The", "old man", "smiled", "."])
    doc[0].is_sent_start = True
    nlp.get_pipe("tsgkit")(doc)
    assert " old_man)" in doc[:]._.parse_string
    assert [span.text for span in doc[:]._.constituents][-3:] == ["old man", "smiled", "."]


def test_settings_of_the_parser(model):
    pipeline = spacy.blank("en")
    component = pipeline.add_pipe("tsgkit", config={"model": model, "settings": {"max_length": 3, "span_power": 0.0}})
    assert component.settings == tsgkit.ParserSettings(max_length=3, span_power=0.0)
    assert pipeline("I ran away again")._.trees[0][2].count("(") == 5  # flat
    with pytest.raises(TypeError, match="parsers have no setting 'max_lenght'; did you mean max_length"):
        pipeline.add_pipe("tsgkit", name="other", config={"settings": {"max_lenght": 3}})
