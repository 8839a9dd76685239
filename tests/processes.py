"""Child processes: with a limit on their memory, and of programs that are not ours."""

import os
import resource
from typing import Any


def memory_limit(most_bytes: int, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What to tell `subprocess.run` for a child in an `environment` that ends when it takes more memory.

    As a rule, its addresses are limited. AddressSanitizer reserves terabytes of them, and watches the resident memory
    instead.
    """
    environment = {**(os.environ if environment is None else environment)}
    if "libasan" in environment.get("LD_PRELOAD", ""):
        options = f"hard_rss_limit_mb={most_bytes >> 20}:quarantine_size_mb=16"
        return {"env": {**environment, "ASAN_OPTIONS": f"{environment.get('ASAN_OPTIONS', '')}:{options}"}}
    limit = (most_bytes, most_bytes)
    return {"env": environment, "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, limit)}


def unsanitized() -> dict[str, str]:
    """The environment for programs that are not ours to examine: a sanitizer can bring them to a halt."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
