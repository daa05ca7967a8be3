import errno
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError, ModelError, StorageError
from isogloss.core.runs import Architecture
from isogloss.data.examples import Translation
from isogloss.encoders import FAMILIES, load_masked_lm, load_tokenizer, save_model
from isogloss.methods import masked_language_modelling as module
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling, _TextBatches
from isogloss.tasks.masked_lm import Masking, Vocabulary
from isogloss.tasks.text_stream import TextStream
from isogloss.training.setting import TextSetting

LETTERS = {"en": "abcdef", "de": "ghijkl", "sw": "mnopqr"}
VOCABULARY = Vocabulary(size=100, first=2, last=3, padding=0, mask=4, special=(0, 1, 2, 3, 4))
METHOD = MaskedLanguageModelling(
    steps=8, batch_subwords=96, block=16, learning_rate=5e-3, precision="float32", checkpoint_every=3
)


def line(language, number):
    rng = random.Random(f"{language} {number}")
    return " ".join("".join(rng.choices(LETTERS[language][:4], k=rng.randint(1, 3))) for _ in range(9))


def lines(language):
    for number in range(60):
        yield line(language, number)


def translations(first, second):
    for number in range(40):
        yield Translation(id=str(number), first=line(first, number), second=line(second, number))


@pytest.fixture(params=["bert", "xlm-roberta"])
def setting(request, tmp_path):
    return text_setting(request.param, tmp_path)


def text_setting(family, tmp_path):
    sizes = {"layers": 1, "dim": 16, "heads": 2, "feed_forward": 32, "vocabulary": 90, "positions": 16}
    return TextSetting(
        text=lines,
        translations=translations,
        languages=("en", "de", "sw"),
        architecture=Architecture(family=family, **sizes, dropout=0.25),
        folder=tmp_path / "work",
        seed=0,
    )


def weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def same_batch(one, other):
    pairs = [(getattr(one, name), getattr(other, name)) for name in type(one).__dataclass_fields__]
    return all(a is b is None or torch.equal(a, b) for a, b in pairs)


# Pretraining


def test_pretraining_learns_a_text_that_says_the_same_again_and_again(setting):
    method = replace(METHOD, steps=120, learning_rate=1e-2, checkpoint_every=0)
    _, _, fitted = method.train(replace(setting, text=lambda language: [line(language, 0)] * 20))
    losses = [row["loss"] for row in fitted.rows]
    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.parametrize("translation", [0.0, 0.5])
def test_pretraining_twice_gives_the_same_encoder(setting, tmp_path, translation):
    method = replace(METHOD, translation=translation)
    one, tokenizer, fitted = method.train(setting)
    other, tokenizer_again, fitted_again = method.train(replace(setting, folder=tmp_path / "again"))
    assert equal(weights(one), weights(other))
    assert tokenizer.backend_tokenizer.to_str() == tokenizer_again.backend_tokenizer.to_str()
    assert fitted.rows == fitted_again.rows


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_pretrained_resumes_and_loads_with_its_dropout(tmp_path, monkeypatch, family):
    setting = text_setting(family, tmp_path)
    setting = replace(setting, architecture=replace(setting.architecture, vocabulary=300))
    whole, tokenizer, fitted = METHOD.train(replace(setting, folder=tmp_path / "whole"))
    interrupted(METHOD, setting, 5, monkeypatch)
    again, _, fitted_again = METHOD.train(setting)
    assert equal(weights(again), weights(whole))
    assert fitted_again.rows == fitted.rows

    save_model(whole, tokenizer, tmp_path / "encoder")
    loaded, read = load_masked_lm(tmp_path / "encoder"), load_tokenizer(tmp_path / "encoder")
    assert equal(weights(loaded), weights(whole))
    assert read("abc de")["input_ids"] == tokenizer("abc de")["input_ids"]
    rates = {part.p for part in loaded.base_model.modules() if isinstance(part, torch.nn.Dropout)}
    assert rates == {0.25}


def test_translation_lm_is_refused_where_positions_cannot_be_counted_anew(tmp_path):
    with pytest.raises(ModelError) as caught:
        replace(METHOD, translation=0.5).train(text_setting("deberta-v2", tmp_path))
    assert str(caught.value).startswith(
        "translation LM counts positions anew in the second text; deberta-v2 sees how far apart subwords "
        "stand, and no positions. Use bert or "
    )


def interrupted(method, setting, stop, monkeypatch):
    make = _TextBatches.__getitem__

    def stopping(batches, step):
        if step == stop:
            raise KeyboardInterrupt
        return make(batches, step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_TextBatches, "__getitem__", stopping)
        method.train(setting)


def test_another_seed_gives_another_encoder(setting, tmp_path):
    one, tokenizer, _ = METHOD.train(setting)
    other, tokenizer_again, _ = METHOD.train(replace(setting, folder=tmp_path / "again", seed=1))
    assert not equal(weights(one), weights(other))
    assert tokenizer.get_vocab() == tokenizer_again.get_vocab()


@pytest.mark.parametrize("stop", [0, 2, 3, 7])
def test_a_pretraining_that_was_interrupted_ends_as_if_it_was_not(setting, tmp_path, monkeypatch, stop):
    method = replace(METHOD, translation=0.3)
    whole, _, fitted = method.train(replace(setting, folder=tmp_path / "whole"))
    interrupted(method, setting, stop, monkeypatch)
    again, _, fitted_again = method.train(setting)
    assert equal(weights(again), weights(whole))
    assert fitted_again.rows == fitted.rows


@pytest.mark.parametrize("stop", range(0, 180, 25))
def test_an_interruption_while_text_is_read_changes_nothing(setting, tmp_path, monkeypatch, stop):
    from isogloss.tasks import text_stream

    def stopping(language):
        for text in lines(language):
            if len(read) == stop:
                raise KeyboardInterrupt
            read.append(text)
            yield text

    monkeypatch.setattr(text_stream, "LINES_AT_ONCE", 7)
    method, read = replace(METHOD, vocabulary_lines=60), []
    whole, _, _ = method.train(replace(setting, folder=tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        method.train(replace(setting, text=stopping))
    again, _, _ = method.train(setting)
    assert equal(weights(again), weights(whole))


def test_text_is_read_once_and_not_at_all_when_resuming(setting, monkeypatch):
    read = []

    def noted(language):
        for number, text in enumerate(lines(language)):
            read.append((language, number))
            yield text

    method = replace(METHOD, vocabulary_lines=30)
    method.train(replace(setting, text=noted))
    assert sorted(read) == sorted((language, number) for language in LETTERS for number in range(60))
    read.clear()
    method.train(replace(setting, text=noted))
    assert read == []


def test_the_vocabulary_sees_the_same_number_of_lines_of_each_language(setting, monkeypatch):
    seen = []
    train = module.train_tokenizer

    def noted(given, **how):
        seen.extend(given)
        return train(seen, **how)

    monkeypatch.setattr(module, "train_tokenizer", noted)
    replace(METHOD, vocabulary_lines=30).train(setting)
    assert seen == [line(language, number) for language in LETTERS for number in range(10)]


def test_a_resumed_pretraining_keeps_its_tokenizer(setting, monkeypatch):
    METHOD.train(setting)
    monkeypatch.setattr(module, "train_tokenizer", None)
    _, tokenizer, _ = METHOD.train(setting)
    assert len(tokenizer) <= 90


def test_the_saved_encoder_has_the_architectures_dropout_and_the_training_none(setting, tmp_path):
    model, tokenizer, _ = METHOD.train(setting)
    assert {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)} == {0.0}
    save_model(model, tokenizer, tmp_path / "model")
    loaded = load_masked_lm(tmp_path / "model")
    assert {part.p for part in loaded.modules() if isinstance(part, torch.nn.Dropout)} == {0.25}
    assert equal(weights(loaded), weights(model))
    assert load_tokenizer(tmp_path / "model").get_vocab() == tokenizer.get_vocab()


# Mistakes are said before text is read


def unread(language):
    raise AssertionError("the text was read")
    yield


def test_rows_longer_than_the_positions_are_refused(setting):
    with pytest.raises(ConfigError, match=r"rows of 17 subwords \(block\), but .* only 16 positions"):
        replace(METHOD, block=17).train(replace(setting, text=unread))


def test_translation_without_bitext_is_refused(setting):
    with pytest.raises(
        DataError, match="translation LM needs bitext: name a corpus in the run's field 'bitext'"
    ):
        replace(METHOD, translation=0.1).train(replace(setting, text=unread, translations=None))


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"block": 7},
        {"batch_subwords": 15},
        {"masked": 0.0},
        {"masked": 1.5},
        {"temperature": 0.0},
        {"translation": -0.1},
        {"translation": 1.1},
        {"vocabulary_lines": 0},
    ],
)
def test_values_that_cannot_be_are_refused(wrong):
    ((field, value),) = wrong.items()
    with pytest.raises(
        ConfigError, match=f"^masked-language-modelling: {field} cannot be {value}. Shares lie"
    ):
        replace(METHOD, **wrong)


def test_an_empty_language_is_an_error_that_names_it(setting):
    with pytest.raises(DataError, match="sw: the text of this language is empty"):
        METHOD.train(
            replace(setting, text=lambda language: lines(language) if language != "sw" else iter(()))
        )


def test_a_full_disk_is_a_storage_error(setting, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        METHOD.train(setting)


# Batches


def stream(size, first=5):
    """A text of ``size`` subwords, in lines of ten, each subword in ``first`` to ``first + 9``."""
    subwords = np.resize(np.arange(first, first + 10, dtype=np.int32), size)
    return TextStream(subwords, np.arange(0, size, 10))


def parallel(count, languages=("en", "de"), longest=12):
    rng = np.random.default_rng(0)
    return [
        {
            language: np.full(rng.integers(1, longest), 10 * (place + 1), dtype=np.int32)
            for place, language in enumerate(languages)
        }
        for _ in range(count)
    ]


def batches(method=METHOD, *, sizes=(1000, 1000), translated=(), seed=0):
    streams = [stream(size, 10 * number + 10) for number, size in enumerate(sizes)]
    return _TextBatches(method, streams, list(translated), Masking(vocabulary=VOCABULARY), seed)


def languages_of(batch):
    """Tens of the subwords that stood at the hidden places: the language, in the streams above."""
    return set((batch.gold // 10).tolist())


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(12)), st.booleans())
def test_a_batch_follows_from_seed_and_step_alone(order, mixed):
    method = replace(METHOD, steps=12, translation=0.4, mixed=mixed)
    made = batches(method, translated=parallel(30))
    whole = [made[step] for step in range(len(made))]
    again = batches(method, translated=parallel(30))
    for step in order:
        assert same_batch(again[step], whole[step])
    other = batches(method, translated=parallel(30), seed=1)
    assert not all(same_batch(one, other[step]) for step, one in enumerate(whole))


def test_a_batch_of_text_fills_its_budget_without_padding():
    batch = batches()[0]
    assert tuple(batch.subwords.shape) == (96 // 16, 16)
    assert batch.mask is None


@pytest.mark.parametrize("temperature", [1.0, 1.43, 5.0])
def test_languages_are_drawn_by_the_power_of_their_size(temperature):
    sizes = (8000, 2000, 500)
    method = replace(METHOD, steps=3000, temperature=temperature)
    made = batches(method, sizes=sizes)
    drawn = [languages_of(made[step]) for step in range(3000)]
    assert all(len(one) == 1 for one in drawn)
    counts = np.bincount([next(iter(one)) - 1 for one in drawn], minlength=3) / 3000
    weights = np.array(sizes) ** (1 / temperature)
    assert counts == pytest.approx(weights / weights.sum(), abs=4 * (0.25 / 3000) ** 0.5)


def test_mixed_batches_hold_rows_of_all_languages_in_the_same_proportions():
    method = replace(METHOD, steps=300, batch_subwords=16 * 8, mixed=True, temperature=1.0)
    made = batches(method, sizes=(6000, 2000))
    drawn = [made[step] for step in range(300)]
    assert sum(len(languages_of(one)) == 2 for one in drawn) > 200
    firsts = np.concatenate([(one.gold // 10).numpy() for one in drawn])
    assert (firsts == 1).mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_updates_is_translation(share):
    method = replace(METHOD, steps=400, translation=share)
    made = batches(method, translated=parallel(30))
    found = sum(made[step].positions is not None for step in range(400)) / 400
    assert found == pytest.approx(share, abs=4 * (share * (1 - share) / 400) ** 0.5)


def test_a_pair_is_a_text_and_its_translation_in_either_order():
    method = replace(METHOD, steps=60, translation=1.0, masked=1.0)
    made = batches(method, translated=parallel(50, languages=("en", "de", "sw")))
    orders = set()
    for step in range(60):
        batch = made[step]
        flat = batch.subwords.flatten().clone()
        flat[batch.places] = batch.gold
        for row in flat.view_as(batch.subwords).tolist():
            end = row.index(VOCABULARY.last)
            (first,) = set(row[1:end])
            (second,) = set(row[end + 1 : row.index(VOCABULARY.last, end + 1)])
            assert first != second
            orders.add((first, second))
    assert len(orders) == 6


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999), st.sampled_from([64, 128, 512]), st.integers(3, 25))
def test_a_batch_of_pairs_stays_in_its_budget(seed, budget, longest):
    method = replace(METHOD, translation=1.0, batch_subwords=budget)
    batch = batches(method, translated=parallel(20, longest=longest), seed=seed)[0]
    rows, width = batch.subwords.shape
    assert rows == 1 or rows * width <= budget


def test_pairs_of_similar_length_waste_little_padding():
    method = replace(METHOD, steps=60, translation=1.0, batch_subwords=1024)
    made = batches(method, translated=parallel(400, longest=40))
    masks = [made[step].mask for step in range(60)]
    assert np.mean([1.0 if mask is None else float(mask.float().mean()) for mask in masks]) > 0.9


def test_batches_of_pairs_use_their_budget():
    method = replace(METHOD, steps=60, translation=1.0, batch_subwords=1024)
    made = batches(method, translated=parallel(400, longest=40))
    assert np.mean([made[step].subwords.numel() for step in range(60)]) > 0.85 * 1024


def test_texts_that_share_a_source_become_one_of_several_languages(setting):
    method = replace(METHOD, translation=1.0)
    tokenizer, _ = method._read(setting)
    texts = module._translations(setting, tokenizer, method.block)
    assert len(texts) == 40
    for number, text in enumerate(texts):
        assert list(text) == ["en", "de", "sw"]
        for language, ids in text.items():
            expected = tokenizer(line(language, number), add_special_tokens=False)["input_ids"]
            assert ids.tolist() == expected[: method.block - 2]
