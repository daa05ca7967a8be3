"""Regret of advice: what it loses in a language that it has not seen, against the best option there.

Each language is held out in turn. Advice comes from the other languages of the task. Its regret is the gain
of the best option that fits into the hours, or 0 for nothing, minus the gain of the advised option. *Always
the same* option and *nothing* have regrets as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

from isogloss.core.arguments import checks_arguments
from isogloss.core.run_parts import Weight
from isogloss.features.advising.advice import FEWEST, Advice, advise
from isogloss.features.advising.evidence import Gain
from isogloss.metrics.estimates import mean_std

ADVICE = "advice"
NOTHING = "nothing"


class Regret(NamedTuple):
    """Mean regret of a rule over languages that were held out, in points, with its 95 % interval."""

    rule: str
    """"advice", "nothing", or an option that is always chosen."""
    regret: float
    low: float
    high: float
    worst: float
    languages: int
    best: int
    """Languages in which the rule chose the best option."""
    unknown: int
    """Languages in which the rule did nothing."""


@checks_arguments
def held_out_regret(
    task: str,
    *,
    hours: Weight = 1.0,
    minutes: Weight | None = None,
    encoder: str = "",
    gains: Sequence[Gain] | None = None,
) -> list[Regret]:
    """Hold out each language, and return the regrets of advice, of nothing and of always the same option.

    ``task``, ``hours``, ``minutes``, ``encoder`` and ``gains`` are as in ``advise``. A language counts if two
    options or more fit into the hours there, and options that were not measured in it are no candidates.
    Empty for fewer than five such languages, as advice needs four others. ConfigError for a task or encoder
    without evidence.

    Device: none. Cost: reads the evidence.

    >>> isogloss.held_out_regret("upos", hours=1)[0].rule
    'advice'
    """
    advice = advise(task, hours=hours, minutes=minutes, encoder=encoder, gains=gains)
    affordable = {option.name for option in advice.options if option.hours <= hours}
    evidence = [gain for gain in advice.gains if gain.option in affordable]
    losses: dict[str, list[_Loss]] = {}
    for language in dict.fromkeys(gain.language for gain in advice.gains):
        candidates = {gain.option: gain.gain for gain in evidence if gain.language == language}
        if len(candidates) < 2:
            continue
        others = [gain for gain in evidence if gain.language != language and gain.option in candidates]
        best_gain = max([0.0, *candidates.values()])
        choices = {ADVICE: _choose(others, advice), NOTHING: ""} | {option: option for option in candidates}
        for rule, option in choices.items():
            loss = _Loss(best_gain - candidates.get(option, 0.0), is_known=bool(option))
            losses.setdefault(rule, []).append(loss)
    is_enough = len(losses.get(ADVICE, ())) > FEWEST
    return [_summarise(rule, of_rule) for rule, of_rule in losses.items()] if is_enough else []


class _Loss(NamedTuple):
    """Regret of a choice in one language."""

    points: float
    is_known: bool


def _choose(gains: Sequence[Gain], advice: Advice) -> str:
    """Return the option that these gains advise. Empty for nothing."""
    if not gains:
        return ""
    of_others = advise(
        advice.task, hours=advice.hours, minutes=advice.minutes, encoder=advice.encoder, gains=gains
    )
    return of_others.choice.name if of_others.choice else ""


def _summarise(rule: str, losses: Sequence[_Loss]) -> Regret:
    points = [loss.points for loss in losses]
    summary = mean_std(points)
    return Regret(
        rule=rule,
        regret=summary.mean,
        low=summary.low,
        high=summary.high,
        worst=max(points),
        languages=summary.n,
        best=points.count(0.0),
        unknown=sum(not loss.is_known for loss in losses),
    )
