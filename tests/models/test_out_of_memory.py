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
from tsgkit._tsg_sampler import TsgSampler
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, load, prepare

shim = ctypes.CDLL(None)
shim.left.restype = ctypes.c_long
trees = number_rules(prepare(load("village", "dev")[:12], binarization=Binarization("centre-head", 0)))

def attempt(move, n):
    sampler = TsgSampler(trees, n)
    sampler.allow_insertions(trees.foot_probability())
    sampler.set_parameters(0.5, 1.0, 0.5, 0.5, 1.0, 0.5)
    sampler.start(np.zeros(len(trees.label)))
    sampler.blocked_sweep(0, batch=4)
    shim.fail_at(n)
    try:
        MOVES[move](sampler)
    except MemoryError:
        try:
            sampler.local_sweep(2)
        except RuntimeError:
            return True
        raise AssertionError("used after a failure")
    finally:
        failed = shim.left() < 0
        shim.fail_at(-1)
    assert not failed, "a failed allocation raised nothing"
    return False

MOVES = {
    "blocked": lambda sampler: sampler.blocked_sweep(1, batch=6, threads=3),
    "batch of one": lambda sampler: sampler.blocked_sweep(1),
    "local": lambda sampler: sampler.local_sweep(1),
    "types": lambda sampler: sampler.type_sweep(1, 200),
    "empty": lambda sampler: sampler.empty(),
}
for move in MOVES:
    print(move, sum(attempt(move, n) for n in [*range(60), *range(60, 600, 9)]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is exchanged by LD_PRELOAD")
@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer has an allocator of its own")
def test_failed_allocations_raise(tmp_path):
    source, library = tmp_path / "shim.cpp", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "LD_PRELOAD": str(library)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failures = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert len(failures) == 5
    assert all(int(n) >= 5 for n in failures.values()), failures
