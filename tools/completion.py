"""Print what a shell needs to complete the commands and options of tsgkit.

Usage:
  tsgkit completion bash
  tsgkit completion zsh
  tsgkit completion -h | --help | --version

`source <(tsgkit completion bash)`, in ~/.bashrc, or `source <(tsgkit completion zsh)`, in ~/.zshrc after compinit:
from then on the tab key completes commands, options, the values that an option has, and names of files.

Options:
  -h, --help   this text
  --version    the version
"""

import sys

from tsgkit._cli import command, parse_arguments
from tsgkit._completion import SCRIPTS
from tsgkit._files import open_output


@command
def main(argv: list[str]) -> int:
    """Print the script of a shell."""
    arguments = parse_arguments(__doc__, argv)
    shell = next(name for name in SCRIPTS if arguments[name])
    with open_output() as file:
        file.write(SCRIPTS[shell]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
