"""Damaged files of finished runs are quarantined with the reason and computed again, byte for byte."""

import os

import pytest
import torch

from isogloss.core.checksums import CHECKSUMS
from isogloss.core.identity import identity
from isogloss.core.records import RECORD
from isogloss.data.sources import Sources
from isogloss.engine import damage as damage_module
from isogloss.engine.damage import quarantine_checkpoints, quarantine_damage
from isogloss.features.alignment.run import LINKS
from isogloss.features.alignment.single_run import BitextToAlign, align_bitext
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.runs.execute import make
from isogloss.runs.run import RunContext
from isogloss.runs.translate import EXAMPLES, Translate
from isogloss.store.store import WORK, Store
from isogloss.training.checkpoints import Checkpoints, State


def flip_bit(content):
    """Change one bit in the middle."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


DAMAGE = {
    "cut short": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
    "one bit": flip_bit,
}
damages = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


def align_pairs(folder):
    bitext = BitextToAlign(
        bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, split="dev", examples=5
    )
    (alignment,) = align_bitext(bitext, folder=folder)
    return alignment.file


@pytest.mark.nightly
@pytest.mark.slow
@damages
def test_damaged_links_are_made_again(tmp_path, damage):
    links = align_pairs(tmp_path)
    original_files = {name: (links.parent / name).read_bytes() for name in (LINKS, RECORD)}
    links.write_bytes(damage(original_files[LINKS]))
    assert align_pairs(tmp_path) == links
    assert {name: (links.parent / name).read_bytes() for name in original_files} == original_files
    assert (links.parent / f"damaged-{LINKS}").read_bytes() == damage(original_files[LINKS])


@pytest.fixture
def translation_records(tmp_path):
    """Two finished translations, the second of the first."""
    context = RunContext(store=Store(tmp_path), sources=Sources(), precision="float32")
    forward_run = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
    back_run = Translate(corpus="xnli", languages="qaa-qad-qaa", translator=BuiltIn(), start=forward_run)
    for run in (forward_run, back_run):
        make(context, run)
    return context, forward_run, back_run


@damages
def test_damaged_translations_are_made_again(translation_records, damage):
    context, forward_run, back_run = translation_records
    store, examples = context.store, context.store.folder(forward_run) / EXAMPLES
    original_bytes = examples.read_bytes()
    assert quarantine_damage(store, [forward_run, back_run]) == {}
    examples.write_bytes(damage(original_bytes))
    (message,) = quarantine_damage(store, [forward_run, back_run]).values()
    assert message.startswith(f"{examples}: damaged (")
    assert message.endswith(f" written). Set aside as damaged-{EXAMPLES}, and made again.")
    assert (store.is_finished(forward_run), store.is_finished(back_run)) == (False, True)
    make(context, forward_run)
    assert examples.read_bytes() == original_bytes
    assert quarantine_damage(store, [forward_run, back_run]) == {}


def test_large_files_are_read_where_an_unfinished_run_needs_them(translation_records, monkeypatch):
    context, forward_run, back_run = translation_records
    store, examples = context.store, context.store.folder(forward_run) / EXAMPLES
    monkeypatch.setattr(damage_module, "SMALL", 0)
    examples.write_bytes(flip_bit(examples.read_bytes()))
    assert quarantine_damage(store, [forward_run, back_run]) == {}
    (store.folder(back_run) / RECORD).unlink()
    assert list(quarantine_damage(store, [forward_run, back_run])) == [identity(forward_run)]


def test_what_was_removed_is_made_again_where_an_unfinished_run_needs_it(translation_records):
    """People remove models that nothing needs any more."""
    context, forward_run, back_run = translation_records
    store = context.store
    for run in (forward_run, back_run):
        (store.folder(run) / EXAMPLES).unlink()
    assert quarantine_damage(store, [forward_run, back_run]) == {}
    (store.folder(back_run) / RECORD).unlink()
    (message,) = quarantine_damage(store, [forward_run, back_run]).values()
    assert message == f"{store.folder(forward_run) / EXAMPLES}: damaged (it is missing). It is made again."
    assert not store.is_finished(forward_run)


def test_a_record_in_which_a_digit_changed_is_made_again(translation_records):
    context, forward_run, back_run = translation_records
    path = context.store.folder(back_run) / RECORD
    original_bytes = path.read_bytes()
    path.write_bytes(original_bytes.replace(b'"translated": 9', b'"translated": 8'))
    (message,) = quarantine_damage(context.store, [forward_run, back_run]).values()
    assert f"{path}:" in message
    assert "(checksum " in message
    make(context, back_run)
    assert path.read_bytes() == original_bytes


def test_a_run_is_read_once_to_find_that_it_is_whole(translation_records, monkeypatch):
    context, forward_run, _ = translation_records
    opened_names = []
    open_ = os.open

    def watch_opening(name, *arguments, **options):
        opened_names.append(name)
        return open_(name, *arguments, **options)

    monkeypatch.setattr(os, "open", watch_opening)
    assert quarantine_damage(context.store, [forward_run]) == {}
    files = [
        name
        for name in opened_names
        if name in {path.name for path in context.store.folder(forward_run).iterdir()}
    ]
    assert sorted(files) == sorted((RECORD, CHECKSUMS, EXAMPLES))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", CHECKSUMS])
def test_a_checkpoint_in_which_a_bit_changed_is_set_aside(translation_records, name):
    context, forward_run, _ = translation_records
    work = context.store.folder(forward_run) / WORK
    model = torch.nn.Linear(8, 8)
    checkpoints = Checkpoints(work, 1)
    checkpoints.save(model, torch.optim.AdamW(model.parameters()), State(7, {"rows": [{"loss": 0.5}]}, None))
    assert quarantine_checkpoints(context.store, forward_run) == ""
    path = work / "checkpoint-000000007" / name
    path.write_bytes(flip_bit(path.read_bytes()))
    message = quarantine_checkpoints(context.store, forward_run)
    assert message.startswith(f"{path.parent}:")
    assert message.endswith(". Set aside as damaged-checkpoint-000000007, and made again.")
    assert checkpoints.notes() is None


def test_a_checkpoint_without_checksums_is_set_aside(translation_records):
    context, forward_run, _ = translation_records
    checkpoint = context.store.folder(forward_run) / WORK / "checkpoint-000000007"
    checkpoint.mkdir(parents=True)
    message = quarantine_checkpoints(context.store, forward_run)
    assert f"{checkpoint}:" in message
    assert f"no {CHECKSUMS})" in message


def test_what_damaged_files_were_made_from_is_checked_too(translation_records):
    context, forward_run, back_run = translation_records
    for run in (forward_run, back_run):
        (context.store.folder(run) / EXAMPLES).write_text("{")
    assert len(quarantine_damage(context.store, [forward_run, back_run])) == 2


def test_what_another_process_has_set_aside_meanwhile_is_no_error(tmp_path):
    """While one of two searching processes is paused, the second quarantines the damage."""
    damage_module._quarantine(tmp_path, RECORD)
    assert list(tmp_path.iterdir()) == []
