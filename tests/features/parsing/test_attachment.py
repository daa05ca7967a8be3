import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.rows.models import total
from isogloss.features.parsing.attachment import attachment_contributions, content_contributions, universal
from isogloss.metrics.labels import Tree

TAGS = ("NOUN", "VERB", "PUNCT", "SYM")
RELATIONS = ("nsubj", "nsubj:pass", "det", "punct", "aux", "nmod:poss", "nmod", "case", "root")
CONTENT = {
    "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl",
    "advmod", "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound",
    "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep",
}  # fmt: skip
"""Relations of content words, as in the shared task. The code under test lists the other relations."""


def attachment(gold, predicted, **options):
    """UAS and LAS."""
    return tuple(map(total, attachment_contributions(gold, predicted, **options)))


def clas(gold, predicted):
    return total(content_contributions(gold, predicted))


@st.composite
def sentences(draw):
    """Gold and predicted trees of the same words (heads need not be trees to be scored)."""
    lengths = draw(st.lists(st.integers(0, 6), max_size=4))

    def trees():
        drawn_trees = []
        for length in lengths:
            sizes = {"min_size": length, "max_size": length}
            drawn_trees.append(
                Tree(
                    tuple(draw(st.lists(st.integers(0, length), **sizes))),
                    tuple(draw(st.lists(st.sampled_from(RELATIONS), **sizes))),
                    tuple(draw(st.lists(st.sampled_from(TAGS), **sizes))),
                )
            )
        return drawn_trees

    return trees(), trees()


def rows(gold, predicted):
    """Yield sentence and place, tag, gold arc and predicted arc of each word, without subtypes."""
    for number, (gold_tree, predicted_tree) in enumerate(zip(gold, predicted, strict=True)):
        for place in range(len(gold_tree.heads)):
            arcs = [
                (tree.heads[place], tree.relations[place].split(":")[0])
                for tree in (gold_tree, predicted_tree)
            ]
            yield (number, place), gold_tree.tags[place], *arcs


def f1(gold, predicted):
    """F1 of two sets of facts, as precision and recall."""
    right = len(gold & predicted)
    precision = right / len(predicted) if predicted else 0.0
    recall = right / len(gold) if gold else 0.0
    return 2 * precision * recall / (precision + recall) if right else 0.0


@given(sentences())
def test_scores_without_punctuation_are_counted_word_by_word(pair):
    scored_words = [row for row in rows(*pair) if row[1] not in ("PUNCT", "SYM")]
    uas, las = attachment(*pair)
    assert uas == (
        sum(g[0] == p[0] for *_, g, p in scored_words) / len(scored_words) if scored_words else 0.0
    )
    assert las == (sum(g == p for *_, g, p in scored_words) / len(scored_words) if scored_words else 0.0)


@given(sentences())
def test_with_given_words_the_shared_tasks_f1_is_the_share_over_all_words(pair):
    words = list(rows(*pair))
    uas, las = attachment(*pair, unscored_tags=())
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
    for options in ({}, {"unscored_tags": ()}, {"word_limit": 3}):
        uas, las = attachment(*pair, **options)
        assert 0 <= las <= uas <= 1
        assert attachment(pair[0], pair[0], **options) in ((1.0, 1.0), (0.0, 0.0))


def test_a_known_sentence():
    tags = ("PRON", "VERB", "DET", "NOUN", "PUNCT")
    gold = [Tree((2, 0, 4, 2, 2), ("nsubj:pass", "root", "det", "obj", "punct"), tags)]
    predicted_trees = [Tree((2, 0, 4, 2, 4), ("nsubj", "root", "case", "iobj", "punct"))]
    assert attachment(gold, predicted_trees) == (4 / 4, 2 / 4)
    assert attachment(gold, predicted_trees, unscored_tags=()) == (4 / 5, 2 / 5)
    assert attachment(gold, predicted_trees, word_limit=1) == (1.0, 1.0)
    # nsubj and root of three content words on either side
    assert clas(gold, predicted_trees) == 2 * 2 / (3 + 3)


def test_a_word_that_is_content_on_one_side_alone_costs_precision_or_recall():
    gold, predicted_trees = [Tree((2, 0), ("det", "root"))], [Tree((2, 0), ("nmod", "root"))]
    assert clas(gold, predicted_trees) == clas(predicted_trees, gold) == 2 * 1 / (1 + 2)


def test_empty_cases_score_nothing():
    only_punctuation = [Tree((0,), ("punct",), ("PUNCT",))]
    for trees in ([], [Tree((), ())], only_punctuation):
        assert attachment(trees, trees) == (0.0, 0.0)
        assert clas(trees, trees) == 0.0
    assert attachment(only_punctuation, only_punctuation, unscored_tags=()) == (1.0, 1.0)


def test_trees_of_other_lengths_are_refused():
    for trees in ([], [Tree((0, 1), ("root", "dep"))], [Tree((0,), ())]):
        with pytest.raises(ValueError, match="length"):
            attachment([Tree((0,), ("root",), ("X",))], trees)
        with pytest.raises(ValueError, match="length"):
            clas([Tree((0,), ("root",), ("X",))], trees)


def test_subtypes_are_what_follows_the_colon():
    assert [universal(relation) for relation in ("nmod:poss", "root", "obl:arg:x")] == ["nmod", "root", "obl"]
