"""The lists of what the package contains, from its tables themselves, which import torch.

``make docs`` writes them to ``lists.json``, which ``lists`` reads; a test fails where the two differ.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isogloss import methods
from isogloss.aligners import ALIGNERS
from isogloss.core.plug_ins import Group, described
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.encoders import FAMILIES
from isogloss.reports.report import CLAIMS
from isogloss.tasks import ALL_TASKS, Task
from isogloss.translators import TRANSLATORS

Kinds = Mapping[str, type[Any]]
Rows = list[Sequence[str]]

METHODS: Mapping[str, Kinds] = {
    "[[grid.method]]": methods.METHODS,
    "auxiliary": methods.AUXILIARY_LOSSES,
    "peft": methods.PEFT,
    "[encoder.pretrain]": methods.PRETRAINING,
    "[[adjust]]": methods.ADJUSTMENTS,
    "[translate.train]": methods.TRANSLATION_TRAINING,
}
"""Methods, by the part of a recipe that names them."""

PROTOCOLS: Mapping[str, type[object]] = {
    "[[grid.method]]": methods.Method,
    "auxiliary": methods.AuxiliaryLoss,
    "peft": methods.Peft,
    "[encoder.pretrain]": methods.Pretraining,
    "[[adjust]]": methods.Adjustment,
}
"""What plug-ins among them have to be."""


def task_columns(task: Task) -> Sequence[str]:
    """Return what a list has of a task besides its name."""
    return task.metric, " ".join(task.labels) or "(those of the corpus)"


COLUMNS: Mapping[Group, tuple[Sequence[type[object]], Callable[[Any], Sequence[str]]]] = {
    "tasks": ((Task,), task_columns),
    "methods": (tuple(PROTOCOLS.values()), lambda method: ("a plug-in", described(method))),
    "diagnostics": ((Diagnostic,), lambda diagnostic: (diagnostic.subject, described(diagnostic))),
}
"""By group of plug-ins: the protocols of which they have one, and their columns besides their names."""


def packaged_lists() -> dict[str, Rows]:
    """Return the head and the rows of each list, from the tables of the package."""
    families = [(name, family.about) for name, family in FAMILIES.items()]
    return {
        "aligners": [("aligner", "what"), *_described(ALIGNERS)],
        "claims": [
            ("claim", "in the paper", "what", "rule"),
            *((claim.id, claim.where, claim.says, claim.rule) for claim in CLAIMS),
        ],
        "diagnostics": [
            ("diagnostic", "measures", "what"),
            *((name, DIAGNOSTICS[name].subject, summary) for name, summary in _described(DIAGNOSTICS)),
        ],
        "encoders": [
            ("encoder", "what; models of these families are given by folder or hub name"),
            ("shipped", "the small encoder of the built-in languages"),
            *families,
        ],
        "methods": [
            ("method", "used in", "what"),
            *((name, part, what) for part, kinds in METHODS.items() for name, what in _described(kinds)),
        ],
        "tasks": [
            ("task", "metric", "labels"),
            *((name, *task_columns(task)) for name, task in sorted(ALL_TASKS.items())),
        ],
        "translators": [("translator", "what"), *_described(TRANSLATORS)],
    }


def as_text() -> str:
    """Return what ``lists.json`` has to hold."""
    lists = []
    for name, rows in packaged_lists().items():
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        lists.append(f'"{name}": [\n{lines}\n]')
    return "{" + ",\n".join(lists) + "}\n"


def _described(kinds: Kinds) -> list[tuple[str, str]]:
    return [
        (name, (kind.__doc__ or "").strip().splitlines()[0].replace("``", ""))
        for name, kind in sorted(kinds.items())
    ]
