"""Compare the speed of adjustment with a plain Eq. 1 with two models, in one run on one thread.

    python benchmarks/adjustment.py                # about two minutes
    python benchmarks/adjustment.py --shape base   # multilingual BERT's shape; longer
    python benchmarks/adjustment.py --quick        # does it work? Its numbers mean nothing.

The plain implementation pads batches in the order of the file. Both adjust the same encoder to the same
sentence pairs, each in a separate process. Times are processor times, to reduce the influence of other
programs.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch
from transformers import BatchEncoding

from isogloss.core.run_parts import with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.methods import CrossLingualAdjustment
from isogloss.training.setting import AdjustSetting
from material import BATCH, SHAPES, make_material
from turns import run_in_turns, now, peak_above, resident

SIZES = {"small": (12, 3), "base": (2, 1)}
"""Steps and rounds."""
QUICK = (2, 1)
GOAL = 1.8
"""Target speed-up in sentence pairs per second, at equal precision."""

WAYS = ("two models, float32", "isogloss, float32", "two models, bfloat16", "isogloss, bfloat16")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SIZES, default="small")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    steps, rounds = QUICK if options.quick else SIZES[options.shape]
    if options.way:
        print(json.dumps(measure_way(options.way, options.folder, steps)))
        return
    with tempfile.TemporaryDirectory() as folder:
        shape = SHAPES["tiny" if options.quick else options.shape]
        make_material(Path(folder), shape, sentences=1)
        if options.quick:
            rounds_by_way = {way: [measure_way(way, Path(folder), steps)] for way in WAYS}
        else:
            rounds_by_way = run_in_turns(
                __file__, WAYS, rounds, ["--folder", folder, "--shape", options.shape]
            )
    print("\n".join(table(rounds_by_way)))


def table(rounds_by_way: dict[str, list[dict[str, float]]]) -> list[str]:
    """Return the speeds and peaks, and their ratios."""
    speed = {way: statistics.median(run["speed"] for run in rounds) for way, rounds in rounds_by_way.items()}
    peak = {way: max(run["peak"] for run in rounds) for way, rounds in rounds_by_way.items()}
    lines = ["| adjustment | sentence pairs/s | MiB above start | mean loss |", "|---|---|---|---|"]
    for way, rounds in rounds_by_way.items():
        lines.append(f"| {way} | {speed[way]:.2f} | {peak[way]:.0f} | {rounds[0]['loss']:.1f} |")
    lines += ["", "| isogloss : two models | speed | goal | memory |", "|---|---|---|---|"]
    for precision in ("float32", "bfloat16"):
        ours = f"isogloss, {precision}"
        theirs = f"two models, {precision}"
        faster = speed[ours] / speed[theirs]
        larger = peak[ours] / peak[theirs]
        lines.append(f"| {precision} | {faster:.2f} | {GOAL} | {larger:.2f} |")
    return lines


def measure_way(way: str, folder: Path, steps: int) -> dict[str, float]:
    """Adjust once after a warm-up step, and return speed, peak memory and mean loss."""
    torch.set_num_threads(1)
    adjust = two_models if way.startswith("two") else ours
    precision = way.rpartition(" ")[2]
    pairs = sentence_pairs(steps * BATCH, load_tokenizer(folder / "encoder"))
    adjust(folder / "encoder", pairs[:BATCH], precision)
    start = now()
    memory = resident()
    loss = adjust(folder / "encoder", pairs, precision)
    return {"speed": len(pairs) / (now() - start), "peak": peak_above(memory), "loss": loss}


def ours(encoder: Path, pairs: list[Translation], precision: str) -> float:
    """Adjust with the method itself: loading, encoding and f⁰ on the clock."""
    method = with_fields(CrossLingualAdjustment(), precision=precision, checkpoint_every=0)
    with tempfile.TemporaryDirectory() as folder:
        setting = AdjustSetting(start=str(encoder), bitext={"en-xx": pairs}, folder=Path(folder), seed=0)
        return statistics.fmean(row["loss"] for row in method.train(setting).rows if "loss" in row)


def two_models(encoder: Path, pairs: list[Translation], precision: str) -> float:
    """Adjust as Eq. 1 reads: encoder and frozen copy at every step, dynamic padding, the file's order."""
    tokenizer = load_tokenizer(encoder)
    model = load_model(encoder)
    frozen_model = load_model(encoder)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-5, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for begin in range(0, len(pairs), BATCH):
        batch = pairs[begin : begin + BATCH]
        source, target = (
            tokenizer(
                [getattr(pair, side).split() for pair in batch],
                is_split_into_words=True,
                padding=True,
                return_tensors="pt",
            )
            for side in ("first", "second")
        )
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            states = model(**source).last_hidden_state, model(**target).last_hidden_state
            with torch.no_grad():
                original = frozen_model(**source).last_hidden_state
        loss = torch.zeros(())
        for row, pair in enumerate(batch):
            s, t, s0 = (
                words(layers, encoding, row)
                for layers, encoding in ((states[0], source), (states[1], target), (original, source))
            )
            i, j = torch.tensor(pair.links).T + 1
            ends = torch.tensor([0, -1])
            loss = loss + (s[i] - t[j]).square().sum() + (s[ends] - t[ends]).square().sum()
            loss = loss + (s - s0).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return statistics.fmean(losses)


def words(states: torch.Tensor, encoding: BatchEncoding, row: int) -> torch.Tensor:
    """Return the means of each word's subwords, with [CLS] first and [SEP] last."""
    word_ids = encoding.word_ids(row)
    count = max(word for word in word_ids if word is not None) + 1
    real_positions = [position for position, word in enumerate(word_ids) if word is not None]
    tensor = torch.tensor([word_ids[position] for position in real_positions])
    sums = torch.zeros(count, states.size(2)).index_add(0, tensor, states[row, real_positions].float())
    means = sums / torch.bincount(tensor).unsqueeze(1)
    return torch.cat(
        [states[row, :1].float(), means, states[row, real_positions[-1] + 1].float().unsqueeze(0)]
    )


def sentence_pairs(count: int, tokenizer: object) -> list[Translation]:
    """Draw sentences with the lengths of treebanks, and translations of about their length, words linked."""
    from material import _sentences

    rng = np.random.Generator(np.random.PCG64(1))
    translations = []
    for index, sentence in enumerate(_sentences(count, len(tokenizer))):
        words = sentence.words[:60]
        length = max(2, round(len(words) * rng.normal(1.0, 0.15)))
        second = [words[position % len(words)] for position in range(length)]
        links = tuple(
            (position, position) for position in range(min(len(words), length)) if rng.random() < 0.7
        )
        text = " ".join(words), " ".join(second)
        translations.append(
            Translation(id=str(index), first=text[0], second=text[1], links=links or ((0, 0),))
        )
    return translations


if __name__ == "__main__":
    main()
