"""Which encoders of a report were made from text: in which languages, with which modules, by which method.

Told from the content of the runs that made them, not from labels; the seeds of an encoder are one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isogloss.oldreports.gather import Run
from isogloss.oldreports.paths import grouped

MASKED, META = "masked-language-modelling", "meta-learning"
SHARED = "shared-adapter"
"""The kind of modules that no language has for itself."""

_TITLE = "encoder "
"""What stands before the encoder's label in the title of a run that made it."""


@dataclass(frozen=True)
class FromText:
    """An encoder by its label, and the runs that made it, one for each seed."""

    label: str
    languages: tuple[str, ...]
    modules: str
    """Kind of its modules; "" where all is shared."""
    method: str
    cut: tuple[str, ...]
    """Languages of which it read a part of the text alone (low-resource copies)."""
    vocabulary: tuple[object, ...]
    """The same for encoders whose perplexities can be compared, seed by seed."""
    runs: tuple[tuple[int, Run], ...]
    """By seed."""

    @property
    def is_monolingual(self) -> bool:
        """Tell whether it has one language for itself."""
        return len(self.languages) == 1 and not self.modules

    @property
    def shares_all(self) -> bool:
        """Tell whether several languages share all of it, on all of their text."""
        return len(self.languages) > 1 and not self.modules and not self.cut

    @property
    def has_own(self) -> bool:
        """Tell whether each language has something for itself."""
        return bool(self.modules) and self.modules != SHARED


def encoders_from_text(runs: Iterable[Run]) -> dict[str, FromText]:
    """Return the encoders that pretraining runs made, by label; a content that no run has is left out."""
    groups = grouped(runs, lambda run: run.title.removeprefix(_TITLE))
    found = {label: _from_text(label, list(own)) for label, own in groups.items()}
    return {label: one for label, one in found.items() if one is not None}


def joint_encoder(made: Mapping[str, FromText]) -> str:
    """Return the label of the first encoder that several languages share whole; "" where there is none."""
    return next((label for label, one in made.items() if one.shares_all), "")


def _from_text(label: str, runs: list[Run]) -> FromText | None:
    try:
        about = [_about(run) for run in runs]
        seeds = [int(run.record.run["seed"]) for run in runs if run.record]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    languages, modules, method, cut, vocabulary = about[0]
    by_seed = tuple(sorted(zip(seeds, runs, strict=True), key=lambda one: one[0]))
    return FromText(label, languages, modules, method, cut, vocabulary, by_seed)


About = tuple[tuple[str, ...], str, str, tuple[str, ...], tuple[object, ...]]


def _about(run: Run) -> About:
    if run.record is None:
        raise ValueError(run.id)
    content: Any = run.record.run
    languages = tuple(str(code) for code in content["languages"])
    lines = tuple((str(code), int(n)) for code, n in content.get("lines") or ())
    method, modules = content["method"], content.get("modules")
    vocabulary = (
        *(tuple(content["text"]), tuple(sorted(languages)), lines),
        *(content["architecture"]["vocabulary"], method.get("vocabulary_lines")),
    )
    kind = str(modules["fields"]["kind"]) if modules else ""
    return languages, kind, str(method["kind"]), tuple(code for code, _ in lines), vocabulary
