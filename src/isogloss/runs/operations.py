"""An estimate of what runs take: operations of each training, and time by that of runs which were made.

A subword that goes through a model and back takes 6 operations for each parameter that is no embedding, and
12·n·d·L for attention over rows of L subwords (n layers of width d); where subwords are predicted, 6·V·d for
each. An example counts as one row that is as long as allowed: most are shorter, long ones several windows.
All of this is known from the plan and configurations alone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.records import read_made
from isogloss.data.built_in_languages import built_in_size
from isogloss.runs.encoder_runs import Adjust, Pretrain
from isogloss.runs.memory import Folders, encoder_in, shape_in, translator_shape
from isogloss.runs.runs import FineTune, Run, TrainTranslator
from isogloss.store.store import Store
from isogloss.training.memory import Cost, Shape

TRAIN_SIZES = {
    "xnli": 392_702,
    "pawsx": 49_401,
    "squad": 87_599,
    "wikiann": 20_000,
    "udpos": 21_253,
    "ud": 12_544,
}
"""Training examples of corpora in English, assumed where a recipe names no number: XTREME's Table 1 (Hu et
al. 2020), and of UD the English EWT's."""


def operations_of(run: Run, folders: Folders) -> float | None:
    """Return the operations of a run's training: 0 where nothing is trained, None where sizes are unknown."""
    if isinstance(run, TrainTranslator):
        how, shape = run.method, translator_shape(run)
        return training_operations(shape, how.steps * how.batch_subwords, how.longest, predicted=1)
    encoder = encoder_in(run)
    if not isinstance(run, Pretrain | Adjust | FineTune) or encoder is None:
        return 0
    known = shape_in(encoder, folders)
    if isinstance(run, Pretrain):
        return _pretrain(run, known)
    return _adjust(run, known) if isinstance(run, Adjust) else _fine_tune(run, known)


def training_operations(shape: Shape, subwords: float, length: int, *, predicted: float = 0) -> float:
    """Return the operations of training on so many subwords in rows of a length.

    ``predicted`` is the share of subwords at which the whole vocabulary is scored.
    """
    inside = shape.parameters - shape.vocabulary * shape.dim
    attention = 12 * shape.layers * shape.dim * length
    return subwords * (6 * inside + attention + 6 * predicted * shape.vocabulary * shape.dim)


def _pretrain(run: Pretrain, shape: Shape | None) -> float | None:
    cost = run.method.cost()
    return None if shape is None or cost is None else _of_batches(cost, shape)


def _adjust(run: Adjust, shape: Shape | None) -> float | None:
    pairs = [run.sampled or one.examples for one in run.aligned]
    cost = run.method.cost(sum(pairs))
    if cost is None:
        return 0
    return None if shape is None or not all(pairs) else _of_batches(cost, shape)


def _of_batches(cost: Cost, shape: Shape) -> float:
    """Return the operations of all batches of a training."""
    predicted = cost.batch.predicted / cost.batch.subwords
    return training_operations(
        shape, cost.steps * cost.batch.subwords, cost.batch.length, predicted=predicted
    )


def _fine_tune(run: FineTune, shape: Shape | None) -> float | None:
    # Back-translations stand in for the source's own examples, and add none.
    codes = [code for code in run.method.reads(run.source, run.target).train if code.count("-") < 2]
    sizes = [_size(run, code) for code in dict.fromkeys(codes)]
    if run.parts or not sizes:
        return 0
    if shape is None or not all(sizes):
        return None
    how = run.optimization
    return training_operations(shape, sum(one or 0 for one in sizes) * how.epochs * how.limit, how.limit)


def assumed_sizes(runs: Iterable[Run]) -> list[str]:
    """List what the operations of runs assume about corpora, in words."""
    fine_tuned = (run for run in runs if isinstance(run, FineTune))
    # Methods without source examples have languages in their target alone.
    tuned = [run for run in fine_tuned if not any(map(is_built_in, (*run.source, *run.target)))]
    names = {run.corpus.partition(":")[0] for run in tuned} & TRAIN_SIZES.keys()
    known = ", ".join(f"{name} {TRAIN_SIZES[name]:,}" for name in sorted(names))
    return [f"operations: training examples of each language are taken to be {known}."] if known else []


def _size(run: FineTune, code: str) -> int | None:
    there = built_in_size(run.corpus, code.partition("-")[0], "train")
    known = TRAIN_SIZES.get(run.corpus.partition(":")[0]) if there is None else there
    return min(known, run.examples) if known and run.examples else known or run.examples or None


def seconds_left(runs: Iterable[Run], done: Collection[str], store: Store) -> tuple[float, int]:
    """Return the seconds that unfinished runs take one after another, and how many cannot be told.

    Each is taken to be the mean of the finished ones with its method or diagnostic and its corpus.
    """
    took: dict[tuple[str, ...], list[float]] = defaultdict(list)
    left: list[tuple[str, ...]] = []
    for run in runs:
        part = getattr(run, "method", None) or getattr(run, "diagnostic", None)
        like = (run.name, getattr(part, "name", ""), getattr(run, "corpus", ""))
        if identity(run) not in done:
            left.append(like)
            continue
        if (seconds := read_made(store.folder(run)).seconds) is not None:
            took[like].append(seconds)
    means = [sum(took[like]) / len(took[like]) for like in left if like in took]
    return sum(means), len(left) - len(means)
