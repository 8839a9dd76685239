"""Teachers, the trees they make of raw sentences, and the treebank that the student is trained on.

Three steps, each of which continues where it was interrupted: chains that train the teachers, a parsing job by their
product, and the corpus of gold and parsed trees. Files are beside the student's: ``MODEL.teachers.chain01`` and so on,
``MODEL.raw.mrg`` with a line per sentence, empty where the product had only a fallback tree, and ``MODEL.raw.json``.
"""

import hashlib
import itertools
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit import __version__
from tsgkit._files import new_file
from tsgkit._overwriting import note_input, require_no_input
from tsgkit._progress import progress
from tsgkit._resumable import PartialOutput
from tsgkit._streams import chunks
from tsgkit.distributed import Backend
from tsgkit.errors import JobError, TreebankError, UsageError
from tsgkit.inference._chains import Chains, Plan
from tsgkit.inference._checkpoint import beside, files_of_run, require_new
from tsgkit.models._model import Model
from tsgkit.parsing._lines import ChunkRescue, ParsedLine, ParsePlan, parse_chunk, shared_models
from tsgkit.parsing._product import preparation_differences
from tsgkit.raw_text._sentences import RawSentences
from tsgkit.raw_text._settings import RawTextSettings
from tsgkit.treebank import FlatCorpus, read_trees
from tsgkit.treebank._prepare import Preparation, close_vocabulary, preparation_of
from tsgkit.treebank.unknown._lexicon import count_words

CHUNK = 100
# What a corpus records of the raw text that it was made with, among its settings.
RECORD = "raw_text"


@dataclass
class Teaching:
    """From a treebank and raw sentences to the corpus of the student.

    Parameters
    ----------
    plan : Plan
        How the teachers are trained.
    corpus : FlatCorpus
        The prepared treebank.
    raw : RawSentences
    output : path
        The student's model; the other files are beside it.
    seed : int
        Those of the teachers are spawned from it.
    resume : bool
        Continue from what an interrupted job has done.
    force : bool
        Replace existing files.
    quiet : bool
        No progress bars.
    taught_by : sequence of paths
        Models that are the teachers, as many as the settings of `raw` say; unless given, teachers are trained.

    Attributes
    ----------
    interrupted : bool
        Whether the training of the teachers was interrupted.
    """

    plan: Plan
    corpus: FlatCorpus
    raw: RawSentences
    output: Path
    seed: int
    resume: bool = False
    force: bool = False
    quiet: bool = False
    taught_by: Sequence[Path] = ()
    interrupted: bool = False
    chains: Chains | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.raw.require_known(known_words(self.corpus))
        if self.taught_by:
            for path in self.taught_by:
                require_same_preparation(self.corpus, Model.load(path), str(path))
            return
        seed = seed_of_teachers(self.seed)
        n_teachers = self.settings.teachers
        options: dict[str, Any] = {"resume": self.resume, "force": self.force, "quiet": self.quiet}
        plan = self.plan.for_corpus(self.corpus)
        self.chains = Chains(plan, self.corpus, beside(self.output, "teachers"), seed, n_teachers, **options)

    @property
    def settings(self) -> RawTextSettings:
        return self.raw.settings

    @property
    def teachers(self) -> list[Path]:
        """The model files of the teachers."""
        return list(self.taught_by) if self.chains is None else [chain.path for chain in self.chains.chains]

    @property
    def parsed_path(self) -> Path:
        """The file of parsed trees."""
        return beside(self.output, "raw.mrg")

    @property
    def record_path(self) -> Path:
        """What the parsed trees were made with; written when all are there."""
        return beside(self.output, "raw.json")

    # ---- teachers ------------------------------------------------------------------------------------

    def train_teachers(self, backend: Backend) -> None:
        """Train the teachers, or those that are not trained yet.

        Raises
        ------
        JobError
            If one of them fails.
        """
        files = [*files_of_run(self.output), self.parsed_path, self.record_path]
        for source in self.raw.sources:
            note_input(source)
        for path in files:  # now, not when the teachers have been trained
            require_no_input(path)
        if not (self.resume or self.force):
            require_new(files)
        if self.chains is None:
            return
        for chain in self.chains.run(backend):
            if chain.error:
                raise JobError(f"teacher {chain.number} failed: {chain.error}")
        self.interrupted = self.chains.interrupted

    # ---- raw sentences -------------------------------------------------------------------------------

    def parse_raw(self, backend: Backend | None = None, *, threads: int = 1) -> dict[str, Any]:
        """Parse the sentences by the product of the teachers; returns what is recorded of them.

        Parameters
        ----------
        backend : Backend, optional
            Where; in this process unless given.
        threads : int
            The result does not depend on it.
        """
        contents = [path.read_bytes() for path in self.teachers]
        identity = self.identity(contents)
        if self.resume and (record := self.finished_record(identity)) is not None:
            return record
        self.record_path.unlink(missing_ok=True)
        tally: Counter[str] = Counter()
        with PartialOutput(self.parsed_path, identity, resume=self.resume, force=self.force) as output:
            if not output.is_finished:
                self.write_parses(output, backend, contents, threads)
        with open(self.parsed_path, "rb") as file:
            for line in file:
                tally["parsed" if line.strip() else "fallback"] += 1
        record = record_of(self.raw, tally["parsed"], tally["fallback"])
        if self.taught_by:
            record["taught_by"] = [path.name for path in self.taught_by]
        saved = {"identity": identity, "record": record, "raw": self.raw.digest, "trees": file_digest(self.parsed_path)}
        with new_file(self.record_path) as file:
            file.write(json.dumps(saved, indent=1).encode())
        return record

    def identity(self, contents: list[bytes]) -> dict[str, Any]:
        """What the parsed trees depend on, besides the sentences."""
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        return {"version": __version__, "models": digests, **asdict(self.settings)}

    def finished_record(self, identity: dict[str, Any]) -> dict[str, Any] | None:
        """The record of a job that has parsed the same sentences with the same teachers."""
        try:
            saved = json.loads(self.record_path.read_text(encoding="utf-8"))
            same = saved["identity"] == json.loads(json.dumps(identity))
            same = same and saved["trees"] == file_digest(self.parsed_path)
            for _ in self.raw if same else ():
                pass
            return dict(saved["record"]) if same and saved["raw"] == self.raw.digest else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write_parses(self, output: PartialOutput, backend: Backend | None, contents: list[bytes], threads: int) -> None:
        """Parse the sentences that have no record yet."""
        read: deque[str] = deque()

        def remembered(lines: Iterable[str]) -> Iterator[str]:
            for line in lines:
                read.append(line)
                yield line

        shared = shared_models(ParsePlan(), [path.name for path in self.teachers], contents, threads)
        sentences = remembered(output.skip(iter(self.raw)))
        first = output.n_done
        numbered = ((first + CHUNK * place, chunk) for place, chunk in enumerate(chunks(sentences, CHUNK)))
        portions: Iterable[tuple[str, list[ParsedLine]]]
        portions = (parse_chunk(shared, chunk) for chunk in numbered)
        if backend is not None:
            portions = backend.stream(parse_chunk, shared, numbered, ChunkRescue())
        with progress(None, "parsing raw text", "sentences", total=self.settings.sentences, quiet=self.quiet) as bar:
            bar.update(first)
            for _, portion in portions:
                for parsed in portion:
                    output.write("\n" if parsed.fallback else parsed.text, read.popleft())
                bar.update(len(portion))

    # ---- the student ---------------------------------------------------------------------------------

    def student_corpus(self, record: dict[str, Any]) -> FlatCorpus:
        """The treebank together with the parsed trees; its settings say so."""
        return student_corpus(self.corpus, read_trees(self.parsed_path, format="brackets"), record)


def seed_of_teachers(seed: int) -> int:
    """The seed from which those of the teachers are spawned: from the student's seed, its own chains are."""
    return seed ^ int.from_bytes(hashlib.sha256(b"teachers").digest()[:7])


def known_words(corpus: FlatCorpus) -> frozenset[str]:
    """The words of the trees of a prepared treebank."""
    lexicon = preparation_of(corpus).lexicon
    return frozenset(corpus.forms) if lexicon is None else lexicon.words


def require_same_preparation(corpus: FlatCorpus, teacher: Model, name: str) -> None:
    """Refuse a teacher whose trees are not of the same kind as those of the treebank.

    Raises
    ------
    UsageError
    """
    differences = preparation_differences(preparation_of(corpus), teacher.preparation)
    if differences:
        raise UsageError(
            f"{name}: as a teacher it must have trees that were cleaned and binarised as the treebank is; different:"
            f" {', '.join(differences)}"
        )


def record_of(raw: RawSentences, n_parsed: int, n_fallbacks: int) -> dict[str, Any]:
    """What is recorded of raw sentences after they are parsed: settings, sources, and numbers of sentences."""
    sources = [Path(source).name for source in raw.sources]
    return {**asdict(raw.settings), **raw.counts, "parsed": n_parsed, "fallback": n_fallbacks, "sources": sources}


def student_corpus(gold: FlatCorpus, parsed: Iterable[Tree], record: Mapping[str, Any] | None = None) -> FlatCorpus:
    """A prepared treebank with further trees after its own, prepared in the same way.

    The closed vocabulary is that of all trees together.

    Parameters
    ----------
    gold : FlatCorpus
    parsed : iterable of nltk.Tree
        As a parser of a model of `gold` returns them.
    record : mapping, optional
        What to record of the raw text; see `record_of`.

    Examples
    --------
    >>> from tsgkit.treebank import Binarization, UnknownWords, prepare
    >>> gold = prepare(
    ...     [Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))")],
    ...     binarization=Binarization("right", 0),
    ...     unknown=UnknownWords(threshold=0),
    ... )
    >>> both = student_corpus(gold, [Tree.fromstring("(TOP (S (NP (PRP we)) (VP (VBD ran))))")])
    >>> both.n_trees, both.forms
    (2, ['I', 'ran', 'we'])
    """
    preparation = preparation_of(gold)
    encoded = (tree for tree in map(preparation.encode, parsed) if tree is not None)
    corpus = FlatCorpus.from_trees(itertools.chain(gold.trees(), encoded))
    lexicon = preparation.lexicon
    if lexicon is not None:
        lexicon = lexicon.settings.fit(*count_words(corpus.sentences()))
        close_vocabulary(corpus, lexicon)
    both = Preparation(preparation.cleaning, preparation.binarization, lexicon)
    corpus.settings = {"preparation": both.to_dict()}
    if record is not None:
        corpus.settings[RECORD] = {**record, "gold_trees": gold.n_trees}
    return corpus


def teaching_of(corpus: FlatCorpus) -> dict[str, Any] | None:
    """What a corpus records of raw text; None if it is a treebank alone.

    Parameters
    ----------
    corpus : FlatCorpus

    Raises
    ------
    TreebankError
        If the record is damaged.
    """
    record = corpus.settings.get(RECORD)
    if record is None:
        return None
    names = ("gold_trees", "parsed", "fallback", "used", "teachers")
    if not isinstance(record, dict) or any(type(record.get(name)) is not int for name in names):
        raise TreebankError("the corpus does not say which raw text it was made with")
    return record


def file_digest(path: Path) -> str:
    """The digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
