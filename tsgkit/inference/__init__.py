"""How models are trained: the loop, its checkpoints, and what each model does in an iteration."""

__all__: list[str] = []
