"""Workers of every engine receive or read the plan: their processes never load the planning."""

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.engine.engines import ENGINES, Execution
from isogloss.planning import plan as planning
from tiny import tiny

pytestmark = pytest.mark.slow

METHOD = '''
import sys
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import RunError
from isogloss.training.setting import Method, Reads


@dataclass(frozen=True)
class Telling(Method):
    """Fails with the modules of planning that its process has loaded."""

    name: ClassVar[str] = "telling"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    def reads(self, source, target):
        return Reads(train=source, dev=source)

    def train(self, setting):
        planners = ("isogloss.planning.plan", "isogloss.planning.grid")
        raise RunError(f"planning: {[name for name in planners if name in sys.modules]}")
'''

RECIPE = """
title = "Telling"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0, 1]
examples = 8
dev_examples = 4

[[grid.method]]
name = "telling_method:Telling"
"""


@pytest.mark.every_case
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "serial"])
def test_workers_do_not_plan(engine, request, tmp_path, monkeypatch):
    try:
        Execution(engine=engine)
    except ConfigError as error:
        pytest.skip(str(error))
    if engine in ("ray", "slurm"):
        request.getfixturevalue({"ray": "cluster", "slurm": "local_slurm"}[engine])
    (tmp_path / "telling_method.py").write_text(METHOD)
    calls = []
    runs_of = planning.runs_of
    monkeypatch.setattr(planning, "runs_of", lambda *arguments: calls.append(1) or runs_of(*arguments))
    result = isogloss.run(tiny(tmp_path, RECIPE), out=tmp_path / "runs", engine=engine, jobs=2, report=False)
    assert len(calls) == 1
    assert len(result.outcome.failed) == 2
    assert all("planning: []" in reason for reason in result.outcome.failed.values())
