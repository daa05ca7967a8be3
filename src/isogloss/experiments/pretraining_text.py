"""The text of a pretraining: the lines that are trained on, and those held out to measure perplexity on.

Held out is the development split of a corpus that has one; of any other, one line in a hundred of its text,
which then is neither trained on nor part of what the vocabulary is made from.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from isogloss.core.errors import DataError, ModelError
from isogloss.core.records import Value
from isogloss.core.runs import Adjust, Measure, Pretrain, Pretrained, Run
from isogloss.core.seeds import derive
from isogloss.data.corpora import Split
from isogloss.data.examples import subsample
from isogloss.data.result_files import ENDING, write_tensors
from isogloss.data.sources import Sources
from isogloss.encoders import load_masked_lm, load_tokenizer
from isogloss.encoders.attention import fastest_attention
from isogloss.experiments.run_context import RunContext, device

ONE_IN = 100
"""Of a text without development split, one line in so many is held out."""


@dataclass(frozen=True)
class PretrainingText:
    """Lines by language; fewer where the run says so."""

    run: Pretrain
    sources: Sources
    holds_out: bool
    """Whether perplexity is measured; otherwise all training text is trained on."""

    def train(self, language: str) -> Iterator[str]:
        """Give the lines that are trained on."""
        lines = (line for corpus in self.run.text for line in self._of(corpus, language))
        most = dict(self.run.lines or ()).get(language)
        if most is None:
            return lines
        return iter(subsample(lines, most, seed=derive(self.run.seed, "lines", language)))

    def held_out(self, language: str) -> Iterator[str]:
        """Give the others, of all corpora; their number does not depend on how many are trained on."""
        for corpus in self.run.text:
            if has_dev(self.sources, corpus, language):
                yield from self._split(corpus, language, "dev")
            else:
                yield from _one_in(self._split(corpus, language, "train"), held_out=True)

    def _of(self, corpus: str, language: str) -> Iterator[str]:
        lines = self._split(corpus, language, "train")
        if self.holds_out and not has_dev(self.sources, corpus, language):
            return _one_in(lines, held_out=False)
        return lines

    def _split(self, corpus: str, language: str, split: Split) -> Iterator[str]:
        for line in self.sources.stream(corpus, language, split):
            yield line.text  # type: ignore[union-attr]


def has_dev(sources: Sources, corpus: str, language: str) -> bool:
    """Tell whether a corpus has a development split of a language."""
    try:
        sources.fingerprint(corpus, language, "dev")
    except DataError:
        return False
    return True


def _one_in(lines: Iterable[str], *, held_out: bool) -> Iterator[str]:
    """Give the first of each hundred lines, or all others."""
    return (line for number, line in enumerate(lines) if (number % ONE_IN == 0) == held_out)


def text_of(context: RunContext, run: Measure, language: str) -> Iterator[str]:
    """Give the lines of a language's text, one at a time; DataError when there are none."""
    lines = context.sources.stream(run.corpus, language, cast(Split, run.split), examples=run.examples)
    empty = True
    for line in lines:
        empty = False
        yield line.text  # type: ignore[union-attr]
    if empty:
        raise DataError(
            f"{run.corpus} {language} {run.split}: the split is empty. Choose another split or language."
        )


def masked_lm_of(context: RunContext, run: Run, title: str) -> tuple[Any, Any]:
    """Give an encoder with its masked-LM head, and its tokenizer; ModelError when it has none."""
    if not isinstance(run, Pretrain | Pretrained | Adjust):
        raise ModelError(f"{title}: this leaves no masked-LM head. Look at the encoder it was made from.")
    folder = context.encoder(run)
    model: Any = load_masked_lm(folder, attention=fastest_attention())
    return model.to(device()).eval(), load_tokenizer(folder)


def keep_tensors(
    folder: Path, name: str, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Value]
) -> None:
    """Write tensors beside the record to come."""
    # numpy has no bfloat16; float32 holds all of its numbers.
    numbers = {key: one.float() if one.dtype is torch.bfloat16 else one for key, one in tensors.items()}
    arrays = {key: one.detach().cpu().numpy() for key, one in numbers.items()}
    write_tensors(folder / f"{name}{ENDING}", arrays, about)
