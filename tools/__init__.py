"""The commands of tsgkit, one module each: the usage text is the docstring, ``main`` runs it."""
