from dataclasses import replace

import pytest
import torch

from in_translation import READ, link_words, sentences, setting
from isogloss.core.errors import DataError
from isogloss.encoders.mixup import LearnedRatio, Mixup, mixing
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training.evaluation import evaluation, pair_with_translations

ONE_ANSWER = ("nli", "multiple-choice")
"""Tasks whose answers to both sides are averaged."""


def mixup(**changes):
    ratio = LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    return Mixup(layer=2, ratio_module=ratio, **changes)


@pytest.fixture(params=["nli", "upos", "qa", "multiple-choice"])
def task(request):
    return TASKS[request.param]


@pytest.fixture
def optimization(bert_folder, tmp_path):
    return setting("nli", bert_folder, tmp_path).optimization


@pytest.fixture
def tokenizer(bert_folder):
    return load_tokenizer(bert_folder)


@pytest.fixture
def model(task, bert_folder):
    return task.head(bert_folder, seed=0)


def close(left, right, atol=1e-5):
    return len(left) == len(right) and all(
        torch.allclose(a, b, atol=atol) for a, b in zip(left, right, strict=True)
    )


def paired_scorer(task, tokenizer, optimization, examples, translations, **changes):
    own_evaluation = evaluation(task, examples, tokenizer, optimization)
    return pair_with_translations(
        own_evaluation, translations, tokenizer, optimization, mixup=mixup(**changes)
    )


def run_pair(task, model, tokenizer, optimization, example, translation):
    """Run one pair without batching. Return the scores of the translation, of the example, and λ."""
    rows = [
        replace(row, gold=())
        for item in (translation, example)
        for row in task.encode([item], tokenizer, limit=optimization.limit, overlap=optimization.overlap)
    ]
    batch = collate(rows, padding=tokenizer.pad_token_id)
    with torch.no_grad(), mixing(model, mixup(), batch.mask) as noted_mixing:
        scores = task.scores(model, batch)
    state_before = rows[0].scored
    return scores[:state_before], scores[state_before:], noted_mixing.ratios.mean().item()


def test_each_example_is_scored_beside_its_own_translation(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    translations = READ[task.name]("en", 9)
    scorer = paired_scorer(task, tokenizer, optimization, examples, translations[::-1])
    result = scorer.scores(model)
    ratios = scorer.ratios(model)
    assert scorer.warnings == ()
    folder = {translation.id: translation for translation in translations}
    for example, scores, ratio in zip(examples, result, ratios.tolist(), strict=True):
        source_pair, target_pair, expected = run_pair(
            task, model, tokenizer, optimization, example, folder[example.id]
        )
        assert ratio == pytest.approx(expected, abs=1e-5)
        if task.name in ONE_ANSWER:
            mean = (source_pair.softmax(dim=1) + target_pair.softmax(dim=1)) / 2
            assert torch.allclose(scores.exp()[:, : mean.size(1)], mean, atol=1e-5)
        else:
            assert torch.allclose(scores, target_pair, atol=1e-4)
    assert ratios.std() > 0


def test_without_translations_it_is_plain_evaluation_with_a_warning(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    scorer = paired_scorer(task, tokenizer, optimization, examples, [])
    plain_evaluation = evaluation(task, examples, tokenizer, optimization)
    assert close(scorer.scores(model), plain_evaluation.scores(model), atol=0)
    assert scorer.predict(model) == plain_evaluation.predict(model)
    assert scorer.measures(model) == plain_evaluation.measures(model)
    assert (scorer.score(model), scorer.metric) == (plain_evaluation.score(model), plain_evaluation.metric)
    assert bool(scorer.ratios(model).isnan().all())
    (warning,) = scorer.warnings
    assert warning.startswith(f"{len(examples)} of {len(examples)} examples ")


def test_examples_without_a_translation_run_among_others_that_have_one(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    translations = READ[task.name]("en", 9)
    items = [translation for translation in translations if int(translation.id) % 3]
    mixed_scores = paired_scorer(task, tokenizer, optimization, examples, translations).scores(model)
    plain_scores = evaluation(task, examples, tokenizer, optimization).scores(model)
    scorer = paired_scorer(task, tokenizer, optimization, examples, items)
    for example, score, with_all, plain_plain_score in zip(
        examples, scorer.scores(model), mixed_scores, plain_scores, strict=True
    ):
        own_slice = slice(len(example.options) if task.name == "multiple-choice" else None)
        expected = with_all if int(example.id) % 3 else plain_plain_score
        assert torch.allclose(score[:, own_slice], expected[:, own_slice], atol=1e-5)
    ratios = scorer.ratios(model)
    assert [not int(item.id) % 3 for item in examples] == ratios.isnan().tolist()


def test_without_a_ratio_the_target_side_is_that_of_the_plain_model(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    translations = READ[task.name]("en", 9)
    scorer = paired_scorer(task, tokenizer, optimization, examples, translations, ratio=0.0)
    plain_scores = evaluation(task, examples, tokenizer, optimization).scores(model)
    assert scorer.ratios(model).tolist() == [0.0] * len(examples)
    if task.name in ONE_ANSWER:
        scores = evaluation(task, translations, tokenizer, optimization).scores(model)
        plain_scores = [
            ((plain_score.softmax(dim=1) + score.softmax(dim=1)) / 2).log()
            for plain_score, score in zip(plain_scores, scores, strict=True)
        ]
    assert close(scorer.scores(model), plain_scores)


def test_a_constant_ratio_is_that_of_every_pair(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    scorer = paired_scorer(
        task, tokenizer, optimization, examples, READ[task.name]("en", 9), ratio=0.25, learned=False
    )
    assert scorer.ratios(model).tolist() == [0.25] * len(examples)


def test_labels_of_examples_and_translations_are_not_looked_at(model, task, tokenizer, optimization):
    field = {
        "nli": {"label": ""},
        "upos": {"tags": ()},
        "qa": {"answers": ()},
        "multiple-choice": {"label": None},
    }[task.name]
    examples = READ[task.name]("de", 9)
    translations = READ[task.name]("en", 9)
    labelled_paired_scorer = paired_scorer(task, tokenizer, optimization, examples, translations)
    bare_paired_scorer = paired_scorer(
        task,
        tokenizer,
        optimization,
        *([replace(item, **field) for item in items] for items in (examples, translations)),
    )
    assert close(labelled_paired_scorer.scores(model), bare_paired_scorer.scores(model), atol=0)


def test_a_translation_with_other_options_is_refused(bert_folder, tokenizer, optimization):
    examples = READ["multiple-choice"]("de", 3)
    folder = [
        replace(question, options=question.options[:2], label=None)
        for question in READ["multiple-choice"]("en", 3)
    ]
    with pytest.raises(DataError, match=r"example '1'.*3 options.*translation 2"):
        paired_scorer(TASKS["multiple-choice"], tokenizer, optimization, examples, folder)


def test_each_window_of_a_long_sentence_is_scored_once(bert_folder, tokenizer, optimization):
    task = TASKS["upos"]
    examples = sentences("de", 6, longest=90)
    scorer = paired_scorer(task, tokenizer, optimization, examples, sentences("en", 6, longest=90)[1:])
    model = task.head(bert_folder, seed=0)
    assert len(scorer.rows) > len(examples) + 1
    assert [len(tags) for tags in scorer.predict(model)] == [len(example.words) for example in examples]
    assert scorer.ratios(model).isnan().tolist() == [True, *[False] * 5]


# By word links


def test_each_example_is_mixed_with_what_its_translation_is_linked_to(bert_folder, tokenizer, optimization):
    """From an example to its translation lead the links, so the words of the example are the second ones."""
    task = TASKS["upos"]
    examples = sentences("de", 9)
    folder = [replace(pair, links=pair.links[1:]) for pair in link_words(sentences("en", 9))]
    model = task.head(bert_folder, seed=0)
    scorer = paired_scorer(task, tokenizer, optimization, examples, folder, attends="links")
    scores = scorer.scores(model)
    for row, example, other_pair in zip(scorer.rows, examples, folder, strict=True):
        (own_encodings,), (encodings_before,) = (
            task.encode([replace(item, tags=())], tokenizer) for item in (example, other_pair)
        )
        links = torch.zeros(
            1, *[max(len(own_encodings.subwords), len(encodings_before.subwords))] * 2, dtype=torch.bool
        )
        for place, word in enumerate(own_encodings.word_of):
            for beside_it, its in enumerate(encodings_before.word_of):
                links[0, place, beside_it] = (word, its) in other_pair.links
        batch = collate([encodings_before, own_encodings], padding=tokenizer.pad_token_id)
        with torch.no_grad(), mixing(model, mixup(attends="links"), batch.mask, links=links):
            single_scores = task.scores(model, batch)[encodings_before.scored :]
        assert torch.allclose(scores[row.example], single_scores, atol=1e-5)
    plain_scores = evaluation(task, examples, tokenizer, optimization).scores(model)
    assert not close(scores, plain_scores, atol=1e-3)
    turned_value = [replace(pair, links=tuple((b, a) for a, b in pair.links)) for pair in folder]
    assert not close(
        scores,
        paired_scorer(task, tokenizer, optimization, examples, turned_value, attends="links").scores(model),
    )


def test_translations_without_links_are_refused_where_words_are_mixed_by_links(tokenizer, optimization):
    task = TASKS["upos"]
    examples = sentences("de", 3)
    bare_sentences = sentences("en", 3)
    with pytest.raises(DataError, match=r"translations.*inputs: .*attends =.*2 translations.*0, 2\)"):
        paired_scorer(
            task,
            tokenizer,
            optimization,
            examples,
            [bare_sentences[0], *link_words(bare_sentences[1:2]), bare_sentences[2]],
            attends="links",
        )
    paired_scorer(task, tokenizer, optimization, examples, bare_sentences, attends="links", ratio=0.0)
