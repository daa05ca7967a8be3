import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.files import File
from isogloss.data.formats.conllu import read_conllu
from isogloss.encoders.computation import quick_dropout
from isogloss.encoders.saving import save_model
from isogloss.features.parsing.dependency_trees import is_tree
from isogloss.features.parsing.task import PARSING, Parsing
from isogloss.metrics.labels import Tree
from isogloss.tasks.batch import collate
from isogloss.tasks.tagging import UPOS
from isogloss.tasks.task import all_measures
from isogloss.training.evaluation import evaluation
from task_examples import SMALL, make_parsed, make_tagged, random_parsed

treebanks = st.lists(st.integers(0, 30), min_size=1, max_size=4).flatmap(
    lambda sizes: st.integers(0, 9).map(
        lambda seed: [random_parsed(size, seed=seed, number=n) for n, size in enumerate(sizes)]
    )
)


# Rows


@given(treebanks, st.integers(6, 60), st.integers(1, 12))
def test_a_row_holds_the_first_words_that_fit_and_their_heads(either_tokenizer, examples, limit, words):
    rows = replace(PARSING, words=words).encode(examples, either_tokenizer, limit=limit)
    assert [row.example for row in rows] == [n for n, sentence in enumerate(examples) if sentence.words]
    for row in rows:
        example = examples[row.example]
        count = len(row.words)
        (whole_encoding,) = UPOS.encode([example], either_tokenizer, limit=10_000, overlap=0)
        assert row.subwords[:-1] == whole_encoding.subwords[: len(row.subwords) - 1]
        assert (row.subwords[0], row.subwords[-1]) == (
            either_tokenizer.cls_token_id,
            either_tokenizer.sep_token_id,
        )
        assert list(row.words) == list(range(count))
        assert row.positions == whole_encoding.positions[:count]
        assert row.positions[-1] < len(row.subwords) - 1
        fitting = [place for place in whole_encoding.positions if place < limit - 1]
        assert 1 <= count == min(words, len(fitting)) <= len(example.words)
        assert len(row.subwords) <= limit
        assert [PARSING.labels[index] for index in row.gold] == list(example.relations[:count])
        assert row.heads == tuple(h if h <= count else -1 for h in example.heads[:count])


def test_sentences_without_trees_have_rows_without_labels(either_tokenizer):
    for example in (make_tagged(["a", "cat"], ["DET", "NOUN"]), make_parsed(["a", "cat"])):
        (row,) = PARSING.encode([example], either_tokenizer)
        assert (row.gold, row.heads, list(row.words)) == ((), (), [0, 1])
        assert PARSING.gold([example]) == [Tree((), ())]
    assert PARSING.encode([make_parsed([])], either_tokenizer) == []


def test_subtypes_are_dropped_unless_the_inventory_has_them(either_tokenizer):
    example = make_parsed(["my", "cat"], [2, 0], ["nmod:poss", "root"])
    finer = Parsing(name="finer", labels=("nmod", "nmod:poss", "root"))
    for task, expected in ((PARSING, "nmod"), (finer, "nmod:poss")):
        (row,) = task.encode([example], either_tokenizer)
        assert task.labels[row.gold[0]] == expected


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("nusbj", "relation 'nusbj'"),
        (
            "dobj",
            "no relation 'dobj'. It is a relation of Universal Dependencies 1; version 2 has 'obj'",
        ),
        ("nsubjpass", "version 2 has 'nsubj:pass'"),
    ],
)
def test_relations_outside_the_inventory_are_named(either_tokenizer, relation, message):
    with pytest.raises(DataError) as error:
        PARSING.encode([make_parsed(["a", "b"], [0, 1], ["root", relation], number=7)], either_tokenizer)
    assert str(error.value).startswith("example 's7', word 2: ")
    assert message in str(error.value)


def test_a_relation_outside_the_inventory_is_named_with_file_and_line(either_tokenizer):
    lines = ["# text = a b", "1-2\tab" + "\t_" * 8, "1\ta\t_\tX\t_\t_\t0\troot\t_\t_"]
    wrong = "2\tb\t_\tX\t_\t_\t1\tnusbj\t_\t_"
    text = [*lines[2:], "", *lines, wrong, ""]
    file = File("en.conllu", lambda: iter(text), str)
    with pytest.raises(DataError, match=r"^en\.conllu:6: .*parsing.*'nusbj'"):
        PARSING.encode(list(read_conllu(file)), either_tokenizer)


@pytest.mark.parametrize("heads", [(0, 0), (2, 1), (0, 3), (0, -1)])
def test_heads_that_are_no_tree_are_named(either_tokenizer, heads):
    with pytest.raises(DataError, match=rf"example 's0': the heads {re.escape(str(list(heads)))} .*tree"):
        PARSING.encode([make_parsed(["a", "b"], heads, ["root", "dep"])], either_tokenizer)


def test_a_tree_of_another_length_is_named(either_tokenizer):
    with pytest.raises(DataError, match=r"example 's0': .*1 heads, 2.*0.*2"):
        PARSING.encode([make_parsed(["a", "b"], [0], ["root", "dep"])], either_tokenizer)


def test_a_limit_without_room_for_a_word_and_labels_without_root_are_refused(either_tokenizer):
    with pytest.raises(ValueError, match=r"rows of 2 subwords .* at least 3"):
        PARSING.encode([make_parsed(["a"])], either_tokenizer, limit=2)
    with pytest.raises(ConfigError, match=r"x: .*'root'"):
        Parsing(name="x", labels=("dep",))


# Decoding


def test_words_that_were_cut_off_hang_on_the_word_before(either_tokenizer):
    examples = [random_parsed(9)]
    task = replace(PARSING, words=4)
    rows = task.encode(examples, either_tokenizer)
    (tree,) = task.decode(examples, rows, [torch.zeros(4, 5, 2)])
    assert tree.heads[4:] == (4, 5, 6, 7, 8)
    assert tree.relations[4:] == ("dep",) * 5
    assert is_tree(tree.heads)


# Head, scores, loss


@pytest.fixture(scope="module")
def examples():
    return [random_parsed(size, number=index) for index, size in enumerate((5, 2, 1, 9))]


@pytest.fixture(scope="module")
def batch(either_tokenizer, examples):
    return collate(
        PARSING.encode(examples, either_tokenizer, limit=500), padding=either_tokenizer.pad_token_id
    )


@pytest.fixture(scope="module")
def model(either_folder):
    return SMALL.head(either_folder, seed=0)


def test_only_the_root_and_other_words_of_the_row_can_be_heads(model, batch, examples):
    with torch.no_grad():
        scores = SMALL.scores(model, batch)
    parts = scores.split([len(example.words) for example in examples])
    for part in each(parts):
        count = len(part)
        possible = torch.isfinite(part[:, :, 0])
        assert possible[:, 0].all()
        assert torch.equal(possible[:, 1 : count + 1], ~torch.eye(count, dtype=torch.bool))
        assert not possible[:, count + 1 :].any()
        names = [[SMALL.labels[int(index)] for index in word] for word in part[:, :, 1]]
        assert all(word[0] == "root" and "root" not in word[1:] for word in names)


def test_loss_is_that_of_each_word_alone_root_arcs_included(model, batch, either_tokenizer, examples):
    terms = []
    with torch.no_grad():
        for example in examples:
            (row,) = SMALL.encode([example], either_tokenizer)
            states = model.base_model(torch.tensor([row.subwords])).last_hidden_state[0, list(row.positions)]
            arcs = model.head.arcs(states[None])[0]
            relations = model.head.relations(states[None])[0]
            for word, (head, label) in enumerate(zip(row.heads, row.gold, strict=True)):
                possible = [n for n in range(len(row.words) + 1) if n != word + 1]
                terms.append(torch.logsumexp(arcs[word, possible], 0) - arcs[word, head])
                gold_relations = relations[word, :, head]
                terms[-1] = terms[-1] + torch.logsumexp(gold_relations, 0) - gold_relations[label]
        torch.testing.assert_close(SMALL.loss(model, batch), torch.stack(terms).mean())


def test_words_whose_head_was_cut_off_add_nothing_to_the_loss(model, either_tokenizer):
    example = make_parsed(["the", "cat", "Anna", "slowly"], [4, 1, 2, 0], ["det", "obj", "iobj", "root"])
    (whole_encoding,) = with_fields(SMALL, words=3).encode([example], either_tokenizer)
    assert whole_encoding.heads == (-1, 1, 2)
    other_item = replace(whole_encoding, gold=(SMALL.labels.index("xcomp"), *whole_encoding.gold[1:]))
    pad = either_tokenizer.pad_token_id
    with torch.no_grad():
        loss = SMALL.loss(model, collate([whole_encoding], padding=pad))
        assert torch.equal(loss, SMALL.loss(model, collate([other_item], padding=pad)))
        nothing = SMALL.loss(model, collate([replace(whole_encoding, heads=(-1, -1, -1))], padding=pad))
    assert loss > 0
    assert nothing == 0


def test_a_saved_model_scores_the_same_to_the_bit(model, batch, either_tokenizer, tmp_path):
    save_model(model, either_tokenizer, tmp_path / "model")
    back = SMALL.head(tmp_path / "model", seed=9)
    with torch.no_grad():
        assert torch.equal(SMALL.scores(back, batch), SMALL.scores(model, batch))


def test_the_head_has_the_papers_sizes(either_folder):
    model = PARSING.head(either_folder, seed=1)
    assert (model.head.arc.shape, model.head.relation.shape) == ((513, 512), (37, 129, 129))
    assert {part.p for part in model.head.modules() if isinstance(part, torch.nn.Dropout)} == {0.33}


def test_bfloat16_gives_nearly_the_same_scores_and_finite_gradients(either_folder, batch):
    model = SMALL.head(either_folder, seed=0)
    with torch.no_grad():
        full_scores = SMALL.scores(model, batch)[..., 0]
    with torch.autocast("cpu", torch.bfloat16):
        scores = SMALL.scores(model, batch)[..., 0]
        SMALL.loss(model, batch).backward()
    finite = torch.isfinite(full_scores)
    assert scores.dtype == torch.float32 and torch.equal(finite, torch.isfinite(scores))
    torch.testing.assert_close(
        scores[finite], full_scores[finite], rtol=0.1, atol=0.1 * full_scores[finite].std().item()
    )
    grads = [weight.grad for weight in model.head.parameters()]
    assert all(torch.isfinite(grad).all() and grad.any() for grad in grads)


def test_quick_dropout_finds_the_heads_dropout(either_folder, batch):
    model = SMALL.head(either_folder, seed=0).train()
    with quick_dropout(model) as names:
        assert sum(name.startswith("head.") for name in names) == 4
        losses = {SMALL.loss(model, batch).item() for _ in range(3)}
    assert len(losses) == 3


# Scores of predictions


def test_the_first_words_alone_count_but_for_the_shared_task():
    task = replace(PARSING, words=2)
    gold = [Tree((0, 1, 1, 3), ("root", "obj", "punct", "amod"), ("VERB", "NOUN", "PUNCT", "ADJ"))]
    trees = [Tree((0, 1, 2, 1), ("root", "iobj", "punct", "amod"))]
    assert all_measures(task, gold, trees) == {
        "las": 1 / 2,
        "uas": 2 / 2,
        "las_with_punctuation": 1 / 2,
        "uas_with_punctuation": 2 / 2,
        "conll2018_las": 1 / 4,
        "conll2018_uas": 2 / 4,
        "conll2018_clas": 2 * 1 / (3 + 3),
    }
    whole_measures = all_measures(PARSING, gold, trees)
    assert (whole_measures["las"], whole_measures["uas"]) == (1 / 3, 2 / 3)
    assert (whole_measures["las_with_punctuation"], whole_measures["uas_with_punctuation"]) == (1 / 4, 2 / 4)


def test_the_baseline_is_the_better_chain_of_the_training_trees():
    state_before = make_parsed("abc", [0, 1, 2], ["root", "obj", "obj"])
    state_after = make_parsed("abc", [2, 3, 0], ["det", "det", "root"])
    assert PARSING.majority([state_before], [state_before]) == 1.0
    assert PARSING.majority([state_after], [state_after]) == 1.0
    assert PARSING.majority([state_before], [state_after]) == 0.0
    mixed_result = make_parsed(
        "abcd", [2, 0, 2, 3], ["det", "root", "obj", "nmod"], tags=["DET", "VERB", "NOUN", "NOUN"]
    )
    assert PARSING.majority([state_before], [mixed_result]) == 1 / 4  # word 3 on word 2, as obj
    assert PARSING.majority([], []) == 0.0


# Evaluation


def test_scored_rows_are_whole_whatever_the_limit_of_training(either_folder, either_tokenizer):
    long_random_parsed = replace(
        random_parsed(120), words=("casings",) * 120
    )  # Longer than the encoder takes.
    examples = [*(random_parsed(size, number=size) for size in (3, 40)), long_random_parsed]
    model = SMALL.head(either_folder, seed=0)
    optimization = with_fields(Optimization(), limit=12, overlap=2, precision="float32")
    record = evaluation(SMALL, examples, either_tokenizer, optimization)
    assert [len(row.words) for row in record.rows[:2]] == [3, 40]
    assert len(record.rows[2].words) < 120
    assert max(len(row.subwords) for row in record.rows) == either_tokenizer.model_max_length == 160
    trees = record.predict(model)
    assert [len(tree.heads) for tree in trees] == [3, 40, 120]
    assert all(is_tree(tree.heads) for tree in trees)
    tagged_evaluation = evaluation(UPOS, examples, either_tokenizer, Optimization(limit=12, overlap=2))
    assert max(len(row.subwords) for row in tagged_evaluation.rows) <= 12
