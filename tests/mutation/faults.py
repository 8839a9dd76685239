"""All deliberate faults, in the order in which `run.py` tries them."""

from mutation import faults_of_parsing, faults_of_samplers, faults_of_scores, faults_of_subcategories

FAULTS = [
    *faults_of_samplers.FAULTS,
    *faults_of_subcategories.FAULTS,
    *faults_of_parsing.FAULTS,
    *faults_of_scores.FAULTS,
]
