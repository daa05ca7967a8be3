"""Rows are paired by example, and a teacher labels translations."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from in_translation import sentences, setting, without_tags
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import SentencePair, TaggedSentence
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.methods.plain import SourceOnly, TranslateTrain
from isogloss.tasks import TASKS
from isogloss.tasks.batch import EncodedRow
from isogloss.training import pairs as module
from isogloss.training.pairs import paired_batches, paired_rows, pseudo_labels
from isogloss.training.sides import RowPair, collate_pairs, middle_windows, repeated_windows
from trained import equal, weights

LABELS = TASKS["nli"].labels
WORDS = ("cat", "mat", "dog", "hills", "Rome", "things")


def row(example, length, gold=(0,)):
    return EncodedRow(example=example, subwords=tuple(range(10, 10 + length)), gold=gold)


def rows(counts, longer=0):
    """Rows of as many examples, with a number of rows each. A row's length is its index in its example."""
    return [
        row(example, 1 + index + longer) for example, count in enumerate(counts) for index in range(count)
    ]


@given(st.integers(1, 9), st.integers(0, 9))
def test_repeating_keeps_the_order_leaves_none_out_and_repeats_evenly(sample, more):
    result = repeated_windows([row(index, 1) for index in range(sample)], sample + more)
    numbers = [item.example for item in result]
    assert numbers == sorted(numbers)
    times = [numbers.count(index) for index in range(sample)]
    assert max(times) - min(times) <= 1
    assert min(times) >= 1


@given(st.integers(1, 9), st.integers(1, 9))
def test_each_window_is_scored_beside_the_one_where_its_middle_lies(sample, many):
    """A window of ``few`` spans [n/few, (n+1)/few) of a text, one of a translation [m/many, (m+1)/many)."""
    result = middle_windows([row(index, 1) for index in range(many)], sample)
    assert len(result) == sample
    middles = [(2 * index + 1, 2 * sample) for index in range(sample)]
    assert all(
        window.example * lower_bound <= upper_bound * many < (window.example + 1) * lower_bound
        for window, (upper_bound, lower_bound) in zip(result, middles, strict=True)
    )


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5))
def test_rows_of_the_same_example_are_paired_and_examples_without_one_left_out(counts):
    result = paired_rows(
        rows([count for count, _ in counts]), rows([other_count for _, other_count in counts])
    )
    assert all(pair.source.example == pair.target.example for pair in result)
    for example, (left, right) in enumerate(counts):
        own_pairs = [pair for pair in result if pair.source.example == example]
        assert len(own_pairs) == (max(left, right) if right else 0)
        if right:
            assert {len(pair.source.subwords) for pair in own_pairs} == set(range(1, left + 1))
            assert {len(pair.target.subwords) for pair in own_pairs} == set(range(1, right + 1))


def test_back_translations_stand_beside_their_example_where_there_are_some():
    result = paired_rows(rows([1, 2]), rows([1, 1]), rows([0, 1], longer=5))
    assert [pair.back is None for pair in result] == [True, False, False]
    assert [len(pair) for pair in result] == [1, 1, 2]


def test_a_batch_holds_the_sources_first_and_its_places_in_that_order():
    pairs = [RowPair(row(0, 3, gold=(1,)), row(0, 2, gold=(1,))), RowPair(row(1, 2), row(1, 5))]
    batch = collate_pairs(pairs, padding=0, languages=("en", "de"))
    assert batch.joined.mask.sum(dim=1).tolist() == [3, 2, 2, 5]
    assert batch.source.gold.tolist() == batch.target.gold.tolist() == [1, 0]
    source, target = batch.split(torch.arange(4))
    assert (source.tolist(), target.tolist()) == ([0, 1], [2, 3])
    assert batch.source.soft is None
    assert torch.equal(batch.to("cpu").joined.subwords, batch.joined.subwords)
    assert batch.to("cpu").joined.languages == ("en", "en", "de", "de")


def test_where_some_rows_have_probabilities_gold_labels_become_such():
    soft = torch.tensor([[0.25, 0.75, 0.0]], dtype=torch.float16)
    pairs = [
        RowPair(row(0, 3, gold=(2,)), row(0, 3, gold=())),
        RowPair(replace(row(1, 2, gold=()), soft=soft), row(1, 2, gold=())),
    ]
    batch = collate_pairs(pairs, padding=0)
    assert batch.source.soft.tolist() == [[0.0, 0.0, 1.0], [0.25, 0.75, 0.0]]
    assert not len(batch.source.gold)
    assert batch.joined.soft is None and batch.target.soft is None


def test_rows_of_which_only_some_have_labels_are_refused():
    with pytest.raises(ValueError, match="batch"):
        collate_pairs([RowPair(row(0, 3), row(0, 1)), RowPair(row(1, 2, gold=()), row(1, 1))], padding=0)


# Examples and their translations


def examples(count, mark=""):
    return [
        SentencePair(
            id=f"p{n}",
            first=" ".join([WORDS[n % 6]] * (1 + n % 4)),
            second=mark or "the",
            label=LABELS[n % 3],
        )
        for n in range(count)
    ]


@pytest.fixture
def pair_examples(make_setting, bert_folder):
    """Pair examples with their translations, as a training reads them."""
    setting = replace(make_setting(("en",), ("de",), batch_size=4), task=TASKS["nli"])

    def batches_of(first, second, **options):
        train = {"en": first, "en-de": second, "en-de-en": first[:3]}
        return paired_batches(setting, load_tokenizer(bert_folder), train, **options)

    return batches_of


def test_an_example_without_translation_is_left_out_and_told_of(pair_examples):
    batches, warnings = pair_examples(examples(9), examples(7))
    assert len(batches.groups["en-de"]) == 7
    (warning,) = warnings
    assert "2 of 9 examples of en" in warning and "en-de" in warning


def test_translations_of_other_examples_are_an_error(pair_examples):
    turned_value = [
        replace(sentence_pair, label=LABELS[(n + 1) % 3]) for n, sentence_pair in enumerate(examples(9))
    ]
    with pytest.raises(DataError, match=r"en.*en-de: 9.*9"):
        pair_examples(examples(9), turned_value)


def test_a_batch_holds_examples_and_then_their_translations(pair_examples):
    batches, warnings = pair_examples(examples(10), examples(10, "on")[::-1])
    assert (warnings, batches.steps_per_epoch) == ((), 3)
    subwords = {tuple(item.source.subwords): tuple(item.target.subwords) for item in batches.groups["en-de"]}
    calls = Counter()
    for step in range(3):
        batch = batches[step]
        half_count = len(batch.source.subwords)
        assert batch.joined.languages == ("en",) * half_count + ("de",) * half_count
        result = [tuple(subword[subword != 0].tolist()) for subword in batch.joined.subwords]
        assert [subwords[item] for item in result[:half_count]] == result[half_count:]
        assert batch.source.gold.tolist() == batch.target.gold.tolist()
        calls.update(result[:half_count])
    assert calls == Counter(tuple(item.source.subwords) for item in batches.groups["en-de"])


def test_back_translations_take_the_sources_place_when_they_are_asked_for(pair_examples):
    batches, _ = pair_examples(
        examples(4), examples(4, "on"), takes_real=lambda step, count: [step == 0] * count
    )
    assert [item.back is None for item in batches.groups["en-de"]] == [False, False, False, True]


def test_a_batch_knows_its_links_and_those_of_a_back_translation_lead_from_the_translation(
    make_setting, bert_folder
):
    def tagged_words(words, links=None):
        return [TaggedSentence(id=str(n), words=words, tags=(), links=links) for n in range(3)]

    train = {
        "en": tagged_words(("the", "cat")),
        "en-de": tagged_words(("the", "the", "cat"), ((0, 2), (1, 0))),
        "en-de-en": tagged_words(("cat",), ((2, 0),)),
    }
    inputs = make_setting(("en",), ("de",), batch_size=3)
    batches, _ = paired_batches(
        inputs, load_tokenizer(bert_folder), train, takes_real=lambda *_: [True, False, True]
    )
    batch = batches[0]
    assert batch.links.shape == (3, 5, 5)
    real_value, back = [[1, 2], [3, 1]], [[3, 1]]  # (place in the translation, place in the source)
    assert [link.nonzero().tolist() for link in batch.links] == [real_value, back, real_value]
    parts = [part.links for part, _ in batch.parts(2)]
    assert [len(part) for part in parts] == [1, 2]
    assert torch.equal(torch.cat(parts), batch.links)
    assert batch.to("meta").links.is_meta
    train["en-de"] = tagged_words(("the", "the", "cat"))
    batches, _ = paired_batches(inputs, load_tokenizer(bert_folder), train)
    assert batches[0].links is None and batches[0].parts(2)[0][0].to("cpu").links is None


TAUGHT = TranslateTrain(labels="teacher")


@pytest.fixture(scope="module")
def teacher(bert_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    training = SourceOnly().train(setting("upos", bert_folder, folder / "work"))
    save_model(training.model, training.tokenizer, folder / "model")
    return folder / "model"


@pytest.mark.nightly
@pytest.mark.slow
def test_tags_that_translations_bring_along_change_nothing(bert_folder, teacher, tmp_path):
    inputs = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    with_tags = TAUGHT.train(inputs)
    bare_value = replace(
        inputs,
        folder=tmp_path / "b",
        train=lambda language: without_tags(sentences(language)) if "-" in language else sentences(language),
    )
    assert equal(TAUGHT.train(bare_value), with_tags)
    assert TAUGHT.train(replace(bare_value, folder=tmp_path / "c")).rows == with_tags.rows
    carried_training = TranslateTrain().train(replace(inputs, folder=tmp_path / "d"))
    assert not equal(carried_training, with_tags)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_sure_teacher_is_as_good_as_gold(bert_folder, teacher, tmp_path, monkeypatch):
    def sure(task, _teacher, examples, _optimization, *, language):
        assert language == "de"
        numbers = {label: index for index, label in enumerate(task.labels)}
        gold = [[numbers[tag] for tag in tags_by_id[example.id]] for example in examples]
        return [torch.nn.functional.one_hot(torch.tensor(row), len(numbers)).half() for row in gold]

    tags_by_id = {sentence.id: sentence.tags for sentence in sentences("en-de")}
    monkeypatch.setattr(module, "pseudo_labels", sure)
    inputs = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    training = TAUGHT.train(inputs)
    gold = TranslateTrain().train(replace(inputs, folder=tmp_path / "b"))
    for left, right in zip(weights(training).values(), weights(gold).values(), strict=True):
        torch.testing.assert_close(left, right, atol=2e-5, rtol=1e-4)


@pytest.mark.slow
def test_the_probabilities_are_those_of_the_teacher(bert_folder, teacher, tmp_path, monkeypatch):
    folders = []

    def note_labels(task, folder, examples, options, *, language):
        folders.append((folder, list(examples), language))
        return pseudo_labels(task, folder, examples, options, language=language)

    monkeypatch.setattr(module, "pseudo_labels", note_labels)
    TAUGHT.train(setting("upos", bert_folder, tmp_path, teacher=teacher))
    assert folders == [(str(teacher), without_tags(sentences("en-de")), "de")]


@pytest.mark.slow
def test_without_translations_it_is_source_only_to_the_bit(bert_folder, tmp_path):
    inputs = setting("upos", bert_folder, tmp_path / "a", target=())
    plain_training = SourceOnly().train(replace(inputs, folder=tmp_path / "b"))
    training = TAUGHT.train(inputs)
    assert equal(training, plain_training)
    assert training.rows == plain_training.rows


@pytest.mark.slow
def test_only_tagging_has_a_teacher(bert_folder, tmp_path):
    text = TAUGHT.reads(("en",), ("sw",))
    assert [name for name, task in TASKS.items() if text.needs_teacher(task)] == ["upos", "ner"]
    assert not TranslateTrain().reads(("en",), ("sw",)).needs_teacher(TASKS["upos"])
    inputs = setting("nli", bert_folder, tmp_path / "a")
    assert equal(TAUGHT.train(inputs), TranslateTrain().train(replace(inputs, folder=tmp_path / "b")))


def test_without_a_teacher_it_says_what_to_do(bert_folder, tmp_path):
    with pytest.raises(ConfigError, match=r"upos: .*Setting\.teacher"):
        TAUGHT.train(setting("upos", bert_folder, tmp_path))
