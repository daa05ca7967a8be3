"""A package with recipes of one paper's tables, in place of those that come with isogloss."""

from pathlib import Path

import pytest

from isogloss.recipes import recipe_text
from tiny import TINY

ONE = """# Table 1 of a paper (p. 3).
extends = "quickstart"
title = "Table 1"
published = "table-1.csv"

[scale.built-in]

[scale.published]
encoder = "owner/encoder"
"grid.corpus" = "xnli"
"grid.source" = "en"
"grid.targets" = ["de"]
"grid.method.1.targets" = ["de"]
"grid.seeds" = [0]
measure = [{ name = "scores" }]
"grid.optimization" = {}
"""

TWO = """extends = "papers/made-up/table-1"
title = "Table 2"
"""

NUMBERS = """scale,system,inputs,encoder,language,measure,value,page
published,source-only,,,qab,span_f1,0.501,3
published,bilingual,,,qab,span_f1,0.612,3
published,bilingual,,,mean of targets,span_f1,0.7,4
"""


def made_up_papers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two recipes and the numbers of the first, and let the package be there. Return their folder."""
    where = folder / "papers" / "made-up"
    where.mkdir(parents=True)
    (folder / "recipes" / "packaged").mkdir(parents=True)
    (folder / "recipes" / "packaged" / "quickstart.toml").write_text(TINY, encoding="utf-8")
    for name, text in {"table-1.toml": ONE, "table-2.toml": TWO, "table-1.csv": NUMBERS}.items():
        (where / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(recipe_text, "files", lambda _: folder)
    return where
