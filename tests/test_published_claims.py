"""At the published scale the recipes of the papers' claims plan the systems of each claim, without extras."""

import re
from functools import cache
from itertools import chain

import pytest

from each import each
from isogloss.core.errors import MissingPackageError
from isogloss.core.identity import identity
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.pretraining.run import Pretrain
from isogloss.features.translation import seq2seq
from isogloss.planning.encoders import list_unreplicated
from isogloss.planning.plan import plan_recipe
from isogloss.runs.measure import Measure

pytestmark = pytest.mark.slow

RECIPES = {
    1: ("under-specified/claims",),
    2: ("x-mixup/claims-pos", "x-mixup/claims-nli", "x-mixup/table-6"),
    3: (
        *(f"adjustment/claims-{task}" for task in ("ner", "nli", "qa")),
        *(f"adjustment/table-{name}" for name in ("5-ner", "5-xnli", "5-xquad", "7-ner", "7-xnli", "8")),
    ),
    4: ("interference/claims", "interference/table-4", "interference/table-5"),
}
"""For each paper, the recipes whose runs, in one folder, have the systems of all its claims."""

PATHS = ("interpolation all source-only bilingual", "interpolation all target-only bilingual")
PARTS = tuple(f"interpolation {part} source-only bilingual" for part in ("all", "encoder", "head"))
PLANE = ("plane all bilingual source-only target-only",)
DELTAS = ("deltas bilingual source-only target-only",)
TRANSLATED = ("scores source-only", "scores translate-train", "scores paired x-mixup", "scores x-mixup")
ABLATIONS = tuple(f"scores paired without {part}" for part in ("schedule", "MSE", "KL"))
ADJUSTED = tuple(f"scores {task} source-only" for task in ("ner", "nli", "qa"))
DISTANCES = tuple(
    f"word-distance {kind}" for kind in ("original", "adjusted-es", "source-only", "continual-es")
)
BY_KIND = tuple(f"scores en-ar {kind} en-ar" for kind in ("joint", "ffn", "attention", "adapter"))
WITHIN = tuple(f"scores ar {kind} en-ar" for kind in ("joint", "ffn", "attention", "adapter"))
SHARED = ("scores ar shared-adapter en-ar", "scores en-ar shared-adapter en-ar")
META = ("scores ar meta-adapter en-ar", "scores en-ar meta-adapter en-ar")

NEEDS = {
    "1a": PATHS[:1],
    "1b": PATHS[:1],
    "1c": ("scores source-only",),
    "1d": DELTAS,
    "1e": PATHS[:1],
    "1f": PATHS[:1],
    "1g": DELTAS,
    "1h": PATHS[:1],
    "1i": PARTS,
    "1j": PATHS[1:],
    "1k": (*PATHS[:1], *PLANE),
    "1l": PLANE,
    "2a": TRANSLATED,
    "2b": ("cka translate-train", "cka x-mixup"),
    "2c": ("cka source-only", "cka translate-train"),
    "2d": (*ABLATIONS, "scores without mixup", "scores x-mixup"),
    "2e": ("scores xnli en+bg+el+fr+ru+th+ur+zh x-mixup",),
    "2f": ("mixup-ratio paired x-mixup",),
    "2g": TRANSLATED,
    "2h": TRANSLATED[1:],
    "2i": ABLATIONS[1:],
    "2j": ("scores without mixup", "scores x-mixup"),
    "2k": tuple(f"scores paired layer {layer}" for layer in (1, 4, 12, 24)),
    "2l": ("representation-map translate-train", "representation-map x-mixup"),
    "2m": ("cka translate-train", "cka x-mixup", *TRANSLATED),
    "3a": ADJUSTED,
    "3b": tuple(
        f"scores {task} adjusted {size}" for task in ("ner", "nli") for size in (5000, 30000, 250000)
    ),
    "3c": DISTANCES,
    "3d": (*DISTANCES, "scores nli continual-es"),
    "3e": tuple(f"scores {kind} source-only" for kind in ("mixed", "mixed-passage", "mixed-question")),
    "3f": ("scores es adjusted-es",),
    "3g": ("scores qa target-only-es",),
    "3h": tuple(f"scores qa adjusted {size}" for size in (5000, 30000, 250000)),
    "3i": tuple(
        f"scores {task} {method_name}" for task in ("ner", "nli") for method_name in ("CLS", "words")
    ),
    "3j": (*DISTANCES, "scores ner continual-es", "scores qa continual-es"),
    "4a": (*WITHIN[:1], "scores ar mono-ar"),
    "4b": ("conflict joint en-ar", "conflict joint en-fr"),
    "4c": ("gradient-conflict joint en-ar",),
    "4d": (*BY_KIND, *WITHIN),
    "4e": (*META, *BY_KIND[:1], *WITHIN[:1]),
    "4f": ("language-gates joint en-ar",),
    "4g": (*META, *SHARED, BY_KIND[3], WITHIN[3]),
    "4h": WITHIN[1:3],
    "4i": tuple(f"perplexity {kind} en-ar" for kind in ("joint", "adapter", "meta-adapter")),
    "4j": (*SHARED, *BY_KIND[:1], *WITHIN[:1]),
    "4k": tuple(f"scores ru {kind}" for kind in ("mono-ru, little", "joint en-ru, little", "joint en-ru")),
    "4l": ("scores en-fr joint en-fr", "scores en-ru joint en-ru"),
    "4m": ("scores en-hi joint en-hi", "scores en-hi joint en-hi-mr"),
}
"""Sources of the frames of each claim: diagnostic, task or inputs or language, system, encoder."""


@pytest.fixture(autouse=True)
def offline_without_extras(monkeypatch):
    from huggingface_hub import constants

    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(seq2seq, "import_module", missing)


@cache
def plan(name, scale="published"):
    return plan_recipe(f"papers/{name}", scale=scale, assume=True)


def systems(planned_runs):
    """Name the measured systems and encoders in the words of claims."""
    labels = {key: label for label, keys in planned_runs.methods.items() for key in keys}
    encoders = {identity(encoder): label for encoder, label in planned_runs.encoders.items()}
    for run in planned_runs.runs:
        if isinstance(run, Pretrain):
            watched_texts = ["perplexity"] if run.method.training.evaluate_every else []
            watched_texts += ["conflict"] if getattr(run.method, "conflict", None) else []
            yield from ({watched_text, *encoders[identity(run)].split(" ")} for watched_text in watched_texts)
        if not isinstance(run, Measure):
            continue
        words = {run.diagnostic.name, getattr(run.diagnostic, "part", ""), run.inputs or ""}
        words |= {*run.languages, *(model.task for model in run.models), run.corpus}
        for model in run.models:
            words |= {
                *encoders.get(identity(model.encoder), "").split(" "),
                *labels[identity(model)].split(" "),
            }
            words.add("+".join((*model.source, *model.target)))
        yield words | {word for run in run.subjects for word in encoders.get(identity(run), "").split(" ")}


def test_every_claim_has_its_systems_listed():
    assert list(NEEDS) == [claim.id for claim in CLAIMS]


@pytest.mark.parametrize("paper", RECIPES)
def test_the_recipes_of_a_papers_claims_plan_the_systems_of_each(paper):
    measurement = list(chain.from_iterable(systems(plan(name)) for name in RECIPES[paper]))
    needed_fields = {key: needs for key, needs in NEEDS.items() if int(key[0]) == paper}
    for key, needs in each(needed_fields.items()):
        for words in each(needs):
            assert any(set(words.split(" ")) <= owner for owner in measurement), f"{key}: {words}"


@pytest.mark.nightly
def test_a_plan_for_display_lists_what_its_runs_require_and_a_run_refuses():
    requirement = "ctranslate2 (pip install 'isogloss[mt-fast]')"
    translated_plan = plan("x-mixup/claims-pos")
    assert list(translated_plan.sources.missing_packages) == [requirement]
    assert not plan("x-mixup/claims-nli").sources.missing_packages
    with pytest.raises(MissingPackageError) as refused_error:
        translated_plan.runs[-1].translated[0].translator.check("en", "de")
    assert refused_error.value.requirement == requirement


def test_encoders_of_one_pretraining_seed_decide_nothing_and_a_dry_run_says_so():
    counts = {
        scale: list_unreplicated(plan("interference/claims", scale).runs)
        for scale in each(("published", "published-en-ar"))
    }
    assert [re.match(r"\d+ encoders", warning).group() for (warning,) in counts.values()] == [
        "43 encoders",
        "7 encoders",
    ]
    assert list_unreplicated(plan("interference/claims", "built-in").runs) == []
