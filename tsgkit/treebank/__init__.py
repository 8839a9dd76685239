"""Treebanks: trees in a file become clean, binarised trees, and these the flat corpus."""
