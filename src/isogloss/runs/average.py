"""Averages of models and encoders, whose parts are checked before any run starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import NamedTuple

from isogloss.core.errors import ConfigError, add_location, unknown_name
from isogloss.core.identity import content, identity
from isogloss.core.run_parts import with_fields
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.runs.fine_tune import FineTune, fine_tuned
from isogloss.runs.run import Encoder
from isogloss.training.setting import WEIGHT_TOLERANCE, Combination

OUTER = "outer_weights"
"""The field of a method for weights in the lowest and highest layers, if it has one."""


NEAR = "near"
"""The field of a method for pairs of languages whose modules are mixed, if it has one."""


class WeightedRun(NamedTuple):
    """A model or an encoder with its weight in an average."""

    run: FineTune | Encoder
    weight: float
    outer_weight: float = 0.0
    """Weight in the lowest and highest layers, if the method has other weights there."""


@dataclass(frozen=True, kw_only=True)
class AverageRequest:
    """A requested average, with the models of each of its seeds."""

    method: Combination
    of: tuple[str, ...]
    """Labels of methods and encoders."""
    members: Sequence[Mapping[str, FineTune]]
    """The models of each seed, by the label of their method."""
    seed: int
    """Seed of the first member, which is the seed of the average."""
    encoder: Encoder
    """The encoder that all task vectors start from."""
    encoders: Mapping[Encoder, str]
    """Encoders of the recipe, with their labels."""
    sources: Sources


def build_average(request: AverageRequest) -> FineTune:
    """Build the run of an average. The order of its parts in the recipe does not change it.

    Raises ConfigError for models that have no average.
    """
    count = len(request.of)
    weights = request.method.weights_of(count)
    outer_weights: tuple[float, ...] | None = getattr(request.method, OUTER, None)
    for field, numbers in (("weights", weights), (OUTER, outer_weights)):
        if numbers is not None and len(numbers) != count:
            raise ConfigError(f"{field}: found {len(numbers)}, and of names {count}. Give each one.")
    parts: list[WeightedRun] = []
    for label, weight, outer_weight in zip(request.of, weights, outer_weights or (0.0,) * count, strict=True):
        runs = _runs(request, label)
        parts += [WeightedRun(run, weight / len(runs), outer_weight / len(runs)) for run in runs]
    parts.sort(key=lambda part: (seedless(part.run), identity(part.run)))
    equal = all(abs(part.weight * len(parts) - 1) < WEIGHT_TOLERANCE for part in parts)
    method = with_fields(request.method, weights=None if equal else tuple(part.weight for part in parts))
    if outer_weights is not None:
        method = with_fields(method, **{OUTER: tuple(part.outer_weight for part in parts)})
    with add_location("of"):
        _check_models(request, method, parts)
    with add_location(NEAR):
        _check_modules(request)
    return _average(request, method, tuple(part.run for part in parts))


def _runs(request: AverageRequest, label: str) -> Sequence[FineTune | Encoder]:
    """Return the models of a method, one for each seed, or the encoder of a label."""
    if label in request.members[0]:
        return [models[label] for models in request.members]
    encoders = [encoder for encoder, name in request.encoders.items() if name == label]
    if not encoders:
        labels = {*request.encoders.values(), *(name for models in request.members for name in models)}
        raise unknown_name("of", "method trained here, or encoder,", label, labels)
    encoder = encoders[0]
    origin = request.encoder
    if len(encoders) > 1 or not _comes_from(encoder, origin):
        finding = "several encoders" if len(encoders) > 1 else "an encoder that did not start from the grid's"
        raise ConfigError(
            f"of: {label!r} is {finding}, and a language vector is what training on text "
            f"changed in {origin.label!r}. Name an encoder with start = that one, or choose by "
            "encoders which one the average is made on."
        )
    modules, origin_modules = (run.language_modules(request.sources.encoders) for run in (encoder, origin))
    if modules != origin_modules or encoder.adds_subwords:
        raise ConfigError(
            f"of: {label!r} has subwords or language modules that {origin.label!r} "
            "lacks, so their weights do not match. Continue pretraining without vocabulary and modules."
        )
    return encoders


def _comes_from(encoder: Encoder, origin: Encoder) -> bool:
    base = encoder.base
    return base is not None and (base == origin or _comes_from(base, origin))


def _check_models(request: AverageRequest, method: Combination, parts: Sequence[WeightedRun]) -> None:
    models = fine_tuned(part.run for part in parts)
    if abs(fsum(part.weight for part in parts if part.run in models)) < WEIGHT_TOLERANCE:
        finding = "methods whose weights sum to 0" if models else "no method"
        raise ConfigError(
            f"{list(request.of)} has {finding}, and a head is the mean of models' heads. Add a method, "
            "or change the weights."
        )
    kinds = {model.peft.name if model.peft else "none" for model in models}
    if len(kinds) > 1:
        raise ConfigError(
            f"these models were trained with peft {' and '.join(sorted(kinds))}. Average models of one kind."
        )
    has_given = any(model.method.weights_from == "model" for model in models)
    if has_given and (method.needs_origin(len(parts)) or len(models) < len(parts)):
        raise ConfigError(
            "a model that is given does not say what encoder it started from, so it has no task "
            "vector. Name no encoder, give weights that sum to 1, and leave density and dropped out."
        )


def _check_modules(request: AverageRequest) -> None:
    """Raise ConfigError for languages of mixed modules that the encoder lacks, or that are the source."""
    pairs: tuple[str, ...] = getattr(request.method, NEAR, None) or ()
    modules = request.encoder.language_modules(request.sources.encoders)
    having = set(modules.languages) if modules else set()
    is_known = modules is not None or request.encoder.facts(request.sources.encoders) is not None
    for pair in pairs:
        codes = pair.split("-")
        missing_codes = [name for name in codes if is_known and name not in having]
        if missing_codes:
            raise ConfigError(
                f"{pair}: the encoder {request.encoder.label!r} has no modules of "
                f"{' and '.join(missing_codes)}. Known: {', '.join(sorted(having)) or 'none'}."
            )
        if any(codes[0] in model.source for models in request.members for model in models.values()):
            raise ConfigError(
                f"{pair}: {codes[0]} is the source, and modules of targets are mixed. Name a target first."
            )


def _average(request: AverageRequest, method: Combination, parts: tuple[FineTune | Encoder, ...]) -> FineTune:
    """Build the average, with the first model's data settings and the most languages of any model."""
    models = fine_tuned(parts)
    source = max((model.source for model in models), key=len)
    target = max((model.target for model in models), key=len)
    treebanks = tuple(dict.fromkeys(pair for model in models for pair in model.treebanks))
    dev = method.reads(source, target).dev
    fingerprint = partial(request.sources.fingerprint, models[0].corpus, treebanks=treebanks)
    return replace(
        models[0],
        method=method,
        auxiliary=None,
        peft=None,
        source=source,
        target=target,
        start=None,
        parts=parts,
        aligned=None,
        translated=None,
        teacher=None,
        treebanks=treebanks,
        seed=request.seed,
        data=combined_fingerprint([fingerprint(language, "dev") for language in dev]),
    )


def seedless(run: FineTune | Encoder) -> str:
    """Return an id that is the same for a run with any seed."""

    def drop_seeds(data: object) -> object:
        if isinstance(data, dict):
            return {key: drop_seeds(value) for key, value in data.items() if key != "seed"}
        return [drop_seeds(value) for value in data] if isinstance(data, list) else data

    return identity(drop_seeds(content(run)))
