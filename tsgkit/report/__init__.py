"""Output for people: derivations of trees, the report on a model, the comparison of two parsers, the web page.

Last stage of the flow, beside `tsgkit.evaluation`: it reads models and parses and changes nothing.
"""

from tsgkit.report._derivation import Derivation, Deriver, derivation_of

__all__ = ["Derivation", "Deriver", "derivation_of"]
