"""Walk straight from a source-only model to a bilingual one, and score every stop in both languages.

python examples/path.py    # paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Eq. 1
"""

from pathlib import Path

import torch

import isogloss
from isogloss.data import CORPORA
from isogloss.data.built_in_languages import BuiltInLanguages


def main(out: Path, examples: int = 1500) -> None:
    result = isogloss.run(
        "quickstart",
        out=out,
        changes={
            "grid.corpus": "ud",
            "grid.task": "upos",
            "grid.targets": ["qad"],
            "grid.seeds": [0],
            "grid.examples": examples,
            "grid.method": [{"name": "source-only"}, {"name": "bilingual"}],
            "measure": [],
        },
    )
    start, end = (isogloss.load_model(out / record.id) for record in result.records)
    ends = [{name: weight.clone() for name, weight in m.network.state_dict().items()} for m in (start, end)]
    dev = {code: list(CORPORA["ud"].read(BuiltInLanguages(), code, "dev"))[:200] for code in ("qaa", "qad")}
    for alpha in (0.0, 0.25, 0.5, 0.75, 1.0):
        mixed = {name: torch.lerp(first, ends[1][name], alpha) for name, first in ends[0].items()}
        start.network.load_state_dict(mixed)
        print(f"α = {alpha:.2f}", *(f"{code}: {start.score(some):.3f}" for code, some in dev.items()))


if __name__ == "__main__":
    main(Path("runs/path"))
