"""The exit codes of all commands; this is the only place where they are defined."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_MEMORY = 4
EXIT_INTERRUPTED = 130

# What each code means, for the manual.
EXIT_CODES = {
    0: "Success.",
    EXIT_FAILED: "The job failed: full disk, read or write error, broken pipe, another process writes the same file,"
    " lost workers, or some of several chains did not finish.",
    EXIT_USAGE: "The options or the input are invalid. The message names the option, or the file, line and column.",
    EXIT_REFUSED: "Refused: the command would have written onto one of its inputs, or replaced a trained model, a"
    " checkpoint or partial results without being asked to. Nothing was changed.",
    EXIT_MEMORY: "Not enough memory.",
    EXIT_INTERRUPTED: "Interrupted by Ctrl-C.",
}
