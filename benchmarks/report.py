"""Measure the report of a large study: 1,000 artificial finished runs, in one process on one core.

    python benchmarks/report.py [--runs 1000] [--keep DIR]

Prints the processor's seconds of a first report and of one where nothing has changed, and the page's size.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reports")]

from made_up_runs import (  # noqa: E402
    Content,
    keep_predictions,
    measure,
    model,
    path,
    pretrain,
    scores,
    write,
    write_plan,
)

from isogloss.core.identity import identity  # noqa: E402

LANGUAGES = ("qaa", "qab", "qad", "qae")
TARGETS = LANGUAGES[1:]
ALPHAS = tuple(step / 10 for step in range(11))
TASKS = (("ud", "upos"), ("xnli", "nli"))

WRITE = """
import sys, time
from pathlib import Path
began = time.process_time()
from isogloss.reports.report import write_report
report = write_report(Path(sys.argv[1]))
print(time.process_time() - began, report.html.stat().st_size, len(report.figures), len(report.tables))
"""

Made = tuple[Content, list[dict[str, Any]]]


def study(index: int) -> Iterator[Made]:
    """Give about as many runs as wanted: models of some seeds, and what was measured of them."""
    seeds = range(max(1, index // 80))
    for (corpus, task), seed in product(TASKS, seeds):
        facts: dict[str, Any] = {"corpus": corpus, "task": task, "seed": seed}
        single_model = model(**facts)
        result = [single_model]
        for target in TARGETS:
            pair = {"target": [target], **facts}
            only = model("target-only", **pair)
            bilingual = model("bilingual", **pair)
            result += [only, bilingual, model("x-mixup", fields={"layer": 0, "ratio": 0.5}, **pair)]
            yield path_of(single_model, bilingual, corpus, target)
            yield path_of(only, bilingual, corpus, target)
            yield deltas_of(bilingual, single_model, only, corpus)
        for content in result:
            yield train_rows(content)
            yield score_rows(content, corpus)
            yield similar(content)
    for seed, modules in product(seeds, ("", "adapter")):
        yield pretrain_rows(pretrain(LANGUAGES, seed=seed, modules=modules))


def train_rows(content: Content) -> Made:
    losses = [{"step": step, "loss": 2 / step, "rate": 1e-4} for step in range(20, 420, 20)]
    epoch = {"step": 400, "language": "qaa", "split": "dev", "metric": "accuracy", "score": 0.8}
    return content, [*losses, *({**epoch, "epoch": n, "chosen": n == 3} for n in (1, 2, 3))]


def score_rows(content: Content, corpus: str) -> Made:
    values = {
        language: 0.9 - 0.05 * index + noise(content, language) for index, language in enumerate(LANGUAGES)
    }
    return measure("scores", [content], languages=list(LANGUAGES), corpus=corpus), scores(content, values)


def path_of(start: Content, end: Content, corpus: str, target: str) -> Made:
    rows = [
        row
        for language, rise in (("qaa", 0.0), (target, 0.2))
        for row in path(
            start, end, {alpha: 0.7 + rise * alpha + noise(end, language) for alpha in ALPHAS}, language
        )
    ]
    return measure("interpolation", [start, end], corpus=corpus), rows


def deltas_of(origin: Content, first_content: Content, second: Content, corpus: str) -> Made:
    ids = {"origin": identity(origin), "first": identity(first_content), "second": identity(second)}
    row = {**ids, "part": "all", "norm_first": 3.0, "norm_second": 3.1, "ratio": 0.97, "angle": 54.0}
    return measure("deltas", [origin, first_content, second], corpus=corpus), [row]


def similar(content: Content) -> Made:
    rows = [
        {"model": identity(content), "first": "qaa", "second": language, "layer": layer, "sentences": 100}
        | {"cka": 0.5 + noise(content, language), "debiased": 0.4 + noise(content, language)}
        for language, layer in product(TARGETS, range(13))
    ]
    return measure("cka", [content], corpus="bitext", languages=list(LANGUAGES)), rows


def pretrain_rows(content: Content) -> Made:
    facts = {"step": 100, "split": "dev", "metric": "perplexity"}
    return content, [
        {**facts, "epoch": epoch, "language": language, "score": 90.0 - epoch}
        for epoch, language in product((1, 2, 3), LANGUAGES)
    ]


def noise(content: Content, language: str) -> float:
    return int(identity({**content, "of": language}), 16) % 1000 / 20_000


def make(folder: Path, runs: int) -> int:
    """Write the folder, and return its number of runs."""
    names = []
    for content, rows in study(runs):
        names.append(write(folder, content, rows, title=f"{content['kind']} {len(names)}"))
        if content["kind"] == "measure" and content["diagnostic"]["kind"] == "scores":
            keep_predictions(folder, names[-1], {row["language"]: row["score"] for row in rows}, examples=500)
    write_plan(folder, names, title=f"A study of {len(names)} runs")
    return len(names)


def write_separately(folder: Path) -> str:
    """Write the report in a separate process, and return its output."""
    one_core = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-c", WRITE, str(folder)],
        env={**os.environ, **one_core},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, size, figures, tables = process.stdout.split()
    size = f"{int(size) / 1e6:.2f} MB"
    return f"{float(seconds):.2f} processor seconds, page {size}, {figures} figures, {tables} files of tables"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="folder to keep the runs in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        keep = options.keep or Path(temporary) / "runs"
        began = time.perf_counter()
        count = make(keep, options.runs)
        print(f"{count} runs made up in {time.perf_counter() - began:.1f} s")
        print(f"first report: {write_separately(keep)}")
        print(f"nothing new:  {write_separately(keep)}")


if __name__ == "__main__":
    main()
