"""Links come with the words that they count, states of words have distances, and tags are checked."""

import numpy as np
import pandas as pd
import pytest
import torch

import isogloss
from any_models import make_model
from isogloss.core.errors import ConfigError, DataError, IsoglossError, ModelError
from made_up import SPANS
from says import says

FIRST = list(SPANS[:8])
SECOND = [" ".join(reversed(text.split()[:4])) for text in FIRST]
LINKS = [[(word, 3 - word) for word in range(4)]] * 8


@pytest.fixture(scope="module")
def bert_encoder():
    return make_model("bert")


@pytest.fixture(scope="module")
def sides(bert_encoder):
    return [isogloss.states(*bert_encoder, texts, words="average") for texts in (FIRST, SECOND)]


@pytest.mark.parametrize("name", ["text", "words"])
def test_links_are_of_the_words_that_come_with_them(bert_encoder, name):
    texts = ["Hello, world!", "The house."]
    sentences = texts if name == "text" else [text.split() for text in texts]
    for links in (isogloss.align(sentences, sentences), isogloss.align(sentences, sentences, *bert_encoder)):
        words = [pair.first for pair in links]
        assert words == [("Hello", ",", "world", "!") if name == "text" else ("Hello,", "world!"), words[1]]
        assert all(pair.first == pair.second and (0, 0) in pair for pair in links)
        assert all(i < len(pair.first) and j < len(pair.second) for pair in links for i, j in pair)
        assert links[0] == list(links[0])


@pytest.mark.parametrize("distance", ["l2", "cosine"])
def test_distances_of_states_are_those_of_the_model(bert_encoder, sides, distance):
    model_word_distances = isogloss.word_distances(
        *bert_encoder, FIRST, SECOND, LINKS, distance=distance, seed=3
    )
    state_word_distances = isogloss.word_distances(*sides, links=LINKS, distance=distance, seed=3)
    pd.testing.assert_frame_equal(state_word_distances, model_word_distances)


def test_distances_of_states_are_mean_distances_of_linked_words(sides):
    x, y = (side.vectors[1].reshape(8, -1, 16) for side in sides)
    pairs = [np.linalg.norm(x[n, i] - y[n, j]) for n in range(8) for i, j in LINKS[n]]
    word_distances = isogloss.word_distances(*sides, links=LINKS)
    assert word_distances.loc[1, "related"] == pytest.approx(np.mean(pairs), rel=1e-4)


def states_of_texts(loaded_model, _):
    return isogloss.word_distances(*[isogloss.states(*loaded_model, FIRST)] * 2, links=LINKS)


REFUSED = {
    "states of texts": (states_of_texts, DataError, ("first", "8 texts", "words")),
    "no links": (lambda _, sides: isogloss.word_distances(*sides), ConfigError, ("no links",)),
    "other sentences": (
        lambda _, sides: isogloss.word_distances(*sides, links=LINKS[:3]),
        DataError,
        ("8", "links of 3"),
    ),
    "settings of states": (
        lambda _, sides: isogloss.word_distances(*sides, links=LINKS, layers=[1]),
        ConfigError,
        ("layers", "isogloss.states"),
    ),
    "a side": (
        lambda loaded_model, _: isogloss.word_distances(*loaded_model, FIRST),
        ConfigError,
        (),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_distances_of_words_is_refused(bert_encoder, sides, name):
    call, kind, facts = REFUSED[name]
    with says(kind, "word_distances", *facts):
        call(bert_encoder, sides)


UNTAGGED = {
    "more tags than words": ([(["a"], ["O", "O"])], ("example 0", "1 words and 2 tags")),
    "a text for words": ([("a b", ["O", "O"])], ("example 0: words", "'a b'", "list of texts")),
    "a text for tags": ([(["a"], ["O"]), (["a"], "O")], ("example 1: tags", "'O'")),
    "numbers for tags": ([(["a"], [0])], ("example 0: tags", "[0]")),
    "words alone": (["ab"], ("example 0", "'ab'", "pair")),
}


@pytest.mark.parametrize("name", UNTAGGED)
def test_examples_without_a_tag_for_each_word_are_refused(name):
    examples, facts = UNTAGGED[name]
    with says(DataError, "project_labels", *facts):
        isogloss.project_labels(examples, ["x"] * len(examples), [[(0, 0)]] * len(examples))


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_model_moves_along_a_random_direction_with_rows_of_its_lengths(family):
    model, _ = make_model(family)
    weights_before = {name: weight.clone() for name, weight in model.named_parameters()}
    direction = isogloss.random_direction(model, seed=1)
    moved_parameters = dict(isogloss.move(model, direction, -0.5).named_parameters())
    for name, weight in model.named_parameters():
        assert torch.equal(weight, weights_before[name])
        torch.testing.assert_close(moved_parameters[name], weight - 0.5 * direction[name])
        lengths = weight.flatten(1).norm(dim=1) if weight.ndim > 1 else torch.zeros(())
        norm = direction[name].flatten(1).norm(dim=1) if weight.ndim > 1 else direction[name].norm()
        torch.testing.assert_close(norm, lengths)
    other_random_direction = isogloss.random_direction(model, seed=2)
    assert any(not torch.equal(direction[name], other_random_direction[name]) for name in direction)


@pytest.mark.parametrize(
    ("direction", "kind", "facts"),
    [
        ({"weigth": torch.zeros(1)}, ConfigError, ("'weigth'", "'weight'")),
        ({"bias": torch.zeros(3)}, ModelError, ("bias", "[3]", "[1]")),
    ],
)
def test_a_direction_of_another_model_is_refused(direction, kind, facts):
    with says(kind, "move: direction", *facts):
        isogloss.move(torch.nn.Linear(2, 1), direction, 1.0)
    assert issubclass(kind, IsoglossError)
