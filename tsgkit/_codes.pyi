from typing import Final

ROW_LABEL: Final = 0
ROW_START: Final = 1
ROW_END: Final = 2
ROW_KIND: Final = 3
N_ROW_COLUMNS: Final = 4

LEXICAL: Final = 0
UNARY: Final = 1
BINARY: Final = 2
BRIDGE: Final = 3

FRONTIER: Final = -1
MISSING: Final = -2
FOOT: Final = -3

INTERNAL: Final = 0
SITE: Final = 1
LEFT_FOOT: Final = 2
RIGHT_FOOT: Final = 3
