"""Allocations that fail become MemoryError in any thread; a sampler that was changed half-way is not used again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Stands in for the allocator of C++: once armed, the n-th allocation fails, and all later ones work again.
SHIM = """
#include <atomic>
#include <cstdlib>
#include <new>
static std::atomic<long> countdown{-1};
extern "C" void fail_at(long n) { countdown = n; }
extern "C" long left() { return countdown; }
void* operator new(std::size_t size) {
    if (countdown.load() >= 0 && countdown.fetch_sub(1) == 0) throw std::bad_alloc();
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
"""
SCRIPT = """
import ctypes
import numpy as np
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, load, prepare

shim = ctypes.CDLL(None)
shim.left.restype = ctypes.c_long
{sampler}
def attempt(move, n):
    sampler = seated(n)
    shim.fail_at(n)
    try:
        MOVES[move](sampler)
    except MemoryError:
        try:
            use(sampler)
        except RuntimeError:
            return True
        raise AssertionError("used after a failure")
    finally:
        failed = shim.left() < 0
        shim.fail_at(-1)
    assert not failed, "a failed allocation raised nothing"
    return False

for move in MOVES:
    print(move, sum(attempt(move, n) for n in [*range(60), *range(60, 600, 9)]))
"""
TSG = """
from tsgkit._tsg_sampler import TsgSampler

trees = number_rules(prepare(load("village", "dev")[:12], binarization=Binarization("centre-head", 0)))

def seated(seed):
    sampler = TsgSampler(trees, seed)
    sampler.allow_insertions(trees.foot_probability())
    sampler.set_parameters(0.5, 1.0, 0.5, 0.5, 1.0, 0.5)
    sampler.start(np.zeros(len(trees.label)))
    sampler.blocked_sweep(0, batch=4)
    return sampler

def use(sampler):
    sampler.local_sweep(2)

MOVES = {
    "blocked": lambda sampler: sampler.blocked_sweep(1, batch=6, threads=3),
    "batch of one": lambda sampler: sampler.blocked_sweep(1),
    "local": lambda sampler: sampler.local_sweep(1),
    "types": lambda sampler: sampler.type_sweep(1, 200),
    "empty": lambda sampler: sampler.empty(),
}
"""
SPLIT = """
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, Words, make_sampler
from tsgkit.treebank import UnknownWords
from tsgkit.treebank._prepare import preparation_of

corpus = prepare(
    load("village", "dev")[:12], binarization=Binarization("right", 0), unknown=UnknownWords("unicode", 0)
)
trees = number_rules(corpus)
words = Words.of(corpus, trees, preparation_of(corpus).lexicon)
split = Subcategories.whole(trees.n_labels).split(int(corpus.label[0]))
bits = np.arange(len(trees.label)) % split.n_options[corpus.label]

def seated(seed):
    sampler = make_sampler(
        trees, words, corpus.label, split, base="uniform", back_off=UNREFINED_ROOT, seed=seed
    )
    sampler.start(bits)
    sampler.tree_sweep(0, batch=4, threads=3)    # a thread that cannot start is done without
    return sampler

def start(sampler):
    sampler.empty()
    sampler.start(bits)

def use(sampler):
    sampler.tree_sweep(2)

MOVES = {
    "trees": lambda sampler: sampler.tree_sweep(1, batch=6, threads=3),
    "batch of one": lambda sampler: sampler.tree_sweep(1),
    "types": lambda sampler: sampler.type_sweep(1, 100),
    "losses": lambda sampler: sampler.merge_losses(1),
    "marginal losses": lambda sampler: sampler.merge_losses(1, marginal=True, threads=2),
    "merge": lambda sampler: sampler.merge(split.n_options > 1, 1),
    "start": start,
}
"""
REFINED = """
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, Words
from tsgkit.models._srtsg_sites import make_site_sampler, site_levels
from tsgkit.models._suffixes import ClassLevels

trees = number_rules(prepare(load("village", "dev")[:12], binarization=Binarization("right", 0)))
n_options = np.where(np.arange(trees.n_labels) == trees.label[0], 1, 2).astype(np.uint8)
subcategories = Subcategories(np.arange(trees.n_labels, dtype=np.int32), n_options, trees.n_labels)
classes = np.where(trees.rule_word >= 0, trees.rule_word % 2, -1).astype(np.int32)
words = Words(["C0", "C1"], classes, np.array([0.05, 0.03]), ClassLevels.uniform(2))
levels = site_levels(UNREFINED_ROOT, subcategories)
first = np.searchsorted(subcategories.label, trees.label)
symbols = first + np.arange(len(first)) % n_options[trees.label]
is_site = np.arange(len(first)) % 3 > 0
is_site[trees.tree_start[:-1]] = True

def seated(seed):
    sampler = make_site_sampler(trees, words, subcategories, levels, base="frequency", seed=seed)
    sampler.start(symbols, is_site)
    sampler.blocked_sweep(0, joint=True, batch=4, threads=3)    # a thread that cannot start is done without
    return sampler

def use(sampler):
    sampler.local_sweep(2)

MOVES = {
    "joint": lambda sampler: sampler.blocked_sweep(1, joint=True, batch=6, threads=3),
    "sites": lambda sampler: sampler.blocked_sweep(1, batch=6, threads=3),
    "batch of one": lambda sampler: sampler.blocked_sweep(1, joint=True),
    "local": lambda sampler: sampler.local_sweep(1),
    "empty": lambda sampler: sampler.empty(),
}
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is exchanged by LD_PRELOAD")
@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer has an allocator of its own")
@pytest.mark.parametrize(("sampler", "n_moves"), [(TSG, 5), (SPLIT, 7), (REFINED, 5)], ids=["tsg", "split", "refined"])
def test_failed_allocations_raise(tmp_path, sampler, n_moves):
    source, library = tmp_path / "shim.cpp", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{sampler}", sampler)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failures = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert len(failures) == n_moves
    assert all(int(n) >= 5 for n in failures.values()), failures
