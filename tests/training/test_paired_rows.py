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
    """Rows of as many examples, with a number of rows each; a row's length is its index in its example."""
    return [
        row(example, 1 + number + longer) for example, count in enumerate(counts) for number in range(count)
    ]


@given(st.integers(1, 9), st.integers(0, 9))
def test_repeating_keeps_the_order_leaves_none_out_and_repeats_evenly(few, more):
    found = repeated_windows([row(number, 1) for number in range(few)], few + more)
    numbers = [one.example for one in found]
    assert numbers == sorted(numbers)
    times = [numbers.count(number) for number in range(few)]
    assert max(times) - min(times) <= 1
    assert min(times) >= 1


@given(st.integers(1, 9), st.integers(1, 9))
def test_each_window_is_scored_beside_the_one_where_its_middle_lies(few, many):
    """A window of ``few`` spans [n/few, (n+1)/few) of a text, one of a translation [m/many, (m+1)/many)."""
    found = middle_windows([row(number, 1) for number in range(many)], few)
    assert len(found) == few
    middles = [(2 * number + 1, 2 * few) for number in range(few)]
    assert all(
        window.example * below <= above * many < (window.example + 1) * below
        for window, (above, below) in zip(found, middles, strict=True)
    )


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=5))
def test_rows_of_the_same_example_are_paired_and_examples_without_one_left_out(counts):
    found = paired_rows(rows([one for one, _ in counts]), rows([other for _, other in counts]))
    assert all(pair.source.example == pair.target.example for pair in found)
    for example, (one, other) in enumerate(counts):
        own = [pair for pair in found if pair.source.example == example]
        assert len(own) == (max(one, other) if other else 0)
        if other:
            assert {len(pair.source.subwords) for pair in own} == set(range(1, one + 1))
            assert {len(pair.target.subwords) for pair in own} == set(range(1, other + 1))


def test_back_translations_stand_beside_their_example_where_there_are_some():
    found = paired_rows(rows([1, 2]), rows([1, 1]), rows([0, 1], longer=5))
    assert [pair.back is None for pair in found] == [True, False, False]
    assert [len(pair) for pair in found] == [1, 1, 2]


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
    turned = [replace(one, label=LABELS[(n + 1) % 3]) for n, one in enumerate(examples(9))]
    with pytest.raises(DataError, match=r"en.*en-de: 9.*9"):
        pair_examples(examples(9), turned)


def test_a_batch_holds_examples_and_then_their_translations(pair_examples):
    batches, warnings = pair_examples(examples(10), examples(10, "on")[::-1])
    assert (warnings, batches.steps_per_epoch) == ((), 3)
    of = {tuple(one.source.subwords): tuple(one.target.subwords) for one in batches.groups["en-de"]}
    seen = Counter()
    for step in range(3):
        batch = batches[step]
        half = len(batch.source.subwords)
        assert batch.joined.languages == ("en",) * half + ("de",) * half
        found = [tuple(one[one != 0].tolist()) for one in batch.joined.subwords]
        assert [of[one] for one in found[:half]] == found[half:]
        assert batch.source.gold.tolist() == batch.target.gold.tolist()
        seen.update(found[:half])
    assert seen == Counter(tuple(one.source.subwords) for one in batches.groups["en-de"])


def test_back_translations_take_the_sources_place_when_they_are_asked_for(pair_examples):
    batches, _ = pair_examples(
        examples(4), examples(4, "on"), takes_real=lambda step, count: [step == 0] * count
    )
    assert [one.back is None for one in batches.groups["en-de"]] == [False, False, False, True]


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
    given = make_setting(("en",), ("de",), batch_size=3)
    batches, _ = paired_batches(
        given, load_tokenizer(bert_folder), train, takes_real=lambda *_: [True, False, True]
    )
    batch = batches[0]
    assert batch.links.shape == (3, 5, 5)
    real, back = [[1, 2], [3, 1]], [[3, 1]]  # (place in the translation, place in the source)
    assert [one.nonzero().tolist() for one in batch.links] == [real, back, real]
    parts = [part.links for part, _ in batch.parts(2)]
    assert [len(part) for part in parts] == [1, 2]
    assert torch.equal(torch.cat(parts), batch.links)
    assert batch.to("meta").links.is_meta
    train["en-de"] = tagged_words(("the", "the", "cat"))
    batches, _ = paired_batches(given, load_tokenizer(bert_folder), train)
    assert batches[0].links is None and batches[0].parts(2)[0][0].to("cpu").links is None


TAUGHT = TranslateTrain(labels="teacher")


@pytest.fixture(scope="module")
def teacher(bert_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    made = SourceOnly().train(setting("upos", bert_folder, folder / "work"))
    save_model(made.model, made.tokenizer, folder / "model")
    return folder / "model"


@pytest.mark.nightly
@pytest.mark.slow
def test_tags_that_translations_bring_along_change_nothing(bert_folder, teacher, tmp_path):
    given = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    with_tags = TAUGHT.train(given)
    bare = replace(
        given,
        folder=tmp_path / "b",
        train=lambda code: without_tags(sentences(code)) if "-" in code else sentences(code),
    )
    assert equal(TAUGHT.train(bare), with_tags)
    assert TAUGHT.train(replace(bare, folder=tmp_path / "c")).rows == with_tags.rows
    carried = TranslateTrain().train(replace(given, folder=tmp_path / "d"))
    assert not equal(carried, with_tags)


@pytest.mark.slow
def test_a_sure_teacher_is_as_good_as_gold(bert_folder, teacher, tmp_path, monkeypatch):
    def sure(task, _teacher, examples, _optimization, *, language):
        assert language == "de"
        numbers = {label: number for number, label in enumerate(task.labels)}
        gold = [[numbers[tag] for tag in by_id[example.id]] for example in examples]
        return [torch.nn.functional.one_hot(torch.tensor(row), len(numbers)).half() for row in gold]

    by_id = {one.id: one.tags for one in sentences("en-de")}
    monkeypatch.setattr(module, "pseudo_labels", sure)
    given = setting("upos", bert_folder, tmp_path / "a", teacher=teacher)
    found = TAUGHT.train(given)
    gold = TranslateTrain().train(replace(given, folder=tmp_path / "b"))
    for one, other in zip(weights(found).values(), weights(gold).values(), strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


@pytest.mark.slow
def test_the_probabilities_are_those_of_the_teacher(bert_folder, teacher, tmp_path, monkeypatch):
    asked = []

    def note_labels(task, folder, examples, how, *, language):
        asked.append((folder, list(examples), language))
        return pseudo_labels(task, folder, examples, how, language=language)

    monkeypatch.setattr(module, "pseudo_labels", note_labels)
    TAUGHT.train(setting("upos", bert_folder, tmp_path, teacher=teacher))
    assert asked == [(str(teacher), without_tags(sentences("en-de")), "de")]


@pytest.mark.slow
def test_without_translations_it_is_source_only_to_the_bit(bert_folder, tmp_path):
    given = setting("upos", bert_folder, tmp_path / "a", target=())
    plain = SourceOnly().train(replace(given, folder=tmp_path / "b"))
    found = TAUGHT.train(given)
    assert equal(found, plain)
    assert found.rows == plain.rows


@pytest.mark.slow
def test_only_tagging_has_a_teacher(bert_folder, tmp_path):
    reads = TAUGHT.reads(("en",), ("sw",))
    assert [name for name, task in TASKS.items() if reads.needs_teacher(task)] == ["upos", "ner"]
    assert not TranslateTrain().reads(("en",), ("sw",)).needs_teacher(TASKS["upos"])
    given = setting("nli", bert_folder, tmp_path / "a")
    assert equal(TAUGHT.train(given), TranslateTrain().train(replace(given, folder=tmp_path / "b")))


def test_without_a_teacher_it_says_what_to_do(bert_folder, tmp_path):
    with pytest.raises(ConfigError, match=r"upos: .*Setting\.teacher"):
        TAUGHT.train(setting("upos", bert_folder, tmp_path))
