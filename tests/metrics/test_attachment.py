import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.rows.models import total
from isogloss.metrics.labels import Tree, attachment_contributions, content_contributions, universal

TAGS = ("NOUN", "VERB", "PUNCT", "SYM")
RELATIONS = ("nsubj", "nsubj:pass", "det", "punct", "aux", "nmod:poss", "nmod", "case", "root")
CONTENT = {
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl",
    "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound",
    "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep",
}  # fmt: skip
"""The shared task lists what is content. The code under test lists what is not."""


def attachment(gold, predicted_trees, **options):
    """UAS and LAS."""
    return tuple(
        total(attachment_contribution)
        for attachment_contribution in attachment_contributions(gold, predicted_trees, **options)
    )


def clas(gold, predicted_trees):
    return total(content_contributions(gold, predicted_trees))


@st.composite
def sentences(draw):
    """Gold and predicted trees of the same words (heads need not be trees to be scored)."""
    lengths = draw(st.lists(st.integers(0, 6), max_size=4))

    def trees():
        result = []
        for length in lengths:
            fields = {"min_size": length, "max_size": length}
            result.append(
                Tree(
                    tuple(draw(st.lists(st.integers(0, length), **fields))),
                    tuple(draw(st.lists(st.sampled_from(RELATIONS), **fields))),
                    tuple(draw(st.lists(st.sampled_from(TAGS), **fields))),
                )
            )
        return result

    return trees(), trees()


def rows(gold, predictions):
    """One row a word: sentence, place, tag, gold arc, predicted arc. Subtypes cut off by hand."""
    for index, (left, right) in enumerate(zip(gold, predictions, strict=True)):
        for place in range(len(left.heads)):
            arcs = [(tree.heads[place], tree.relations[place].split(":")[0]) for tree in (left, right)]
            yield (index, place), left.tags[place], *arcs


def f1(gold, predictions):
    """F1 of two sets of facts, as precision and recall."""
    right = len(gold & predictions)
    precision = right / len(predictions) if predictions else 0.0
    recall = right / len(gold) if gold else 0.0
    return 2 * precision * recall / (precision + recall) if right else 0.0


@given(sentences())
def test_scores_without_punctuation_are_counted_word_by_word(pair):
    scored_rows = [row for row in rows(*pair) if row[1] not in ("PUNCT", "SYM")]
    uas, las = attachment(*pair)
    assert uas == (sum(g[0] == p[0] for *_, g, p in scored_rows) / len(scored_rows) if scored_rows else 0.0)
    assert las == (sum(g == p for *_, g, p in scored_rows) / len(scored_rows) if scored_rows else 0.0)


@given(sentences())
def test_with_given_words_the_shared_tasks_f1_is_the_share_over_all_words(pair):
    words = list(rows(*pair))
    uas, las = attachment(*pair, without=())
    assert las == pytest.approx(f1({(w, g) for w, _, g, _ in words}, {(w, p) for w, *_, p in words}))
    heads = [{(word, arc[0]) for word, arc in side} for side in _sides(words)]
    assert uas == pytest.approx(f1(*heads))


@given(sentences())
def test_clas_is_the_shared_tasks_f1_over_content_words(pair):
    facts = [{(word, arc) for word, arc in side if arc[1] in CONTENT} for side in _sides(list(rows(*pair)))]
    assert clas(*pair) == pytest.approx(f1(*facts))


def _sides(words):
    return [(w, g) for w, _, g, _ in words], [(w, p) for w, *_, p in words]


@given(sentences())
def test_las_is_at_most_uas_and_the_gold_trees_themselves_are_all_right(pair):
    for options in ({}, {"without": ()}, {"first": 3}):
        uas, las = attachment(*pair, **options)
        assert 0 <= las <= uas <= 1
        assert attachment(pair[0], pair[0], **options) in ((1.0, 1.0), (0.0, 0.0))


def test_a_known_sentence():
    tags = ("PRON", "VERB", "DET", "NOUN", "PUNCT")
    gold = [Tree((2, 0, 4, 2, 2), ("nsubj:pass", "root", "det", "obj", "punct"), tags)]
    trees = [Tree((2, 0, 4, 2, 4), ("nsubj", "root", "case", "iobj", "punct"))]
    assert attachment(gold, trees) == (4 / 4, 2 / 4)
    assert attachment(gold, trees, without=()) == (4 / 5, 2 / 5)
    assert attachment(gold, trees, first=1) == (1.0, 1.0)
    assert clas(gold, trees) == 2 * 2 / (3 + 3)  # nsubj and root of three content words on either side


def test_a_word_that_is_content_on_one_side_alone_costs_precision_or_recall():
    gold = [Tree((2, 0), ("det", "root"))]
    trees = [Tree((2, 0), ("nmod", "root"))]
    assert clas(gold, trees) == clas(trees, gold) == 2 * 1 / (1 + 2)


def test_empty_cases_score_nothing():
    only_punctuation = [Tree((0,), ("punct",), ("PUNCT",))]
    for trees in ([], [Tree((), ())], only_punctuation):
        assert attachment(trees, trees) == (0.0, 0.0)
        assert clas(trees, trees) == 0.0
    assert attachment(only_punctuation, only_punctuation, without=()) == (1.0, 1.0)


def test_trees_of_other_lengths_are_refused():
    for other_item in ([], [Tree((0, 1), ("root", "dep"))], [Tree((0,), ())]):
        with pytest.raises(ValueError, match="length"):
            attachment([Tree((0,), ("root",), ("X",))], other_item)
        with pytest.raises(ValueError, match="length"):
            clas([Tree((0,), ("root",), ("X",))], other_item)


def test_subtypes_are_what_follows_the_colon():
    assert [universal(name) for name in ("nmod:poss", "root", "obl:arg:x")] == ["nmod", "root", "obl"]
