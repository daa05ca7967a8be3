"""Other systems in a folder change no verdict, even if they differ from a claim's in one fact.

Each is derived from the claim's rows by changing one fact, with far lower or far higher numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import pandas as pd
import pytest
from test_claims_laws import CASES
from test_claims_mixup import bench

from isogloss.core.rows import row_frames
from isogloss.core.run_parts import Architecture, Modules, Optimization, TextTraining, Updates
from isogloss.features.adjustment.methods import CrossLingualAdjustment
from isogloss.features.adjustment.term import AlignmentTerm
from isogloss.features.claims import adjustment_rows, interference_rows, mixup_comparisons
from isogloss.features.claims.comparisons import drop_strays
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.x_mixup.method import XMixup
from isogloss.reports.measurements import TESTED
from isogloss.reports.run_facts import IGNORED
from isogloss.reports.verdicts import judge
from made_up_rows import Row, make_measurements

Changes = Mapping[str, Any]

MONITORING = {*IGNORED, "evaluate_every"}
"""Fields that do not affect a system, so that values cannot be distinguished."""

BUDGET = {"accumulation", "gradient_checkpointing"}
"""Fields that change only the memory of a training."""

VALUES = (
    *("score", "cka", "between", "std", "ratio", "angle", "related_mean", "unrelated_mean", "auc"),
    *("cosine", "correlation"),
)

SUPPORTED = {
    claim: next(frames for name, frames, verdict in CASES.values() if (name, verdict) == (claim, "supported"))
    for claim in (claim.id for claim in CLAIMS)
}

SUPPORTED["2f"] = {**SUPPORTED["2f"], "scores": bench()}
"""Which X-Mixup is judged is decided by its scores and its baseline's."""


def field_values(part: type) -> Iterator[tuple[str, Any]]:
    """Yield each field of a part of a run, nested ones included, with its default."""
    for field in fields(part):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if is_dataclass(default):
            for inner in fields(default):
                yield inner.name, getattr(default, inner.name)
        elif default is not MISSING:
            yield field.name, default


FLAGS = {"embedding", "source_as_target"}
"""Fields that are true or left out."""


def another(value: object, name: str = "") -> object:
    """Return another value of a field."""
    if name in FLAGS:
        return True
    match value:
        case bool():
            return not value
        case int() | float():
            return value * 2 if value else 3
        case None:
            return 7
        case _:
            return "another"


def changed_fields(prefix: str, *parts: type) -> dict[str, Changes]:
    """Return a change of each field by its column, for all that tells systems apart."""
    values = {name: value for part in parts for name, value in field_values(part)}
    return {
        f"{prefix}.{name}": {f"{prefix}.{name}": another(value, name)}
        for name, value in values.items()
        if name not in MONITORING
    }


def is_mixup(row: Row) -> bool:
    return row["method"] == "x-mixup"


def is_adjusted(row: Row) -> bool:
    return row["encoder.adjusted"] != ""


def is_main_adjusted(row: Row) -> bool:
    """Return whether a row is of the adjustment that 3b and 3i compare with others."""
    return row["encoder.size"] in (250, 300) and row["encoder.adjusted.pulled"] == "all"


def is_continual(row: Row) -> bool:
    return row["method"] == "source-only + alignment-loss"


def is_model(row: Row) -> bool:
    return row["kind"] == "model"


def is_tuned(row: Row) -> bool:
    return is_model(row) and not is_adjusted(row)


def match_encoder(modules: str = "", languages: str = "", method: str = "") -> Callable[[Row], bool]:
    """Return whether a row is of an encoder with these modules, languages and method."""
    request = {"encoder.modules": modules, "encoder.languages": languages, "encoder.method": method}
    return lambda row: all(row.get(name) == value for name, value in request.items() if value)


META = match_encoder(method="meta-learning")
FFN = match_encoder("feed-forward")
TREATED: Mapping[str, Callable[[Row], bool]] = {
    "4a": match_encoder(languages="qaa"),
    **dict.fromkeys(("4b", "4c", "4f"), match_encoder()),
    **dict.fromkeys(("4d", "4h"), FFN),
    **dict.fromkeys(("4e", "4g", "4i"), META),
    "4j": match_encoder("shared-adapter"),
    "4k": lambda row: row["encoder.lines"] != "" and "+" in row["encoder.languages"],
    "4l": match_encoder(languages="qaa+qab"),
    "4m": match_encoder(languages="qaa+qad+qab"),
}
"""The encoders that a claim of the fourth paper is about, one of whose facts is changed."""

LORA: Changes = {"peft": "lora", "peft.rank": 8}
ELSEWHERE: Changes = {"encoder.seed": 99, "encoder.run": "another"}
FINE_TUNED = {**changed_fields("optimization", Optimization, Updates), "LoRA": LORA}
PRETRAINED = {
    **changed_fields("encoder.method", TextTraining, Updates),
    **changed_fields("encoder", Architecture),
}

SEEDS = 10
"""Maximum number of strangers per claim: rank correlations that agree in five seeds decide nothing."""

Stranger = tuple[str, str, Changes, Callable[[Row], bool], int]
"""Claim, name, changes, mask of rows of systems to change, and number of their seeds in the folder."""


def pretraining_strangers(claim: str) -> dict[str, tuple[Changes, Callable[[Row], bool], int]]:
    """Return the strangers of a claim of the fourth paper: another training, architecture, modules."""
    treated_value = TREATED[claim]
    seeds = 2 if claim in ("4b", "4c", "4f") else SEEDS
    changes = PRETRAINED | FINE_TUNED
    if claim != "4m":
        changes["a third language"] = {"encoder.languages": "qaa+qad+qaz"}
    meta = changed_fields("encoder.method", MetaLearning)
    modules = changed_fields("encoder.modules", Modules)
    everything = {name: (change, treated_value, seeds) for name, change in changes.items()}
    everything |= {
        name: (change, lambda row: META(row) and treated_value(row), SEEDS) for name, change in meta.items()
    }
    return everything | {
        name: (change, lambda row: row["encoder.modules"] != "" and treated_value(row), SEEDS)
        for name, change in modules.items()
    }


def strangers() -> Iterator[Stranger]:
    """Yield every claim with every stranger."""
    for claim in SUPPORTED:
        match claim[0]:
            case "1":
                single_row = {**FINE_TUNED, "another pretraining seed": ELSEWHERE}
                single_row["an adjusted encoder"] = {"encoder.adjusted": "procrustes"}
                everything = {name: (changes, is_model, 2) for name, changes in single_row.items()}
            case "2":
                everything = {
                    name: (changes, is_mixup, SEEDS)
                    for name, changes in (changed_fields("method", XMixup) | FINE_TUNED).items()
                }
                everything["another pretraining seed"] = ELSEWHERE, is_mixup, 1
                everything["a third language"] = {"target": "qad+qaz"}, is_mixup, SEEDS
            case "3":
                adjusted_changed_fields = changed_fields("encoder.adjusted", CrossLingualAdjustment)
                treated_tuned = is_tuned if claim == "3c" else is_adjusted
                everything = {name: (changes, treated_tuned, SEEDS) for name, changes in FINE_TUNED.items()}
                everything |= {
                    name: (changes, is_adjusted, SEEDS) for name, changes in adjusted_changed_fields.items()
                }
                everything |= {
                    name: (changes, is_continual, SEEDS)
                    for name, changes in changed_fields("auxiliary", AlignmentTerm).items()
                }
                everything["another pretraining seed"] = ELSEWHERE, is_main_adjusted, 1
                everything["a third language"] = {"encoder.pairs": "qaa-qaz"}, is_adjusted, SEEDS
            case _:
                everything = pretraining_strangers(claim)
        for name, (change, treats, seeds) in everything.items():
            yield claim, name, change, treats, seeds


PARTS = {
    *(("2d", f"method.{part}") for part in ("learned_ratio", "schedule")),  # Part of 2d.
    *(("2k", f"method.{part}") for part in ("layer",)),  # Layers are what 2k compares.
    *((claim, "auxiliary.bitext") for claim in ("3d", "3j")),  # Another bitext is data of the same system.
    ("3g", "a third language"),  # It is judged within the source language, whatever the target.
    *((claim, f"encoder.method.{name}") for claim in ("4e", "4g", "4i") for name in ("second_order",)),
}
"""Changes that a claim is about."""


def with_stranger(
    frames: Mapping[str, Sequence[Row]], stranger: Stranger, factor: float
) -> Iterator[tuple[str, Row]]:
    """Yield a stranger's rows, with the frame that they are of."""
    _, name, changes, treats, seeds = stranger
    has_encoder = any(key.startswith("encoder.") for key in changes) and changes is not ELSEWHERE
    ids = ["run", "model", "origin", "end"]
    ids += ["encoder", "encoder.run"] if has_encoder else [] if changes is ELSEWHERE else ["way"]
    for frame, rows in frames.items():
        for row in rows:
            seed = row["seed"] if row.get("seed") is not None else row.get("encoder.seed") or 0
            if treats(row) and seed < seeds and (has_encoder or row["kind"] == "model"):
                renamed_texts = {key: f"{row[key]} {name}" for key in ids if key in row}
                numbers = {key: row[key] * factor for key in VALUES if row.get(key) is not None}
                yield frame, {**row, **renamed_texts, **numbers, **changes}


def with_strangers(claim: str, other_strangers: Sequence[Stranger], factor: float) -> dict[str, list[Row]]:
    """Return the rows of a claim with the rows of strangers."""
    frames = {frame: list(rows) for frame, rows in SUPPORTED[claim].items()}
    for stranger in other_strangers:
        for frame, row in with_stranger(SUPPORTED[claim], stranger, factor):
            frames[frame].append(row)
    return frames


@pytest.mark.slow
@pytest.mark.parametrize("claim", SUPPORTED)
@pytest.mark.parametrize("factor", [0.3, 1.7], ids=["far lower", "far higher"])
def test_systems_that_differ_in_one_fact_change_no_verdict(claim: str, factor: float) -> None:
    other_strangers = [
        stranger for stranger in strangers() if stranger[0] == claim and stranger[:2] not in PARTS
    ]
    frames = with_strangers(claim, other_strangers, factor)
    assert len(other_strangers) > 15
    assert claim == "2c" or sum(len(item) for item in frames.values()) > 2 * sum(
        len(item) for item in SUPPORTED[claim].values()
    )
    (outcome,) = judge([rule for rule in CLAIMS if rule.id == claim], make_measurements(**frames))
    assert outcome.verdict == "supported", outcome.found


RELATED: Mapping[str, Changes] = {
    "on test": {"split": "test"},
    "on dev": {"split": "dev"},
    "by another metric": {"metric": "another", "main": False},
    "by words": {"metric": "word_f1", "main": False},
    "in another language": {"language": "qaz"},
    "on another corpus": {"corpus": "another"},
    "in a deeper layer": {"layer": 99},
    "by cosine": {"distance": "cosine"},
    "by L2": {"distance": "l2"},
}
"""Further measurements of a model that a claim compares, as changes of a row."""


def with_related_row(claim: str, frame: str, name: str, factor: float) -> dict[str, list[Row]]:
    """Return the rows of a claim and one more row of a frame. All else is on dev where that is on test."""
    frames = {key: list(rows) for key, rows in SUPPORTED[claim].items()}
    if name == "on test":
        frames[frame] = [{**row, "split": "dev"} for row in frames[frame]]
    measured_row = frames[frame][0]
    numbers = {key: measured_row[key] * factor for key in VALUES if measured_row.get(key) is not None}
    related_value = {**measured_row, **numbers, **RELATED[name], "run": f"{measured_row.get('run')} {name}"}
    frames[frame].append(related_value)
    return frames


def list_columns(frame: str) -> set[str]:
    """List the columns of a frame: fields of its rows, and the inputs that were measured."""
    kind = row_frames()[frame.replace("_", "-")]
    return {field.name for field in fields(kind)} | set(TESTED)


def related_rows() -> Iterator[tuple[str, str, str]]:
    """Yield every claim, each of its frames, and every column of the frame with several possible values."""
    for claim, frames in SUPPORTED.items():
        for frame, rows in frames.items():
            for name, changes in RELATED.items():
                change = {key: rows[0].get(key) for key in changes if key != "main"}
                if not set(change) <= list_columns(frame):
                    continue
                if all(change.values()) and (name == "on test" or set(change.items()) - set(changes.items())):
                    yield claim, frame, name


def judged_with_related_row(claim: str, frame: str, name: str, factor: float) -> str:
    frames = with_related_row(claim, frame, name, factor)
    outcomes = judge([rule for rule in CLAIMS if rule.id == claim], make_measurements(**frames))
    return outcomes[0].verdict if outcomes else "not listed"


@pytest.mark.parametrize(
    ("claim", "frame", "name"),
    [
        ("2a", "scores", "on test"),
        ("3a", "scores", "by words"),
        ("2b", "cka", "in a deeper layer"),
        ("3c", "word_distance", "by cosine"),
        ("4a", "scores", "on test"),
        ("1b", "interpolation", "in another language"),
        ("2c", "cka", "on another corpus"),
        ("2l", "representation_map", "in a deeper layer"),
        ("3c", "word_distance", "on another corpus"),
        ("3d", "word_distance", "on another corpus"),
        ("4i", "perplexity", "by words"),
        ("4k", "perplexity", "on test"),
    ],
)
def test_one_more_measurement_of_a_model_changes_no_verdict(claim: str, frame: str, name: str) -> None:
    assert judged_with_related_row(claim, frame, name, 1.7) == "supported"


def test_measurements_of_less_than_half_of_the_rows_are_strays() -> None:
    sizes = {("a", "qab"): 4, ("a", "qac"): 2, ("a", "qad"): 1, ("b", "qad"): 1}
    rows = pd.DataFrame(
        [{"way": way, "language": language} for (way, language), size in sizes.items() for _ in range(size)]
    )
    kept_rows = drop_strays(rows, ["way", "not a column"], ["language"])
    assert dict(kept_rows.value_counts(sort=False)) == {
        key: size for key, size in sizes.items() if key != ("a", "qad")
    }
    assert drop_strays(rows[:0], ["way"], ["language"]).empty


@pytest.mark.nightly
@pytest.mark.parametrize(("claim", "frame", "name"), list(related_rows()))
@pytest.mark.parametrize("factor", [0.3, 1.7], ids=["far lower", "far higher"])
def test_no_measurement_of_a_model_changes_a_verdict(
    claim: str, frame: str, name: str, factor: float
) -> None:
    assert judged_with_related_row(claim, frame, name, factor) == "supported"


def test_settings_of_the_papers_are_the_defaults_of_their_methods() -> None:
    """Nearest to the paper's are systems with most of these values: a new field must be weighed here."""
    adjusted_field_values = dict(field_values(CrossLingualAdjustment))
    roles = {"pulled", "word"}
    own_part = {
        name: value for name, value in adjusted_field_values.items() if name not in {*MONITORING, *roles}
    }
    assert own_part == adjustment_rows.ADJUSTED
    added_field_values = dict(field_values(AlignmentTerm))
    assert adjustment_rows.ADDED.keys() == added_field_values.keys()
    assert {name: value for name, value in adjustment_rows.ADDED.items() if value is not None} == {
        name: value for name, value in added_field_values.items() if value not in (None, "")
    }
    mixup = {f"method.{name}": value for name, value in field_values(XMixup)}
    left_out = {*mixup_comparisons.FIXED, "method.layer", "method.ratio_rate"}
    assert {k: v for k, v in mixup.items() if k not in left_out} == {**mixup_comparisons.SETTINGS}
    meta = dict(field_values(MetaLearning))
    modules = dict(field_values(Modules))
    for name, value in interference_rows.SETTINGS.items():
        field = {"embedded": "embedding"}.get(name, name.rpartition(".")[2])
        assert (meta if "method" in name else modules)[field] in (value, "")
