"""Write the output of `isogloss corpus check` for files in the layouts of the field, as a page.

    python benchmarks/layouts.py --data DIR > docs/results/layouts/README.md

DIR has the folder `layouts` with files of the corpora themselves; without it only small files are checked.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from odd_layouts import LAYOUTS, REAL, lines_of  # noqa: E402

from isogloss.core.errors import DataError  # noqa: E402
from isogloss.features.described_corpora.contents import inspect_splits  # noqa: E402
from isogloss.features.described_corpora.descriptions import describe_corpus  # noqa: E402

HEAD = """# Layouts of tagging and text files

Which layouts of tagging and text files does isogloss read, and does it report lines that do not fit?
{answer}

![The layout is decided from all lines: labels, or one message with file and line](../../images/layouts.svg)

*What the reader decides and returns.*

```
python benchmarks/layouts.py --data DIR > docs/results/layouts/README.md
```

For each layout the table has the sentences (or texts) and labels that `isogloss corpus check` reads and its
message: what was decided from the whole file, or the first line that does not fit. *Counted* compares with a
count by hand, or by code that shares nothing with the readers (`tests/odd_layouts.py`).
"""


def counts(labels: dict[str, int]) -> str:
    sorted_counts = sorted(labels.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(sorted_counts) - 3} more" if len(sorted_counts) > 3 else ""
    return ", ".join(f"`{label}` {count:,}" for label, count in sorted_counts[:3]) + more


def check_layout(folder: Path, body: str, data: str = "") -> tuple[int, dict[str, int], list[str]]:
    (folder / "own.toml").write_text(body, encoding="utf-8")
    try:
        (split,) = inspect_splits(describe_corpus(folder / "own.toml", data), data)
    except DataError as error:
        return 0, {}, [str(error)]
    errors = [*split.errors[:1], *([f"{len(split.errors)} such rows"] if len(split.errors) > 1 else [])]
    return split.examples, split.labels, [*(remark.partition(": ")[2] for remark in split.remarks), *errors]


def row(
    name: str, outcome: tuple[int, dict[str, int], list[str]], expected_counts: tuple[int, dict[str, int]]
) -> str:
    messages = " ".join(outcome[2])
    messages = (messages.rpartition("own.toml: ")[2] if "own.toml" in messages else messages).replace(
        "|", "\\|"
    )
    begin = messages.find("test.txt:")
    messages = messages[begin:] if begin >= 0 else messages
    same_text = (
        "equal" if outcome[:2] == expected_counts else f"{expected_counts[0]:,}: {counts(expected_counts[1])}"
    )
    return f"| {name.replace('|', ' ')} | {outcome[0]:,} | {counts(outcome[1])} | {same_text} | {messages} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("none"))
    folder = parser.parse_args().data / "layouts"
    head = "| layout | read | labels | counted | message |\n|---|---|---|---|---|"
    with TemporaryDirectory() as temporary:
        path = Path(temporary)
        small_value = list(small_rows(path))
        real_value = list(real_rows(path, folder)) if folder.is_dir() else []
    rows = [*small_value, *real_value]
    equal = sum(" | equal | " in line for line in rows)
    answer = f"It reads {equal} of {len(rows)} layouts as a count by hand does."
    print(HEAD.format(answer=answer), "## Small files", "", head, *small_value, sep="\n")
    if real_value:
        print("", "## Files of the corpora themselves", "", head, *real_value, sep="\n")


def small_rows(path: Path) -> Iterator[str]:
    """Yield a row for each small file."""
    for odd in LAYOUTS:
        content = odd.content if isinstance(odd.content, bytes) else odd.content.encode()
        (path / "test.txt").write_bytes(content)
        body = f'{odd.body}files = {{ test = "test.txt" }}\nlanguages = ["xx"]\n'
        yield row(odd.name, check_layout(path, body), (odd.sentences, odd.labels))


def real_rows(path: Path, folder: Path) -> Iterator[str]:
    """Yield a row for each corpus file in a folder."""
    for real_file in REAL:
        split = "train" if real_file.path.endswith(("train.tsv", "4000.tsv")) else "test"
        files = f'files = {{ {split} = "{real_file.path}" }}'
        body = f'{real_file.body}{files}\nlanguages = ["{real_file.language}"]\n'
        outcome = check_layout(path, f'{body}bad_rows = "skip"\n', str(folder))
        outcome = (*outcome[:2], [part.partition(f"{folder}/")[2] or part for part in outcome[2]])
        count, labels = real_file.count(lines_of(folder, real_file.path))
        yield row(real_file.path, outcome, (count, dict(labels)))


if __name__ == "__main__":
    main()
