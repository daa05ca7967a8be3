"""What should be done for a language without labels: options ranked by gains in other languages.

An option o was measured in n languages l: g_o(l) points over the source-only model, a mean over seeds. s is
the standard deviation of g_o over languages, t a quantile of Student's distribution (n − 1 degrees).

    mean g_o ± t · s / √n              the mean over languages (95 %)
    mean g_o ± t · s · √(1 + 1 / n)    the next language (80 %)

An option *helps* if the first interval is above 0, and *harms* if it is below. Otherwise it is *not known*,
as with fewer than four languages. The second interval is for the language at hand. Hours of an option are
computing hours and, for labels, hours of annotation. Among options that help and fit into the given hours,
the one with the largest mean is advised.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.languages import languages_named
from isogloss.core.run_parts import Count, Weight
from isogloss.features.advising.evidence import Gain, read_gains
from isogloss.metrics.estimates import mean_std, t_quantile

LEVEL = 0.8
"""Coverage of the interval of the next language."""

FEWEST = 4
"""Languages below which the spread over languages is not known.

Where half of the languages gain and half lose, three languages gain alike in one study of eight, four in one
of sixteen.
"""

MINUTES = {"upos": 2.0, "ner": 1.0, "text-classification": 0.5}
"""Minutes to label an example, by task. Assumptions, for people who know the guidelines: give your own."""

OTHER_MINUTES = 1.0
"""Minutes to label an example of any other task."""

Verdict = Literal["helps", "not known", "harms"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AdvisedOption:
    """One option: its gain in the next language, what is known of it, and its hours. It prints as a line."""

    name: str
    gain: float
    """Mean gain in points."""
    mean_low: float
    mean_high: float
    """Ends of the 95 % interval of the mean over languages. nan for fewer than four languages."""
    low: float
    high: float
    """Ends of the interval of the next language. nan for fewer than four languages."""
    languages: tuple[str, ...]
    seeds: int
    """Fewest seeds of a language."""
    labels: int
    missing_labels: int
    """Labels that do not exist yet."""
    hours: float
    """Hours of computing and annotation."""
    needs: str = ""
    measured: float = math.nan
    """Gain in the target itself, if it was measured. nan if not."""

    @property
    def verdict(self) -> Verdict:
        """Whether the option helps, harms, or neither is known."""
        if self.mean_low > 0:
            return "helps"
        return "harms" if self.mean_high < 0 else "not known"

    @property
    def doubt(self) -> str:
        """The reason why it is not known whether the option helps. Empty if it is known."""
        if len(self.languages) < FEWEST:
            return f"{len(self.languages)} of {FEWEST} languages"
        return "its mean may be 0" if self.verdict == "not known" else ""

    @property
    def gain_per_hour(self) -> float:
        """Points per hour. nan without any cost."""
        return self.gain / self.hours if self.hours else math.nan

    def __repr__(self) -> str:
        """State the option, its gain and its hours."""
        return (
            f"{self.name}: {self.gain:+.1f} points in {len(self.languages)} languages, {self.verdict}, "
            f"{self.hours:.1f} hours"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Advice:
    """Options for one task and encoder, the largest gain first. It prints as a sentence."""

    task: str
    encoder: str
    target: str
    hours: float
    """The hours that may be spent."""
    minutes: float
    """Minutes to label an example."""
    options: tuple[AdvisedOption, ...]
    gains: tuple[Gain, ...] = field(repr=False)
    """The evidence."""

    @cached_property
    def choice(self) -> AdvisedOption | None:
        """The option that is advised. None if none is known to help in these hours."""
        return choose_option(self.options, self.hours)

    @property
    def equal_options(self) -> list[AdvisedOption]:
        """Options that help in these hours and whose mean difference from the choice is not known."""
        if self.choice is None:
            return []
        by_option = _group_by_option(self.gains)
        chosen_gains = by_option[self.choice.name]
        return [
            option
            for option in self.options
            if option is not self.choice
            and option.verdict == "helps"
            and option.hours <= self.hours
            and not _differs(chosen_gains, by_option[option.name])
        ]

    def changes(self) -> list[str]:
        """List what would change the choice: hours, slower labels, and options that are not known yet."""
        return [
            *self._describe_longer_options(),
            *self._describe_slower_labels(),
            *self._describe_unknown_options(),
        ]

    def _describe_longer_options(self) -> list[str]:
        texts = []
        choice = self.choice
        for option in sorted(self.options, key=lambda option: option.hours):
            is_better = choice is None or option.gain > choice.gain
            if option.verdict == "helps" and option.hours > self.hours and is_better:
                texts.append(f"with {option.hours:.1f} hours: {option.name} ({option.gain:+.1f})")
                choice = option
        return texts

    def _describe_slower_labels(self) -> list[str]:
        choice = self.choice
        if choice is None or not choice.missing_labels:
            return []
        computing_hours = choice.hours - choice.missing_labels * self.minutes / 60
        minutes = (self.hours - computing_hours) * 60 / choice.missing_labels
        without = [option for option in self.options if option.labels < choice.labels]
        next_choice = choose_option(without, self.hours)
        instead = f"{next_choice.name} ({next_choice.gain:+.1f})" if next_choice else "nothing that is known"
        return [f"if it takes more than {minutes:.1f} minutes to label an example: {instead}"]

    def _describe_unknown_options(self) -> list[str]:
        least = self.choice.gain if self.choice else 0.0
        return [
            f"{option.name} ({option.gain:+.1f}), if it were known: {option.doubt}"
            for option in self.options
            if option.verdict == "not known" and option.gain > least and option.hours <= self.hours
        ]

    def __repr__(self) -> str:
        """State the advice in a sentence."""
        choice = self.choice
        place = self.target or self.task
        if choice is None:
            return f"{place}: don't know, as no option is known to help (hours given: {self.hours:g})"
        return (
            f"{place}: {choice.name}, {choice.gain:+.1f} points, {LEVEL:.0%} interval of the "
            f"next language {choice.low:.1f} to {choice.high:.1f}, {choice.hours:.1f} hours; "
            f"{len(choice.languages)} languages measured"
        )


@checks_arguments
def advise(
    task: str,
    target: str = "",
    *,
    hours: Weight = 1.0,
    minutes: Weight | None = None,
    encoder: str = "",
    labelled: Count = 0,
    gains: Sequence[Gain] | None = None,
) -> Advice:
    """Rank options for a language without labels, a ``target``, by gains measured in other languages.

    ``task`` is a task with evidence, such as "upos". ``hours`` may be spent on computing (one processor core)
    and annotation, ``minutes`` on labelling one example (default: an assumption for the task). ``labelled``
    target examples exist and cost nothing. ``gains`` is the evidence (default: ``read_gains``, the shipped
    one), used for one ``encoder`` (default: the one with most languages). A gain in the target itself is
    stated, and counts like every other. ConfigError for a task or encoder without evidence.

    Device: none. Cost: reads the evidence.

    >>> advice = isogloss.advise("upos", "sw", hours=1)
    >>> advice.choice is None or advice.choice.hours <= 1
    True
    """
    evidence = _select_gains(read_gains() if gains is None else gains, task, encoder)
    targets = languages_named([target]) if target else ("",)
    if len(targets) > 1:
        raise ConfigError(
            f"advise: found the languages {', '.join(targets)}; expected one. Ask for each apart."
        )
    minutes = MINUTES.get(task, OTHER_MINUTES) if minutes is None else minutes
    options = [
        _combine(name, of_option, targets[0], minutes=minutes, labelled=labelled)
        for name, of_option in _group_by_option(evidence).items()
    ]
    return Advice(
        task=task,
        encoder=evidence[0].encoder,
        target=targets[0],
        hours=hours,
        minutes=minutes,
        options=tuple(sorted(options, key=lambda option: -option.gain)),
        gains=tuple(evidence),
    )


def choose_option(options: Iterable[AdvisedOption], hours: float) -> AdvisedOption | None:
    """Return the option with the largest mean gain among those that help and fit into the hours."""
    helping_options = [option for option in options if option.verdict == "helps" and option.hours <= hours]
    return max(helping_options, key=lambda option: option.gain, default=None)


def estimate_mean(gains: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean over languages. nan for fewer than four languages."""
    if len(gains) < FEWEST:
        return math.nan, math.nan
    summary = mean_std(gains)
    return summary.low, summary.high


def predict_next_gain(gains: Sequence[float]) -> tuple[float, float]:
    """Return the 80 % interval of the gain in one more language. nan for fewer than four languages."""
    n = len(gains)
    if n < FEWEST:
        return math.nan, math.nan
    margin = t_quantile((1 + LEVEL) / 2, n - 1) * stdev(gains) * math.sqrt(1 + 1 / n)
    return fmean(gains) - margin, fmean(gains) + margin


def _select_gains(gains: Sequence[Gain], task: str, encoder: str) -> list[Gain]:
    """Return the gains of a task with an encoder. Default: the encoder with most languages."""
    check_named("task", "evidence for task", {gain.task for gain in gains}, task)
    of_task = [gain for gain in gains if gain.task == task]
    languages: dict[str, set[str]] = {}
    for gain in of_task:
        languages.setdefault(gain.encoder, set()).add(gain.language)
    encoder = encoder or max(languages, key=lambda name: len(languages[name]))
    check_named("encoder", f"evidence for {task} with encoder", languages, encoder)
    return [gain for gain in of_task if gain.encoder == encoder]


def _group_by_option(gains: Iterable[Gain]) -> dict[str, list[Gain]]:
    by_option: dict[str, list[Gain]] = {}
    for gain in gains:
        by_option.setdefault(gain.option, []).append(gain)
    return by_option


def _combine(
    name: str, gains: Sequence[Gain], target: str, *, minutes: float, labelled: int
) -> AdvisedOption:
    points = [gain.gain for gain in gains]
    mean_low, mean_high = estimate_mean(points)
    low, high = predict_next_gain(points)
    labels = max(gain.labels for gain in gains)
    missing_labels = max(0, labels - labelled)
    return AdvisedOption(
        name=name,
        gain=fmean(points),
        mean_low=mean_low,
        mean_high=mean_high,
        low=low,
        high=high,
        languages=tuple(gain.language for gain in gains),
        seeds=min(gain.seeds for gain in gains),
        labels=labels,
        missing_labels=missing_labels,
        hours=fmean(gain.hours for gain in gains) + missing_labels * minutes / 60,
        needs=gains[0].needs,
        measured=next((gain.gain for gain in gains if gain.language == target), math.nan),
    )


def _differs(some_gains: Sequence[Gain], other_gains: Sequence[Gain]) -> bool:
    """Return whether the 95 % interval of the mean difference is above or below 0."""
    others = {gain.language: gain.gain for gain in other_gains}
    differences = [gain.gain - others[gain.language] for gain in some_gains if gain.language in others]
    low, high = estimate_mean(differences)
    return low > 0 or high < 0
