"""Learning from raw text: teachers parse sentences that nobody annotated, and a student learns from all the trees.

This is self-training with a product of models (Huang & Harper 2009; Huang, Harper & Petrov 2010): several teachers are
trained on the treebank, their product parses the sentences, and the student is trained on the treebank together with
these trees. See :doc:`/raw-text`.
"""

from tsgkit.raw_text._sentences import RawSentences
from tsgkit.raw_text._settings import RawTextSettings
from tsgkit.raw_text._teaching import Teaching, student_corpus, teaching_of

__all__ = ["RawSentences", "RawTextSettings", "Teaching", "student_corpus", "teaching_of"]
