"""The registry of models: one entry per model, with everything that other parts of tsgkit need to know about it."""

from tsgkit.inference._entry import MODELS, ModelEntry, entry_of, fragments_of

__all__ = ["MODELS", "ModelEntry", "entry_of", "fragments_of"]
