"""Measure time and memory of large inputs at several sizes, and of pyarrow and datasets on the same files.

    python benchmarks/large_inputs.py [--shares 64 16 4] [--tasks text conllu …] [--folder DIR] [--out FILE]

The whole is 2 GB of text, 1 GB of CoNLL-U, and a million sentence pairs; a share of 64 is a 64th of it. Files
are generated. Each measurement is a separate process with one thread: processor seconds, and the peak of
memory above the memory after a warm-up on a tiny file. Contestants of a task take turns.

Printed for each contestant: microseconds per row at the largest size, their ratio to those at the smallest
size (1: linear), bytes of memory per further row (0: flat), and by these slopes time and memory of ten times
the whole.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

WHOLE_ROWS = {
    "text": 13_500_000,
    "encode": 13_500_000,
    "conllu": 900_000,
    "pairs": 1_000_000,
    "align": 1_000_000,
}
"""Rows of the whole input of each task: lines of 2 GB, sentences of 1 GB, sentence pairs."""

VOCABULARY = 50_000
WORDS_PER_ROW = 18
"""Mean length of a sentence. Lengths are uniform from 4 to 32."""

ROWS_AT_ONCE = 10_000
WARM_ROWS = 500
TENFOLD = 10
DEPENDENT = "{index}\t{word}\t{word}\tNOUN\t_\tNumber=Sing\t{head}\t{relation}\t_\t_"

Sentences = Iterator[list[str]]
Task = Callable[[Path], int]
"""Reads a file, and returns the number of rows."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Cost of one process."""

    task: str
    by: str
    rows: int
    megabytes: float
    seconds: float
    peak: int
    """Bytes of memory above the memory before."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(CONTESTANTS), choices=CONTESTANTS)
    parser.add_argument("--by", nargs="*", help="contestants; default: all")
    parser.add_argument("--shares", type=int, nargs="*", default=[64, 16, 4])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="folder for the generated files, which are kept")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(measure_here(*options.one))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        costs = [
            cost
            for task in options.tasks
            for cost in measure_task(task, options.shares, folder, rounds=options.rounds, names=options.by)
        ]
    slopes = summarize(costs)
    print("\n".join(markdown(slopes)))
    if options.out:
        earlier = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {"costs": []}
        costs_by_task = [cost for cost in earlier["costs"] if cost["task"] not in options.tasks]
        costs_by_task += [asdict(cost) for cost in costs]
        results = {"costs": costs_by_task, "slopes": summarize([Measured(**cost) for cost in costs_by_task])}
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def measure_task(
    task: str, shares: Sequence[int], folder: Path, *, rounds: int, names: Sequence[str] | None = None
) -> Iterator[Measured]:
    """Measure the contestants of a task in turns, at each size."""
    for share in shares:
        path = generate(task, WHOLE_ROWS[task] // share, folder)
        contestants = [name for name in CONTESTANTS[task] if not names or name in names]
        costs: dict[str, list[Measured]] = {name: [] for name in contestants}
        for _ in range(rounds):
            for name in contestants:
                costs[name].append(measure(task, name, path))
                print(costs[name][-1], file=sys.stderr, flush=True)
        for measured in costs.values():
            yield sorted(measured, key=lambda cost: cost.seconds)[len(measured) // 2]


def measure(task: str, name: str, path: Path) -> Measured:
    """Measure one contestant in a separate process with one thread."""
    with tempfile.TemporaryDirectory(dir=path.parent) as cache:
        one_thread = {
            "OMP_NUM_THREADS": "1",
            "RAYON_NUM_THREADS": "1",
            "HF_HOME": cache,
            "TMPDIR": cache,
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        }
        process = subprocess.run(
            [sys.executable, __file__, "--one", task, name, str(path)],
            env={**os.environ, **one_thread},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return Measured(**json.loads(process.stdout.splitlines()[-1]))


def measure_here(task: str, name: str, file: str) -> Measured:
    """Measure one contestant in this process."""
    path = Path(file)
    work = CONTESTANTS[task][name]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        work(generate(task, WARM_ROWS, Path(folder)))
        memory_before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        start = time.process_time()
        rows = work(path)
        seconds = time.process_time() - start
    peak = resident("VmHWM") - memory_before
    size = sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
    return Measured(
        task=task, by=name, rows=rows, megabytes=round(size / 1e6, 1), seconds=round(seconds, 4), peak=peak
    )


def resident(field: str) -> int:
    """Return resident memory in bytes: now (VmRSS), or the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith(field)]
    return int(kilobytes) * 1024


# Generated files


def generate(task: str, rows: int, folder: Path) -> Path:
    """Write the file of a task, unless it exists."""
    kind = {"encode": "text", "align": "pairs"}.get(task, task)
    path = folder / f"{kind}-{rows}{ENDINGS[kind]}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in WRITERS[kind](rows))
    return path


def draw_sentences(rows: int, seed: int = 0) -> Sentences:
    """Yield sentences whose words are as frequent as in natural text (Zipf's law)."""
    generator = np.random.default_rng(seed)
    letters = random.Random(seed)
    words = np.array([_make_word(letters) + str(number) for number in range(VOCABULARY)], dtype=object)
    cumulative = np.cumsum(1 / np.arange(2.7, VOCABULARY + 2.7))
    for start in range(0, rows, ROWS_AT_ONCE):
        lengths = generator.integers(4, 2 * WORDS_PER_ROW - 3, min(ROWS_AT_ONCE, rows - start))
        places = np.searchsorted(cumulative, generator.random(lengths.sum()) * cumulative[-1])
        ends = np.cumsum(lengths)
        yield from (part.tolist() for part in np.split(words[places], ends[:-1]))


def _make_word(letters: random.Random) -> str:
    return "".join(letters.choice("aeiouknstrlm") for _ in range(letters.randint(2, 6)))


def text_lines(rows: int) -> Iterator[str]:
    return (" ".join(words) for words in draw_sentences(rows))


def conllu_lines(rows: int) -> Iterator[str]:
    """Yield sentences in CoNLL-U in which each word depends on the word before it."""
    for number, words in enumerate(draw_sentences(rows)):
        yield f"# sent_id = s{number}"
        yield f"# text = {' '.join(words)}"
        for index, word in enumerate(words, start=1):
            relation = "root" if index == 1 else "nmod"
            yield DEPENDENT.format(index=index, word=word, head=index - 1, relation=relation)
        yield ""


def pair_lines(rows: int) -> Iterator[str]:
    """Yield a table of sentences and their word-by-word translations, of which some words are exchanged."""
    orders = random.Random(0)
    yield "id\ten\tfr"
    for number, words in enumerate(draw_sentences(rows)):
        translated = [word[::-1] for word in words]
        place = orders.randrange(len(words) - 1)
        translated[place : place + 2] = translated[place : place + 2][::-1]
        yield f"{number}\t{' '.join(words)}\t{' '.join(translated)}"


ENDINGS = {"text": ".txt", "conllu": ".conllu", "pairs": ".tsv"}
WRITERS: Mapping[str, Callable[[int], Iterator[str]]] = {
    "text": text_lines,
    "conllu": conllu_lines,
    "pairs": pair_lines,
}


# Contestants


def count(things: Iterable[object]) -> int:
    return sum(1 for _ in things)


def read_text(path: Path) -> int:
    from isogloss.data.files import disk_file

    return count(disk_file(path).lines())


def read_text_by_pyarrow(path: Path) -> int:
    from pyarrow import csv

    delimiter = csv.ParseOptions(delimiter="\x01", quote_char=False)
    columns = csv.ReadOptions(column_names=["text"])
    reader = csv.open_csv(path, read_options=columns, parse_options=delimiter)
    return sum(count(batch.to_pylist()) for batch in reader)


def read_by_datasets(path: Path, kind: str, **options: Any) -> int:
    """Read a file as users of datasets do: converted to arrow once, then row by row."""
    from datasets import load_dataset

    return count(load_dataset(kind, data_files=str(path), split="train", **options))


def read_text_by_datasets(path: Path) -> int:
    return read_by_datasets(path, "text")


def encode_text(path: Path) -> int:
    """Write the stream of subwords of a masked LM."""
    from isogloss.data.files import disk_file
    from isogloss.features.pretraining.streams import write_stream

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        lines = (line for _, line in disk_file(path).lines())
        stream = write_stream(lines, _tokenizer(), Path(folder), longest=126)
        return len(stream.starts)


def encode_text_by_datasets(path: Path) -> int:
    """Convert to arrow, and tokenize by ``map``, as run_mlm.py of transformers does."""
    from datasets import load_dataset

    tokenizer = _tokenizer()
    lines = load_dataset("text", data_files=str(path), split="train")
    encode = lambda batch: {"ids": tokenizer(batch["text"], add_special_tokens=False)["input_ids"]}  # noqa: E731
    return len(lines.map(encode, batched=True, remove_columns=["text"]))


def _tokenizer() -> Any:
    from isogloss.encoders.folders import shipped_folder
    from isogloss.encoders.tokenizers import load_tokenizer

    return load_tokenizer(str(shipped_folder()))


def read_treebank(path: Path) -> int:
    from isogloss.data.files import disk_file
    from isogloss.data.formats.conllu import read_conllu

    return count(read_conllu(disk_file(path)))


def read_treebank_by_pyarrow(path: Path) -> int:
    """Read the ten columns of each word, without sentences and checks."""
    from pyarrow import csv

    reader = csv.open_csv(
        path,
        read_options=csv.ReadOptions(column_names=[str(number) for number in range(10)]),
        parse_options=csv.ParseOptions(
            delimiter="\t", quote_char=False, invalid_row_handler=lambda _: "skip"
        ),
    )
    return sum(row["0"] == 1 for batch in reader for row in batch.to_pylist())


def read_pairs(path: Path) -> int:
    from isogloss.data.files import disk_file
    from isogloss.features.parallel_text.forms import read_texts

    return count(read_texts([disk_file(path)], "en", "fr", min_margin=0))


def read_pairs_by_pyarrow(path: Path) -> int:
    from pyarrow import csv

    reader = csv.open_csv(path, parse_options=csv.ParseOptions(delimiter="\t", quote_char=False))
    return sum(count(batch.to_pylist()) for batch in reader)


def read_pairs_by_datasets(path: Path) -> int:
    return read_by_datasets(path, "csv", delimiter="\t", quoting=3)


def align_pairs(path: Path) -> int:
    """Read pairs and link their words by fast-align, as an alignment run does."""
    from isogloss.features.statistical_alignment.fast_align import FastAlign
    from isogloss.aligners.setting import AlignSetting
    from isogloss.data.files import disk_file
    from isogloss.features.parallel_text.forms import read_texts
    from isogloss.features.alignment.run import write_pharaoh

    pairs = list(read_texts([disk_file(path)], "en", "fr", min_margin=0))
    alignments = FastAlign().align(AlignSetting(pairs=pairs, languages=("en", "fr")))
    return count(write_pharaoh(alignments))


CONTESTANTS: Mapping[str, Mapping[str, Task]] = {
    "text": {"isogloss": read_text, "pyarrow": read_text_by_pyarrow, "datasets": read_text_by_datasets},
    "encode": {"isogloss": encode_text, "datasets": encode_text_by_datasets},
    "conllu": {"isogloss": read_treebank, "pyarrow": read_treebank_by_pyarrow},
    "pairs": {"isogloss": read_pairs, "pyarrow": read_pairs_by_pyarrow, "datasets": read_pairs_by_datasets},
    "align": {"isogloss": align_pairs},
}
"""The ways to do each task, by name."""

NAMES = {
    "text": "text, read line by line",
    "encode": "text, tokenized for masked LM",
    "conllu": "CoNLL-U, read",
    "pairs": "sentence pairs, read",
    "align": "sentence pairs, aligned",
}


# Slopes


def summarize(costs: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the slopes of each contestant, by its largest and smallest size."""
    by_contestant: dict[tuple[str, str], list[Measured]] = {}
    for cost in costs:
        by_contestant.setdefault((cost.task, cost.by), []).append(cost)
    slopes = []
    for (task, name), contestant_costs in by_contestant.items():
        sizes = sorted(contestant_costs, key=lambda cost: cost.rows)
        smallest = sizes[0]
        largest = sizes[-1]
        per_row = largest.seconds / largest.rows
        bytes_per_row = (largest.peak - smallest.peak) / max(1, largest.rows - smallest.rows)
        tenfold = TENFOLD * WHOLE_ROWS[task]
        slopes.append(
            {
                "task": task,
                "by": name,
                "rows": [cost.rows for cost in sizes],
                "microseconds per row": round(1e6 * per_row, 2),
                "growth": round(per_row / (smallest.seconds / smallest.rows), 2)
                if smallest.seconds
                else None,
                "bytes per row": round(bytes_per_row, 1),
                "peak, MB": round(largest.peak / 1e6, 1),
                "tenfold, hours": round(tenfold * per_row / 3600, 2),
                "tenfold, GB": round(
                    (largest.peak + (tenfold - largest.rows) * max(0.0, bytes_per_row)) / 1e9, 2
                ),
            }
        )
    return slopes


def markdown(slopes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = (
        "input",
        "by",
        "rows",
        "µs per row",
        "largest : smallest",
        "bytes per row",
        "ten times the whole",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in slopes:
        cells = (
            NAMES[row["task"]],
            row["by"],
            f"{row['rows'][-1]:,}",
            f"{row['microseconds per row']:,}",
            f"{row['growth']}",
            f"{row['bytes per row']:,.0f}",
            f"{row['tenfold, hours']:.1f} h, {row['tenfold, GB']:.1f} GB",
        )
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
