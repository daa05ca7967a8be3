"""Planning and running the recipe of a test file: its RECIPE, unless a test gives another one."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import InputError
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.store.store import PRECISION
from killed import RECIPE, records
from tiny import TINY, dotted_changes, tiny


@pytest.fixture
def plan_changed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Planned]:
    """Plan a recipe with changes. Dots in keys are written as two underscores."""

    def make(text: str = "", *, data: Path | None = None, scale: str = "", **changes: object) -> Planned:
        recipe = tiny(tmp_path, text or getattr(request.module, "RECIPE", TINY))
        names = dotted_changes(**changes)
        return plan_recipe(str(recipe), out=tmp_path / "runs", data=data, scale=scale, changes=names)

    return make


@pytest.fixture
def plan(plan_changed: Callable[..., Planned]) -> Callable[..., list]:
    """List the runs of a recipe with changes."""
    return lambda *arguments, **changes: plan_changed(*arguments, **changes).runs


@pytest.fixture
def get_refusal(plan_changed: Callable[..., Planned]) -> Callable[..., str]:
    """Return the message a recipe with changes is refused with."""

    def message(*arguments: str, **changes: object) -> str:
        with pytest.raises(InputError) as error:
            plan_changed(*arguments, **changes)
        return str(error.value)

    return message


@pytest.fixture(scope="module")
def finished_study(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> isogloss.Result:
    """The recipe of the test file, run once."""
    folder = tmp_path_factory.mktemp("made")
    result = isogloss.run(tiny(folder, request.module.RECIPE), out=folder / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    return result


@pytest.fixture(scope="module")
def undisturbed_study(
    tmp_path_factory: pytest.TempPathFactory, runs_of: Callable[[str, str], Path]
) -> tuple[Path, Mapping[str, bytes]]:
    """A folder with a recipe of a few seconds as r.toml, and the records of an undisturbed run.

    The precision of that run is in the same folder.
    """
    undisturbed_runs = runs_of("undisturbed", RECIPE)
    folder = tmp_path_factory.mktemp("whole")
    (folder / "r.toml").write_text(RECIPE)
    shutil.copy(undisturbed_runs / PRECISION, folder)
    return folder, records(undisturbed_runs)
