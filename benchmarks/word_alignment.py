"""Measure the quality of word alignments: AER of every aligner against gold, on real and built-in languages.

    python benchmarks/word_alignment.py --data DIR --encoder DIR            # about ten minutes
    python benchmarks/word_alignment.py --only qaa --training 2000

Statistical aligners see the gold sentences (never their links) and, for en-fr, the verses of the Bible; for
zh-en only the gold sentences, because no other text here has their segmentation of Chinese; for the built-in
languages their translations. Eflomal and systran-align, a port of fast_align, are skipped if they are not
installed.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch

from isogloss.data.formats.word_links import Aligned
from isogloss.aligners.setting import AlignSetting
from isogloss.features.statistical_alignment.eflomal import Eflomal
from isogloss.features.alignment.encoder_aligner import EncoderSimilarity
from isogloss.features.statistical_alignment.fast_align import FastAlign
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.data.examples import Translation
from isogloss.data.files import DiskFolder
from isogloss.data.formats.word_links import SYMMETRIZATIONS, Link
from isogloss.features.statistical_alignment.symmetrizing import symmetrize
from isogloss.encoders.folders import load_encoder_config
from isogloss.features.alignment.scores import AlignmentScores, alignment_scores

SHIPPED = str(files("isogloss") / "shipped")
COLUMNS = ("pair", "aligner", "precision", "recall", "F1", "AER", "seconds", "pairs a second")
HEADER = f"| {' | '.join(COLUMNS)} |\n|---|---|{'---:|' * 6}"


@dataclass(frozen=True)
class Test:
    """Gold pairs, further pairs to learn from, and an encoder that has seen both languages."""

    name: str
    gold: list[Translation]
    more: list[Translation]
    encoder: str


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with word-alignment and bible")
    parser.add_argument("--encoder", default="", help="folder or name of an encoder of real languages")
    parser.add_argument("--only", action="append", help="pairs that begin so, as en-fr or qaa; all if absent")
    parser.add_argument(
        "--training", type=int, default=10_000, help="pairs to learn from, built-in languages"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(HEADER, flush=True)
    for test in tests(options.data, options.encoder, options.training, tuple(options.only or ("",))):
        for name, links, seconds in rows(test):
            print(row(test, name, score(test.gold, links), seconds), flush=True)


def tests(data: Path | None, encoder: str, training: int, only: tuple[str, ...]) -> Iterator[Test]:
    if data:
        folder = DiskFolder(data)
        gold = Bitext(collection="word-alignment")
        for pair, more in (("en-fr", Bitext(collection="bible")), ("zh-en", None)):
            if pair.startswith(only):
                training_pairs = list(more.read(folder, pair, "train")) if more else []
                yield Test(pair, list(gold.read(folder, pair, "test")), training_pairs, encoder)
    for pair in ("qaa-qab", "qaa-qae", "qaa-qai"):
        if pair.startswith(only):
            built_in = BuiltInLanguages()
            corpus = Bitext()
            training_pairs = list(islice(corpus.read(built_in, pair, "train"), training))
            yield Test(pair, list(corpus.read(built_in, pair, "test")), training_pairs, SHIPPED)


def rows(test: Test) -> Iterator[tuple[str, list[Aligned], float]]:
    """Give name, links of the gold pairs and seconds of every aligner and setting."""
    yield from fast_align(test)
    if find_spec("systran_align"):
        yield systran_align(test)
    if shutil.which("eflomal"):
        yield from eflomal(test)
    if test.encoder:
        layers = load_encoder_config(test.encoder).num_hidden_layers
        for layer in range(layers + 1):
            yield align_with_encoder(test, EncoderSimilarity(layer=layer), f"layer {layer}")
        for matching in ("itermax", "match"):
            yield align_with_encoder(test, EncoderSimilarity(matching=matching), matching)
        yield align_with_encoder(test, EncoderSimilarity(unit="word"), "words")
        yield align_with_encoder(test, EncoderSimilarity(distortion=0.5), "distortion 0.5")


def fast_align(test: Test) -> Iterator[tuple[str, list[Aligned], float]]:
    """Learn once, and make both directions one in every way."""
    start = time.perf_counter()
    directions = FastAlign().directions(setting([*test.gold, *test.more]))
    yield from symmetrizations(test, "fast-align", directions, time.perf_counter() - start)


def systran_align(test: Test) -> tuple[str, list[Aligned], float]:
    """Learn and link with the port of fast_align, as it is: it has one symmetrisation."""
    from systran_align import Aligner, generate_alignment_probabilities

    words = [
        (pair.first.lower().split(" "), pair.second.lower().split(" ")) for pair in [*test.gold, *test.more]
    ]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        text, *tables = (Path(folder, name) for name in ("text", "forward", "backward"))
        text.write_text(
            "".join(f"{' '.join(first_word)} ||| {' '.join(second)}\n" for first_word, second in words)
        )
        options = {"favor_diagonal": True, "optimize_tension": True, "variational_bayes": True}
        generate_alignment_probabilities(str(text), *(str(table) for table in tables), **options)
        aligner_rows = Aligner(*(str(table) for table in tables)).align_batch(
            *(list(value) for value in zip(*words, strict=True))
        )
        seconds = time.perf_counter() - start
    alignments = [Aligned(links=tuple(sorted(row["alignments"]))) for row in aligner_rows[: len(test.gold)]]
    return "systran-align", alignments, seconds


def eflomal(test: Test) -> Iterator[tuple[str, list[Aligned], float]]:
    start = time.perf_counter()
    forward, backward = Eflomal().directions(setting([*test.gold, *test.more]))
    links = [pair.links for pair in forward], [pair.links for pair in backward]
    yield from symmetrizations(test, "eflomal", links, time.perf_counter() - start)


def symmetrizations(
    test: Test, name: str, directions: Sequence[Sequence[Iterable[Link]]], seconds: float
) -> Iterator[tuple[str, list[Aligned], float]]:
    for symmetrization in SYMMETRIZATIONS:
        pairs = zip(*(links[: len(test.gold)] for links in directions), strict=True)
        yield (
            f"{name}, {symmetrization}",
            [Aligned(links=symmetrize(a, b, symmetrization)) for a, b in pairs],
            seconds,
        )


def align_with_encoder(
    test: Test, aligner: EncoderSimilarity, matching: str
) -> tuple[str, list[Aligned], float]:
    start = time.perf_counter()
    alignments = aligner.align(setting(test.gold, test.encoder))
    return f"encoder, {matching}", alignments, time.perf_counter() - start


def setting(pairs: list[Translation], encoder: str = "") -> AlignSetting:
    return AlignSetting(pairs=pairs, encoder=encoder, precision="float32")


def score(gold: Sequence[Translation], links: Sequence[Aligned]) -> AlignmentScores:
    return alignment_scores(
        [pair.links or () for pair in gold],
        [pair.possible for pair in gold],
        [aligned_link.links for aligned_link in links],
    )


def row(test: Test, name: str, scores: AlignmentScores, seconds: float) -> str:
    numbers = (scores.precision, scores.recall, scores.f1, scores.aer)
    pairs = len(test.gold) + (0 if name.startswith("encoder") else len(test.more))
    cells = " | ".join(f"{index:.3f}" for index in numbers)
    return f"| {test.name} | {name} | {cells} | {seconds:.1f} | {pairs / seconds:.0f} |"


if __name__ == "__main__":
    main()
