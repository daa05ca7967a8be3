"""Compare the speed of masked-LM pretraining with Hugging Face's Trainer, in subwords a second, from one run.

    python benchmarks/pretraining.py                 # about two minutes on one thread, or on a GPU
    python benchmarks/pretraining.py --shape paper   # 8 layers of width 512, 32k subwords; longer
    python benchmarks/pretraining.py --quick         # does it work? Its numbers mean nothing.

All train one model on one text in one precision, without dropout, in turns. "blocks": the same rows as
isogloss, full and of one length, masked by Trainer's collator. The remaining difference is that isogloss
applies the head only to hidden subwords, and the cost of the loops. "lines": one sentence per row, with the
same number of real subwords per batch, padded to the longest. Its difference from "blocks" is padding.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch
from transformers import (
    AutoModelForMaskedLM,
    DataCollatorForLanguageModeling,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)
from transformers.utils import logging

from isogloss.core.run_parts import Architecture
from isogloss.encoders.computation import fastest_attention
from isogloss.features.pretraining.starts import new_encoder
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss
from isogloss.tasks.masked_lm import TextStream
from isogloss.features.pretraining.streams import write_stream
from isogloss.training.fit import fit
from isogloss.core.run_parts import Updates
from isogloss.training.precision import PRECISIONS, matrix_speeds, resolved_precision
from isogloss.training.batching import BatchSampling, TextBatches
from material import SHAPES, Material, make_material, matrix_parameters
from turns import now

BLOCK = 128
MASKED = 0.15
SIZES = {"small": (4, 3), "base": (2, 1), "paper": (3, 2)}
"""Steps of a round, and rounds."""
QUICK = (1, 1)
BATCH_SUBWORDS = {"cpu": 4096, "cuda": 16384}
QUICK_SUBWORDS = 512
GOAL = 2.0
"""Target speed-up in subwords per second, at equal precision."""

OURS = "isogloss"
BLOCKS = "Trainer, blocks"
LINES = "Trainer, lines"


@dataclass
class Contestant:
    """A way to train, with its speed and mean loss in each round."""

    name: str
    subwords: int
    """Real subwords of a round, special ones included."""
    prepare: Callable[[], Callable[[], float]]
    """Create a model, and return the function that trains it for one round and returns the mean loss."""
    speeds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)


@dataclass(frozen=True)
class Text:
    """Training data of all contestants: blocks, as isogloss draws them, and lines."""

    tokenizer: Any
    batches: TextBatches
    blocks: list[list[int]]
    lines: list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SIZES, default="small")
    parser.add_argument("--precision", choices=PRECISIONS, default="auto")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    shape = SHAPES["tiny" if options.quick else options.shape]
    steps, rounds = QUICK if options.quick else SIZES[options.shape]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = resolved_precision(options.precision, device)
    with tempfile.TemporaryDirectory() as folder:
        budget = QUICK_SUBWORDS if options.quick else BATCH_SUBWORDS[device.type]
        draw = partial(text_of, shape=shape, budget=budget)
        contestants = contest(Path(folder), shape, draw, steps=steps, rounds=rounds, precision=precision)
    peak = matrix_speeds(device.type, rounds=4 if options.quick else 400)[precision]
    print("\n".join(markdown(contestants, shape, f"{device.type}, {precision}", peak)))


def contest(
    folder: Path, shape: Architecture, draw: Callable[..., Text], *, steps: int, rounds: int, precision: str
) -> dict[str, Contestant]:
    """Let everyone train in turns, so that whatever else the machine does slows all alike."""
    for contestant in contestants(draw(folder / "warm", steps=1), shape, precision):
        contestant.prepare()()  # One step of each warms caches and kernels up.
    everyone = contestants(draw(folder / "text", steps=steps), shape, precision)
    for index in range(rounds):
        for contestant in everyone if index % 2 == 0 else reversed(everyone):
            train = contestant.prepare()
            start = now()
            contestant.losses.append(train())
            contestant.speeds.append(contestant.subwords / (now() - start))
    return {contestant.name: contestant for contestant in everyone}


def text_of(folder: Path, *, shape: Architecture, steps: int, budget: int) -> Text:
    """Draw sentences with the lengths of treebanks, and pack enough for all steps into blocks."""
    material = make_material(folder, shape, sentences=max(64, steps * budget // 30))
    tokenizer = material.tokenizer
    stream = stream_of(material, folder)
    batches = TextBatches(
        sampling=BatchSampling(steps=steps, batch_subwords=budget, block=BLOCK),
        streams={"xx": stream},
        masking=Masking(vocabulary=Vocabulary.from_tokenizer(tokenizer), share=MASKED),
        seed=0,
    )
    blocks = []
    for step in range(steps):
        batch = batches[step]
        flat = batch.subwords.flatten().clone()
        flat[batch.masked] = batch.gold
        blocks += flat.view_as(batch.subwords).tolist()
    lengths = np.cumsum([len(row.subwords) for row in material.rows])
    enough = int(np.searchsorted(lengths, steps * budget)) + 1
    return Text(tokenizer, batches, blocks, [list(row.subwords) for row in material.rows[:enough]])


def stream_of(material: Material, folder: Path) -> TextStream:
    lines = (" ".join(sentence.words) for sentence in material.sentences)
    return write_stream(lines, material.tokenizer, folder / "stream", longest=BLOCK - 2)


def contestants(text: Text, shape: Architecture, precision: str) -> list[Contestant]:
    def size(rows: list[list[int]]) -> int:
        return sum(len(value) for value in rows)

    steps = len(text.batches)
    return [
        Contestant(OURS, size(text.blocks), partial(ours, text, shape, precision)),
        Contestant(BLOCKS, size(text.blocks), partial(theirs, text, text.blocks, shape, steps, precision)),
        Contestant(LINES, size(text.lines), partial(theirs, text, text.lines, shape, steps, precision)),
    ]


def ours(text: Text, shape: Architecture, precision: str) -> Callable[[], float]:
    """Train as the method does."""
    model = new_encoder(shape, text.tokenizer, seed=0, attention=fastest_attention())
    updates = Updates(learning_rate=1e-4, precision=precision)

    def train() -> float:
        rows = fit(model, text.batches, masked_lm_loss, updates=updates, seed=0)
        return statistics.fmean(float(row["loss"]) for row in rows)

    return train


def theirs(
    text: Text, rows: list[list[int]], shape: Architecture, steps: int, precision: str
) -> Callable[[], float]:
    """Set Trainer up as its users do, with the model's own attention and loss."""
    model = AutoModelForMaskedLM.from_config(new_encoder(shape, text.tokenizer, seed=0).config)
    with tempfile.TemporaryDirectory() as nowhere:  # It must be named, though nothing is saved.
        arguments = TrainingArguments(
            output_dir=nowhere,
            num_train_epochs=1,
            per_device_train_batch_size=-(-len(rows) // steps),
            learning_rate=1e-4,
            warmup_steps=0.1,
            weight_decay=0.01,
            bf16=precision == "bfloat16",
            use_cpu=not torch.cuda.is_available(),
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=[{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows],
            data_collator=DataCollatorForLanguageModeling(text.tokenizer, mlm_probability=MASKED),
        )
    trainer.remove_callback(PrinterCallback)
    return lambda: float(trainer.train().training_loss)


def markdown(contestants: dict[str, Contestant], shape: Architecture, where: str, peak: float) -> list[str]:
    """Return the tables of a result."""
    model = new_encoder(shape, _Size(shape.vocabulary), seed=0)
    head = model.get_output_embeddings().weight.numel() + shape.dim**2
    layers = matrix_parameters(model) - head
    lines = [
        f"{where}; {shape.layers} layers of width {shape.dim}, {shape.vocabulary} subwords; "
        f"{peak / 1e9:.0f} GFLOP/s of one layer at best",
        "",
        "| pretraining | real subwords/s | share of peak | mean loss |",
        "|---|---|---|---|",
    ]
    for contestant in contestants.values():
        work = 6 * (layers + head * (MASKED if contestant.name == OURS else 1)) * contestant.speed
        loss = statistics.fmean(contestant.losses)
        lines.append(f"| {contestant.name} | {contestant.speed:.0f} | {work / peak:.0%} | {loss:.3f} |")
    lines += ["", "| ratio | measured | goal |", "|---|---|---|"]
    for other_blocks in (BLOCKS, LINES):
        lines.append(
            f"| {OURS} : {other_blocks} "
            f"| {contestants[OURS].speed / contestants[other_blocks].speed:.2f} | {GOAL} |"
        )
    return lines


@dataclass(frozen=True)
class _Size:
    """The parts of a tokenizer that an encoder's configuration needs."""

    size: int
    pad_token_id: int = 0
    cls_token_id: int = 2
    sep_token_id: int = 3

    def __len__(self) -> int:
        return self.size


if __name__ == "__main__":
    main()
