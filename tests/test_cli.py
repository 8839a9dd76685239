"""What every command promises."""

import subprocess
import sys

import pytest

from tsgkit.cli import choice, command, integer, number
from tsgkit.errors import UsageError
from tsgkit.usage import command_names

# They have no progress bar and no messages.
SILENT = ("compare", "completion")


@pytest.mark.parametrize("name", command_names())
def test_help_version_and_wrong_options(tsgkit, name):
    assert "Usage:" in tsgkit(name, "--help").stdout
    assert tsgkit("help", name).stdout == tsgkit(name, "--help").stdout
    assert tsgkit(name, "--version").stdout.startswith("tsgkit ")
    for option in ("--help", "--version", *([] if name in SILENT else ["--quiet"])):
        assert option in tsgkit(name, "--help").stdout
    wrong = tsgkit(name, "--no-such-option", code=2)
    assert wrong.stdout == ""
    assert "Usage:" in wrong.stderr


def test_overview(tsgkit):
    listing = tsgkit("--help").stdout
    assert all(f"  {name} " in listing for name in command_names())
    assert tsgkit(code=2).stdout == ""
    assert "no command 'nonsense'; there are " in tsgkit("nonsense", code=2).stderr
    assert "no command 'trian'; did you mean train?" in tsgkit("trian", code=2).stderr
    assert tsgkit("--version").stdout.startswith("tsgkit 0.")


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (lambda a: integer(a, "--n", 1), "x", "not a whole number"),
        (lambda a: integer(a, "--n", 1), "0", "must be at least 1"),
        (lambda a: number(a, "--n", 0, 1), "nan", "at least 0 and at most 1"),
        (lambda a: number(a, "--n", 0, 1), "2", "at least 0 and at most 1"),
        (lambda a: number(a, "--n"), "x", "not a number"),
        (lambda a: choice(a, "--n", ("a", "b")), "c", "must be one of a, b"),
    ],
)
def test_option_values(check, value, message):
    with pytest.raises(UsageError, match=f"--n={value}: .*{message}"):
        check({"--n": value})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (FileNotFoundError(2, "none", "f"), 2),
        (PermissionError(13, "no", "f"), 1),
        (MemoryError(), 1),
        (KeyboardInterrupt(), 1),
    ],
)
def test_errors_become_exit_codes(error, code, capsys):
    @command
    def main(argv):
        raise error

    assert main([]) == code
    assert capsys.readouterr().err.startswith("tsgkit: ")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("train", ["--modle=cfg", "-o", "m", "x"], "no option --modle; did you mean --model?"),
        ("train", ["x"], "--output=MODEL is missing"),
        ("train", ["-o", "m"], "TREEBANK is missing"),
        ("train", ["-o", "m", "--model=cfg", "--model=tsg", "x"], "--model is given twice"),
        ("train", ["--output"], "--output needs a value: --output=MODEL"),
        ("train", ["--quiet=yes", "-o", "m", "x"], "--quiet takes no value"),
        ("train", ["--s", "3", "-o", "m", "x"], "--s can be --"),
        ("eval", ["a"], "TEST is missing"),
        ("eval", ["a", "b", "c", "d"], "'d' is one argument too many"),
        ("eval", ["-x", "a", "b"], "no option -x"),
        ("completion", [], "bash is missing"),
        ("generate", [], "N is missing"),
    ],
)
def test_wrong_usage_is_explained(tsgkit, name, given, message):
    said = tsgkit(name, *given, code=2).stderr
    assert said.startswith(f"tsgkit: {message}")
    assert "Warning" not in said
    assert said.endswith(f"tsgkit {name} --help tells what the options mean\n")


LIGHT = [["--version"], ["--help"], ["completion", "bash"], ["completion", "zsh"], ["train", "--version"]]
LIGHT += [[name, "--help"] for name in command_names() if name != "train"]


@pytest.mark.parametrize("given", LIGHT, ids=" ".join)
def test_what_only_prints_text_imports_nothing_heavy(given):
    code = (
        "import sys; from tsgkit.cli import main; code = main(sys.argv[1:]);"
        "heavy = {name.partition('.')[0] for name in sys.modules} & {'numpy', 'nltk', 'tqdm', 'flask', 'matplotlib'};"
        "sys.exit(code or ' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
