"""Making a run: the thin shell between values, the store and the floors below."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from time import perf_counter
from typing import Any

import torch

from isogloss.core.identity import content
from isogloss.core.progress import Tell, silent
from isogloss.core.records import Record, Row, Value
from isogloss.core.runs import Encoder, FineTune, Measure, Pretrain, Pretrained, Run, needs, run_id
from isogloss.core.version import VERSION
from isogloss.data.examples import Example, Translation
from isogloss.diagnostics.look import Look, Subject
from isogloss.encoders import load_masked_lm, load_tokenizer, save_model
from isogloss.experiments.encoders import encoder_folder, encoder_label
from isogloss.experiments.sources import Sources
from isogloss.experiments.store import Store
from isogloss.tasks import TASKS
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.setting import Setting, TextSetting
from isogloss.training.supervised import attention_for_training

WORK = "work"
"""What only an unfinished run needs: checkpoints, tokenized text."""


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Where runs are made: the store, the data, and someone to tell."""

    store: Store
    sources: Sources
    tell: Tell = silent

    def make(self, run: Run) -> Record:
        """Make one run whose needs are finished, and record it."""
        self.store.start(run)
        start = perf_counter()
        made = _MAKERS[run.name](self, run)
        record = Record(
            id=run_id(run),
            kind=run.name,
            title=title_of(run),
            run=content(run),
            needs=tuple(run_id(needed) for needed in needs(run)),
            rows=made.rows,
            warnings=made.warnings,
        )
        self.store.finish(record, _how(perf_counter() - start))
        self.store.remove_leftovers(run, WORK)
        return record

    def encoder(self, encoder: Encoder) -> str:
        """Return the folder (or hub name) of an encoder."""
        if isinstance(encoder, Pretrained):
            return encoder_folder(encoder.source)
        return str(self.store.model(encoder))


@dataclass(frozen=True)
class Made:
    """What making a run gave beside files."""

    rows: list[Row]
    warnings: tuple[str, ...] = ()


def title_of(run: Run) -> str:
    """Say in a few words what a run is."""
    if isinstance(run, Measure):
        return f"{run.diagnostic.name}: {' '.join(run.languages)} {run.split}".strip()
    if isinstance(run, FineTune):
        languages = "+".join((*run.source, *run.target))
        return f"{run.method.name}: {run.corpus} {run.task} {languages}, seed {run.seed}"
    return f"encoder {encoder_label(run)}"


def _pretrain(shop: Workshop, run: Pretrain) -> Made:
    def text(language: str) -> Iterator[str]:
        for corpus in run.text:
            for line in shop.sources.stream(corpus, language, "train"):
                yield line.text  # type: ignore[union-attr]

    def translations(first: str, second: str) -> Iterator[Translation]:
        return shop.sources.stream(run.bitext, f"{first}-{second}", "train")  # type: ignore[return-value]

    setting = TextSetting(
        text=text,
        translations=translations if run.bitext else None,
        languages=run.languages,
        architecture=run.architecture,
        folder=shop.store.folder(run) / WORK,
        seed=run.seed,
        tell=shop.tell,
    )
    method: Any = run.method
    model, tokenizer, fitted = method.train(setting)
    save_model(model, tokenizer, shop.store.model(run))
    return Made(fitted.rows)


def _fine_tune(shop: Workshop, run: FineTune) -> Made:
    setting = Setting(
        task=TASKS[run.task],
        encoder=shop.encoder(run.encoder),
        train=lambda language: _examples(shop, run, language, "train", run.examples),
        dev=lambda language: _examples(shop, run, language, "dev", run.dev_examples),
        source=run.source,
        target=run.target,
        optimization=run.optimization,
        folder=shop.store.folder(run) / WORK,
        seed=run.seed,
        tell=shop.tell,
    )
    method: Any = run.method
    trained = method.train(setting)
    save_model(trained.model, trained.tokenizer, shop.store.model(run))
    return Made(trained.rows, trained.warnings)


def _measure(shop: Workshop, run: Measure) -> Made:
    subjects = tuple(
        Subject(
            run=subject,
            rows=tuple(shop.store.record(subject).rows) if shop.store.is_finished(subject) else (),
            folder=shop.store.model(subject),
        )
        for subject in run.subjects
    )
    look = Look(
        subjects=subjects,
        languages=run.languages,
        split=run.split,
        columns=_columns(run),
        load=lambda subject: _load(shop, subject.run),
        evaluation=lambda language: _evaluation(shop, run, language),
        lines=lambda pair: _pairs(shop, run, pair),
        tell=shop.tell,
    )
    diagnostic: Any = run.diagnostic
    return Made(diagnostic.measure(look))


_MAKERS: dict[str, Callable[[Workshop, Any], Made]] = {
    Pretrain.name: _pretrain,
    FineTune.name: _fine_tune,
    Measure.name: _measure,
}


def _examples(
    shop: Workshop, run: FineTune | Measure, language: str, split: Any, count: int
) -> list[Example]:
    return shop.sources.examples(run.corpus, language, split, treebanks=run.treebanks, examples=count)


def _pairs(shop: Workshop, run: Measure, pair: str) -> list[tuple[str, str]]:
    examples = shop.sources.examples(run.corpus, pair, run.split, examples=run.examples)  # type: ignore[arg-type]
    return [(one.first, one.second) for one in examples if isinstance(one, Translation)]


def _load(shop: Workshop, run: Run) -> Any:
    """Give a fine-tuned model, or an encoder with its tokenizer."""
    if isinstance(run, FineTune):
        model = TASKS[run.task].head(shop.store.model(run), seed=0, attention=attention_for_training())
        return model.to(_device()).eval()
    if isinstance(run, Measure):
        raise TypeError("a measurement has no weights")
    folder = shop.encoder(run)
    return load_masked_lm(folder).to(_device()).eval(), load_tokenizer(folder)


def _evaluation(shop: Workshop, run: Measure, language: str) -> Evaluation:
    """Encode one language's examples with the tokenizer and lengths of the models looked at."""
    model = next(subject for subject in run.subjects if isinstance(subject, FineTune))
    task = TASKS[model.task]
    examples = _examples(shop, run, language, run.split, run.examples)
    seen = [
        example
        for code in (*model.source, *model.target)
        for example in _examples(shop, model, code, "train", model.examples)
    ]
    tokenizer = load_tokenizer(str(shop.store.model(model)))
    baseline = task.majority(seen, examples)
    return evaluation(task, examples, tokenizer, model.optimization, baseline=baseline)


def _columns(run: Measure) -> dict[str, Value]:
    """Columns that say which models a row is about."""
    models = [subject for subject in run.subjects if isinstance(subject, FineTune)]
    if not models:
        encoders = [subject for subject in run.subjects if not isinstance(subject, Measure)]
        return {"encoder": encoder_label(encoders[0])} if encoders else {}  # type: ignore[arg-type]
    source = next((model.source for model in models if model.source), ())
    target = next((model.target for model in models if model.target), ())
    columns: dict[str, Value] = {
        "corpus": models[0].corpus,
        "task": models[0].task,
        "encoder": encoder_label(models[0].encoder),
        "source": "+".join(source),
        "target": "+".join(target),
        "seed": models[0].seed,
    }
    return {**columns, "method": models[0].method.name} if len(models) == 1 else columns


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _how(seconds: float) -> dict[str, object]:
    """Say when and on what a run was made."""
    on_gpu = torch.cuda.is_available()
    names = ("torch", "transformers", "tokenizers", "accelerate")
    return {
        "seconds": round(seconds, 3),
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "versions": {"isogloss": VERSION, "python": platform.python_version()}
        | {name: version(name) for name in names},
    }
