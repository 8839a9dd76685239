"""Pitman-Yor processes and Dirichlet processes as restaurants; a hierarchy of them is a model by itself."""

from tsgkit.models._restaurant import Parameters, PitmanYorProcess, Stream

__all__ = ["Parameters", "PitmanYorProcess", "Stream"]
