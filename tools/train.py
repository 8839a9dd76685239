"""Train a model on a treebank.

Usage:
  tsgkit train [options] [--raw=FILE]... [--taught-by=MODEL]... [--partial=FILE]... [--set=SETTING]...
               --output=MODEL TREEBANK...
  tsgkit train -h | --help | --version

A TREEBANK is as for `tsgkit prepare`, or one file of arrays (.npz) that it wrote, whose preparation is kept.
Where the default of an option depends on the model, the text says so. A model refuses options that it does not
have. Other packages can add models.

Options:
  -o MODEL, --output=MODEL  the file to write
  --recipe=NAME            all choices of a paper, for its small treebank: {recipes}; other options replace them
  --model=KIND             cfg: relative frequencies of the rules of the binarised trees; tsg: a Bayesian
                           tree-substitution grammar; insertion: one with auxiliary trees too; srtsg: one with
                           learned subcategories, the most accurate and the slowest (about half a minute for 1,000
                           short trees) (default: srtsg, or that of the recipe)
  --start=MODEL            begin with the last sample of this model, of the same kind and with the same preparation:
                           trees that it was trained on keep their derivations, the others are drawn from its grammar;
                           an srtsg skips the splits that the start has
  --dev=TREEBANK           parse this treebank with the trained model and print the scores
  --params=SET             for --dev: collins, new, or an EVALB parameter file (default: that of the preset, or collins)
  --format=FORMAT          of the input: {readers} [default: auto]
  --treebank=NAME          a preset: format, encoding, cleaning, heads and evaluation of a treebank such as penn, tiger,
                           cess; or a file in the same form (see prepare); options that are given win
  --encoding=NAME          of the input; utf-8 unless a preset or an XML file names another
  --nfc                    normalise text to Unicode's form C
  --continuous             make discontinuous trees continuous, instead of stopping
  --skip-bad               skip and list what is not a tree, instead of stopping
  --max-bad=SHARE          with --skip-bad, fail if a larger share of the trees is bad [default: 0.05]
  --list-bad=FILE          with --skip-bad, list what was skipped in this file; unless given, the first 20 of each kind
                           are printed

Raw text (tsg, insertion and srtsg):
  --raw=FILE               also learn from these sentences, one per line (plain, gzip or xz; can be repeated): models
                           that are trained on the treebank, the teachers, parse them by their product, and MODEL is
                           trained on the treebank and these trees; --jobs and --backend hold for the teachers too
  --raw-sentences=N        use at most N sentences, the first ones [default: 5000]
  --raw-max-length=N       omit sentences with more than N words [default: 60]
  --raw-tokenize           split the text into words as in the Penn Treebank
  --teachers=N             number of teachers, with seeds spawned from --seed: MODEL.teachers.chain01, ...
                           [default: 4]
  --taught-by=MODEL        a trained model is a teacher, instead of new ones (can be repeated): of any kind, such as
                           chains that were trained before, or students of an earlier round

Sentences without trees (tsg):
  --partial=FILE           also learn from these sentences, one per line (can be repeated), whose trees are not known,
                           or known in part: with brackets as for `tsgkit parse --constraints`; trees that have the
                           brackets are sampled together with the grammar
  --induce=N               no tree is known: TREEBANK is a file as for --partial, every word is its own tag (so give
                           tags), and the trees have N labels that mean nothing before

Cleaning:
  --labels=FILE            rules that rename, splice or drop labels, before all other steps
  --cut-labels=MARK        remove features from all labels, tags included: what follows this mark
  --keep-functions         keep function tags and indices (NP-SBJ-1)
  --keep-empty             keep traces and other empty nodes
  --empty-tags=TAGS        tags of empty words, separated by commas (default: -NONE-)
  --keep-repeats           keep X over X
  --collapse-unaries       merge unary chains of phrases (S+VP)
  --root=LABEL             the root that every tree gets (default: TOP)

Binarisation:
  --binarize=METHOD        right, left or centre-head {default}
  --horizontal=N           siblings that an intermediate symbol names, or all (horizontal markovisation)
                           {default}
  --vertical=N             1: plain labels; 2: with the label of the parent; ... (vertical markovisation)
                           {default}
  --heads=RULES            for centre-head, and for dependencies of parses: penn, leftmost, rightmost, another preset
                           or a file (default: those of --treebank, or penn)

Rare words:
  --unknown=MODEL          {unknown_words} {default}
  --threshold=N            words that occur at most N times are replaced by their class; with 0 none are, and in an
                           srtsg every word backs off to its class {default}
  --min-types=N            a class of fewer rare words is merged into a coarser one {default}

Subcategories (srtsg):
  --splits=N               number of times that every subcategory is split in two {default}
  --split-iterations=N     number of sweeps over the treebank after every split
                           {default}
  --back-off=NAME          what refined rules back off to before P0: {back_offs} {default}
  --levels=N               levels of the back-off in use, P0 among them, all unless given; unrefined has 3: rules
                           whose root has no subcategory are left out with 2, refined rules with 1
  --merge=SHARE            fraction of the splits that are merged again {default}
  --merge-at=SHARE         fraction of the sweeps of a split after which they are merged {default}
  --lexicon=NAME           what words back off to with --threshold=0: classes (the class of the word, at any number of
                           levels), suffixes (its class, below it those of shorter suffixes) or rules (the same as all
                           other rules, as in the paper) {default}
  --merge-loss=NAME        the splits with the smallest loss are merged, in the likelihood of the trees (marginal) or
                           in the joint probability (joint) {default}
  --type-mode=NAME         whether --type-moves may relabel rules to rules in use: exact (no) or map (yes, as in the
                           paper, but this does not sample the posterior) {default}

Substitution sites (srtsg):
  --site-iterations=N      number of sweeps after the splits that sample substitution sites, so that fragments become
                           larger than single rules {default}
  --sites=NAME             sampler of these sites: blocked (whole trees) or local (single sites) {default}
  --joint-iterations=N     number of sweeps after these that sample sites and subcategories jointly
                           {default}
  --fragment-moves=N       number of moves after every sweep over sites that cut or join all occurrences of a fragment
                           at once {default}
  --stop-prob=P            fix the stop probability of all labels in the base distribution of fragments, instead of
                           sampling one per label
  --insertion-iterations=N  number of sweeps at the end that sample sites, subcategories and insertions jointly
                           {default}

Sampling (tsg and insertion):
  --iterations=N           number of sweeps over the treebank {default}
  --sampler=NAME           blocked (whole trees) or local (single sites) {default}
  --process=NAME           pyp (Pitman-Yor) or dp (Dirichlet) {default}
  --init=NAME              minimal (every node a substitution site), maximal (none) or random {default}
  --truncated              export only fragments in use and CFG rules, instead of the complete transform

Sampling (insertion, and srtsg with --insertion-iterations):
  --stacked                allow several insertions at one node
  --insertion-probability=P  fix the insertion probability of all labels, instead of sampling one per label

Sampling (insertion):
  --insertion-cutoff=N     omit insertions into a part of fragments from the grammar if fewer than N are expected in
                           the training trees; 0 for the exact grammar {default}

Sampling (tsg, insertion and srtsg):
  --base=NAME              the base distribution P0 of rules: {base_distributions} {default}
  --batch=N                number of trees whose proposals are made together; the result depends on it
                           {default}
  --type-moves=N           number of moves after every sweep that resample all occurrences of a fragment or refined
                           rule at once {default}
  --average=N              the grammar is the mean over the last N samples {default}
  --average-every=N        iterations between these samples {default}
  --anneal-from=T          the temperature of the first iteration (srtsg: of every phase) {default}
  --anneal-iterations=N    iterations until the temperature is 1 {default}
  --time=MINUTES           choose the numbers of splits and sweeps so that training fits into this time on this machine,
                           by a trial of a few sweeps; what was chosen is printed and can be given as options
  --seed=N                 the same seed gives the same model [default: 0]
  --threads=N              for sampling and for --dev; the result does not depend on it [default: 1]
  --checkpoint-every=N     iterations between checkpoints, which are written beside the model [default: 100]
  --resume                 continue from the checkpoint, if there is one
  --force                  replace an existing MODEL, and discard its checkpoint; without --resume or --force, neither
                           is touched, and the training is refused

Chains (tsg, insertion and srtsg):
  --chains=N               train N models with seeds spawned from --seed, each as if alone: MODEL.chain01, ... with
                           separate checkpoints (`tsgkit parse MODEL.chain*` is their product); MODEL is a copy of
                           the best of them on --dev, or of that with the highest log joint; 1 unless given, or that
                           of the recipe
  --jobs=N                 number of chains that run in parallel; by default 1, with --backend=dask all
  --backend=NAME           where they run: local (each a process), joblib, or dask (a cluster) [default: local]
  --scheduler=ADDRESS      of the Dask cluster, or its scheduler file; workers must see the folder of MODEL under the
                           same name as this machine

Other:
  --set=SETTING            NAME=VALUE, a setting of a model of another package; can be repeated
  --log=FILE               append lines to this file, every so often: iteration, log joint, time left; if stderr is
                           not a terminal, these lines are printed there, too
  -q, --quiet              no progress bar and no messages
  -h, --help               this text
  --version                the version
"""

import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit import __version__
from tsgkit._cli import command, integer, number, parse_arguments
from tsgkit._exit_codes import EXIT_FAILED, EXIT_INTERRUPTED
from tsgkit._messages import counted
from tsgkit._model_options import fill_preparation, model_settings, option_of, recipe_of, with_defaults
from tsgkit._options import (
    Reading,
    backend_of,
    binarization_of,
    cleaning_of,
    facts_of_treebank,
    parameters_of,
    reading_of,
    report_wordless,
    require_effect,
    require_one,
    seed_of,
    unknown_of,
)
from tsgkit._overwriting import note_output
from tsgkit._progress import progress
from tsgkit._usage import with_registered
from tsgkit.distributed import Backend
from tsgkit.errors import UsageError
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.evaluation._report import columns
from tsgkit.inference._budget import within
from tsgkit.inference._chains import Chain, Chains, Plan, chain_path
from tsgkit.inference._checkpoint import checkpoint_path, files_of_run, saved_settings
from tsgkit.inference._convergence import Diagnosis
from tsgkit.inference._entry import MODELS, ModelEntry
from tsgkit.inference._start import Start
from tsgkit.models._model import Model
from tsgkit.models._open_trees import OpenCorpus, induced_corpus, with_open_sentences
from tsgkit.parsing._held_out import held_out_score, score_model
from tsgkit.raw_text import RawSentences, RawTextSettings, Teaching
from tsgkit.treebank import Binarization, FlatCorpus, Lexicon, UnknownWords, prepare
from tsgkit.treebank._formats import ENCODING
from tsgkit.treebank._partial import OpenSentence, open_sentences
from tsgkit.treebank._prepare import preparation_of, share_of_repeats

__doc__ = with_defaults(with_registered(__doc__))
# From this share of phrases on, a message says that parsers do not find chains that repeat a label.
MANY_REPEATS = 0.01


def corpus_of(arguments: dict[str, Any], reading: Reading) -> FlatCorpus:
    """The prepared corpus of the command line's treebanks."""
    sources = arguments["TREEBANK"]
    if arguments["--induce"] is not None:
        return opened(arguments, induced_corpus(open_sentences_of(sources), integer(arguments, "--induce", 1)))
    if any(source.endswith(".npz") for source in sources):
        if len(sources) > 1:
            raise UsageError("a prepared corpus (.npz) cannot be combined with others: its vocabulary is fixed")
        corpus = FlatCorpus.load(sources[0])
        require_both(preparation_of(corpus).binarization, preparation_of(corpus).lexicon)
        return corpus
    binarization, unknown = binarization_of(arguments), unknown_of(arguments)
    require_both(binarization, unknown)
    trees = progress(reading.trees(sources), "reading", "trees", quiet=arguments["--quiet"])
    corpus = prepare(trees, cleaning_of(arguments), binarization, unknown, **facts_of_treebank(arguments))
    report_wordless(reading.n_trees[-1] - corpus.n_trees)
    if not arguments["--quiet"] and (share := share_of_repeats(corpus)) >= MANY_REPEATS:
        print(
            f"tsgkit: {share:.0%} of the phrases repeat a label of their unary chain, as in NP over X over NP, which"
            " parsers do not find; --collapse-unaries makes one phrase of a chain",
            file=sys.stderr,
        )
    return corpus


def require_both(binarization: Binarization | None, unknown: UnknownWords | Lexicon | None) -> None:
    """Refuse trees on which no model can be trained."""
    if binarization is None or unknown is None:
        raise UsageError(
            "a model needs binarised trees and classes for unknown words: --binarize and --unknown, here or"
            " where the corpus was prepared"
        )


# ---- sentences without trees ---------------------------------------------------------------------------------


def require_open(arguments: dict[str, Any], entry: ModelEntry) -> None:
    """Refuse options that do not go with sentences without trees, before anything is read."""
    given = [option for option in ("--partial", "--induce") if arguments[option]]
    if not given:
        return
    if len(given) > 1:
        raise UsageError("--partial and --induce do not go together: with --induce, no tree is known")
    if not entry.takes_open_trees:
        raise UsageError(
            f"{given[0]}: a {entry.settings.kind} needs a tree for every sentence; --model=tsg samples them"
        )
    for option in ("--raw", "--start", "--time"):
        if arguments[option]:
            raise UsageError(f"{given[0]} and {option} do not go together")


def open_sentences_of(paths: Sequence[str]) -> Iterator[OpenSentence]:
    """The words and brackets of every line that has words."""
    return itertools.chain.from_iterable(map(open_sentences, paths))


def opened(arguments: dict[str, Any], found: OpenCorpus) -> FlatCorpus:
    """The corpus, with a message on sentences that no tree fits."""
    if found.left_out and not arguments["--quiet"]:
        print(f"tsgkit: {found.left_out_message()}", file=sys.stderr)
    return found.corpus


# ---- raw text ------------------------------------------------------------------------------------------------


def raw_text_settings(arguments: dict[str, Any]) -> RawTextSettings:
    """The settings of learning from raw text."""
    return RawTextSettings(
        teachers=len(arguments["--taught-by"]) or integer(arguments, "--teachers", 1),
        sentences=integer(arguments, "--raw-sentences", 1),
        max_length=integer(arguments, "--raw-max-length", 1),
        tokenize=arguments["--raw-tokenize"],
    )


def with_raw_text(
    arguments: dict[str, Any], plan: Plan, corpus: FlatCorpus, dev: list[Tree], again: dict[str, bool]
) -> FlatCorpus | None:
    """The corpus of the student: the treebank and the parsed raw sentences; None if the teachers were interrupted."""
    raw = RawSentences(arguments["--raw"], raw_text_settings(arguments), arguments["--encoding"] or ENCODING)
    given = [Path(path) for path in arguments["--taught-by"]]
    teaching = Teaching(plan, corpus, raw, Path(arguments["--output"]), seed_of(arguments), **again, taught_by=given)
    backend = backend_of(arguments)
    try:
        teaching.train_teachers(backend)
        if teaching.interrupted and teaching.chains is not None:
            overview = teaching.chains.overview()
            print(f"tsgkit: interrupted; --resume continues the teachers ({overview})", file=sys.stderr)
            return None
        if dev:
            report_teachers(arguments, teaching, dev)
        record = teaching.parse_raw(None if arguments["--backend"] == "local" else backend, threads=plan.threads)
    finally:
        backend.close()
    if not arguments["--quiet"]:
        print(
            f"tsgkit: raw text: {record['lines']} lines, {record['empty']} empty, {record['too_long']} too long;"
            f" {record['used']} sentences, of which {record['parsed']} are learned from and {record['fallback']} have"
            f" only a fallback tree",
            file=sys.stderr,
        )
    return teaching.student_corpus(record)


def report_teachers(arguments: dict[str, Any], teaching: Teaching, dev: list[Tree]) -> None:
    """Print the scores of the teachers and of their product."""
    models = [Model.load(path) for path in teaching.teachers]
    options: dict[str, Any] = {"params": arguments["--params"], "quiet": arguments["--quiet"]}
    options["threads"] = integer(arguments, "--threads", 1)
    scores = [held_out_score(model, dev, **options).aligned.f1 for model in models]
    mean, product = sum(scores) / len(scores), held_out_score(models, dev, **options).aligned.f1
    print(f"{arguments['--dev']}: teachers aligned F1 {mean:.2f} (mean of {len(scores)}), their product {product:.2f}")


# ---- chains --------------------------------------------------------------------------------------------------


def train_chains(arguments: dict[str, Any], dev: list[Tree], chains: Chains) -> int:
    """Run all chains, copy the best one to the output, and print how they agree."""
    with chains.sole_writer():
        return train_alone(arguments, dev, chains)


def train_alone(arguments: dict[str, Any], dev: list[Tree], chains: Chains) -> int:
    """Run all chains while no other process can write their files."""
    backend = backend_of(arguments)
    try:
        for chain in chains.run(backend):
            if chain.error:
                print(f"tsgkit: chain {chain.number} failed: {chain.error}", file=sys.stderr)
        if chains.interrupted:
            print(f"tsgkit: interrupted; --resume continues from there ({chains.overview()})", file=sys.stderr)
            return EXIT_INTERRUPTED
        scores = dev_scores(arguments, chains, backend, dev) if dev else {}
    finally:
        backend.close()
    if not chains.finished:
        print("tsgkit: no chain finished", file=sys.stderr)
        return EXIT_FAILED
    by_dev = {number: score["aligned"] for number, score in scores.items()}
    by_joint = {chain.number: chain.log_joint(chains.plan.burn_in) for chain in chains.finished}
    figures = by_dev or by_joint
    best = max(chains.finished, key=lambda chain: figures.get(chain.number, float("-inf")))
    chains.choose(best)
    print(chain_table(chains, best, by_joint, scores), end="")
    reason = f"the highest aligned F1 on {arguments['--dev']}" if by_dev else "the highest log joint"
    print(f"chain {best.number} has {reason} and is {arguments['--output']}\n")
    print(convergence_table(chains.diagnose()), end="")
    report_chains(chains)
    n_scored = len(scores) if dev else len(chains.finished)
    return 0 if n_scored == chains.n_chains else EXIT_FAILED


def dev_scores(
    arguments: dict[str, Any], chains: Chains, backend: Backend, trees: list[Tree]
) -> dict[int, dict[str, float]]:
    """The scores of the finished chains on the development trees, by number."""
    shared = {"version": __version__, "trees": trees, "threads": integer(arguments, "--threads", 1)}
    shared["params"] = parameters_of(arguments)
    paths = [str(chain.path) for chain in chains.finished]
    outcomes = backend.gather(score_model, shared, paths, lambda index, message: None)
    scores: dict[int, dict[str, float]] = {}
    for outcome in progress(outcomes, "scoring", "models", total=len(paths), quiet=arguments["--quiet"]):
        number = chains.finished[outcome.index].number
        if outcome.error:
            print(f"tsgkit: chain {number} could not be scored: {outcome.error}", file=sys.stderr)
        else:
            scores[number] = outcome.value
    return scores


def chain_table(chains: Chains, best: Chain, log_joints: dict[int, float], scores: dict[int, dict[str, float]]) -> str:
    """A row for every chain."""
    rows = []
    for chain in chains.chains:
        number = chain.number
        state = "best" if chain is best else "" if number in log_joints else "failed" if chain.error else "not finished"
        score = [f"{scores[number][name]:.2f}" if number in scores else "-" for name in ("aligned", "f1", "strict")]
        joint = f"{log_joints[number]:.1f}" if number in log_joints else "-"
        fragments = f"{chain.history['fragments'][-1]:.0f}" if chain.history else "-"
        row = [str(number), str(chain.seed), str(chain.done), joint, fragments]
        rows.append([*row, *(score if scores else []), state])
    head = [
        "chain",
        "seed",
        "iterations",
        "log joint",
        "fragments",
        *(["aligned F1", "EVALB", "strict"] if scores else []),
        "",
    ]
    return columns(head, rows, n_left=0)


def convergence_table(diagnoses: list[Diagnosis]) -> str:
    """A row for every quantity."""
    rows = [
        [one.quantity, *(f"{value:.6g}" for value in (one.mean, one.deviation)), f"{one.r_hat:.3f}", f"{one.ess:.0f}"]
        for one in diagnoses
    ]
    n_chains, n_draws = (diagnoses[0].n_chains, diagnoses[0].n_draws) if diagnoses else (0, 0)
    title = f"the last {n_draws} iterations of {n_chains} chains"
    return columns([title, "mean", "deviation", "R-hat", "ESS"], rows)


def report_chains(chains: Chains) -> None:
    """Report chains that are not finished and files of other runs."""
    if unfinished := [str(chain.number) for chain in chains.chains if chain not in chains.finished]:
        print(f"tsgkit: not finished: chain {', '.join(unfinished)}; --resume continues them", file=sys.stderr)
    if stale := chains.stale_files():
        print(f"tsgkit: {stale[0]}: from another run, as are {len(stale) - 1} more", file=sys.stderr)


def tree_types(model: Model) -> str:
    """The size of a grammar with insertion as the paper gives it: initial and auxiliary trees of the last sample."""
    if "history_auxiliary" not in model.state:
        return ""
    n_types, n_auxiliary = (int(model.state[f"history_{name}"][-1]) for name in ("fragments", "auxiliary"))
    return f" {n_types - n_auxiliary} initial and {n_auxiliary} auxiliary trees,"


def start_of(arguments: dict[str, Any], plan: Plan, corpus: FlatCorpus) -> Start | None:
    """The start, checked, with a message on what it has of the corpus."""
    if arguments["--start"] is None:
        return None
    start = Start.load(arguments["--start"])
    start.require_fit(plan.settings.kind, corpus)
    if not arguments["--quiet"]:
        counts = start.overlap(corpus)
        n_skipped = plan.after(start).n_skipped
        print(
            f"{start.name}: {counts['trees_kept']} trees keep their derivations, {counts['trees_drawn']} are drawn;"
            f" {counts['trees_left']} trees of the start are left out; without counterpart are {counts['labels_new']}"
            f" labels and {counts['rules_new']} rules of the trees and {counts['labels_left']} labels and"
            f" {counts['rules_left']} rules of the start{f'; {n_skipped} splits are skipped' if n_skipped else ''}",
            file=sys.stderr,
        )
    return start


def fitted(arguments: dict[str, Any], plan: Plan, corpus: FlatCorpus, start: Start | None, started: float) -> Plan:
    """The plan with the schedule that fits into --time; a checkpoint that is continued has its own already."""
    if arguments["--time"] is None:
        return plan
    output, n_chains = Path(arguments["--output"]), integer(arguments, "--chains", 1)
    first = output if n_chains == 1 else chain_path(output, 1)
    saved = saved_settings(checkpoint_path(first)) if arguments["--resume"] else None
    if saved is not None:
        return replace(plan, settings=type(plan.settings)(**saved))
    rounds = math.ceil(n_chains / integer(arguments | {"--jobs": arguments["--jobs"] or "1"}, "--jobs", 1))
    left = 60 * number(arguments, "--time") - (time.perf_counter() - started)
    fit, expected = within(plan, corpus, left / rounds, start)
    if not arguments["--quiet"]:
        chosen = asdict(fit.settings)
        changed = [name for name, value in asdict(plan.settings).items() if chosen[name] != value]
        shown = [*changed, *(name for name in plan.settings.by_size if name not in changed)]
        options = " ".join(f"{option_of(name)}={chosen[name]}" for name in shown)
        print(f"tsgkit: about {expected * rounds / 60:.1f} minutes: {options}", file=sys.stderr)
    return fit


def require_chains(arguments: dict[str, Any], plan: Plan, n_chains: int) -> None:
    """Refuse options that would have no effect."""
    if n_chains > 1 and not plan.is_sampled:
        kind = plan.settings.kind
        raise UsageError(f"--chains={n_chains}: a {kind} is counted, not sampled: all chains would be equal")
    is_one = n_chains == 1 and not arguments["--raw"]
    if is_one and (arguments["--jobs"] or arguments["--scheduler"] or arguments["--backend"] != "local"):
        raise UsageError("--jobs, --backend and --scheduler go with --chains=N or --raw=FILE: one chain runs here")
    if arguments["--taught-by"] and not arguments["--raw"]:
        raise UsageError("--taught-by goes with --raw=FILE: teachers parse raw text")
    if not arguments["--raw"] and raw_text_settings(arguments) != RawTextSettings():
        raise UsageError("--teachers and the options that begin with --raw- go with --raw=FILE")
    if arguments["--raw"] and not plan.is_sampled and not arguments["--taught-by"]:
        raise UsageError(f"--raw: a {plan.settings.kind} is counted, not sampled: all teachers would be equal")
    if arguments["--time"] is None:
        return
    number(arguments, "--time", 0)
    if arguments["--raw"]:
        raise UsageError("--time and --raw do not go together: the time of teachers and parsing is not known before")
    if arguments["--recipe"]:
        raise UsageError("--time and --recipe do not go together: the sweeps are those of the recipe")


@command
def main(argv: list[str]) -> int:
    """Train a model, write it, and print its size and scores."""
    arguments = parse_arguments(__doc__, argv)
    recipe, replaced = recipe_of(arguments)
    if replaced and not arguments["--quiet"]:
        print(f"tsgkit: not as in the recipe {arguments['--recipe']}: {', '.join(replaced)}", file=sys.stderr)
    entry = MODELS.require(arguments["--model"], "--model")
    fill_preparation(arguments, recipe or entry)
    checkpoint_every, threads = (integer(arguments, option, 1) for option in ("--checkpoint-every", "--threads"))
    plan = Plan(model_settings(arguments, entry, recipe), checkpoint_every, threads)
    parameters = parameters_of(arguments)
    require_effect(arguments, "--params", arguments["--dev"] is not None, "--dev=TREEBANK")
    require_one(arguments, "--resume", "--force")
    started = time.perf_counter()
    n_chains = integer(arguments, "--chains", 1)
    require_chains(arguments, plan, n_chains)
    require_open(arguments, entry)
    log = log_of(arguments)
    reading = reading_of(arguments)
    corpus = corpus_of(arguments, reading)
    if arguments["--partial"]:
        corpus = opened(arguments, with_open_sentences(corpus, open_sentences_of(arguments["--partial"])))
    general = plan
    plan = general.for_corpus(corpus)
    start = start_of(arguments, plan, corpus)
    plan = plan if start is None else plan.after(start)
    dev = trees_of_dev(arguments, reading)
    output, seed = Path(arguments["--output"]), seed_of(arguments)
    again = {name: arguments[f"--{name}"] for name in ("resume", "force", "quiet")}
    if arguments["--raw"]:
        taught = with_raw_text(arguments, plan, corpus, dev, again)
        if taught is None:
            return EXIT_INTERRUPTED
        corpus, plan = taught, general.for_corpus(taught)
        plan = plan if start is None else plan.after(start)
    plan = fitted(arguments, plan, corpus, start, started)
    if n_chains > 1:
        path = None if start is None else Path(start.name)
        return train_chains(arguments, dev, Chains(plan, corpus, output, seed, n_chains, **again, start=path, log=log))
    run = plan.run(corpus, seed, output, start, **again, log=log)
    model = run.run()
    if not arguments["--quiet"]:
        print_size(arguments["--output"], corpus, model, time.perf_counter() - started)
    if run.interrupted:
        done, other = run.done, f"{output} is still the earlier model; " if run.keeps_other else ""
        print(f"tsgkit: interrupted after {done} iterations; {other}--resume continues from there", file=sys.stderr)
        return EXIT_INTERRUPTED
    if dev:
        score = held_out_score(model, dev, params=parameters, threads=threads, quiet=arguments["--quiet"])
        print(f"{arguments['--dev']}: {score.headline()}")
        if not arguments["--quiet"]:
            for warning in parameter_warnings(score):
                print(f"tsgkit: {warning}", file=sys.stderr)
    return 0


def print_size(name: str, corpus: FlatCorpus, model: Model, seconds: float) -> None:
    """Print how large the treebank and the grammar are, and how long the training took."""
    grammar = model.grammar
    print(
        f"{name}: {counted(corpus.n_trees, 'tree')}, {corpus.n_tokens} tokens, {len(grammar.labels)} labels,"
        f"{tree_types(model)} {grammar.n_rules} rules, {seconds:.1f} s",
        file=sys.stderr,
    )


def log_of(arguments: dict[str, Any]) -> Path | None:
    """The file of --log, after making sure that it is no input, no output and no model: lines are appended to it."""
    if arguments["--log"] is None:
        return None
    path = Path(arguments["--log"])
    if path.resolve() in [each.resolve() for each in files_of_run(arguments["--output"])]:
        raise UsageError(f"--log={path}: the training writes this file itself; name another one")
    note_output(path)
    return path


def trees_of_dev(arguments: dict[str, Any], reading: Reading) -> list[Tree]:
    """The trees of --dev: read before training, so that errors in them are found before it and not after it."""
    dev = [] if arguments["--dev"] is None else list(reading.trees(arguments["--dev"]))
    reading.report()
    if arguments["--dev"] is not None and not dev:
        raise UsageError(f"--dev={arguments['--dev']}: it contains no trees")
    return dev


if __name__ == "__main__":
    sys.exit(main())
