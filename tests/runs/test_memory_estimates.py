"""Each kind of run has an estimate of its memory, or says that none is known."""

from dataclasses import replace

import pytest

from isogloss.core.run_parts import Architecture, Modules, NewSubwords, Optimization, with_fields
from isogloss.data.corpora.own import KNOWN
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.loading import load_model
from isogloss.features.adjustment.run import Adjust
from isogloss.features.adjustment.term import AlignmentTerm
from isogloss.features.described_corpora.corpus import DescribedCorpus
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.peft.methods import LoRA
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.features.pretraining.run import Pretrain
from isogloss.features.translation.modelling import TranslationModelling
from isogloss.features.translation.run import TrainTranslator, Translate
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods import ADJUSTMENTS, PEFT
from isogloss.methods.plain import SourceOnly
from isogloss.runs.estimates import folder_shape, with_modules
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import peak_memory
from isogloss.training.memory import PROGRAM
from isogloss.translators import TRANSLATORS

TEXT = Pretrain(
    text=("text",),
    languages=("qaa", "qab"),
    architecture=Architecture(vocabulary=20_000),
    method=with_fields(MaskedLanguageModelling(), precision="float32"),
)
HOW = with_fields(Optimization(), precision="float32")
TUNED = FineTune(
    encoder=TEXT, corpus="ud", task="upos", method=SourceOnly(), source=("qaa",), optimization=HOW
)
TRANSLATOR = TrainTranslator(bitext="bitext", pairs=("qaa-qab",), method=TranslationModelling())


def memory(run):
    return peak_memory(run, {})


def test_pretraining_takes_more_with_longer_batches_and_more_modules():
    def peak(modules=None, **fields):
        return memory(replace(TEXT, method=with_fields(TEXT.method, **fields), modules=modules))

    assert peak(batch_subwords=1024) < peak() < peak(batch_subwords=16_384)
    assert peak(gradient_checkpointing=True) < peak()
    kinds = ("shared-adapter", "adapter", "attention", "feed-forward")
    sizes = [peak(Modules(kind=kind)) for kind in kinds]
    assert [peak(), *sizes] == sorted({peak(), *sizes})


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["adapter", "shared-adapter"])
@pytest.mark.parametrize(
    "placement",
    [{}, {"after": "feed-forward"}, {"leave_out": (-1,)}, {"invertible": True}, {"embedding": True}],
)
def test_the_parameters_of_adapters_are_counted_where_they_are(kind, placement, bert_folder):
    model = load_model(bert_folder)
    languages = ("en", "sw", "to")
    modules = Modules(kind=kind, **placement)
    add_modules(model, modules, languages, seed=0)
    added_total = sum(
        weight.numel() for name, weight in model.named_parameters() if "language_modules" in name
    )
    shape = folder_shape(str(bert_folder))
    assert with_modules(shape, modules, len(languages)).parameters - shape.parameters == added_total > 0


def test_fine_tuning_on_pairs_and_with_a_second_loss_takes_more():
    mixed_result = replace(TUNED, method=XMixup(), target=("qab",))
    assert memory(TUNED) < memory(replace(TUNED, auxiliary=AlignmentTerm(bitext="x"))) < memory(mixed_result)
    assert memory(replace(mixed_result, target=())) == memory(TUNED)
    short_text = replace(TUNED, optimization=with_fields(HOW, limit=64))
    assert memory(short_text) < memory(TUNED)


def test_fine_tuning_on_choices_takes_a_row_for_each_option(monkeypatch):
    for name, options in (("four", ("a", "b", "c", "d")), ("two", ("a", "b")), ("listed", "options")):
        columns = {"context": "context", "options": options, "label": "label"}
        corpus = DescribedCorpus(name=name, kind="choice", paths={}, format="jsonl", columns=columns)
        monkeypatch.setitem(KNOWN, name, corpus)
    run = replace(TUNED, task="multiple-choice", corpus="two+four[dev]")
    longer = replace(TUNED, optimization=replace(HOW, batch_size=4 * HOW.batch_size))
    assert memory(run) == memory(longer) > memory(replace(run, corpus="two"))
    assert memory(replace(run, corpus="two+listed")) is None


@pytest.mark.parametrize("name", ADJUSTMENTS)
def test_adjusting_takes_what_its_training_takes_if_it_trains(name):
    method = with_fields(ADJUSTMENTS[name](), precision="float32")
    result = memory(Adjust(encoder=TEXT, method=method, aligned=()))
    scores = memory(Measure(diagnostic=DIAGNOSTICS["cka"](), subjects=(TEXT,)))
    assert (result == scores) if method.maps else (result > scores)


def test_what_reads_scores_takes_nothing_and_a_path_has_its_models_in_memory():
    scores = Measure(diagnostic=DIAGNOSTICS["scores"](), subjects=(TUNED,))
    gap = Measure(diagnostic=DIAGNOSTICS["transfer-gap"](), subjects=(scores,))
    path = Measure(diagnostic=DIAGNOSTICS["interpolation"](), subjects=(TUNED, replace(TUNED, seed=1)))
    assert memory(gap) == 0 < memory(scores) < memory(path)


def test_translators_take_something_where_there_is_a_model():
    translate = Translate(
        corpus="ud", languages="qaa-qab", translator=TRANSLATORS["seq2seq"](), model=TRANSLATOR
    )
    assert 0 < memory(translate) < memory(TRANSLATOR)
    assert memory(replace(translate, model=None)) == 0


def test_what_is_not_known_is_none():
    far_points = Pretrained(source="somebody/far")
    meta = replace(TEXT, method=MetaLearning(), modules=Modules(kind="adapter"))
    translate = Translate(
        corpus="ud", languages="qaa-qab", translator=TRANSLATORS["seq2seq"](), model=far_points
    )
    conflict = Measure(diagnostic=DIAGNOSTICS["gradient-conflict"](), subjects=(TEXT,))
    for run in (meta, translate, conflict, replace(TUNED, encoder=far_points)):
        assert memory(run) is None


def test_what_is_frozen_takes_neither_gradients_nor_states():
    assert PEFT.keys() == {"lora", "dora", "ia3", "lt-sft", "adapter", "layer-freezing", "part-freezing"}
    whole_peak_memory = memory(TUNED)
    sizes = {name: memory(replace(TUNED, peft=kind())) for name, kind in PEFT.items()}
    assert sizes.pop("lt-sft") > whole_peak_memory
    assert max(sizes.values()) < whole_peak_memory
    assert (
        memory(replace(TUNED, peft=LoRA(rank=2)))
        < memory(replace(TUNED, peft=LoRA(rank=64)))
        < whole_peak_memory
    )


def test_an_encoder_that_is_trained_further_has_the_shape_of_its_start():
    further = replace(TEXT, start=TEXT, architecture=None)
    assert memory(further) == memory(TEXT)
    assert memory(replace(further, vocabulary=NewSubwords(size=5000))) > memory(TEXT)
    modular = replace(further, modules=Modules(kind="adapter"))
    assert memory(replace(modular, trained="modules")) < memory(TEXT) < memory(modular)


def test_an_encoder_of_every_family_has_an_estimate(any_folder):
    encoder = Pretrained(source=str(any_folder), data="files")
    sizes = [
        peak_memory(run, {"files": str(any_folder)})
        for run in (
            replace(TUNED, encoder=encoder),
            Measure(diagnostic=DIAGNOSTICS["cka"](), subjects=(encoder,)),
        )
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > PROGRAM
