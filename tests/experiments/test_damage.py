"""Damaged files of finished runs are set aside with the reason and made again, byte for byte."""

import shutil

import pytest

import isogloss
from isogloss.core.records import RECORD
from isogloss.data.result_files import PREDICTIONS, write_tensors
from isogloss.data.sources import Sources
from isogloss.experiments.context import EXAMPLES, LINKS, RunContext
from isogloss.experiments.damage import set_damage_aside
from isogloss.experiments.execute import make
from isogloss.experiments.runs import Translate
from isogloss.experiments.single import BitextToAlign, align_bitext
from isogloss.experiments.store import Store
from isogloss.translators.built_in import BuiltIn
from tiny import tiny

DAMAGE = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
}
damages = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


def aligned(out):
    wanted = BitextToAlign(
        bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, split="dev", examples=5
    )
    (made,) = align_bitext(wanted, out=out)
    return made.file


@pytest.mark.slow
@damages
def test_damaged_links_are_made_again(tmp_path, damage):
    links = aligned(tmp_path)
    whole = {name: (links.parent / name).read_bytes() for name in (LINKS, RECORD)}
    links.write_bytes(damage(whole[LINKS]))
    assert aligned(tmp_path) == links
    assert {name: (links.parent / name).read_bytes() for name in whole} == whole
    assert (links.parent / f"damaged-{LINKS}").read_bytes() == damage(whole[LINKS])


@pytest.fixture
def translated(tmp_path):
    """Two finished translations, the second of the first."""
    context = RunContext(store=Store(tmp_path), sources=Sources(), precision="float32")
    there = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
    back = Translate(corpus="xnli", languages="qaa-qad-qaa", translator=BuiltIn(), start=there)
    for run in (there, back):
        make(context, run)
    return context, there, back


@damages
def test_damaged_translations_are_made_again_where_they_are_read(translated, damage):
    context, there, back = translated
    store, examples = context.store, context.store.folder(there) / EXAMPLES
    whole = examples.read_bytes()
    examples.write_bytes(damage(whole))
    assert set_damage_aside(store, [there, back]) == {}  # All is made that reads them.
    (store.folder(back) / RECORD).unlink()
    (said,) = set_damage_aside(store, [there, back]).values()
    assert said.startswith(f"{examples}:")
    assert said.endswith(f". Set aside as damaged-{EXAMPLES}, and made again.")
    assert not store.is_finished(there)
    make(context, there)
    assert examples.read_bytes() == whole
    assert set_damage_aside(store, [there, back]) == {}


def test_what_damaged_files_were_made_from_is_checked_too(translated):
    context, there, back = translated
    for run in (there, back):
        (context.store.folder(run) / EXAMPLES).write_text("{")
    assert len(set_damage_aside(context.store, [there, back])) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        DAMAGE["cut short"],
        *(pytest.param(DAMAGE[name], marks=pytest.mark.slow) for name in ("empty", "zeros")),
    ],
)
def test_damaged_predictions_are_made_again(tiny_runs, tmp_path, damage):
    runs = shutil.copytree(tiny_runs, tmp_path / "runs")
    path = min(runs.glob(f"*/{PREDICTIONS}"))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    outcome = isogloss.run(tiny(tmp_path), out=runs, jobs=1, report=False).outcome
    assert outcome.made == list(outcome.damaged) == [path.parent.name]
    assert f"{path}: these predictions cannot be read (" in outcome.damaged[path.parent.name]
    assert path.read_bytes() == whole


def test_damaged_tensors_are_set_aside_once(translated):
    context, there, back = translated
    path = context.store.folder(back) / "masks.safetensors"
    write_tensors(path, {}, {})
    assert set_damage_aside(context.store, [there, back]) == {}
    path.write_bytes(b"{")
    (said,) = set_damage_aside(context.store, [there, back]).values()
    assert said.startswith(f"{path}: these tensors cannot be read (")
    make(context, back)
    assert set_damage_aside(context.store, [there, back]) == {}
