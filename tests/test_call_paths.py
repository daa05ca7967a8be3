"""How often one object's path through the calls enters another file: of a setting, a plan, a recipe.

The calls are those that happen in a small study. A path is a call tree: it contains the calls that receive an
object of the class, and each pair of caller and called function counts once.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import isogloss
from isogloss.core.untrusted import from_home, is_there
from isogloss.engine.engine import Execution, make_planned
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.recipes.recipe import Recipe
from isogloss.training.setting import Setting

SOURCE = Path(isogloss.__file__).parent
STUDY: dict[str, Any] = {
    "title": "Call paths",
    "encoder": "shipped",
    "grid": {
        **{"corpus": "ud", "task": "upos", "source": "qaa", "targets": ["qab"], "seeds": [0]},
        **{"examples": 48, "dev_examples": 16},
        "optimization": {"epochs": 1, "batch_size": 16, "precision": "float32"},
    },
}
MOST = {"planning": 25, "make_planned": 14, "source-only": 12, "x-mixup": 20}
"""How often a path may enter another file."""


class CallPath:
    """The calls that receive an object of a class, noted while a function runs."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.receiving: list[FrameType] = []
        """Calls under way that have received one."""
        self.entered: dict[tuple[str, str, str], None] = {}
        """Caller, called function and file of each call into another file."""

    def run(self, work: Callable[[], object]) -> list[tuple[str, str, str]]:
        """Return the calls into another file while a function runs."""
        sys.setprofile(self.note)
        try:
            work()
        finally:
            sys.setprofile(None)
        return list(self.entered)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "return" and self.receiving and self.receiving[-1] is frame:
            self.receiving.pop()
        if event != "call" or not code.co_filename.startswith(str(SOURCE)):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not any(isinstance(frame.f_locals.get(name), self.kind) for name in names):
            return
        caller = self.receiving[-1].f_code if self.receiving else None
        if caller is None or caller.co_filename != code.co_filename:
            file = str(Path(code.co_filename).relative_to(SOURCE))
            self.entered[caller.co_qualname if caller else "", code.co_qualname, file] = None
        self.receiving.append(frame)


def plan_with(method: str, folder: Path) -> Planned:
    study = {**STUDY, "grid": {**STUDY["grid"], "method": [{"name": method}]}}
    return plan_recipe(study, out=folder)


def test_a_recipes_path_through_planning_is_short(tmp_path):
    entered = CallPath(Recipe).run(lambda: plan_with("source-only", tmp_path))
    assert 0 < len(entered) <= MOST["planning"], entered


@pytest.mark.slow
def test_a_plans_path_through_the_engine_is_short(tmp_path):
    plan = plan_with("source-only", tmp_path)
    entered = CallPath(Planned).run(lambda: make_planned(plan, Execution(jobs=1, engine="serial")))
    assert 0 < len(entered) <= MOST["make_planned"], entered


@pytest.mark.slow
@pytest.mark.parametrize("method", ["source-only", "x-mixup"])
def test_a_settings_path_through_a_training_is_short(method, tmp_path):
    plan = plan_with(method, tmp_path)
    entered = CallPath(Setting).run(lambda: make_planned(plan, Execution(jobs=1, engine="serial")))
    assert 0 < len(entered) <= MOST[method], entered
    assert any(name.endswith("fine_tune") for _, name, _ in entered)


def test_a_path_counts_each_call_into_another_file_once():
    entered = CallPath(str).run(lambda: [is_there(from_home(name)) for name in ("a", "b")])
    assert entered.count(("", "from_home", "core/untrusted.py")) == 1
    assert all((SOURCE / file).is_file() for *_, file in entered)
