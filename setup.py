"""Build recipe of the compiled modules; everything else about the package is in pyproject.toml.

Every ``ext/tsgkit/NAME.pyx`` becomes the module ``tsgkit.NAME``. Environment variables change the mode of the build:
``TSGKIT_CHECKED=1`` adds bounds checks, ``TSGKIT_SANITIZE=1`` the address and undefined behaviour sanitizers, and
``TSGKIT_QUICK=1`` compiles quickly, without optimization. A change of mode compiles all modules again.
``TSGKIT_MODULES`` lists the modules to build, separated by spaces; by default, all are built.
"""

import multiprocessing
import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED, SANITIZED, QUICK = (
    os.environ.get(f"TSGKIT_{name}", "") not in ("", "0") for name in ("CHECKED", "SANITIZE", "QUICK")
)
MODE = "sanitized" if SANITIZED else "checked" if CHECKED else "quick" if QUICK else "release"
MODULES = os.environ.get("TSGKIT_MODULES", "").split()
SOURCES = Path("ext/tsgkit")
# Cython's code for memoryviews, compiled once instead of in each module that uses them, which would make a build take
# almost twice as long and the modules twice as large.
SHARED = "tsgkit._cyutility"
# setuptools recompiles a module when one of these is newer than it; Cython itself follows the .pxd files.
HEADERS = sorted(str(path) for path in SOURCES.glob("*.hpp"))

DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "freethreading_compatible": True,
}


def compile_flags() -> list[str]:
    if sys.platform == "win32":
        return ["/O2", "/std:c++17", "/EHsc"]
    # With assertions, libstdc++ checks every operator[] of the C++ containers as well.
    checks = ["-D_GLIBCXX_ASSERTIONS", "-UNDEBUG"] if CHECKED else []
    # Where processors fuse multiplication and addition (ARM), results would differ in the last bit.
    portable = ["-std=c++17", "-pthread", "-ffp-contract=off"]
    if SANITIZED:
        # The stack below a report is worth more than speed, and the first report ends the program.
        kinds = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
        return ["-O1", *portable, *kinds, *checks]
    # Python asks for debug information, which is nine tenths of a module and a third of the time to compile it.
    return [{"release": "-O3", "checked": "-O1", "quick": "-O0"}[MODE], "-g0", *portable, *checks]


def link_flags() -> list[str]:
    if sys.platform == "win32":
        return []
    # Before glibc 2.34, which the images that make wheels still have, threads are a library of their own.
    return ["-pthread", *(["-fsanitize=address,undefined"] if SANITIZED else [])]


STAMP = Path("build/mode")


def mode_changed() -> bool:
    """Whether the modules in the source folder were built in another mode, or a build was interrupted."""
    previous = STAMP.read_text() if STAMP.exists() else MODE
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text("interrupted" if previous != MODE else MODE)
    return previous != MODE


def extensions() -> list[Extension]:
    modules = [
        Extension(
            f"tsgkit.{source.stem}",
            [str(source)],
            language="c++",
            include_dirs=[str(SOURCES), numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
            depends=HEADERS,
            extra_compile_args=compile_flags(),
            extra_link_args=link_flags(),
        )
        # The largest first, so that no processor waits at the end for one of them.
        for source in sorted(SOURCES.glob("*.pyx"), key=lambda source: source.stat().st_size, reverse=True)
        if not MODULES or source.stem in MODULES
    ]
    # Cython writes this module in C, whose compilers refuse the option of a C++ standard.
    flags = [flag for flag in compile_flags() if "std" not in flag]
    shared = Extension(
        SHARED, [f"ext/{SHARED.replace('.', '/')}.c"], extra_compile_args=flags, extra_link_args=link_flags()
    )
    return [shared, *modules] if modules else []


def cython_processes() -> int:
    """How many processes translate Cython to C++; 0 stands for this one alone.

    A process that is not forked would run this file again.
    """
    if sys.platform != "linux":
        return 0
    multiprocessing.set_start_method("fork", force=True)
    return len(os.sched_getaffinity(0))


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["ext"],
        build_dir="build/cython-checked" if CHECKED else "build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=cython_processes(),
        shared_utility_qualified_name=SHARED,
    ),
    options={"build_ext": {"force": mode_changed(), "parallel": os.cpu_count()}},
)
STAMP.write_text(MODE)
