"""What type checkers say of the interface: `make mypy` fails unless exactly the mistakes below are found."""

from typing import assert_type

import tsgkit
from tsgkit._estimators import Estimator

assert_type(tsgkit.train("village:dev"), tsgkit.SRTSG)
assert_type(tsgkit.train("village:dev", model="cfg", threads=2), tsgkit.CFG)
assert_type(tsgkit.train("village:dev", "tsg", iterations=10, seed=3), tsgkit.TSG)
assert_type(tsgkit.TSG(iterations=3).fit("village:dev").score("village:dev"), float)

tsgkit.train("village:dev", "tsg", itrations=10)  # type: ignore[call-overload]
tsgkit.train("village:dev", model="cfg", splits=3)  # type: ignore[call-overload]
for name in sorted(["cfg", "tsg"]):
    assert_type(tsgkit.train("village:dev", name, seed=3), Estimator)
assert_type(tsgkit.train("village:dev", minutes=0.5), tsgkit.SRTSG)

tsgkit.SRTSG(splits=3, merge=0.5, treebank="penn", binarization=tsgkit.Binarization("left"))
tsgkit.SRTSG(splits="3")  # type: ignore[arg-type]
tsgkit.SRTSG(split=3)  # type: ignore[call-arg]
tsgkit.SRTSG(sites="bloked")  # type: ignore[arg-type]
tsgkit.CFG(iterations=3)  # type: ignore[call-arg]
tsgkit.InsertionTSG(process="dp", stacked=True, seed=1).sedd = 2  # type: ignore[attr-defined]

MODEL = tsgkit.CFG().fit("village:dev")
tsgkit.parse([["I", "ran"]], MODEL, objective="mer", span_power=0.5, max_length=None)
tsgkit.parse([["I", "ran"]], MODEL, threshold="0")  # type: ignore[arg-type]
tsgkit.parse([["I", "ran"]], MODEL, treshold=0.0)  # type: ignore[call-arg]
tsgkit.Parser(MODEL, pruning="max-marginal").with_settings(tags="hrad")  # type: ignore[arg-type]
tsgkit.read_trees("x.mrg", format="export", encodign="latin-1")  # type: ignore[call-arg]
