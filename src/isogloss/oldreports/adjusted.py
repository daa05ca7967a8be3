"""Which encoders of a report were adjusted: from which original, how, on how many translations.

Told from the content of the adjusting runs, not from labels.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isogloss.oldreports.gather import Gathered, Run
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.pretrained_encoders import encoders_from_text, joint_encoder
from isogloss.oldreports.words import language

ORIGINAL = "original"
"""What an encoder that was not adjusted is called beside those that were made from it."""

_TITLE = "encoder "
"""What stands before the encoder's label in the title of a run that made it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One adjustment: the method, the pairs of languages, and the translations of all of them together."""

    how: str
    pairs: tuple[str, ...]
    translations: int

    @property
    def languages(self) -> frozenset[str]:
        """Both languages of every pair."""
        return frozenset(code for pair in self.pairs for code in pair.split("-"))


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An adjusted encoder: its label, that of the original, and the steps between, in order."""

    label: str
    base: str
    steps: tuple[Step, ...]
    run: str = ""
    """The id of the run that made it."""
    series: str = ""
    """The same for encoders that differ in the number of translations of the last step alone."""

    @property
    def last(self) -> Step:
        """The last step."""
        return self.steps[-1]

    @property
    def languages(self) -> frozenset[str]:
        """The languages of all pairs it was adjusted to."""
        return frozenset[str]().union(*(step.languages for step in self.steps))


@dataclass(frozen=True)
class Encoders:
    """The adjusted encoders of a report by label; every other encoder is an original."""

    adjusted: Mapping[str, Adjusted] = field(default_factory=dict)
    joint: str = ""
    """The original that several languages share whole: other originals are held against it, else against
    the first."""

    def is_original(self, label: str) -> bool:
        """Tell whether an encoder was not adjusted."""
        return label not in self.adjusted

    def originals(self, labels: Iterable[str]) -> list[str]:
        """Return the originals among encoders, the one that the others are held against first."""
        found = [label for label in dict.fromkeys(labels) if self.is_original(label)]
        return sorted(found, key=lambda label: label != self.joint)

    def base(self, label: str) -> str:
        """Return the label of the encoder that this one was made from, at first; an original's is its own."""
        return label if label not in self.adjusted else self.adjusted[label].base

    def by_size(self) -> list[list[Adjusted]]:
        """Return the encoders made in one way, each list from few translations to many."""
        groups = grouped(self.adjusted.values(), lambda one: one.series).values()
        return [sorted(group, key=lambda one: one.last.translations) for group in groups]

    def by_run(self, runs: Iterable[str]) -> dict[str, Adjusted]:
        """Return the encoders these runs made, by run."""
        there = {one.run: one for one in self.adjusted.values()}
        return {run: there[run] for run in runs if run in there}

    def names(self, labels: Iterable[str]) -> dict[str, str]:
        """Return short names: without what all have in common, and with an id only where it is needed."""
        wanted = list(dict.fromkeys(labels))
        bases = {self.base(label) for label in wanted}
        made = [self.adjusted[label] for label in wanted if label in self.adjusted]
        pairs = {step.pairs for one in made for step in one.steps}
        names = {label: label if len(bases) > 1 else ORIGINAL for label in wanted}
        for one in made:
            steps = ", then ".join(_step_name(step, with_pairs=len(pairs) > 1) for step in one.steps)
            names[one.label] = f"{one.base}, {steps}" if len(bases) > 1 else steps
        taken = Counter(names.values())
        for one in made:
            if taken[names[one.label]] > 1:
                names[one.label] += f" ({one.run[:6]})"
        return names


def encoders_of(gathered: Gathered) -> Encoders:
    """Return the adjusted encoders that the finished runs made, and which original is held against."""
    runs = {_content(run.record.run): run for run in gathered.finished("adjust") if run.record}
    made = [_adjusted(run, runs) for run in runs.values()]
    joint = joint_encoder(encoders_from_text(gathered.finished("pretrain")))
    return Encoders({one.label: one for one in made if one is not None}, joint)


def pairs_in_words(encoders: Iterable[Adjusted]) -> str:
    """Write the pairs of languages that encoders were adjusted to."""
    pairs = dict.fromkeys(pair for one in encoders for step in one.steps for pair in step.pairs)
    return ", ".join("–".join(language(code) for code in pair.split("-")) for pair in pairs)


def _adjusted(run: Run, runs: Mapping[str, Run]) -> Adjusted | None:
    """Read one run; None for a content that no run has."""
    if run.record is None:
        return None
    label = base = run.record.title.removeprefix(_TITLE)
    content: Any = run.record.run
    steps: list[Step] = []
    try:
        series = _content({**content, "aligned": [{**one, "examples": 0} for one in content["aligned"]]})
        while content.get("kind") == "adjust":
            steps.append(_step(content, runs.get(_content(content))))
            content, base = content["encoder"], base.rpartition(", ")[0] or base
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Adjusted(label, base, tuple(reversed(steps)), run.id, series)


def _step(content: Mapping[str, Any], run: Run | None) -> Step:
    """Read a step; what was really read, where a run says it, goes before what was asked for."""
    rows = run.record.rows if run and run.record else ()
    read = [number for row in rows if isinstance(number := row.get("translations"), int)]
    asked = [int(one["examples"]) for one in content["aligned"]]
    pairs = tuple(str(one["languages"]) for one in content["aligned"])
    return Step(str(content["method"]["kind"]), pairs, sum(read or asked))


def _content(run: Mapping[str, Any]) -> str:
    return json.dumps(run, sort_keys=True, ensure_ascii=False)


def _step_name(step: Step, *, with_pairs: bool) -> str:
    size = f"{step.translations:,}" if step.translations else ""
    words = [size, "+".join(step.pairs) if with_pairs else ""]
    about = " ".join(filter(None, words))
    return f"{step.how} on {about}" if about else step.how


def size_order(encoders: Encoders, labels: Sequence[str]) -> list[str]:
    """Order encoders: originals first, then way by way, each from few translations to many."""
    ordered = [one.label for group in encoders.by_size() for one in group]
    return sorted(labels, key=lambda label: ordered.index(label) if label in ordered else -1)
