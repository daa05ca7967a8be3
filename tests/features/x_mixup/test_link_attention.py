"""The attention to linked words is measured. The answer is known for uniform attention."""

import pytest
import torch

from aligned import translations as shuffled
from isogloss.core.errors import DataError
from isogloss.encoders.families import family_of
from isogloss.features.x_mixup.diagnostics import LinkAttention, on_links
from measuring import load, measure_setting, translations

TEXTS = ["the cat sat .", "a dog ran home", "the bird sang"]


def rows_of(folder, pairs, *, flat=False, **fields):
    model, tokenizer = load(folder)
    if flat:
        for site in family_of(model).sites(model):
            torch.nn.init.zeros_(site.module(model, "query").weight)
            torch.nn.init.zeros_(site.module(model, "query").bias)
    setting = measure_setting([(model, tokenizer)], languages=("en", "fr"), bitext=lambda _: pairs)
    return LinkAttention(**fields).measure(setting)


def test_weights_on_links_by_hand():
    weights = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.5, 0.5, 0.0]]])
    links = torch.tensor([[[True, False, False], [False, True, False], [False, False, False]]])
    tensor = on_links(weights, links, torch.tensor([3.0]))
    assert tensor.tolist() == [pytest.approx([0.7, 1, 1 / 3]), pytest.approx([0.3, 0, 1 / 3])]


def test_an_attention_that_looks_at_all_alike_is_at_chance_in_every_layer(bert_folder):
    rows = rows_of(bert_folder, shuffled(20), flat=True, looks=("attention",))
    assert [(row.layer, row.look) for row in rows] == [(1, "attention"), (2, "attention"), (3, "attention")]
    assert [row.mass for row in rows] == [pytest.approx(row.chance, rel=1e-3) for row in rows]
    assert len({(row.chance, row.subwords) for row in rows}) == 1


def test_cosine_finds_every_word_of_a_text_in_itself(bert_folder):
    links = tuple((place, place) for place in range(3))
    rows = rows_of(bert_folder, translations(TEXTS, TEXTS, links), looks=("cosine",))
    assert [row.hits for row in rows] == [1, 1, 1]
    assert all(row.mass > row.chance for row in rows)


@pytest.mark.slow
def test_the_order_of_translations_changes_nothing(bert_folder):
    pairs = shuffled(20)
    rows, back = (rows_of(bert_folder, own_pairs) for own_pairs in (pairs, pairs[::-1]))
    for left, right in zip(rows, back, strict=True):
        assert (left.layer, left.look, left.subwords) == (right.layer, right.look, right.subwords)
        assert left.mass == pytest.approx(right.mass, rel=1e-3)


def test_bitext_without_links_is_an_error_that_says_what_to_do(bert_folder):
    with pytest.raises(DataError, match="3 translations en-fr"):
        rows_of(bert_folder, translations(TEXTS, TEXTS, ()))
