"""Making a run: from a value to rows and files, with the functions of the floors below."""

import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any, cast

import torch
from torch.nn import Module

from isogloss.core.errors import IsoglossError, RunError, one_line
from isogloss.core.identity import content, identity
from isogloss.core.plug_ins import package_of
from isogloss.core.records import Record, Row
from isogloss.core.result_files import PREDICTIONS, write_predictions
from isogloss.core.rows import as_row
from isogloss.core.rows.training import Parameters
from isogloss.core.run_parts import is_nested, parts_within, with_fields
from isogloss.core.secrets import masked
from isogloss.core.seeds import derive
from isogloss.core.version import VERSION
from isogloss.data.built_in_languages import built_in_size
from isogloss.data.corpus import Split, is_translation
from isogloss.data.examples import Example, TextLine, Translation, subsample
from isogloss.data.formats.questions import repairs_message
from isogloss.data.sources import Sources
from isogloss.encoders import save_model
from isogloss.encoders.added.added_weights import parameter_counts
from isogloss.runs.alignments import align
from isogloss.runs.context import RunContext, RunResult
from isogloss.runs.encoder_runs import Adjust, Align, Encoder, Pretrain, Pretrained, SplitRead
from isogloss.runs.encoders import predicts_text
from isogloss.runs.measuring import measure
from isogloss.runs.needs import needs
from isogloss.runs.runs import FineTune, Measure, Run, TrainTranslator, Translate
from isogloss.runs.translating import train_translator, translate
from isogloss.training.distributed import is_main_process
from isogloss.training.memory import measured_peak, restart_measurement
from isogloss.training.setting import AdjustSetting, Averaged, Setting, TextSetting
from isogloss.training.tracking import TrackedRun, tracked


def make(context: RunContext, run: Run) -> Record:
    """Make one run whose needs are finished, and record it."""
    context.store.start(run)
    start = perf_counter()
    restart_measurement()
    followed = TrackedRun(
        id=identity(run), title=run.title, folder=context.store.root, settings=dict(_settings(run))
    )
    with (
        _threads(context.threads),
        _plug_ins_named(run),
        tracked(context.track, followed, context.on_progress) as tracking,
    ):
        made = _MAKERS[run.name](replace(context, on_progress=tracking.on_progress), run)
        tracking.finish(made.rows)
    if made.predictions:  # Before the record: a run is finished with all it made.
        write_predictions(context.store.folder(run) / PREDICTIONS, made.predictions)
    record = Record(
        id=identity(run),
        kind=run.name,
        title=run.title,
        run=content(run),
        needs=tuple(identity(needed) for needed in needs(run)),
        rows=made.rows,
        warnings=tuple(map(masked, (*made.warnings, *dict.fromkeys(about_data(run, context.sources))))),
    )
    context.store.finish(record, _circumstances(perf_counter() - start, context, run))
    context.store.remove_leftovers(run)
    return record


def _settings(part: Any, before: str = "") -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield the fields of a run and of its parts by dotted names; other runs by their ids."""
    for one in fields(part):
        value, name = getattr(part, one.name), before + one.name
        if is_nested(one):
            yield from _settings(value, before)
        elif isinstance(value, int | float | str):
            yield name, value
        elif is_dataclass(value) and not isinstance(value, Run):
            yield name, getattr(value, "name", type(value).__name__)
            yield from _settings(value, f"{name}.")
        elif value is not None:
            yield name, " ".join(map(_called, value if isinstance(value, tuple) else (value,)))


def _called(part: object) -> str:
    if isinstance(part, Pretrained):
        return part.pinned
    return identity(part) if isinstance(part, Run) else str(part)


def trains(run: Run) -> bool:
    """Return whether several processes can make a run together."""
    return isinstance(run, Pretrain | Adjust | TrainTranslator | FineTune)


def compute_without_recording(context: RunContext, run: Run) -> None:
    """Take part in a training that the main one of several processes records."""
    with _threads(context.threads):
        _MAKERS[run.name](context, run)


def _pretrain(context: RunContext, run: Pretrain) -> RunResult:
    def translations(first: str, second: str) -> Iterator[Translation]:
        found = context.sources.stream(run.bitext, f"{first}-{second}", "train")
        return cast(Iterator[Translation], found)

    text = PretrainingText(run, context.sources, holds_out=run.method.training.evaluate_every is not None)
    setting = TextSetting(
        text=text.train,
        held_out=text.held_out,
        translations=translations if run.bitext else None,
        languages=run.languages,
        architecture=run.architecture,
        start=context.encoder(run.start) if run.start else "",
        vocabulary=run.vocabulary,
        bitext={one.languages: context.aligned(one) for one in run.aligned or ()},
        replay=run.replay,
        modules=run.modules,
        trained=run.trained,
        folder=context.work(run),
        seed=run.seed,
        on_progress=context.on_progress,
    )
    method = with_fields(run.method, precision=context.resolved(run.precision))
    trained = method.train(setting)
    if is_main_process():
        save_model(trained.model, trained.tokenizer, context.store.model(run))
    known = run.start is None or predicts_text(run.start, context.sources.encoders)
    warnings = () if known else (NEW_HEAD,)
    return RunResult([*trained.rows, *_parameters(trained.model)], warnings)


NEW_HEAD = (
    "the encoder it starts from was saved without a head that predicts text: it was given a new one, which "
    "has to be learned first."
)
"""Warning of a run that trains such an encoder further."""


def _parameters(model: Module) -> Iterator[Row]:
    """Count the parameters all languages share and, where there are modules, each language's own."""
    for language, count in parameter_counts(model).items():
        yield as_row(Parameters(language=language, parameters=count))


ONE_IN = 100
"""One line in so many is held out of a text without development split."""


@dataclass(frozen=True)
class PretrainingText:
    """The lines of each language that are trained on, and those held out to measure perplexity on.

    Held out is the development split of a corpus that has one; of any other, one line in a hundred of its
    text, which then is neither trained on nor part of what the vocabulary is made from.
    """

    run: Pretrain
    sources: Sources
    holds_out: bool
    """Whether perplexity is measured; otherwise all training text is trained on."""

    def train(self, language: str) -> Iterator[str]:
        """Yield the lines that are trained on; fewer than there are where the run says so."""
        lines = (line for corpus in self.run.corpora(language) for line in self._of(corpus, language))
        most = dict(self.run.lines or ()).get(language)
        if most is None:
            return lines
        return iter(subsample(lines, most, seed=derive(self.run.seed, "lines", language)))

    def held_out(self, language: str) -> Iterator[str]:
        """Yield the others, of all corpora; their number does not depend on how many are trained on."""
        for corpus in self.run.corpora(language):
            if self.sources.has_dev(corpus, language):
                yield from self._split(corpus, language, "dev")
            else:
                yield from _one_in(self._split(corpus, language, "train"), held_out=True)

    def _of(self, corpus: str, language: str) -> Iterator[str]:
        lines = self._split(corpus, language, "train")
        if self.holds_out and not self.sources.has_dev(corpus, language):
            return _one_in(lines, held_out=False)
        return lines

    def _split(self, corpus: str, language: str, split: Split) -> Iterator[str]:
        return (cast(TextLine, line).text for line in self.sources.stream(corpus, language, split))


def _one_in(lines: Iterable[str], *, held_out: bool) -> Iterator[str]:
    """Yield the first of each hundred lines, or all others."""
    return (line for number, line in enumerate(lines) if (number % ONE_IN == 0) == held_out)


def _adjust(context: RunContext, run: Adjust) -> RunResult:
    def pairs(aligned: Align) -> list[Translation]:
        found = context.aligned(aligned)
        if run.sampled is None:
            return found
        return subsample(found, run.sampled, seed=derive(run.seed, "pairs", aligned.languages))

    setting = AdjustSetting(
        start=context.encoder(run.encoder),
        bitext={one.languages: pairs(one) for one in run.aligned},
        folder=context.work(run),
        seed=run.seed,
        on_progress=context.on_progress,
    )
    adjusted = with_fields(run.method, precision=context.resolved(run.precision)).train(setting)
    if is_main_process():
        save_model(adjusted.model, adjusted.tokenizer, context.store.model(run))
    return RunResult(adjusted.rows, adjusted.warnings)


def _fine_tune(context: RunContext, run: FineTune) -> RunResult:
    repairs: dict[str, None] = {}  # A method may read the same examples twice: each is told of once.

    def read(language: str, split: Split, count: int) -> list[Example]:
        found = context.examples(run, language, split, count)
        repairs[repairs_message(found, f"{run.corpus} {language} {split}")] = None
        return found

    setting = Setting(
        task=run.solves,
        start=context.encoder(run.encoder) if run.start is None else str(context.store.model(run.start)),
        train=lambda language: read(language, "train", run.examples),
        dev=lambda language: read(language, "dev", run.dev_examples),
        source=run.source,
        target=run.target,
        optimization=context.optimization(run.optimization),
        folder=context.work(run),
        seed=run.seed,
        bitext={one.languages: context.aligned(one) for one in run.aligned or ()},
        teacher="" if run.teacher is None else str(context.store.model(run.teacher)),
        original="" if run.original is None else context.encoder(run.original),
        auxiliary=run.auxiliary,
        peft=run.peft,
        parts=tuple(_averaged(context, part) for part in run.parts or ()),
        on_progress=context.on_progress,
    )
    trained = run.method.train(setting)
    if is_main_process():
        save_model(
            trained.model,
            trained.tokenizer,
            context.store.model(run),
            extra_writers=trained.extra_writers,
            difference=trained.difference,
        )
    return RunResult(trained.rows, (*trained.warnings, *filter(None, repairs)))


def _averaged(context: RunContext, run: FineTune | Encoder) -> Averaged:
    has_head = isinstance(run, FineTune)
    folder = str(context.store.model(run)) if isinstance(run, FineTune) else context.encoder(run)
    return Averaged(id=identity(run), folder=folder, has_head=has_head)


_MAKERS: dict[str, Callable[[RunContext, Any], RunResult]] = {
    Pretrain.name: _pretrain,
    Align.name: align,
    Adjust.name: _adjust,
    TrainTranslator.name: train_translator,
    Translate.name: translate,
    FineTune.name: _fine_tune,
    Measure.name: measure,
}


@contextmanager
def _plug_ins_named(run: Run) -> Iterator[None]:
    """Turn an error in the code of a plug-in into one that stops its run alone, and says whose it is."""
    try:
        yield
    except (IsoglossError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if not (packages := _packages_of(run)):
            raise
        place = extract_tb(error.__traceback__)[-1]
        raise RunError(
            f"{one_line(error)} ({Path(place.filename).name}:{place.lineno}), in a run with "
            f"plug-ins of {', '.join(packages)}. Mend them, or leave them out."
        ) from error


def _packages_of(run: Run) -> list[str]:
    """List the packages, with versions, that a run's plug-ins come from."""
    each = ((package_of(type(one).__module__), getattr(one, "package", None)) for one in parts_within(run))
    return list(dict.fromkeys(name for two in each for name in two if name))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Compute with a number of threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _circumstances(seconds: float, context: RunContext, run: Run) -> dict[str, object]:
    """Return how long it took to make a run, on what, with how much memory, and with which versions."""
    on_gpu = torch.cuda.is_available()
    libraries = (
        "torch",
        "transformers",
        "tokenizers",
        *(("sacrebleu",) if isinstance(run, Translate) else ()),
    )
    return {
        "seconds": round(seconds, 3),
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "threads": context.threads,
        "precision": context.resolved(run.precision),
        "peak_memory": measured_peak(),
        "versions": {"isogloss": VERSION, "python": platform.python_version()}
        | {name: version(name) for name in libraries},
    }


KINDS = {"train": "training", "dev": "development", "test": "test"}


def about_data(run: Run, sources: Sources) -> Iterator[str]:
    """Yield how the files of a run were read, and each split with fewer examples than the run asks for."""
    for split in run.splits_read:
        yield from sources.remarks(split.corpus, split.language, split.split)
        labelled = "bitext" not in sources.corpus(split.corpus).tasks
        # What a translation lost is told where it was made.
        if split.examples and not (labelled and is_translation(split.language)):
            yield from _warning(split, _size(split, sources))


def fewer_in_plan(runs: Iterable[Run]) -> list[str]:
    """List the same for all runs of a plan, where sizes are known without reading: of built-in corpora."""
    splits = dict.fromkeys(split for run in runs for split in run.splits_read)
    known = {split: built_in_size(split.corpus, split.language, split.split) for split in splits}
    warnings = [_warning(split, size) for split, size in known.items() if size is not None]
    return list(dict.fromkeys(text for some in warnings for text in some))


def _size(split: SplitRead, sources: Sources) -> int:
    """Count a split's examples, as far as they are asked for."""
    known = built_in_size(split.corpus, split.language, split.split)
    if known is not None:
        return known
    read = sources.stream(split.corpus, split.language, split.split, treebanks=split.treebanks)
    return sum(1 for _ in islice(read, split.examples))


def _warning(split: SplitRead, size: int) -> Iterator[str]:
    if size < split.examples:
        yield (
            f"asked for {split.examples:,} {KINDS[split.split]} examples of {split.language} in "
            f"{split.corpus}: there are {size:,}; all were read."
        )
