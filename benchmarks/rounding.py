"""Score trained models before and after their ONNX files are rounded to int8.

    python benchmarks/rounding.py [--runs FOLDER] [--data FOLDER] [--out FILE]

Without ``--runs``, six models are trained, on parts of speech and entities in three built-in languages. The
scores are those that ``export --onnx --int8`` writes.
"""

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import isogloss

RECIPE = {
    "title": "Two tasks in three languages",
    "encoder": "shipped",
    "grid": {
        "corpus": ["ud", "wikiann"],
        "task": ["upos", "ner"],
        "source": ["qaa", "qad", "qaf"],
        "targets": ["qab"],
        "seeds": [0],
        "examples": 4000,
        "dev_examples": 500,
        "method": [{"name": "source-only"}],
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--data", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = options.runs or Path(folder, "runs")
        if options.runs is None:
            isogloss.run(RECIPE, out=runs, report=False)
        rows = list(score_files(runs, Path(folder), options.data))
    text = json.dumps(rows, indent=1)
    if options.out:
        options.out.write_text(f"{text}\n", encoding="utf-8")
    print(text)


def score_files(runs: Path, folder: Path, data: str) -> Iterable[dict[str, object]]:
    """Yield the scores of both files of each model in a folder of runs."""
    for record in sorted(runs.glob("*/record.json")):
        if json.loads(record.read_text(encoding="utf-8"))["kind"] != "fine-tune":
            continue
        model = isogloss.load_model(record.parent)
        target = folder / record.parent.name
        model.export(target, onnx=True, int8=True, data=data)
        exact, rounded = json.loads((target / "onnx.json").read_text(encoding="utf-8"))
        yield {
            "run": record.parent.name,
            "task": model.task.name,
            **{name: exact[name] for name in ("corpus", "language", "metric", "examples")},
            "float32": exact["score"],
            "int8": rounded["score"],
        }


if __name__ == "__main__":
    main()
