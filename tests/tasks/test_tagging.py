from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.encoders.loading import load_tokenizer
from isogloss.metrics.labels import repair
from isogloss.tasks.batch import collate
from isogloss.tasks.tagging import NER, UPOS

WORDS = ("the", "cat", "happened", "unbelievable", "xyz", "Anna", "slowly", "casings", "\u200b")


@pytest.fixture(scope="module", params=["bert", "xlm_roberta"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="module")
def tokenizer(folder):
    return load_tokenizer(folder)


def sentence(words, tags=(), number=0):
    return TaggedSentence(id=f"s{number}", words=tuple(words), tags=tuple(tags))


@st.composite
def sentences(draw, task, longest=40):
    pairs = st.tuples(st.sampled_from(WORDS), st.sampled_from(task.labels))
    drawn = draw(st.lists(st.lists(pairs, max_size=longest), min_size=1, max_size=4))
    return [
        sentence([word for word, _ in one], [tag for _, tag in one], number)
        for number, one in enumerate(drawn)
    ]


def exactly(task, rows, gold):
    """Give each row scores whose best labels are those of ``gold`` (label numbers per example)."""
    labels = [[gold[row.example][word] for word in row.words] for row in rows]
    return [torch.eye(len(task.labels))[torch.tensor(one)] for one in labels]


# Rows


@given(st.data(), st.integers(6, 30))
@settings(deadline=None, max_examples=60)
def test_each_word_is_scored_once_at_its_first_subword(tokenizer, data, limit):
    examples = data.draw(sentences(UPOS))
    rows = UPOS.encode(examples, tokenizer, limit=limit, overlap=(limit - 2) // 2)
    scored = [(row.example, word) for row in rows for word in row.words]
    assert scored == [(number, word) for number, one in enumerate(examples) for word in range(len(one.words))]
    for row in rows:
        assert len(row.subwords) <= limit
        assert (row.subwords[0], row.subwords[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert len(row.positions) == len(row.words) == len(row.gold) > 0
        for place, word, label in zip(row.positions, row.words, row.gold, strict=True):
            example = examples[row.example]
            alone = tokenizer([[example.words[word]]], is_split_into_words=True, add_special_tokens=False)
            assert row.subwords[place] == (*alone["input_ids"][0], tokenizer.unk_token_id)[0]
            assert UPOS.labels[label] == example.tags[word]


def test_short_sentences_are_encoded_as_the_tokenizer_does(tokenizer):
    words = ["the", "casings", "happened"]
    (row,) = UPOS.encode([sentence(words)], tokenizer)
    assert list(row.subwords) == tokenizer([words], is_split_into_words=True)["input_ids"][0]
    assert row.segments is None
    assert row.gold == ()


def test_treebank_sentences_are_encoded_like_tagged_ones(tokenizer):
    words, tags = ("the", "cat"), ("DET", "NOUN")
    parsed = ParsedSentence(id="p", words=words, tags=tags, heads=(2, 0), relations=("det", "root"))
    assert UPOS.encode([parsed], tokenizer) == UPOS.encode([sentence(words, tags)], tokenizer)


def test_sentences_without_words_have_no_rows_and_no_tags(tokenizer):
    examples = [sentence([]), sentence(["the"], number=1), sentence([], number=2)]
    rows = UPOS.encode(examples, tokenizer)
    assert [row.example for row in rows] == [1]
    assert UPOS.decode(examples, rows, exactly(UPOS, rows, [[], [5], []])) == [(), ("DET",), ()]
    assert UPOS.encode([], tokenizer) == []
    assert UPOS.decode([], [], []) == []


def test_a_word_longer_than_a_row_is_scored_once(tokenizer):
    examples = [sentence(["the", "zanna" * 30, "cat"], ["DET", "NOUN", "VERB"])]
    rows = UPOS.encode(examples, tokenizer, limit=12, overlap=4)
    assert [word for row in rows for word in row.words] == [0, 1, 2]
    assert max(len(row.subwords) for row in rows) <= 12


def test_labels_outside_the_inventory_are_named(tokenizer):
    with pytest.raises(DataError) as caught:
        NER.encode([sentence(["a", "cat"], ["O", "B-PERS"], 7)], tokenizer)
    assert str(caught.value) == (
        "example 's7', word 2: ner has no label 'B-PERS'. Did you mean 'B-PER'? "
        "Allowed: O, B-PER, I-PER, B-ORG, I-ORG, B-LOC, I-LOC."
    )


def test_sentences_with_too_few_tags_are_named(tokenizer):
    with pytest.raises(DataError, match="example 's0': 2 words but 1 tags"):
        UPOS.encode([sentence(["a", "cat"], ["DET"])], tokenizer)


@pytest.mark.parametrize(("limit", "overlap"), [(16, 14), (2, 0), (16, -1)])
def test_impossible_limits_are_refused(tokenizer, limit, overlap):
    with pytest.raises(
        ValueError, match=f"rows of {limit} subwords, 2 of them special, cannot overlap by {overlap}"
    ):
        UPOS.encode([sentence(["a"])], tokenizer, limit=limit, overlap=overlap)


# Decoding


@pytest.mark.parametrize("task", [UPOS, NER], ids=lambda task: task.name)
@given(st.data(), st.integers(6, 30), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_decoding_is_merging_words_then_repairing(tokenizer, task, data, limit, random):
    examples = data.draw(sentences(task))
    rows = task.encode(examples, tokenizer, limit=limit, overlap=(limit - 2) // 2)
    random.shuffle(rows)
    gold = [[task.labels.index(tag) for tag in example.tags] for example in examples]
    expected = [repair(example.tags) if task is NER else example.tags for example in examples]
    assert task.decode(examples, rows, exactly(task, rows, gold)) == expected


def test_no_entity_is_cut_at_the_border_of_a_window(tokenizer):
    tags = ["B-PER"] + ["I-PER"] * 39
    examples = [sentence(["Anna"] * 40, tags)]
    rows = NER.encode(examples, tokenizer, limit=14, overlap=6)
    assert len(rows) > 3
    (predicted,) = NER.decode(examples, rows, exactly(NER, rows, [[1] + [2] * 39]))
    assert predicted == tuple(tags)
    assert NER.score(NER.gold(examples), [predicted]) == 1.0


def test_decoding_part_of_the_rows_or_some_twice_is_refused(tokenizer):
    examples = [sentence(["Anna"] * 40)]
    rows = NER.encode(examples, tokenizer, limit=14, overlap=6)
    scores = exactly(NER, rows, [[0] * 40])
    for part in (slice(1, None), slice(0, -1)):
        with pytest.raises(ValueError, match="decode all rows of all examples together, each once"):
            NER.decode(examples, rows[part], scores[part])
    with pytest.raises(ValueError, match="decode all rows of all examples together, each once"):
        NER.decode(examples, [*rows[:-1], rows[0]], [*scores[:-1], scores[0]])


class Neighbours(torch.nn.Module):
    """A toy encoder: each state is an exact sum over the subwords at most ``reach`` places away."""

    def __init__(self, vocabulary, classes, reach):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        size = (2 * reach + 1, vocabulary, classes)
        self.tables = torch.randint(-1000, 1000, size, generator=generator).double()
        self.reach = reach

    def forward(self, input_ids, attention_mask=None):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = torch.zeros(*input_ids.shape, self.tables.shape[-1], dtype=torch.double)
        length = input_ids.shape[1]
        for offset in range(-self.reach, self.reach + 1):
            here = slice(max(0, -offset), length - max(0, offset))
            there = slice(max(0, offset), length - max(0, -offset))
            near = self.tables[offset + self.reach][input_ids[:, there]] * mask[:, there, None]
            states[:, here] += near
        return SimpleNamespace(last_hidden_state=states)


@given(st.data(), st.integers(1, 3), st.integers(0, 12))
@settings(deadline=None, max_examples=60)
def test_predictions_do_not_depend_on_the_limit_when_windows_overlap_by_twice_the_reach(
    tokenizer, data, reach, spare
):
    examples = data.draw(sentences(UPOS))
    encoder = Neighbours(len(tokenizer), len(UPOS.labels), reach)
    model = SimpleNamespace(
        base_model=encoder,
        dropout=torch.nn.Identity(),
        classifier=torch.nn.Identity(),
        config=SimpleNamespace(model_type="bert"),
    )

    def predicted(limit):
        rows = UPOS.encode(examples, tokenizer, limit=limit, overlap=2 * reach)
        if not rows:
            return []
        batch = collate(rows, padding=tokenizer.pad_token_id)
        scores = UPOS.scores(model, batch).split([len(row.words) for row in rows])
        return UPOS.decode(examples, rows, scores)

    assert predicted(2 * reach + 3 + spare) == predicted(10_000)


# Head, scores, loss


@pytest.fixture
def batch(tokenizer):
    examples = [
        sentence(["the", "casings", "happened", "slowly"], ["DET", "NOUN", "VERB", "ADV"]),
        sentence(["a", "cat"], ["DET", "NOUN"], 1),
    ]
    return collate(UPOS.encode(examples, tokenizer), padding=tokenizer.pad_token_id)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_scores_are_hugging_faces_logits_at_these_positions(folder, batch, attention):
    model = UPOS.head(folder, seed=0, attention=attention)
    with torch.no_grad():
        expected = model(**batch.inputs()).logits[batch.rows, batch.columns]
        torch.testing.assert_close(UPOS.scores(model, batch), expected)


def test_padding_changes_no_score(folder, tokenizer):
    model, examples = UPOS.head(folder, seed=0), [sentence(["a", "cat"]), sentence(["the"] * 9, number=1)]
    rows = UPOS.encode(examples, tokenizer)
    with torch.no_grad():
        alone = UPOS.scores(model, collate(rows[:1], padding=tokenizer.pad_token_id))
        together = UPOS.scores(model, collate(rows, padding=tokenizer.pad_token_id))[:2]
    torch.testing.assert_close(alone, together)


def test_loss_is_hugging_faces_loss_on_the_first_subwords(folder, batch):
    model = UPOS.head(folder, seed=0)
    labels = torch.full_like(batch.subwords, -100)
    labels[batch.rows, batch.columns] = batch.gold
    with torch.no_grad():
        torch.testing.assert_close(UPOS.loss(model, batch), model(**batch.inputs(), labels=labels).loss)


@pytest.mark.parametrize("task", [UPOS, NER], ids=lambda task: task.name)
def test_heads_follow_their_seed_and_carry_the_labels(folder, task):
    one, again, other = (task.head(folder, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.classifier.weight, again.classifier.weight)
    assert not torch.equal(one.classifier.weight, other.classifier.weight)
    assert one.config.id2label == dict(enumerate(task.labels))


@pytest.mark.parametrize("task", [UPOS, NER], ids=lambda task: task.name)
def test_eight_sentences_are_learned_by_heart(folder, tokenizer, task):
    generator = torch.Generator().manual_seed(0)
    examples = []
    for number in range(8):
        drawn = torch.randint(0, len(task.labels), (6,), generator=generator).tolist()
        tags = (
            repair([task.labels[label] for label in drawn])
            if task is NER
            else [task.labels[n] for n in drawn]
        )
        words = [WORDS[n] for n in torch.randint(0, len(WORDS), (6,), generator=generator).tolist()]
        examples.append(sentence(words, tags, number))
    rows = task.encode(examples, tokenizer)
    batch = collate(rows, padding=tokenizer.pad_token_id)
    model = task.head(folder, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(80):
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        optimizer.step()
    with torch.no_grad():
        scores = task.scores(model, batch).split([len(row.words) for row in rows])
    assert task.score(task.gold(examples), task.decode(examples, rows, scores)) == 1.0


# Scores of predictions


def test_upos_counts_words_and_ner_counts_spans():
    assert UPOS.score([("DET", "NOUN"), ("VERB",)], [("DET", "VERB"), ("VERB",)]) == pytest.approx(2 / 3)
    assert NER.score([("B-PER", "I-PER", "O")], [("B-PER", "O", "O")]) == 0.0
    assert (UPOS.metric, NER.metric) == ("accuracy", "span_f1")


def test_the_majority_baseline_says_the_commonest_tag_of_the_training_data():
    train = [sentence(["a", "b", "c"], ["NOUN", "NOUN", "VERB"])]
    assert UPOS.majority(train, [sentence(["a", "b", "c", "d"], ["NOUN", "VERB", "VERB", "ADJ"])]) == 0.25
    tags = ["B-PER", "I-PER", "O", "O", "O"]
    assert NER.majority([sentence("abcde", tags)], [sentence("abcde", tags)]) == 0.0


def test_inventories_are_those_of_universal_dependencies_and_wikiann():
    assert len(set(UPOS.labels)) == 17
    assert NER.labels[0] == "O"
    assert {tag[2:] for tag in NER.labels[1:]} == {"PER", "ORG", "LOC"}


def test_upos_reports_accuracy_first_and_what_xtreme_calls_f1_beside_it():
    gold, predicted = [("NOUN", "NOUN", "NOUN", "NOUN", "VERB")], [("NOUN", "NOUN", "ADJ", "NOUN", "VERB")]
    assert list(UPOS.measures(gold, predicted).items()) == [
        ("accuracy", 0.8),
        ("seqeval_f1", pytest.approx(1 / 3)),
    ]


def test_ner_reports_span_f1_alone():
    assert NER.measures([("B-PER", "O")], [("B-PER", "O")]) == {"span_f1": 1.0, "word_f1": 1.0}
