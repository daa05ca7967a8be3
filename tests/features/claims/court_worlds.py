"""Worlds in which a claim is false, and how often its rule finds it supported there.

The numbers that a rule checks are drawn for each seed, and judged as the rule judges them: rows are skipped,
so that thousands of draws take seconds (``court`` builds rows). Each claim is listed with its checks; a test
compares them with the checks that the rule builds from rows. One statement at a time is false, and the others
are clearly true: the share of draws that support the claim is the largest over its statements.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from court import ALPHAS, Rng

from isogloss.core.languages import all_language_facts
from isogloss.features.claims.checks import (
    AS_BEFORE,
    HURTS,
    check_correlation,
    check_independent,
    check_spreads,
    check_trend,
)
from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.ranks import spearman
from isogloss.reports.checks import HELPS, Bounds, Check, check_of
from isogloss.reports.verdicts import weigh_checks

Array = npt.NDArray[np.float64]

SPREAD = 0.01
"""Standard deviation of scores over seeds."""

SHARED = 0.5
"""Share of their variance that systems of one seed have in common."""

FAILING = 0.2
"""Share of runs that fail."""

DEPTH = 30.0
"""By how many standard deviations a run that fails is worse."""

EXAMPLE_ERROR = 0.01
"""Standard error over the examples of a path, which all seeds share."""

EXAMPLES = 200


class World:
    """Variation of the runs of two systems over seeds: by numbers of mean 0 and standard deviation 1."""

    name = "normal"
    median = 0.0
    """Median of the numbers."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def numbers(self, *shape: int) -> Array:
        """Return independent numbers."""
        return self.rng.normal(size=shape)

    def ours(self, *shape: int) -> Array:
        """Return the noise of the runs of the claim's system."""
        return self.numbers(*shape)

    def theirs(self, *shape: int) -> Array:
        """Return the noise of the runs of the other system."""
        return self.numbers(*shape)

    def observe(self, scores: Array) -> Array:
        """Return scores as they are measured."""
        return scores


class Heavy(World):
    """Student's t with three degrees of freedom."""

    name = "heavy tails"

    def numbers(self, *shape: int) -> Array:
        return np.asarray(self.rng.standard_t(3, shape) / np.sqrt(3))


class Contaminated(World):
    """Normal, but 15 % of all runs vary six times as much."""

    name = "some runs wild"

    def numbers(self, *shape: int) -> Array:
        share = 0.15
        factor = 6.0
        wild = np.where(self.rng.random(shape) < share, factor, 1.0)
        return np.asarray(self.rng.normal(size=shape) * wild / np.sqrt(1 - share + share * factor**2))


class Ties(World):
    """Scores on few examples, so that one example is as much as seeds vary."""

    name = "ties"

    def observe(self, scores: Array) -> Array:
        return np.round(scores, 2)


class Failing(World):
    """One run in five of our system fails, and the others are as good as the other system's."""

    name = "one in five fails, else equal"
    lift = 0.0

    def ours(self, *shape: int) -> Array:
        is_failed = self.rng.random(shape) < FAILING
        return self.numbers(*shape) - DEPTH * is_failed + self.lift


class FailingOnAverage(Failing):
    """One run in five of our system fails, and the others are better, so that the means are equal."""

    name = "one in five fails, means equal"
    lift = DEPTH * FAILING


class BothFailing(Failing):
    """One run in five of both systems fails."""

    name = "one in five of both fails"
    theirs = Failing.ours


CENTRE = 0.985
MEAN = 0.97981
DEVIATION = 0.01794
"""Median, mean and standard deviation of scores just below the ceiling, normal on the logit scale."""


class Skewed(World):
    """Just below the ceiling, with a long tail on the side where the claim is false."""

    name = "skewed"
    median = (CENTRE - MEAN) / DEVIATION

    def numbers(self, *shape: int) -> Array:
        scores = from_logit(to_logit(CENTRE) + 0.8 * self.rng.normal(size=shape))
        return np.asarray((scores - MEAN) / DEVIATION)


class SkewedInward(Skewed):
    """As skewed, with the long tail on the side where the claim is true."""

    name = "skewed, tail where true"
    median = -Skewed.median

    def numbers(self, *shape: int) -> Array:
        return -super().numbers(*shape)


class SkewedOnAverage(Skewed):
    """As skewed, where the mean is just outside of the claim's range, and the median seed is inside."""

    name = "skewed, mean at the bound"
    median = 0.0


class Ceiling(World):
    """Equal spread on the logit scale, with one side near 100 %."""

    name = "ceiling"


class TwoFamilies(World):
    """Languages of two families, which differ in both numbers. Within a family nothing is related."""

    name = "two families"
    families: Sequence[str] = ("Indo-European", "Turkic")


class FourFamilies(TwoFamilies):
    """Languages of four families."""

    name = "four families"
    families = ("Indo-European", "Turkic", "Uralic", "Dravidian")


GENERAL = (World, Heavy, Contaminated, Ties, Failing, FailingOnAverage, BothFailing, Skewed, SkewedInward)


def to_logit(share: float) -> float:
    """Return the logit of a share."""
    return float(np.log(share / (1 - share)))


def from_logit(values: Array) -> Array:
    """Return the shares with these logits."""
    return np.asarray(1 / (1 + np.exp(-values)))


Kind = Literal["paired", "independent", "mean", "path", "curve", "sizes", "layers", "ratio", "languages"]


@dataclass(frozen=True, eq=False)
class Part:
    """A statement of a claim: the number where it is just false, and where it is true by far."""

    kind: Kind
    bounds: Bounds
    false: float
    true: float
    spread: float = SPREAD
    median: bool = False
    """Whether the statement is about the median seed, whose number is then at the bound."""

    def value(self, strength: float) -> float:
        """Return the number for a strength: 0 where the statement is just false, 1 where it is true."""
        return self.false + strength * (self.true - self.false)

    def cap(self, strength: float) -> float:
        """Return a strength that does not leave a range at its other end."""
        return min(strength, 1.0) if {"above", "below"} <= self.bounds.keys() else strength


def system_scores(world: World, seeds: int, value: float, spread: float, sign: float) -> tuple[Array, Array]:
    """Return the scores of two systems with each seed. A failure makes the statement look true or false."""
    common = SHARED**0.5 * world.rng.normal(size=seeds)
    single_difference = (1 - SHARED) ** 0.5
    ours = 0.5 + value + spread * sign * (common + single_difference * world.ours(seeds))
    theirs = 0.5 + spread * sign * (common + single_difference * world.theirs(seeds))
    return world.observe(ours), world.observe(theirs)


def sign_of(bounds: Bounds) -> float:
    """Return 1 where greater numbers support a statement, and -1 where lesser ones do."""
    return 1.0 if "above" in bounds and "below" not in bounds else -1.0


def draw(part: Part, world: World, seeds: int, strength: float) -> list[Check]:
    """Draw the checks of a statement."""
    value = part.value(strength)
    sign = sign_of(part.bounds)
    return DRAWS[part.kind](part, world, seeds, value, sign)


def check_pairs(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    ours, theirs = system_scores(world, seeds, value, part.spread, sign)
    return [check_of(ours - theirs, "paired", part.bounds)]


def independent(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    ours = world.observe(0.5 + value + part.spread * sign * world.ours(seeds))
    theirs = world.observe(0.5 + part.spread * sign * world.theirs(seeds))
    return [check_independent(ours, theirs, "independent", part.bounds, "pretraining seed")]


def mean(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    numbers = value + part.spread * sign * draw_seed_noise(part, world, seeds)
    return [check_of(numbers, "mean", {**part.bounds, "of_median": part.median})]


def draw_seed_noise(part: Part, world: World, seeds: int) -> Array:
    """Return the noise of seeds, whose median is 0 where the statement is about the median seed."""
    return world.ours(seeds) - (world.median if part.median else 0.0)


def path(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    noise = part.spread * sign * draw_seed_noise(part, world, seeds)
    numbers = value + noise + EXAMPLE_ERROR * world.rng.normal()
    estimate = crossed_estimate(list(numbers), example_error=EXAMPLE_ERROR, examples=EXAMPLES)
    bounds = {**part.bounds, "of_median": part.median}
    return [Check(about="path", values=list(numbers), statistic=estimate, examples=EXAMPLES, **bounds)]


def curves(world: World, seeds: int, rises: Array, spread: float, sign: float) -> Array:
    """Return the scores of seeds along a series of systems [seed system]."""
    single_output = world.ours(seeds, len(rises))
    return world.observe(0.5 + rises + spread * sign * single_output)


def rhos(scores: Array) -> list[float]:
    """Return Spearman's ρ of the order of systems and the score with each seed. 0 for a level one."""
    order = np.arange(scores.shape[1])
    result = [spearman(list(order), list(row)).rho for row in scores]
    return list(np.nan_to_num(result))


def trend(scores: Array, bounds: Bounds) -> Check:
    """Check the trend of scores [seed system]."""
    return check_trend(rhos(scores), scores.shape[1], "ρ", bounds)


def curve(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    """Draw a path whose scores wander, as neighbouring models answer most examples alike."""
    wander = np.cumsum(world.numbers(seeds, len(ALPHAS)), axis=1) * part.spread / 3
    rises = value + part.spread * sign * world.ours(seeds, 1)
    scores = world.observe(0.5 + rises * np.array(ALPHAS) + wander)
    return [trend(scores, part.bounds), check_of(scores[:, -1] - scores[:, 0], "gain", HELPS)]


def sizes(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    scores = curves(world, seeds, value * np.arange(3), part.spread * 0.7, sign)
    return [
        check_of(scores[:, 2] - scores[:, 0], "most − fewest", part.bounds),
        trend(scores, part.bounds),
    ]


def layers(part: Part, world: World, seeds: int, value: float, sign: float) -> list[Check]:
    scores = curves(world, seeds, value * np.arange(4), part.spread / 2, sign)
    return [trend(scores, part.bounds)]


def ratio(part: Part, world: World, seeds: int, value: float, _: float) -> list[Check]:
    """Draw scores of two models of each seed. The first ones vary more by a ratio."""
    high, low = (0.985, 0.65) if isinstance(world, Ceiling) else (0.8, 0.5)
    common = SHARED**0.5 * world.rng.normal(size=seeds)
    single_difference = (1 - SHARED) ** 0.5
    wide, narrow = (common + single_difference * world.numbers(seeds) for _ in range(2))
    if isinstance(world, Ceiling):
        wide, narrow = from_logit(to_logit(low) + 0.25 * wide), from_logit(to_logit(high) + 0.25 * narrow)
    else:
        wide, narrow = low + part.spread * value * wide, high + part.spread * narrow
    table = pd.DataFrame({"wide": world.observe(wide), "narrow": world.observe(narrow)})
    return check_spreads("spread", table[["wide"]], table[["narrow"]], part.bounds["above"])


def family_codes(families: Sequence[str], index: int) -> dict[str, str]:
    """Return languages of some families with their family, the same number of each."""
    values_by_family: dict[str, list[str]] = {}
    for language, facts in sorted(all_language_facts().items()):
        values_by_family.setdefault(facts.family, []).append(language)
    return {
        language_code: family for family in families for language_code in values_by_family[family][:index]
    }


def distant_codes(index: int) -> dict[str, str]:
    """Return languages from as many families as possible."""
    turns: dict[str, list[str]] = {}
    for language, facts in sorted(all_language_facts().items()):
        if facts.family != "unknown":
            turns.setdefault(facts.family, []).append(language)
    ordered_places = sorted(
        (place, family, language_code)
        for family, turn in turns.items()
        for place, language_code in enumerate(turn)
    )
    return {language_code: family for _, family, language_code in ordered_places[:index]}


def languages(part: Part, world: World, _: int, value: float, __: float) -> list[Check]:
    """Draw two numbers of languages with a correlation. Families differ in both."""
    index = 100 if "below" in part.bounds else 12
    if isinstance(world, TwoFamilies):
        codes = family_codes(world.families, index // len(world.families))
    else:
        codes = distant_codes(index)
    pairs = world.rng.multivariate_normal([0, 0], [[1, value], [value, 1]], len(codes))
    if isinstance(world, TwoFamilies):
        places = [world.families.index(family) for family in codes.values()]
        pairs = 4 * world.rng.normal(size=(len(world.families), 2))[places] + pairs
    if isinstance(world, Ties):
        pairs = np.round(pairs)
    x, y = (pd.Series(side, index=list(codes)) for side in pairs.T)
    return check_correlation("ρ", x, y, part.bounds)


DRAWS: Mapping[str, Callable[[Part, World, int, float, float], list[Check]]] = {
    "paired": check_pairs,
    "independent": independent,
    "mean": mean,
    "path": path,
    "curve": curve,
    "sizes": sizes,
    "layers": layers,
    "ratio": ratio,
    "languages": languages,
}

POINT = 0.01
EFFECT = 0.04
NO_HELP: Bounds = {"below": POINT}
NEAR: Bounds = {"above": -0.03, "below": 0.03}
HARDLY: Bounds = {"below": 0.03}
FLAT: Bounds = {"above": -0.1, "below": 0.1}
PLAIN: Bounds = {"scale": 1, "digits": 2}

HELPED = Part("paired", HELPS, 0.0, EFFECT)
HURT = Part("paired", HURTS, 0.0, -EFFECT)
UNHELPED = Part("paired", NO_HELP, POINT, -POINT)
SAME = Part("paired", AS_BEFORE, POINT, 0.0, 0.003)
BETTER = Part("independent", HELPS, 0.0, EFFECT)
WORSE = Part("independent", HURTS, 0.0, -EFFECT)
AS_GOOD = Part("independent", AS_BEFORE, POINT, 0.0)
LEVEL = Part("path", HARDLY, 0.03, 0.0, 0.005)
GAIN = Part("path", HELPS, 0.0, 0.3)
RISE = Part("curve", {"above": 0.9, **PLAIN}, 0.0, 0.3)
SIZES_UP = Part("sizes", HELPS, 0.0, EFFECT)
SIZES_DOWN = Part("sizes", HURTS, 0.0, -EFFECT)
LAYERS = Part("layers", HURTS, 0.0, -EFFECT)

PARTS: Mapping[str, Sequence[Part]] = {
    "1a": (LEVEL, LEVEL),
    "1b": (RISE,),
    "1c": (Part("ratio", {"above": 3.0}, 3.0, 50.0, 0.002),),
    "1d": (Part("mean", {"above": 0.8, "below": 1.25, **PLAIN}, 1.25, 1.0, 0.02, median=True),),
    "1e": (Part("independent", HELPS, 0.0, 0.3, 0.03),),
    "1f": (Part("mean", {"above": 0.9, **PLAIN}, 0.9, 0.99, 0.02, median=True),),
    "1g": (Part("mean", {"above": 45.0, "below": 65.0, "scale": 1}, 65.0, 55.0, 1.0, median=True),),
    "1h": (Part("ratio", {"above": 1.0}, 1.0, 10.0, 0.005),),
    "1i": (Part("path", NEAR, 0.03, 0.0), Part("path", NEAR, 0.03, 0.0)),
    "1j": (LEVEL, LEVEL, RISE),
    "1k": (
        Part("path", HELPS, 0.0, 0.3, 0.03, median=True),
        Part("path", FLAT, 0.1, 0.0, 0.01, median=True),
    ),
    "1l": (Part("independent", HELPS, 0.0, 0.3, 0.03),),
    "2a": (HELPED, HELPED),
    "2b": (HELPED,),
    "2c": (Part("languages", HELPS, 0.0, 0.95),),
    "2d": (HELPED, HELPED, HELPED),
    "2e": (HELPED,),
    "2f": (Part("mean", {"above": 0.1}, 0.1, 0.15, median=True),),
    "2g": (HELPED,),
    "2h": (HELPED,),
    "2i": (HELPED,),
    "2j": (HELPED,),
    "2k": (HELPED, HELPED),
    "2l": (HURT,),
    "2m": (Part("languages", {"above": -0.5, "below": 0.5}, 0.56, 0.0),),
    "3a": (HELPED, HELPED, UNHELPED),
    "3b": (SIZES_UP, SIZES_UP),
    "3c": (HURT,) * 6,
    "3d": (HELPED,) * 4,
    "3e": (HELPED,) * 3,
    "3f": (UNHELPED, UNHELPED),
    "3g": (SAME, SAME),
    "3h": (SIZES_DOWN,),
    "3i": (HELPED, HELPED),
    "3j": (HELPED, HELPED, UNHELPED, UNHELPED),
    "4a": (BETTER,),
    "4b": (
        Part("mean", HURTS, 0.0, -EFFECT, median=True),
        Part("mean", HELPS, 0.0, EFFECT, median=True),
    ),
    "4c": (LAYERS, HELPED),
    "4d": (BETTER, WORSE) * 3,
    "4e": (BETTER, BETTER),
    "4f": (LAYERS, HELPED),
    "4g": (BETTER,) * 4,
    "4h": (BETTER,),
    "4i": (BETTER, WORSE),
    "4j": (BETTER, BETTER),
    "4k": (BETTER, AS_GOOD),
    "4l": (BETTER,),
    "4m": (AS_GOOD, BETTER),
}
"""The statements of each claim."""


def worlds_of(part: Part) -> Sequence[type[World]]:
    """Return the worlds in which a statement can be false."""
    return (*WORLDS.get(part.kind, GENERAL), *((SkewedOnAverage,) if part.median else ()))


WORLDS: Mapping[str, Sequence[type[World]]] = {
    "ratio": (World, Heavy, Contaminated, Ties, Ceiling),
    "languages": (World, Ties, TwoFamilies, FourFamilies),
}
"""Worlds of some kinds of statements. Other kinds use all general worlds."""


@dataclass(frozen=True)
class Rates:
    """Shares of draws with a verdict."""

    supported: float
    contradicted: float
    """Contradicted, mixed or differing from what the paper prints."""


def rates(part: Part, world: type[World], seeds: int, draws: int, strength: float = 0.0) -> Rates:
    """Return the rates at which a statement is supported and contradicted. Default: it is just false.

    The other statements of a claim, if clearly true, change neither rate: all have to be supported without a
    correction, and Holm's correction multiplies the largest p by 1.
    """
    verdicts = []
    for index in range(draws):
        rng = np.random.default_rng([*(ord(item) for item in part.kind + world.name), seeds, index])
        verdict, _ = weigh_checks(draw(part, world(rng), seeds, strength))
        verdicts.append(verdict)
    wrong = sum(verdicts.count(verdict) for verdict in ("contradicted", "mixed", "differs from print"))
    return Rates(verdicts.count("supported") / draws, wrong / draws)
