"""An estimate of the memory each planned run takes at its peak, from the plan and configurations alone.

All rows are taken to be as long as allowed. The formulas are in ``training.memory``.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from isogloss.core.errors import ModelError
from isogloss.core.run_parts import Architecture, Modules
from isogloss.data.corpora.described import KNOWN
from isogloss.data.formats.reading import cells_of
from isogloss.encoders import load_encoder_config
from isogloss.encoders.added.added_weights import read_module_info
from isogloss.encoders.added.language_modules import ATTENTION, EMBEDDING, FEED_FORWARD, SHARED_ADAPTER
from isogloss.encoders.initial import config_of
from isogloss.runs.encoder_runs import Adjust, Align, Encoder, Pretrain
from isogloss.runs.runs import FineTune, Measure, Run, TrainTranslator, Translate
from isogloss.tasks import find_task
from isogloss.training.evaluation import BUDGET
from isogloss.training.memory import (
    Cost,
    Load,
    Machine,
    Shape,
    scoring_memory,
    shape_of,
    training_memory,
)
from isogloss.training.precision import device, resolved_precision

CROSS_ATTENTION = 1.5
"""Layers of an encoder that a layer of a decoder is like."""

COMPUTING_GRADIENTS = ("gradient-conflict", "language-gates", "task-gradient-conflict")
"""Diagnostics whose memory is not estimated."""

ASSUMED_SHAPES: Mapping[str, Shape] = {
    "google-bert/bert-base-multilingual-cased": Shape(
        parameters=177_974_523, vocabulary=119_547, layers=12, dim=768, heads=12, feed_forward=3072
    ),
    "FacebookAI/xlm-roberta-base": Shape(
        parameters=278_295_186, vocabulary=250_002, layers=12, dim=768, heads=12, feed_forward=3072
    ),
    "FacebookAI/xlm-roberta-large": Shape(
        parameters=560_142_482, vocabulary=250_002, layers=24, dim=1024, heads=16, feed_forward=4096
    ),
}
"""Shapes of encoders of the papers, with their masked-LM heads, where this machine does not have them."""

Folders = Mapping[str, str]
"""Where encoders are on this machine, by fingerprint."""


def peak_memory(run: Run, folders: Folders, *, on: Machine | None = None) -> int | None:
    """Return the bytes that a run takes at its peak: 0 without a model, None where that is not known.

    ``on`` tells where and in which precision; left out, on this process's device in the run's own precision.
    Not known are encoders that are not on this machine, meta-learning, translation models that were made
    elsewhere, diagnostics that compute gradients, and training on choices whose options are lists.
    """
    machine = on or _machine(run.precision)
    if isinstance(run, Pretrain):
        return _pretrain(run, folders, machine)
    if isinstance(run, TrainTranslator | Translate):
        return (
            _train_translator(run, machine) if isinstance(run, TrainTranslator) else _translate(run, machine)
        )
    encoder = encoder_in(run)
    shape = shape_in(encoder, folders) if encoder else None
    if shape is None:
        return None if encoder else 0
    if isinstance(run, Measure):
        return _measure(run, shape, machine)
    scoring = _score(shape, machine)  # Dev sets, states before an adjustment.
    if isinstance(run, Adjust):
        return max(scoring, _adjust(run, shape, machine))
    tuned = _fine_tune(run, shape, machine) if isinstance(run, FineTune) else 0
    return None if tuned is None else max(scoring, tuned)


def encoder_in(run: Run) -> Encoder | None:
    """Return the encoder that runs in it, if one does."""
    if isinstance(run, Measure):
        found = (encoder_in(one) for one in run.subjects if not isinstance(one, Measure))
        return next((one for one in found if one is not None), None)
    return (
        run.encoder
        if isinstance(run, Adjust | Align | FineTune)
        else run
        if isinstance(run, Encoder)
        else None
    )


def _pretrain(run: Pretrain, folders: Folders, machine: Machine) -> int | None:
    cost, shape = run.method.cost(), shape_in(run, folders)
    if shape is None or cost is None:
        return None
    start = shape_in(run.start, folders) if run.start else None
    parts = {"modules": shape.parameters - start.parameters} if start else {}
    parts["layers"] = shape.parameters - shape.vocabulary * shape.dim
    trained = parts.get(run.trained or "")
    return _training(cost, replace(shape, dropout=cost.dropout), machine, trained=trained)


def _adjust(run: Adjust, shape: Shape, machine: Machine) -> int:
    cost = run.method.cost(1)
    if cost is None or not cost.steps:
        return 0
    return _training(cost, replace(shape, dropout=shape.dropout and cost.dropout), machine)


def _training(cost: Cost, shape: Shape, machine: Machine, *, trained: int | None = None) -> int:
    """Return the bytes of the training of an encoder."""
    copies = round(4 * cost.copies * shape.parameters)
    return copies + training_memory(shape, cost.batch, cost.updates, machine, best=False, trained=trained)


def _options(run: FineTune) -> int | None:
    """Return the rows of an item: its options, as the corpus has columns for them; 1 in other tasks."""
    if find_task(run.task).labels_are != "option":
        return 1
    parts = [KNOWN.get(name.partition("[")[0]) for name in run.corpus.split("+")]
    counts = [len(cells_of(one.columns["options"])) if one else 1 for one in parts]
    return None if 1 in counts else max(counts)


def _fine_tune(run: FineTune, shape: Shape, machine: Machine) -> int | None:
    how, options = run.optimization, _options(run)
    if run.parts:
        return _score(shape, machine, models=2)
    if options is None:
        return None
    batch = Load(rows=how.batch_size * options, length=how.limit)
    costs = [part.cost(batch) for part in (run.auxiliary,) if part]
    costs += [part.cost() for part in (run.peft,) if part]
    rows = batch.rows * run.method.reads(run.source, run.target).sides + sum(cost.rows for cost in costs)
    copies = round(4 * sum(cost.copies for cost in costs) * shape.parameters)
    return copies + training_memory(
        shape,
        replace(batch, rows=rows),
        how.updates,
        machine,
        best=True,
        trained=run.peft.trained(shape) if run.peft else None,
    )


def _measure(run: Measure, shape: Shape, machine: Machine) -> int | None:
    if run.diagnostic.name in COMPUTING_GRADIENTS:
        return None
    several = run.diagnostic.subject == "cell"  # The ends of a path, and a point of it.
    return _score(shape, machine, models=len(run.subjects) + 1 if several else 1)


def _train_translator(run: TrainTranslator, machine: Machine) -> int:
    method = run.method
    load = Load(
        rows=max(1, method.batch_subwords // method.longest),
        length=method.longest,
        predicted=method.batch_subwords,
    )
    shape = translator_shape(run)
    return training_memory(shape, load, method.updates, machine, best=bool(run.dev))


def _translate(run: Translate, machine: Machine) -> int | None:
    if run.model is None:
        return 0
    return _score(translator_shape(run.model), machine) if isinstance(run.model, TrainTranslator) else None


def translator_shape(run: TrainTranslator) -> Shape:
    """Return the shape of a translation model, with its decoder's layers as so many more of an encoder's."""
    how = run.method
    layer = 4 * how.dim**2 + 2 * how.dim * how.feed_forward
    layers = round(how.layers * (1 + CROSS_ATTENTION))
    return Shape(
        parameters=how.vocabulary * how.dim + layers * layer,
        layers=layers,
        dim=how.dim,
        heads=how.heads,
        feed_forward=how.feed_forward,
        vocabulary=how.vocabulary,
        dropout=how.dropout > 0,
    )


def _score(shape: Shape, machine: Machine, *, models: int = 1) -> int:
    length = 128
    load = Load(rows=BUDGET // length, length=length)
    return scoring_memory(shape, load, machine, models=models)


def _machine(precision: str) -> Machine:
    on = device()
    return Machine(half=resolved_precision(precision, on) == "bfloat16", gpu=on.type == "cuda")


def shape_in(encoder: Encoder, folders: Folders) -> Shape | None:
    """Return the shape of an encoder with its modules; None for one that is neither here nor assumed."""
    first = encoder.original
    if isinstance(first, Pretrain):
        shape = _shape_of(first.architecture) if first.architecture else _shape_of_start(first, folders)
        return _with_modules(shape, first.modules, len(first.languages)) if shape else None
    where = folders.get(first.data, "") or (first.pinned if first.revision else "")
    try:
        return _shape_at(where) if where else ASSUMED_SHAPES.get(first.source.partition("@")[0])
    except ModelError:
        return None


def _shape_of_start(run: Pretrain, folders: Folders) -> Shape | None:
    """Return the shape of what is trained further, with the subwords that are added."""
    shape = shape_in(run.start, folders) if run.start else None
    if shape is None or run.vocabulary is None:
        return shape
    size = run.vocabulary.size
    return replace(shape, vocabulary=shape.vocabulary + size, parameters=shape.parameters + size * shape.dim)


@lru_cache(maxsize=64)
def _shape_of(architecture: Architecture) -> Shape:
    shape = shape_of(config_of(architecture))
    return replace(shape, dropout=architecture.dropout > 0)


@lru_cache(maxsize=64)
def _shape_at(folder: str) -> Shape:
    config = load_encoder_config(folder)
    about = read_module_info(Path(folder), config.hidden_size)
    shape = shape_of(config)
    return _with_modules(shape, about.modules, len(about.languages)) if about else shape


def _with_modules(shape: Shape, modules: Modules | None, languages: int) -> Shape:
    """Return a shape with the parameters of language modules."""
    if modules is None:
        return shape
    dim, bottleneck = shape.dim, shape.dim // modules.reduction
    adapters = 2 * (2 * dim * bottleneck + dim + bottleneck)
    each, count = {
        FEED_FORWARD: ((2 + shape.gated) * dim * shape.feed_forward, languages - 1),
        ATTENTION: (4 * dim**2, languages - 1),
        SHARED_ADAPTER: (adapters, 1),
    }.get(modules.kind, (adapters, languages))
    added = dim * languages if modules.kind == EMBEDDING else shape.layers * each * count
    return replace(shape, parameters=shape.parameters + added)
