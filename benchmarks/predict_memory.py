"""Predict files of several lengths and print the memory of each prediction.

    python benchmarks/predict_memory.py [--lines 1000 100000] [--mixed]

The model is the shipped encoder with a random head: its answers are nonsense, its size and speed are not.
Each file is predicted by a separate process, as ``isogloss predict RUN FILE --out OUT`` does. Mixed: the
model is one of x-mixup, and each line has a translation (itself).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.encoders.mixup import Mixup
from isogloss.tasks import TASKS
from isogloss.using import Model
from isogloss.using.provenance import Provenance

PEAK = """
import resource, sys
from isogloss.cli import main
try:
    main(["predict", *sys.argv[1:], "--quiet"])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # KiB on Linux
"""
SHIPPED = str(files("isogloss") / "shipped")
WORDS = ["tuki", "mirne", "baboza", "nir", "bultujen", "sirjor"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = random_model()
        if options.mixed:
            result = replace(result, mixup=Mixup(layer=2))
        model = result.export(Path(folder) / "model")
        for count in options.lines:
            text = write_lines(Path(folder) / f"{count}.txt", count)
            start = time.perf_counter()
            peak = peak_memory(model, text, ["--translations", str(text)] if options.mixed else [])
            seconds = time.perf_counter() - start
            print(f"{count} lines: peak {peak} MiB, {seconds:.0f} s with starting", flush=True)


def base_encoder(folder: Path) -> Path:
    """Write an encoder of 12 layers of width 768 with random weights and the shipped tokenizer."""
    tokenizer = load_tokenizer(SHIPPED)
    config = BertConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def random_model(encoder: str | Path = SHIPPED) -> Model:
    """Put a random head on an encoder."""
    folder = str(encoder)
    provenance = Provenance(
        run="random",
        title="a random head",
        task="upos",
        corpus="ud",
        method="none",
        encoder="shipped",
        source=(),
        target=(),
        limit=128,
        overlap=64,
        versions={},
    )
    return Model(TASKS["upos"].head(folder, seed=0), load_tokenizer(folder), TASKS["upos"], provenance)


def write_lines(path: Path, count: int) -> Path:
    """Write lines of 1 to 20 words, and one word of 10,000 characters in every thousand."""
    with path.open("w", encoding="utf-8") as file:
        for index in range(count):
            words = [WORDS[(index + position) % len(WORDS)] for position in range(1 + index % 20)]
            file.write(f"{' '.join(words)} {'x' * 10_000 if index % 1000 == 999 else '.'}\n")
    return path


def peak_memory(model: Path, text: Path, more: list[str]) -> int:
    """Return the most memory, in MiB, that predicting a file takes."""
    command = [sys.executable, "-c", PEAK, model, text, "--out", text.with_suffix(".out"), *more]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(process.stdout.splitlines()[-1]) // 1024


if __name__ == "__main__":
    main()
