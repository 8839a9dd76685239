"""Scores of parser output against gold trees. Last stage of the flow, after `tsgkit.parsing`.

``evaluate(gold, test).f1`` is EVALB's labelled bracketing F-measure, the figure that papers report, to the digit.
"""

from tsgkit.evaluation._breakdown import Confusion, LabelScore, LengthScore
from tsgkit.evaluation._evalb import Comparison, Evaluation, Problem, compare, evaluate
from tsgkit.evaluation._parameters import ParameterError, Parameters, load_parameters
from tsgkit.evaluation._scores import AlignedScore, Score, StrictScore

__all__ = [
    "AlignedScore",
    "Comparison",
    "Confusion",
    "Evaluation",
    "LabelScore",
    "LengthScore",
    "ParameterError",
    "Parameters",
    "Problem",
    "Score",
    "StrictScore",
    "compare",
    "evaluate",
    "load_parameters",
]
