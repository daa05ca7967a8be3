"""From a recipe's averages to their runs: which models and encoders each is made of, checked beforehand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum

from isogloss.core.errors import ConfigError, located, unknown_name
from isogloss.core.identity import content, identity
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.methods.average import TOLERANCE, Average
from isogloss.methods.given import Given
from isogloss.runs.encoder_runs import Encoder, Pretrain
from isogloss.runs.encoders import modules_of
from isogloss.runs.runs import FineTune


@dataclass(frozen=True, kw_only=True)
class AverageRequest:
    """An average that is asked for, with the models of each of its seeds."""

    method: Average
    of: tuple[str, ...]
    """Labels of methods and encoders."""
    members: Sequence[Mapping[str, FineTune]]
    """The models of each seed, by the label of their method."""
    seed: int
    """The first of them, which is that of the average."""
    encoder: Encoder
    """The origin of all vectors."""
    encoders: Mapping[Encoder, str]
    """Those of the recipe, by label."""
    sources: Sources


def averaged(request: AverageRequest) -> FineTune:
    """Build the run of an average; ConfigError for what cannot be averaged.

    The order in which the recipe names its parts changes nothing.
    """
    given = request.method.weights_of(len(request.of))
    if len(given) != len(request.of):
        raise ConfigError(f"weights: found {len(given)}, and of names {len(request.of)}. Give each one.")
    parts: list[tuple[FineTune | Encoder, float]] = []
    for label, weight in zip(request.of, given, strict=True):
        own = _parts(request, label)
        parts += [(part, weight / len(own)) for part in own]
    parts.sort(key=lambda one: (seedless(one[0]), identity(one[0])))
    equal = all(abs(weight * len(parts) - 1) < TOLERANCE for _, weight in parts)
    method = replace(request.method, weights=None if equal else tuple(weight for _, weight in parts))
    with located("of"):
        _check_models(request, method, parts)
    return _run(request, method, tuple(part for part, _ in parts))


def _parts(request: AverageRequest, label: str) -> Sequence[FineTune | Encoder]:
    """Return the models of a method, one for each seed, or the encoder of a label."""
    if label in request.members[0]:
        return [models[label] for models in request.members]
    found = [encoder for encoder, own in request.encoders.items() if own == label]
    if not found:
        known = {*request.encoders.values(), *(name for models in request.members for name in models)}
        raise unknown_name("of", "method trained here, or encoder,", label, known)
    if len(found) > 1 or not _comes_from(found[0], request.encoder):
        what = "several encoders" if len(found) > 1 else "an encoder that did not start from the grid's"
        raise ConfigError(
            f"of: {label!r} is {what}, and a language vector is what training on text "
            f"changed in {request.encoder.label!r}. Name an encoder with start = that one, or choose by "
            "encoders which one the average is made on."
        )
    own, origin = (modules_of(one, request.sources.encoders) for one in (found[0], request.encoder))
    if own != origin or _gains_subwords(found[0]):
        raise ConfigError(
            f"of: {label!r} has subwords or language modules that {request.encoder.label!r} "
            "lacks, so their weights do not match. Continue pretraining without vocabulary and modules."
        )
    return found


def _comes_from(encoder: Encoder, origin: Encoder) -> bool:
    base = encoder.base
    return base is not None and (base == origin or _comes_from(base, origin))


def _gains_subwords(encoder: Encoder) -> bool:
    """Return whether an encoder's own training added subwords; what came before it is not looked at."""
    return isinstance(encoder, Pretrain) and encoder.vocabulary is not None


def _check_models(
    request: AverageRequest, method: Average, parts: Sequence[tuple[FineTune | Encoder, float]]
) -> None:
    """Raise ConfigError for models that have no mean."""
    models = [one for one, _ in parts if isinstance(one, FineTune)]
    if abs(fsum(weight for one, weight in parts if isinstance(one, FineTune))) < TOLERANCE:
        what = "methods whose weights sum to 0" if models else "no method"
        raise ConfigError(
            f"{list(request.of)} has {what}, and a head is the mean of models' heads. Add a method, "
            "or change the weights."
        )
    kinds = {one.peft.name if one.peft else "none" for one in models}
    if len(kinds) > 1:
        raise ConfigError(
            f"these models were trained with peft {' and '.join(sorted(kinds))}. Average models of one kind."
        )
    given = any(isinstance(one.method, Given) for one in models)
    if given and (method.needs_origin(len(parts)) or len(models) < len(parts)):
        raise ConfigError(
            "a model that is given does not say what encoder it started from, so it has no task "
            "vector. Name no encoder, give weights that sum to 1, and leave density and dropped out."
        )


def _run(request: AverageRequest, method: Average, parts: tuple[FineTune | Encoder, ...]) -> FineTune:
    """Build the run: of one of its models all that is not about training, and the languages of all."""
    models = [one for one in parts if isinstance(one, FineTune)]
    source, target = (max((getattr(one, side) for one in models), key=len) for side in ("source", "target"))
    treebanks = tuple(dict.fromkeys(pair for one in models for pair in one.treebanks))
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
        data=combined_fingerprint([fingerprint(code, "dev") for code in dev]),
    )


def seedless(run: FineTune | Encoder) -> str:
    """Return an id that is the same for all seeds of a run."""

    def without(value: object) -> object:
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key != "seed"}
        return [without(one) for one in value] if isinstance(value, list) else value

    return identity(without(content(run)))
