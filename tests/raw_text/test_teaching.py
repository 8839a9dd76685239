"""Learning from raw text: what is read, what is learned from, and that every step continues after an interruption."""

import gzip
import json
import lzma
import shutil
import subprocess
import sys

import pytest

import tsgkit
from tsgkit.distributed import make_backend
from tsgkit.errors import JobError, TreebankError, UsageError
from tsgkit.inference._chains import Plan
from tsgkit.inference._checkpoint import corpus_digest
from tsgkit.inference._srtsg import SrSettings
from tsgkit.raw_text import RawSentences, RawTextSettings, Teaching, student_corpus, teaching_of
from tsgkit.raw_text import _teaching as teaching_module
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._trees import words

QUICK = SrSettings(splits=1, split_iterations=4, joint_iterations=0, average=2, average_every=1)
SETTINGS = RawTextSettings(teachers=2, sentences=30, max_length=20)


@pytest.fixture(scope="module")
def gold():
    trees = load("village", "train")[:60]
    return prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords("unicode", 0))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("raw") / "text"
    sentences = [" ".join(words(tree)) for tree in load("village", "dev")]
    path.write_text("\n".join(["", *sentences, "word " * 30]) + "\n")
    return path


def teaching_in(folder, gold, text, *, settings=SETTINGS, **options):
    raw = RawSentences([text], settings)
    return Teaching(Plan(QUICK), gold, raw, folder / "student.model", seed=1, quiet=True, **options)


def corpus_of(teaching, **options):
    teaching.train_teachers(make_backend("local"))
    return teaching.student_corpus(teaching.parse_raw(**options))


@pytest.fixture(scope="module")
def finished(tmp_path_factory, gold, text):
    """A folder with the files of all steps, and the corpus that they end with."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, corpus_of(teaching_in(folder, gold, text))


@pytest.fixture
def taught(tmp_path, finished):
    """A folder with trained teachers."""
    folder = tmp_path / "taught"
    shutil.copytree(finished[0], folder)
    for path in folder.glob("student.model.raw.*"):
        path.unlink()
    return folder


def continued(folder, gold, text):
    """The corpus of a job that continues from the files in a folder."""
    teaching = teaching_in(folder, gold, text, resume=True)
    return teaching.student_corpus(teaching.parse_raw())


# ---- sentences ----------------------------------------------------------------------------------------------


def test_sentences_are_counted_and_the_first_ones_used(text):
    raw = RawSentences([text], RawTextSettings(sentences=1000, max_length=8))
    sentences = list(raw)
    lengths = [len(words(tree)) for tree in load("village", "dev")]
    n_short = sum(length <= 8 for length in lengths)
    assert raw.counts == {
        "lines": len(lengths) + 2,
        "empty": 1,
        "too_long": len(lengths) - n_short + 1,
        "used": n_short,
    }
    assert all(len(sentence.split(" ")) <= 8 for sentence in sentences)
    few = RawSentences([text, text], RawTextSettings(sentences=3, max_length=8))
    assert list(few) == sentences[:3]
    assert few.counts["used"] == 3


def test_compressed_text_and_several_files_are_one_text(tmp_path, text):
    with gzip.open(tmp_path / "text.gz", "wb") as file:
        file.write(text.read_bytes())
    once, twice = (list(RawSentences(sources, RawTextSettings())) for sources in ([text], [text, tmp_path / "text.gz"]))
    assert twice == once + once


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"The man left .\n\x00\x01\x02\n", "2:1: not text in utf-8: a NUL character"),
        (b"\xff\xfe\x80\x81", "1:1: not utf-8: the file begins with the mark of UTF-16"),
        (gzip.compress(b"The man left .\n" * 100, mtime=0)[:40], "damaged or cut short"),
        (lzma.compress(b"The man left .\n" * 100)[:-20], "damaged or cut short"),
    ],
    ids=["null", "bytes", "gzip", "xz"],
)
def test_what_is_no_text_is_an_error_with_its_place(tmp_path, content, message):
    path = tmp_path / "raw"
    path.write_bytes(content)
    with pytest.raises(TreebankError, match=message):
        list(RawSentences([path], RawTextSettings()))


def test_text_of_another_script_is_refused(tmp_path, gold):
    path = tmp_path / "raw"
    path.write_text("старик открыл дверь .\n" * 20)
    with pytest.raises(UsageError, match=r"the treebank has only 0\.0%"):
        teaching_in(tmp_path, gold, path)


@pytest.mark.parametrize("content", ["", "\n\n\n", ". . .\n"], ids=["empty", "blank", "points"])
def test_text_without_sentences_is_refused(tmp_path, gold, content):
    path = tmp_path / "raw"
    path.write_text(content)
    with pytest.raises(UsageError, match="no sentences of at most 20 words"):
        teaching_in(tmp_path, gold, path)


@pytest.mark.slow
def test_a_gigabyte_of_text_is_streamed(tmp_path):
    """All of it is read, since its lines are too long; memory is that of a line."""
    path = tmp_path / "raw"
    line = b"the man left and " * 60_000 + b"\n"
    n_lines = (1 << 30) // len(line) + 1
    with open(path, "wb") as file:
        for _ in range(n_lines):
            file.write(line)
        file.write(b"the man left .\n")
    script = (
        "import resource; from tsgkit.raw_text import RawSentences, RawTextSettings;"
        "raw = RawSentences(['raw'], RawTextSettings());"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(list(raw), raw.counts['too_long'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    path.unlink()
    sentences, too_long, kilobytes = done.stdout.rsplit(maxsplit=2)
    assert sentences == "['the man left .']"
    assert int(too_long) == n_lines
    assert int(kilobytes) < 100_000


def test_stdin_is_refused():
    with pytest.raises(UsageError, match="stdin"):
        RawSentences(["-"], RawTextSettings())


# ---- the student's corpus -----------------------------------------------------------------------------------


def test_gold_trees_come_first_and_are_unchanged(finished, gold):
    _, corpus = finished
    record = teaching_of(corpus)
    assert record["gold_trees"] == gold.n_trees
    assert record["used"] == 30
    assert record["parsed"] + record["fallback"] == 30
    assert corpus.n_trees == gold.n_trees + record["parsed"]
    assert list(corpus.trees())[: gold.n_trees] == list(gold.trees())


def test_parsed_trees_are_over_the_raw_sentences(finished, text):
    folder, corpus = finished
    raw = list(RawSentences([text], SETTINGS))
    lines = (folder / "student.model.raw.mrg").read_text().splitlines()
    kept = [sentence for sentence, line in zip(raw, lines, strict=True) if line]
    assert [" ".join(sentence) for sentence in corpus.sentences()][teaching_of(corpus)["gold_trees"] :] == kept


def test_vocabulary_is_that_of_all_trees(finished):
    _, corpus = finished
    assert set(corpus.forms) == {word for sentence in corpus.sentences() for word in sentence}
    assert len(corpus.words) == len(corpus.forms)


def test_fallback_trees_are_not_learned_from(taught, gold, text, monkeypatch):
    def fails_on_every_third(shared, chunk):
        place, lines = real(shared, chunk)
        return place, [
            line._replace(fallback="coarse") if (chunk[0] + number) % 3 == 0 else line
            for number, line in enumerate(lines)
        ]

    real = teaching_module.parse_chunk
    monkeypatch.setattr(teaching_module, "parse_chunk", fails_on_every_third)
    corpus = continued(taught, gold, text)
    record = teaching_of(corpus)
    assert record["fallback"] >= 10
    assert corpus.n_trees == gold.n_trees + 30 - record["fallback"]


def test_same_corpus_for_any_number_of_threads_and_backend(taught, finished, gold, text):
    _, corpus = finished
    teaching = teaching_in(taught, gold, text, resume=True)
    backend = make_backend("joblib", 2)
    try:
        again = teaching.student_corpus(teaching.parse_raw(backend, threads=2))
    finally:
        backend.close()
    assert corpus_digest(again) == corpus_digest(corpus)


def test_vocabulary_can_be_open():
    trees = load("village", "dev")[:3]
    corpus = student_corpus(prepare(trees, binarization=Binarization("right", 0)), trees[:1])
    assert corpus.n_trees == 4


# ---- teachers that were trained before ----------------------------------------------------------------------


def test_trained_models_are_teachers(tmp_path, finished, gold, text):
    folder, corpus = finished
    given = sorted(folder.glob("student.model.teachers.chain0?"))
    teaching = teaching_in(tmp_path, gold, text, taught_by=given)
    again = corpus_of(teaching)
    assert {path.name for path in tmp_path.iterdir()} == {"student.model.raw.mrg", "student.model.raw.json"}
    assert again.settings["raw_text"].pop("taught_by") == [path.name for path in given]
    assert corpus_digest(again) == corpus_digest(corpus)
    model = trained(text, taught_by=given).model
    assert corpus_digest(model.corpus) == corpus_digest(corpus)


def test_a_teacher_of_another_kind_and_a_student_that_is_counted(finished, text):
    given = sorted(finished[0].glob("student.model.teachers.chain0?"))
    options = {"model": "cfg", "raw": text, "raw_settings": SETTINGS, "binarization": Binarization("right", 0)}
    student = tsgkit.train(load("village", "train")[:60], taught_by=given[:1], **options)
    assert 60 < student.model.info["trees"] <= 90
    with pytest.raises(UsageError, match="taught_by goes with raw"):
        tsgkit.train("village:dev", taught_by=given)


def test_a_teacher_with_other_trees_is_refused(tmp_path, finished, text):
    given = sorted(finished[0].glob("student.model.teachers.chain0?"))
    other = prepare(load("village", "dev"), binarization=Binarization("left", 1), unknown=UnknownWords())
    with pytest.raises(UsageError, match=r"chain01: as a teacher .* different: binarization"):
        teaching_in(tmp_path, other, text, taught_by=given)


# ---- in memory ----------------------------------------------------------------------------------------------


def trained(raw, **options):
    settings = {"splits": 1, "split_iterations": 4, "joint_iterations": 0, "average": 2, "average_every": 1}
    trees = load("village", "train")[:60]
    return tsgkit.train(trees, raw=raw, raw_settings=SETTINGS, seed=1, **settings, **options)


def test_training_in_memory_gives_the_same_corpus(finished, text):
    model = trained(text).model
    assert corpus_digest(model.corpus) == corpus_digest(finished[1])
    sentences = [sentence.split() for sentence in text.read_text().splitlines()]
    given = trained(sentences).model
    given.corpus.settings["raw_text"]["sources"] = [text.name]
    assert corpus_digest(given.corpus) == corpus_digest(finished[1])
    assert given.state["history_log_joint"].tolist() == model.state["history_log_joint"].tolist()


def test_callback_sees_the_iterations_of_teachers_and_student(text):
    seen = []
    trained(text, callback=lambda progress: seen.append((progress.iteration, progress.iterations)))
    assert seen == [(number, 12) for number in range(1, 13)]
    with pytest.raises(JobError, match="stopped while the teachers were trained"):
        trained(text, callback=lambda progress: progress.iteration == 6)


def test_raw_text_that_cannot_be_used_in_memory(text):
    with pytest.raises(TypeError, match="a sentence is a sequence of words"):
        trained([["It", "rains"], "It rains"])
    with pytest.warns(match="the only word of the sentence"), pytest.raises(UsageError, match="'It rains' is no word"):
        trained([["It rains"]])
    with pytest.raises(UsageError, match="'It rains' is no word"):
        trained([["It rains", "."]])
    with pytest.raises(UsageError, match="raw: a cfg is counted, not sampled"):
        tsgkit.train("village:dev", model="cfg", raw=text)


# ---- interruption -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("after", [0, 1, 15, 29])
def test_interrupted_parsing_continues(taught, finished, gold, text, after):
    def killed(self, record, line):
        if self.n_done == after:
            raise Killed
        real(self, record, line)

    real = teaching_module.PartialOutput.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(teaching_module.PartialOutput, "write", killed)
        with pytest.raises(Killed):
            continued(taught, gold, text)
    assert corpus_digest(continued(taught, gold, text)) == corpus_digest(finished[1])


def test_interrupted_training_of_teachers_continues(tmp_path, finished, gold, text):
    stopped = teaching_in(tmp_path, gold, text)
    backend = make_backend("local", 1)
    for _ in stopped.chains.run(backend):
        backend.stop()
    assert [path.exists() for path in stopped.teachers] == [True, False]
    assert corpus_digest(corpus_of(teaching_in(tmp_path, gold, text, resume=True))) == corpus_digest(finished[1])


def test_finished_steps_are_not_repeated(finished, gold, text, monkeypatch):
    monkeypatch.setattr(teaching_module, "parse_chunk", None)
    assert corpus_digest(continued(finished[0], gold, text)) == corpus_digest(finished[1])


@pytest.mark.parametrize("change", ["sentences", "trees", "record"])
def test_parses_of_other_sentences_and_damaged_ones_are_made_again(taught, finished, gold, text, change):
    raw = taught / "text"
    raw.write_bytes(text.read_bytes() if change != "sentences" else text.read_bytes().replace(b"the", b"a"))
    continued(taught, gold, raw)
    raw.write_bytes(text.read_bytes())
    parsed, record = taught / "student.model.raw.mrg", taught / "student.model.raw.json"
    if change == "trees":
        parsed.write_text("\n".join(reversed(parsed.read_text().splitlines())) + "\n")
    if change == "record":
        record.write_text("[]")
    corpus = continued(taught, gold, raw)
    # The name of the file is part of the record.
    corpus.settings["raw_text"]["sources"] = [text.name]
    assert corpus_digest(corpus) == corpus_digest(finished[1])


@pytest.mark.parametrize("damage", [[], {"gold_trees": "many"}, "text"])
def test_damaged_record_of_a_corpus_is_an_error(finished, damage):
    _, corpus = finished
    kept = json.loads(json.dumps(corpus.settings))
    try:
        corpus.settings["raw_text"] = damage
        with pytest.raises(TreebankError, match="does not say which raw text"):
            teaching_of(corpus)
    finally:
        corpus.settings = kept
