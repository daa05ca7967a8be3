"""Whatever a plug-in raises, wherever it is called: one line with its name, no success, no waiting."""

import errno
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from isogloss import cli
from isogloss.core.atomic_files import OUTAGE_ERRORS
from isogloss.core.records import RECORD
from isogloss.engine import work
from isogloss.features.tracking import trackers
from isogloss.reports import report as reporting
from isogloss.reports import sections
from isogloss.runs.trackers import TRACKERS
from isogloss.translators import TRANSLATORS

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from isogloss.diagnostics.setting import Diagnostic
from isogloss.reports.verdicts import Claim
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.setting import Method, Reads
from isogloss.features.built_in_languages.translator import BuiltIn

CALLS = []


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


def fail_at(place):
    if place == {place!r}:
        CALLS.append(place)
        raise {error}


fail_at("import")


@dataclass(frozen=True, kw_only=True)
class Own(Method):
    """A method of somebody."""

    name: ClassVar[str] = "own"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    def __post_init__(self):
        fail_at("values")

    def check(self, task, encoder):
        fail_at("check")

    def reads(self, source, target):
        fail_at("reads")
        return Reads(train=source, dev=source)

    def train(self, setting):
        fail_at("train")
        return fine_tune(setting, self.reads(setting.source, setting.target))


@dataclass(frozen=True, kw_only=True)
class Row:
    model: str


@dataclass(frozen=True, kw_only=True)
class Measured(Diagnostic):
    """A diagnostic of somebody."""

    name: ClassVar[str] = "measured"
    subject: ClassVar[str] = "model"

    def measure(self, setting):
        fail_at("measure")
        yield Row(model=setting.subjects[0].id)


@dataclass(frozen=True, kw_only=True)
class Translating(BuiltIn):
    """A translator of somebody."""

    def translate(self, texts, setting):
        fail_at("translate")
        return super().translate(texts, setting)


class Tracker:
    def __init__(self, **_):
        fail_at("tracker")

    def start(self):
        fail_at("tracker start")

    def store_init_configuration(self, settings):
        pass

    def log(self, values, step):
        fail_at("tracker log")

    def finish(self):
        fail_at("tracker finish")


def rule(measurements):
    fail_at("claim")
    return []


def show(measurements):
    fail_at("section")
    return []


CLAIM = Claim(id="F1", title="Foreign", where="here", says="So.", rule="So.", needs=(), test=rule)
'''

RECIPE = """
title = "Foreign"
encoder = "shipped"

[grid]
corpus = "xnli"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 4
dev_examples = 4
optimization = {{ epochs = 1, learning_rate = 5e-4, batch_size = 4, precision = "float32" }}

[[grid.method]]
name = "{module}:Own"

[[measure]]
name = "{module}:Measured"
examples = 4
"""

TRANSLATION = """
[translate]
name = "built-in"
"""

ENDS_PLAN = ("import", "values", "check", "reads", "section")
"""Hooks whose error ends the command, before the first run or after the last."""

FAILS_RUN = ("train", "measure", "translate")
"""Hooks whose error is a failure of one run."""

IS_NOTED = ("tracker", "tracker start", "tracker log", "tracker finish", "claim")
"""Hooks whose error does not stop any run, but is reported in a line."""

PLACES = (*ENDS_PLAN, *FAILS_RUN, *IS_NOTED)

ERRORS = {
    "ValueError": 'ValueError("odd")',
    "SystemExit-0": "SystemExit(0)",
    "SystemExit-1": "SystemExit(1)",
    "SystemExit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "Unprintable": "Unprintable",
    "BrokenPipe": 'BrokenPipeError(32, "Broken pipe")',
    "ENOSPC": f'OSError({errno.ENOSPC}, "No space left on device")',
    **{
        errno.errorcode[outage_error]: f'OSError({outage_error}, "odd")'
        for outage_error in sorted(OUTAGE_ERRORS)
    },
}

SAMPLE = (
    ("import", "SystemExit-0"),
    ("values", "Unprintable"),
    ("check", "KeyboardInterrupt"),
    ("reads", "ENOSPC"),
    ("train", "SystemExit-0"),
    ("train", "ECONNREFUSED"),
    ("measure", "Unprintable"),
    ("translate", "EIO"),
    ("tracker", "SystemExit-0"),
    ("claim", "SystemExit-1"),
    ("section", "BrokenPipe"),
)


@dataclass
class Answer:
    """Answer of the command line, and number of calls of the failing code."""

    status: int
    lines: list[str]
    calls: int
    records: int


@pytest.fixture
def answer(tmp_path: Path, monkeypatch, capsys) -> Callable[..., Answer]:
    """Run a recipe with code that raises an error in a place, on the command line."""
    monkeypatch.setattr(work, "CHECK_EVERY", 0.001)
    monkeypatch.setattr(work, "PATIENCE", 0.05)

    def run(place: str, error: str) -> Answer:
        module = "foreign_" + re.sub(r"\W", "_", f"{place}_{error}")
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / f"{module}.py").write_text(MODULE.format(place=place, error=ERRORS[error]))
        if place == "claim":
            facts = tmp_path / f"{module}-1.dist-info"
            facts.mkdir()
            (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
            (facts / "entry_points.txt").write_text(f"[isogloss.claims]\n{module} = {module}:CLAIM\n")
        recipe = RECIPE.format(module=module)
        words = ["--no-report"]
        if place != "import":
            foreign = __import__(module)
        if place == "translate":
            monkeypatch.setitem(TRANSLATORS.places, "built-in", f"{foreign.__name__}:Translating")
            recipe = recipe.replace(f"{module}:Own", "translate-train") + TRANSLATION
        if place == "section":
            part = sections.Section(id="own", title="Own", text="", parts=(foreign.show,))
            monkeypatch.setattr(reporting, "SECTIONS", (part,))
            words = []
        if place == "claim":
            words = []
        if place.startswith("tracker"):
            from accelerate.tracking import LOGGER_TYPE_TO_CLASS

            library = trackers.Library("own", lambda *_: {}, ())
            monkeypatch.setattr(trackers, "OWN", library, raising=False)
            monkeypatch.setitem(TRACKERS.places, "own", f"{trackers.__name__}:OWN")
            monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "own", foreign.Tracker)
            words += ["--track", "own"]
        (tmp_path / "foreign.toml").write_text(recipe)
        folder = tmp_path / "runs"
        with warnings.catch_warnings(record=True) as warned_values, pytest.raises(SystemExit) as end:
            warnings.simplefilter("always")
            cli.main(
                [
                    "run",
                    str(tmp_path / "foreign.toml"),
                    "--out",
                    str(folder),
                    "--engine",
                    "serial",
                    "--quiet",
                    *words,
                ]
            )
        calls = len(getattr(sys.modules.get(module), "CALLS", [0]))
        sys.modules.pop(module, None)
        lines = [line for line in capsys.readouterr().err.splitlines() if line]
        lines += [str(warning.message) for warning in warned_values]
        if place == "claim":
            lines += [
                line
                for line in (folder / "report.html").read_text().splitlines()
                if "its rule failed" in line
            ]
        return Answer(int(end.value.code or 0), lines, calls, len(list(folder.glob(f"*/{RECORD}"))))

    return run


def check(place: str, error: str, answer: Callable[..., Answer]) -> None:
    """Check for one line with the plug-in's name, exit code 1 or 2 unless all runs end, and one attempt."""
    response = answer(place, error)
    name = {"tracker": "own", "claim": "its rule failed"}.get(place.partition(" ")[0], "foreign_")
    lines = [line for line in response.lines if name in line and "bug in isogloss" not in line]
    assert len(lines) == 1, response
    assert "Traceback" not in "".join(response.lines)
    assert response.calls <= 2 + 2 * place.startswith("tracker"), response
    if place in ENDS_PLAN:
        assert response.status in (1, 2), response
        assert response.records == (2 if place == "section" else 0)
    elif place in FAILS_RUN:
        assert response.status == 1, response
        assert response.calls == 1
    else:
        assert (response.status, response.records) == (0, 2), response


@pytest.mark.slow
@pytest.mark.parametrize(("place", "error"), SAMPLE)
def test_foreign_code_that_raises_is_said_in_a_line_with_its_name(place, error, answer):
    check(place, error, answer)


@pytest.mark.nightly
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("place", PLACES)
def test_all_places_and_errors_of_foreign_code(place, error, answer):
    check(place, error, answer)
