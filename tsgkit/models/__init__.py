"""What a model is: its state, its prior, and its export to a weighted grammar."""

from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model

__all__ = ["FragmentTable", "Model"]
