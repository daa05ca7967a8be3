"""Run recipe.toml at every distance: `python make_runs.py OUT DRAWS`, and write OUT/DRAW.csv.

DRAWS are letters of draws of languages, as in abcd. Each has a separate seed, a the seed 0. OUT/permuted
receives treebanks whose tags are permuted over all words, for the negative control.
"""

import random
import sys
import tomllib
from itertools import islice
from pathlib import Path

import pandas as pd

import isogloss
from isogloss.features.built_in_languages import examples
from isogloss.reports.measurements import read_measurements

HERE = Path(__file__).parent
TARGETS = (
    "qaa_Wrd{}_100", "qaa_Ord{}_100", "qaa_Scr{}_100", "qad_Wld{}_100", "qad_Wld{}_000", "qaa_Wrd{}_000",
    "qaa_Wrd{}_025", "qaa_Ord{}_040", "qaa_Scr{}_025", "qaa_Wrd{}_050",
)  # fmt: skip
"""Codes by the letter of the draw."""

FIRST = 6
"""Number of targets that are run in all draws before the others."""

LETTERS = "abcdefgh"

LONG = "alignment loss"
"""Method that reads 20,000 translations, trained for some draws and targets only."""

LONG_DRAWS = "ab"

LONG_AT = ("qaa_Wrd{}_100", "qad_Wld{}_000", "qad_Wld{}_100")

PERMUTED_OF = "qaa_Wrd{}_100"
PERMUTED = "qt{}"
"""Code of the language with permuted tags."""

LABELLED = ("source-only", "few-shot", "bilingual")
SENTENCES = {"train": 600, "dev": 200, "test": 400}
"""Methods and sentences of the control with permuted tags."""


def write_permuted(folder: Path, letter: str, seed: int) -> None:
    """Write a treebank with tags permuted over all words of train and dev. The test tags are right."""
    language = PERMUTED.format(letter)
    path = folder / "ud" / "UD_Permuted-PER"
    path.mkdir(parents=True, exist_ok=True)
    for split, count in SENTENCES.items():
        trees = list(islice(examples("ud", PERMUTED_OF.format(letter), split), count))
        tags = [tag for tree in trees for tag in tree.tags]
        if split != "test":
            random.Random(seed).shuffle(tags)
        rest = iter(tags)
        lines = []
        for tree in trees:
            for line in tree.lines:
                fields = line.split("\t")
                if not line.startswith("#"):
                    fields[3] = next(rest)
                lines.append("\t".join(fields))
            lines.append("")
        text = "\n".join(lines) + "\n"
        (path / f"{language}_per-ud-{split}.conllu").write_text(text, encoding="utf-8")


def change(recipe: dict, target: str, seed: int) -> dict:
    """Return the recipe for a target and a seed."""
    language = target.format(LETTERS[seed])
    methods = [
        method
        for method in recipe["grid"]["method"]
        if method.get("label") != LONG or (target in LONG_AT and LETTERS[seed] in LONG_DRAWS)
    ]
    return recipe | {
        "title": f"Methods at a known distance: {language}",
        "adjust": [table | {"pairs": [f"qaa-{language}"]} for table in recipe["adjust"]],
        "grid": recipe["grid"] | {"targets": [language], "seeds": [seed], "method": methods},
    }


def make_control(recipe: dict, letter: str, seed: int) -> dict:
    """Return the recipe of the language with permuted tags, which has no bitext."""
    grid = recipe["grid"]
    methods = [
        {key: value for key, value in method.items() if key != "encoders"}
        for method in grid["method"]
        if method["name"] in LABELLED and "auxiliary" not in method
    ]
    grid = grid | {"targets": [PERMUTED.format(letter)], "seeds": [seed], "method": methods}
    return {
        "title": "Methods on permuted tags",
        "encoder": recipe["encoder"],
        "grid": grid,
        "measure": recipe["measure"],
    }


def read_rows(folder: Path) -> pd.DataFrame:
    """Return the test accuracy of each model in its target and in the source."""
    measurements = read_measurements(folder)
    labels = {key: label for label, ids in measurements.methods.items() for key in ids}
    rows = measurements.frame("scores")
    rows = rows[rows["main"].eq(True)]
    methods = rows["model"].map(labels)
    if "encoder.adjusted" in rows:
        methods = methods.where(rows["encoder.adjusted"].fillna("").eq(""), "adjusted")
    rows = rows.assign(method=methods, score=rows["score"].round(6))
    columns = ["task", "method", "target", "language", "seed", "score", "examples"]
    return rows[columns].drop_duplicates(columns[:-2]).sort_values(columns)


def main(folder: Path, draws: str) -> None:
    """Run distances 0 and 1 and the controls of all draws, then the distances between."""
    recipe = tomllib.loads((HERE / "recipe.toml").read_text(encoding="utf-8"))
    for count in (FIRST, len(TARGETS)):
        for letter in draws:
            seed = LETTERS.index(letter)
            recipes = [change(recipe, target, seed) for target in TARGETS[:count]]
            isogloss.run(recipes, out=folder / letter, engine="serial", report=False)
            data = folder / "permuted"
            write_permuted(data, letter, seed)
            control = make_control(recipe, letter, seed)
            isogloss.run(control, out=folder / f"{letter}-control", data=data, engine="serial", report=False)
            rows = pd.concat([read_rows(folder / letter), read_rows(folder / f"{letter}-control")])
            rows.drop_duplicates().to_csv(folder / f"{letter}.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
