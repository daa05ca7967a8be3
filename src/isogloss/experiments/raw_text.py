"""What a measurement on raw text is given: lines, encoders with masked-LM heads, a place for tensors."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch

from isogloss.core.errors import DataError, ModelError
from isogloss.core.records import Value
from isogloss.core.runs import Adjust, Measure, Pretrain, Pretrained, Run
from isogloss.data.corpora import Split
from isogloss.data.tensor_file import ENDING, write_tensors
from isogloss.encoders import load_masked_lm, load_tokenizer
from isogloss.encoders.attention import fastest_attention
from isogloss.experiments.workshop import Workshop, device


def text_of(shop: Workshop, run: Measure, language: str) -> Iterator[str]:
    """Give the lines of a language's text, one at a time; DataError when there are none."""
    lines = shop.sources.stream(run.corpus, language, cast(Split, run.split), examples=run.examples)
    empty = True
    for line in lines:
        empty = False
        yield line.text  # type: ignore[union-attr]
    if empty:
        raise DataError(
            f"{run.corpus} {language} {run.split}: the split is empty. Choose another split or language."
        )


def masked_lm_of(shop: Workshop, run: Run, title: str) -> tuple[Any, Any]:
    """Give an encoder with its masked-LM head, and its tokenizer; ModelError when it has none."""
    if not isinstance(run, Pretrain | Pretrained | Adjust):
        raise ModelError(f"{title}: this leaves no masked-LM head. Look at the encoder it was made from.")
    folder = shop.encoder(run)
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
