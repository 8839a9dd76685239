from tsgkit._bracket_trees import Labels

class BracketMatcher:
    def __init__(self, labels: Labels, is_labelled: bool) -> None: ...
