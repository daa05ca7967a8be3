"""What the papers print, what their released code does, and which fields of a setting are that.

Each difference is a field that anyone can set alone; a preset fills in those that a recipe leaves out. The
table in docs/presets.md is made of these values.

Released code: yhy1117/X-Mixup (8142078e), pefimov/cross-lingual-adjustment (04edbc13) and
iedwardwangi/MetaAdapter (89d84760), which changes facebookresearch/XLM and has no command line: what it
leaves open is that code's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from isogloss.core.errors import ConfigError, check_named

Value = str | int | float | bool
Cases = Mapping[str, Value]
"""Values by corpus, or by the unit that a task labels; "" is of all others."""

PAPER, RELEASED = "paper", "released"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A field in which paper, released code and this package may differ."""

    parts: tuple[str, ...]
    """Names of the methods, losses, adjustments or pretraining methods that have the field."""
    field: str
    """Its name in recipes; also one of the optimization of a method."""
    paper: Value | Cases | None = None
    """What the paper prints; None where it prints nothing, and the field stays as it is."""
    released: Value | Cases | None = None
    """What the released code does."""
    sources: str = ""
    """Where paper and code have it."""


def _of(*parts: str, **fields: tuple[Value | Cases | None, Value | Cases | None, str]) -> list[Difference]:
    return [
        Difference(parts=parts, field=field, paper=paper, released=released, sources=sources)
        for field, (paper, released, sources) in fields.items()
    ]


X_MIXUP, ADJUSTMENT, CONTINUAL = "x-mixup", "cross-lingual-adjustment", "alignment-loss"
META, MASKED, MODULES = "meta-learning", "masked-language-modelling", "modules"

DIFFERENCES: tuple[Difference, ...] = (
    *_of(
        X_MIXUP,
        back_loss=(
            None,
            "target",
            "Eq. 8 has both sides, as here; token_classification.py and qa.py (not the classifier) drop the "
            "source's loss where sample_gold is false",
        ),
        source_as_target=(
            True,
            True,
            "Table 6: English is the first of 8 seen languages; scripts/*.sh: train_languages=eval_languages",
        ),
        learned_ratio=(
            True,
            False,
            "Eq. 5; layer_mixup.py: entropy_dense is in no model's weights, so W stays 1, and λ is about λ₀",
        ),
        dev=(
            {"example": "all", "word": "all"},
            {"example": "all", "word": "all"},
            "Section 5.1; evaluate() of the trainers, of paired inputs (here alone); questions: the corpora "
            "have no dev set in the targets that is not tested on",
        ),
        learning_rate=(
            None,
            {"": 5e-6, "tydiqa": 3e-5},
            "Section 5.1 has the four that were searched; scripts/*.sh",
        ),
        epochs=({"": 4, "squad": 2}, {"": 4, "squad": 2}, "Appendix C.1; scripts/*.sh"),
        batch_size=(64, {"": 64, "span": 32}, "Appendix C.1; scripts/*.sh: 16 on 4 GPUs, 4 on 8 in QA"),
        warmup=(None, {"": 0.0, "span": 0.1}, "training_args.py; train_qa.sh"),
        weight_decay=(None, 0.0, "training_args.py"),
        clip=(None, 0.0, "trainer.py clips each number of the gradient at 1, not its norm"),
    ),
    *_of(
        ADJUSTMENT,
        form=("sum", "mean", "Eq. 1; bert_finetuning_alignment.py: mse_loss"),
        drop_identical=(None, True, "utils_alignment.py: filter_data_alignments"),
        learning_rate=(None, 5e-5, "Section 5: that of Cao et al. (2020); bert_finetuning_alignment.py"),
        rate_schedule=("constant", "constant", "Section 5, as Cao et al.; schedule_lr: warm-up alone"),
    ),
    *_of(
        CONTINUAL,
        form=("sum", "mean", "Eqs 1 and 2; utils_alignment.py: mse_loss"),
        alpha=(0.01, 0.01, "Section 5; scripts: --align_wght 0.01"),
        stay=(None, 1.0, "Eq. 2: α, as here; scripts: --base_diff_wght 1"),
        reference=("original", "original", "Section 3: f⁰ is the original mBERT; scripts"),
        drop_identical=(None, True, "utils_alignment.py: filter_data_alignments"),
        pairs=(16, 16, "Section 5; scripts: --align_batch_size 16"),
    ),
    *_of(
        META,
        second_order=("finite-difference", "exact", "Section 4, Eq. 8; trainer.py: create_graph=True"),
        own_on_train=(None, True, "Algorithm 1: no; trainer.py: --shared_param_only_optimizer False"),
        validation_text=(None, "held-out", "train.py: --meta_use_valid_set True"),
    ),
    *_of(
        MASKED,
        META,
        steps=(500_000, None, "Section 3.1: 50 epochs of 10,000 steps"),
        evaluate_every=(10_000, None, "Section 3.1"),
        block=(256, 256, "Section 3.1 follows XLM; train.py: --bptt 256"),
        batch_subwords=(131_072, None, "Section 3.1: 512 rows of these"),
        rate_schedule=(
            "inverse-square-root",
            "constant",
            "Section 3.1: that of Lample & Conneau (2019); train.py: adam has none",
        ),
        warmup=(None, 0.0, "train.py: adam has none"),
        learning_rate=(None, 1e-4, "train.py: adam,lr=0.0001"),
        clip=(None, 5.0, "train.py: --clip_grad_norm 5"),
        beta2=(None, 0.999, "XLM, optim.py"),
        epsilon=(None, 1e-8, "XLM, optim.py"),
        weight_decay=(None, 0.0, "XLM, optim.py"),
    ),
    *_of(MODULES, embedding=(None, True, "Section 3.1 follows XLM; train.py: --use_lang_emb True")),
)
"""In the order of the papers. ``modules`` have no preset: each table of them sets ``embedding`` itself."""


def preset_fields(part: str, preset: str, *, corpus: str = "", unit: str = "") -> dict[str, Value]:
    """Return the fields that a preset fills in, for a part on a corpus whose task labels a ``unit``.

    ConfigError, with the nearest match, for an unknown preset, or for a part that has none.
    """
    check_named("preset", "preset", (PAPER, RELEASED), preset)
    rows = [row for row in DIFFERENCES if part in row.parts]
    if not rows:
        having = sorted({name for row in DIFFERENCES for name in row.parts} - {MODULES})
        raise ConfigError(f"preset: {part} has none. Leave it out; these have: {', '.join(having)}.")
    stated = {row.field: row.paper if preset == PAPER else row.released for row in rows}
    values = {field: _case(value, corpus, unit) for field, value in stated.items()}
    return {field: value for field, value in values.items() if value is not None}


def _case(value: Value | Cases | None, corpus: str, unit: str) -> Value | None:
    if not isinstance(value, Mapping):
        return value
    return value.get(corpus, value.get(unit, value.get("")))
