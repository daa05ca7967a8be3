"""Large inputs take linear time, and flat memory or a stated number of bytes per row."""

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from large_inputs import CONTESTANTS, NAMES, Measured, generate, markdown, summarize

from isogloss.features.statistical_alignment import fast_align

MAX_GROWTH = 2.0
"""Largest ratio of the time per row of two sizes. It is 8 for quadratic time, and about 1 for linear time."""

ROUNDS = 3

BYTES_PER_ROW = {"text": 1, "encode": 40, "conllu": 600, "pairs": 200, "align": 12_000}
"""Largest growth of memory, as Python and numpy allocate it.

Readers keep ids to find repeated ones, streams of subwords the starts of lines, and alignments the pairs,
their words and their co-occurrences.
"""

SIZES = {
    "text": (10_000, 80_000),
    "encode": (6_000, 18_000),
    "conllu": (500, 4_000),
    "pairs": (4_000, 32_000),
    "align": (400, 2_400),
}

pytestmark = [pytest.mark.slow, pytest.mark.every_case]

Work = Callable[[], object]


def measure_seconds(works: list[Work]) -> list[float]:
    """Return the processor seconds of each work, the least of several rounds in turns."""
    seconds = [[0.0] * ROUNDS for _ in works]
    for index in range(ROUNDS):
        for work, times in zip(works, seconds, strict=True):
            start = time.process_time()
            work()
            times[index] = time.process_time() - start
    return [min(times) for times in seconds]


def measure_peak(work: Work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("task", SIZES)
def test_time_is_linear_and_memory_bounded(task, tmp_path, monkeypatch):
    monkeypatch.setattr(fast_align, "WORD_PAIRS_PER_CHUNK", 20_000)  # So that both sizes have many chunks.
    read = CONTESTANTS[task]["isogloss"]
    paths = [generate(task, size, tmp_path) for size in SIZES[task]]
    works = [lambda path=path: read(path) for path in paths]
    small_seconds, large_seconds = measure_seconds(works)
    small_size, large_size = SIZES[task]
    assert large_seconds / large_size < MAX_GROWTH * small_seconds / small_size
    small_peak, large_peak = [measure_peak(work) for work in works]
    assert large_peak - small_peak < BYTES_PER_ROW[task] * (large_size - small_size)


def test_a_reader_that_keeps_its_rows_exceeds_the_bound(tmp_path):
    small_size, large_size = SIZES["text"]
    paths = [generate("text", size, tmp_path) for size in SIZES["text"]]
    small_peak, large_peak = [measure_peak(lambda path=path: path.read_text().split()) for path in paths]
    assert large_peak - small_peak > BYTES_PER_ROW["text"] * (large_size - small_size)


def test_contestants_read_equal_numbers_of_rows(tmp_path):
    for task in ("text", "conllu", "pairs"):
        path = generate(task, 300, tmp_path)
        rows = [
            CONTESTANTS[task][name](path) for name in CONTESTANTS[task] if name != "datasets"
        ]  # It writes into the user's cache.
        assert rows == [300] * len(rows)


def test_slopes_extrapolate_to_ten_times_the_whole():
    costs = [
        Measured(task="pairs", by="isogloss", rows=rows, megabytes=1, seconds=seconds, peak=peak)
        for rows, seconds, peak in ((100, 1.0, 2_000), (400, 5.0, 5_000))
    ]
    (slope,) = summarize(costs)
    assert (slope["growth"], slope["bytes per row"]) == (1.25, 10.0)
    assert (slope["tenfold, hours"], slope["tenfold, GB"]) == (34.72, 0.1)
    (_, _, line) = markdown([slope])
    assert NAMES["pairs"] in line
