"""The codes that arrays of integers carry between compiled modules and Python.

Every stage of the flow reads them: rows of trees and derivations, children of fragments, states of nodes. They are
defined in ``_codes.pxd``, which compiled modules read; this module shows them to Python.
"""
