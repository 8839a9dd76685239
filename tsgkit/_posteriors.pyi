from tsgkit._chart import Chart
from tsgkit._forest import Forest

def forest_of(chart: Chart, smallest: float = 1e-12) -> Forest: ...
