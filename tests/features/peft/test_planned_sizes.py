"""The disk that a dry run plans for a model is what its weights take, for every kind of peft."""

from pathlib import Path

import pytest

import isogloss
from command_line import Command
from tiny import TINY

PEFT = {
    "adapter": '{ kind = "adapter", reduction = 8 }',
    "dora": '{ kind = "dora", rank = 4 }',
    "ia3": '{ kind = "ia3" }',
    "layer-freezing": '{ kind = "layer-freezing", layers = 2 }',
    "layer-freezing, embeddings only": '{ kind = "layer-freezing", layers = 0 }',
    "lora": '{ kind = "lora", rank = 4 }',
    "lt-sft": '{ kind = "lt-sft", share = 0.1 }',
    "part-freezing": '{ kind = "part-freezing", parts = ["attention"] }',
    "all weights": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sizes")


def write_recipe(folder: Path, name: str) -> Path:
    text = TINY.partition("[[grid.method]]")[0].replace("seeds = [0, 1]", "seeds = [0]")
    text += f'[[grid.method]]\nname = "source-only"\n{"peft = " + PEFT[name] if PEFT[name] else ""}\n'
    recipe = folder / f"{name.replace(', ', '_').replace(' ', '_')}.toml"
    recipe.write_text(text, encoding="utf-8")
    return recipe


@pytest.mark.slow
@pytest.mark.parametrize("name", PEFT)
def test_planned_bytes_are_those_of_the_stored_weights(name: str, folder: Path, command: Command) -> None:
    recipe = write_recipe(folder, name)
    runs = folder / recipe.stem
    *_, total = command("run", recipe, "--out", runs, "--dry-run", "--json").lines
    assert total["models"] == 1
    result = isogloss.run(recipe, out=runs, jobs=1, report=False)
    assert not result.outcome.failed
    stored = sum(path.stat().st_size for path in runs.glob("*/model/**/*.safetensors"))
    assert 0.6 * stored < total["model bytes"] < 1.7 * stored, (stored, total)
