"""Where runs are made: the store, the data, and what all runs that are made together have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Row
from isogloss.core.result_files import Predictions
from isogloss.core.run_parts import Optimization, precision_of, with_fields
from isogloss.data.corpus import Split
from isogloss.data.examples import Example, Translation, read_examples
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import read_pharaoh
from isogloss.data.sources import Sources
from isogloss.encoders import load_tokenizer
from isogloss.encoders.folders import gguf_file
from isogloss.encoders.initial import prepared
from isogloss.runs.encoder_runs import Align, Encoder, Pretrained
from isogloss.runs.runs import FineTune, Measure, Run, TrainTranslator, Translate
from isogloss.store.store import WORK, Store
from isogloss.training.bitext import in_subwords

LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""

EXAMPLES = "examples.jsonl"
"""The translated examples of a run, a line each."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Store and data of the runs that are made together, and what finished ones among them left."""

    store: Store
    sources: Sources
    on_progress: OnProgress = no_progress
    threads: int = 1
    """Threads of a run on the processor. Sums depend on it in their last bits, so it follows neither from
    the machine nor from how many runs are made side by side."""
    precision: str = "auto"
    """What "auto" comes to."""
    track: tuple[str, ...] = ()
    """Trackers that follow the runs."""

    def resolved(self, precision: str) -> str:
        """Return the precision a run is made in."""
        return self.precision if precision == "auto" else precision

    def optimization(self, asked: Optimization) -> Optimization:
        """Return an optimization with its precision resolved."""
        return with_fields(asked, precision=self.resolved(precision_of(asked)))

    def work(self, run: Run) -> Path:
        """Return the folder for what only an unfinished run needs."""
        return self.store.folder(run) / WORK

    def encoder(self, encoder: Encoder | TrainTranslator) -> str:
        """Return the folder (or hub name) of an encoder, or of a translation model."""
        if not isinstance(encoder, Pretrained):
            return str(self.store.model(encoder))
        place = self.sources.encoders.get(encoder.data, encoder.pinned)
        if encoder.attention or (encoder.data and gguf_file(Path(place))):
            return str(prepared(place, encoder.attention, self.store.model(encoder)))
        return place

    def bitext(self, run: Align, split: Split) -> list[Translation]:
        """Read the translations of a split that an alignment reads."""
        examples = run.examples if split == run.split else 0
        found = self.sources.examples(run.bitext, run.languages, split, examples=examples)
        return cast(list[Translation], found)

    def to_align(self, run: Align, pairs: list[Translation]) -> list[Translation]:
        """Return translations with the words, or the subwords in their place, that an alignment links."""
        return in_subwords(pairs, load_tokenizer(self.encoder(run.tokenizer))) if run.tokenizer else pairs

    def aligned(self, run: Align) -> list[Translation]:
        """Read the translations that a finished run aligned, with its links."""
        pairs = self.bitext(run, run.split)
        found = read_pharaoh(disk_file(self.store.folder(run) / LINKS), self.to_align(run, pairs))
        return [replace(pair, links=one.links, possible=()) for pair, one in zip(pairs, found, strict=True)]

    def translated(self, run: Translate) -> list[Example]:
        """Read what a finished run translated."""
        return list(read_examples(self.store.folder(run) / EXAMPLES))

    def examples(self, run: FineTune | Measure, language: str, split: Split, count: int) -> list[Example]:
        """Read so many examples (0: all) of a language or, where it is a pair, of its translation."""
        for made in run.translated or ():
            if (made.languages, made.split) == (language, split):
                return self.translated(made)
        return self.sources.examples(run.corpus, language, split, treebanks=run.treebanks, examples=count)


@dataclass(frozen=True)
class RunResult:
    """What making a run gave beside files."""

    rows: Sequence[Row]
    warnings: tuple[str, ...] = ()
    predictions: tuple[Predictions, ...] = ()


def precision_here(store: Store) -> str:
    """Return what precision "auto" comes to on this machine."""
    from isogloss.training.precision import measured_precision

    if torch.cuda.is_available():
        return store.precision(torch.cuda.get_device_name(), lambda: measured_precision("cuda"))
    return store.precision(torch.backends.cpu.get_cpu_capability(), lambda: measured_precision("cpu"))
