# The codes that arrays of integers carry between compiled modules and Python, each defined here and nowhere else.
# `tsgkit._codes` has the same names for Python.

# Rows: a tree or a derivation as an array of int32, one row per node, from the root down and left to right.
cpdef enum:
    ROW_LABEL = 0        # the column of the label, or of the symbol where the rows are a derivation
    ROW_START = 1        # the first word below the node
    ROW_END = 2          # one past the last
    ROW_KIND = 3         # which of the kinds below
    N_ROW_COLUMNS = 4

# Kinds of rows. The kind of a rule of the treebank is its number of nonterminal children.
cpdef enum:
    LEXICAL = 0          # a tag over its word
    UNARY = 1
    BINARY = 2
    BRIDGE = 3           # a step between two symbols at one node of the tree: it makes no node

# The children of a fragment, where they are not the number of another fragment.
cpdef enum:
    FRONTIER = -1        # a substitution site, or no child at all
    MISSING = -2         # a fragment that is not stored
    FOOT = -3            # the foot of an auxiliary tree

# States of the nodes of a derivation.
cpdef enum:
    INTERNAL = 0         # inside an elementary tree
    SITE = 1             # a substitution site: the root of an initial tree
    LEFT_FOOT = 2        # the root of an auxiliary tree whose foot is the left child
    RIGHT_FOOT = 3       # the same, with the foot on the right
