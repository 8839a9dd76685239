from tsgkit.evaluation._parameters import Parameters

class Labels:
    def __init__(self, parameters: Parameters) -> None: ...

class TreeReader:
    def __init__(self, content: bytes, labels: Labels) -> None: ...
