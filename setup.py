"""Build recipe of the compiled modules; everything else about the package is in pyproject.toml.

Every ``ext/tsgkit/NAME.pyx`` becomes the module ``tsgkit.NAME``. In the environment, ``TSGKIT_CHECKED=1`` asks for
bounds checks, ``TSGKIT_SANITIZE=1`` for the address and undefined behaviour sanitizers, ``TSGKIT_QUICK=1`` for code
that is compiled quickly and runs slowly; changing the mode forces a rebuild. ``TSGKIT_MODULES`` names the modules to
build, separated by blanks, instead of all.
"""

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
    # Python asks for what debuggers need, which is nine tenths of a module and a third of the time to compile it.
    return ["-O0" if QUICK else "-O3", "-g0", *portable, *checks]


def link_flags() -> list[str]:
    if sys.platform == "win32":
        return []
    # Before glibc 2.34, which the images that make wheels still have, threads are a library of their own.
    return ["-pthread", *(["-fsanitize=address,undefined"] if SANITIZED else [])]


STAMP = Path("build/mode")


def mode_changed() -> bool:
    """Whether the modules in the source folder were built in the other mode, or a build was interrupted."""
    previous = STAMP.read_text() if STAMP.exists() else MODE
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text("interrupted" if previous != MODE else MODE)
    return previous != MODE


def extensions() -> list[Extension]:
    return [
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
        for source in sorted(SOURCES.glob("*.pyx"))
        if not MODULES or source.stem in MODULES
    ]


FORCE = mode_changed()
setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["ext"],
        build_dir=f"build/cython-{MODE}",
        compiler_directives=DIRECTIVES,
        force=FORCE,
        nthreads=0,
    ),
    options={"build_ext": {"force": FORCE, "parallel": os.cpu_count()}},
)
STAMP.write_text(MODE)
