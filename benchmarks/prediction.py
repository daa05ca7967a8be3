"""Compare torch and ONNX Runtime in each precision: processor seconds of predictions, without the start.

    python benchmarks/prediction.py [--rounds 3] [--out FILE]

The models are the shipped encoder and one of base size, with random heads. Engines predict the same sentences
in turns, in one process with one thread. The least time of the rounds counts. ``docs/measurements.md`` has
the table.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time

import torch
from predict_memory import SHIPPED, WORDS, base_encoder, random_model

from isogloss import load_model
from isogloss.features.publishing.onnx import write_int8
from isogloss.features.publishing.onnx_model import load_onnx_model
from isogloss.training.precision import measured_precision
from isogloss.using.formats import FileEntry
from isogloss.using.predictor import Predictor

ENGINES: dict[str, Callable[[Path], Predictor]] = {
    "torch, float32": lambda folder: load_model(folder, precision="float32"),
    "ONNX, float32": load_onnx_model,
    "torch, bfloat16": lambda folder: load_model(folder, precision="bfloat16"),
    "ONNX, int8": lambda folder: load_onnx_model(folder, "int8"),
}
SENTENCES = {"4 layers of 128": 2000, "12 layers of 768": 200}
"""Number of predicted sentences by model."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        encoders = zip(SENTENCES, (SHIPPED, base_encoder(folder / "encoder")), strict=True)
        rows = [
            row
            for number, (size, encoder) in enumerate(encoders)
            for row in measure_engines(size, export(encoder, folder / f"model-{number}"), options.rounds)
        ]
    text = json.dumps({"auto": measured_precision("cpu"), "rows": rows}, indent=1)
    if options.out:
        options.out.write_text(f"{text}\n", encoding="utf-8")
    print(text)


def export(encoder: str | Path, folder: Path) -> Path:
    """Export a model with a random head and both of its ONNX files."""
    model = random_model(encoder)
    write_int8(model, model.export(folder, onnx=True))
    return folder


def measure_engines(size: str, folder: Path, rounds: int) -> Iterator[dict[str, object]]:
    """Yield the milliseconds per sentence of each engine."""
    models = {name: load(folder) for name, load in ENGINES.items()}
    entries = read_entries(models["torch, float32"], SENTENCES[size])
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            seconds[name].append(measure_prediction(model, entries))
    for name, values in seconds.items():
        yield {"model": size, "engine": name, "milliseconds": 1000 * min(values) / len(entries)}


def read_entries(model: Predictor, count: int) -> Sequence[FileEntry]:
    """Return sentences of 3 to 19 words."""
    lines = [[WORDS[(index + k) % len(WORDS)] for k in range(3 + index % 17)] for index in range(count)]
    examples = [model.kind.from_json({"words": words}, "a line", "qaa") for words in lines]
    return [FileEntry(lines=(), example=example, body={}) for example in examples]


def measure_prediction(model: Predictor, entries: Sequence[FileEntry]) -> float:
    """Return the processor seconds that predicting the entries takes."""
    began = process_time()
    for _ in model.predict_entries(entries):
        pass
    return process_time() - began


if __name__ == "__main__":
    main()
