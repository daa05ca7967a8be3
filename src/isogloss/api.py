"""The Python interface: what the command line does, as functions.

>>> import isogloss
>>> result = isogloss.run("quickstart", out="runs/quickstart")      # doctest: +SKIP
>>> model = isogloss.load_model("runs/quickstart/<id>")             # doctest: +SKIP
>>> model.predict([["tuki", "mirne", "baboza", "."]])               # doctest: +SKIP
>>> model.evaluate("ud", ["qab", "qad"])                            # doctest: +SKIP
>>> model.export("my-model")                                        # doctest: +SKIP
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError
from isogloss.core.progress import Tell, silent
from isogloss.core.records import Record
from isogloss.experiments.engine import Announce, Outcome
from isogloss.experiments.running import make, plan_recipe
from isogloss.reports import Report, write_report
from isogloss.using import Model, load_model


@dataclass(frozen=True)
class Result:
    """What running a recipe gave."""

    out: Path
    outcome: Outcome
    report: Report
    records: list[Record]


def run(
    recipe: str | Path,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
    scale: str = "",
    jobs: int = 0,
    threads: int = 1,
    tell: Tell = silent,
    announce: Announce = lambda *_: None,
    command: str = "",
) -> Result:
    """Run a recipe (a TOML file or the name of a packaged one); what has a record is not made again.

    ``changes`` are dotted keys of the recipe and their values. ``jobs`` runs are made side by side (0: as
    many as this machine has cores for), each with ``threads`` threads; records are the same for any number
    of jobs, and for the same number of threads.
    """
    refuse_several_processes()
    folder = Path(out) if out else None
    planned = plan_recipe(str(recipe), out=folder, data=data, changes=changes, scale=scale)
    with planned.store.lock():
        planned.write(command or f"isogloss run {Path(recipe).name}")
        outcome = make(planned, jobs=jobs, threads=threads, announce=announce, tell=tell)
        report = write_report(planned.store.root)
    records = [planned.store.record(one) for one in planned.runs if planned.store.is_finished(one)]
    return Result(planned.store.root, outcome, report, records)


def refuse_several_processes() -> None:
    """Raise ConfigError where several processes were started to do the work of one."""
    from isogloss.training.processes import processes

    if processes() > 1:
        raise ConfigError(
            f"isogloss.run: this is one of {processes()} processes, and each would make the same runs. Start "
            f"the script alone; encoders are pretrained in several processes by the command line: "
            f"accelerate launch -m isogloss run RECIPE."
        )


__all__ = ["Model", "Result", "load_model", "run"]
