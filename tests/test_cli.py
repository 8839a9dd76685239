"""What every command promises."""

import pytest

from tsgkit.cli import choice, command, command_names, integer, number
from tsgkit.errors import UsageError

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
    assert "no command 'nonsense'" in tsgkit("nonsense", code=2).stderr
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
