import pytest
import torch
from torch import nn

from each import each
from isogloss.encoders.computation import quick_dropout
from isogloss.features.parsing.dependency_trees import BiaffineParser, Perceptron

DIM = 6
RELATIONS = 3


@pytest.fixture
def parser():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        biaffine_parser = BiaffineParser(DIM, RELATIONS, arc_dim=5, relation_dim=4, dropout=0.33)
        for weight in biaffine_parser.parameters():
            nn.init.normal_(weight)
    return biaffine_parser.eval().double()


@pytest.fixture
def words():
    return torch.randn(2, 4, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.double)


def look(part, state):
    """The layer and ELU, written out."""
    x = part.layer.weight @ state + part.layer.bias
    return torch.where(x > 0, x, x.exp() - 1)


def test_arcs_are_those_of_the_paper_word_by_word(parser, words):
    scores = parser.arcs(words)
    assert scores.shape == (2, 4, 5)
    bilinear = parser.arc[:-1]
    bias = parser.arc[-1]
    for row in range(2):
        for word in range(4):
            dependent = look(parser.arc_dependent, words[row, word])
            for candidate, state in enumerate([parser.root[0], *words[row]]):
                head = look(parser.arc_head, state)
                torch.testing.assert_close(
                    scores[row, word, candidate], dependent @ bilinear @ head + bias @ head
                )


def test_relations_are_those_of_the_paper_arc_by_arc(parser, words):
    scores = parser.relations(words)
    assert scores.shape == (2, 4, RELATIONS, 5)
    for word in range(4):
        dependent = look(parser.relation_dependent, words[1, word])
        for candidate, state in enumerate([parser.root[0], *words[1]]):
            head = look(parser.relation_head, state)
            for relation, weight in enumerate(parser.relation):
                expected = (
                    dependent @ weight[:-1, :-1] @ head
                    + weight[-1, :-1] @ head
                    + dependent @ weight[:-1, -1]
                    + weight[-1, -1]
                )
                torch.testing.assert_close(scores[1, word, relation, candidate], expected)


def test_relations_at_given_arcs_are_those_among_all(parser, words):
    rows = torch.tensor([0, 0, 1, 1])
    numbers = torch.tensor([0, 3, 1, 2])
    heads = torch.tensor([0, 2, 4, 0])
    relations = parser.relations_at(words, (rows, numbers), heads)
    torch.testing.assert_close(relations, parser.relations(words)[rows, numbers, :, heads])


def test_the_order_of_words_does_not_matter(parser, words):
    order = torch.tensor([2, 0, 3, 1])
    candidates = torch.cat([torch.zeros(1, dtype=torch.long), order + 1])
    torch.testing.assert_close(parser.arcs(words[:, order]), parser.arcs(words)[:, order][..., candidates])
    torch.testing.assert_close(
        parser.relations(words[:, order]), parser.relations(words)[:, order][..., candidates]
    )


def test_every_weight_is_learned_the_root_too(parser, words):
    relations = parser.relations_at(words, (torch.tensor([0]), torch.tensor([0])), torch.tensor([0]))
    (parser.arcs(words).sum() + relations.sum()).backward()
    assert all(
        weight.grad is not None and weight.grad.abs().sum() > 0 for weight in each(parser.parameters())
    )


def test_dropout_is_alike_for_all_words_of_a_row_and_only_in_training():
    part = Perceptron(8, 64, dropout=0.5)
    nn.init.zeros_(part.layer.weight)
    nn.init.ones_(part.layer.bias)
    words = torch.randn(3, 5, 8)
    assert torch.equal(part.eval()(words), torch.ones(3, 5, 64))
    torch.manual_seed(0)
    for quick in (False, True):
        part.train()
        if quick:
            with quick_dropout(part) as names:
                dropped_part = part(words)
            assert names == ["dropout"]
        else:
            dropped_part = part(words)
        assert torch.equal(dropped_part, dropped_part[:, :1].expand_as(dropped_part))
        assert not torch.equal(dropped_part[0], dropped_part[1])
        assert 0.3 < (dropped_part == 0).float().mean() < 0.7
        assert set(dropped_part.unique().tolist()) == {0.0, 2.0}
