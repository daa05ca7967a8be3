"""Measure a move of the explorer with encoders of a base's size.

    python benchmarks/explorer.py

Two random models of 12 layers × 768 and 119,547 subwords (178 million parameters, as multilingual BERT) tag a
sentence of twelve words at twenty points of the path between them: mixing the weights and answering, in
milliseconds, and the same without a move.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForTokenClassification

from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.encoders.folders import shipped_folder
from isogloss.features.explorer.explorer import Route, load_models

TEXT = "Tuki mirne baboza fos mefoslu vuve fujin gerfus yagangun ditedon gupenpe ."


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(arguments.parse_args().threads)
    with tempfile.TemporaryDirectory() as folder:
        folders = [random_tagger(Path(folder) / str(seed), seed) for seed in (0, 1)]
        route = Route(id="path", models=("0", "1"), methods=("a", "b"), facts={}, scores=None)
        models = load_models(route, folders)
        models.answers([0.01], [TEXT])
        calls = [
            time_call(lambda position=step / 20: models.answers([position], [TEXT])) for step in range(20)
        ]
        stays = [time_call(lambda: models.answers([0.95], [TEXT])) for _ in range(20)]
    print(json.dumps({"move": summary(calls), "answer alone": summary(stays)}))


def random_tagger(folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    labels = dict(enumerate(["NOUN", "VERB", "PUNCT", "DET"]))
    sizes = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    }
    config = AutoConfig.for_model("bert", vocab_size=119547, id2label=labels, **sizes)
    AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
    load_tokenizer(shipped_folder()).save_pretrained(folder)
    return folder


def time_call(call) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def summary(milliseconds: list[float]) -> dict[str, float]:
    sorted_times = sorted(milliseconds)
    return {"median ms": round(statistics.median(sorted_times)), "slowest ms": round(sorted_times[-1])}


if __name__ == "__main__":
    main()
