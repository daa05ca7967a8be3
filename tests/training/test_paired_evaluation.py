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


def close(one, other, atol=1e-5):
    return len(one) == len(other) and all(
        torch.allclose(a, b, atol=atol) for a, b in zip(one, other, strict=True)
    )


def paired_scorer(task, tokenizer, optimization, examples, translations, **changes):
    own = evaluation(task, examples, tokenizer, optimization)
    return pair_with_translations(own, translations, tokenizer, optimization, mixup=mixup(**changes))


def run_pair(task, model, tokenizer, optimization, example, translation):
    """Run one pair without batching; return the scores of the translation, of the example, and λ."""
    rows = [
        replace(row, gold=())
        for one in (translation, example)
        for row in task.encode([one], tokenizer, limit=optimization.limit, overlap=optimization.overlap)
    ]
    batch = collate(rows, padding=tokenizer.pad_token_id)
    with torch.no_grad(), mixing(model, mixup(), batch.mask) as noted:
        scores = task.scores(model, batch)
    before = rows[0].scored
    return scores[:before], scores[before:], noted.ratios.mean().item()


def test_each_example_is_scored_beside_its_own_translation(task, model, tokenizer, optimization):
    examples, translations = READ[task.name]("de", 9), READ[task.name]("en", 9)
    scorer = paired_scorer(task, tokenizer, optimization, examples, translations[::-1])
    found, ratios = scorer.scores(model), scorer.ratios(model)
    assert scorer.warnings == ()
    there = {one.id: one for one in translations}
    for example, scores, ratio in zip(examples, found, ratios.tolist(), strict=True):
        of_source, of_target, expected = run_pair(
            task, model, tokenizer, optimization, example, there[example.id]
        )
        assert ratio == pytest.approx(expected, abs=1e-5)
        if task.name in ONE_ANSWER:
            mean = (of_source.softmax(dim=1) + of_target.softmax(dim=1)) / 2
            assert torch.allclose(scores.exp()[:, : mean.size(1)], mean, atol=1e-5)
        else:
            assert torch.allclose(scores, of_target, atol=1e-4)
    assert ratios.std() > 0


def test_without_translations_it_is_plain_evaluation_with_a_warning(task, model, tokenizer, optimization):
    examples = READ[task.name]("de", 9)
    scorer, plain = (
        paired_scorer(task, tokenizer, optimization, examples, []),
        evaluation(task, examples, tokenizer, optimization),
    )
    assert close(scorer.scores(model), plain.scores(model), atol=0)
    assert scorer.predict(model) == plain.predict(model)
    assert scorer.measures(model) == plain.measures(model)
    assert (scorer.score(model), scorer.metric) == (plain.score(model), plain.metric)
    assert bool(scorer.ratios(model).isnan().all())
    (warning,) = scorer.warnings
    assert warning.startswith(f"{len(examples)} of {len(examples)} examples ")


def test_examples_without_a_translation_run_among_others_that_have_one(task, model, tokenizer, optimization):
    examples, translations = READ[task.name]("de", 9), READ[task.name]("en", 9)
    some = [one for one in translations if int(one.id) % 3]
    mixed = paired_scorer(task, tokenizer, optimization, examples, translations).scores(model)
    plain = evaluation(task, examples, tokenizer, optimization).scores(model)
    scorer = paired_scorer(task, tokenizer, optimization, examples, some)
    for example, found, with_all, without in zip(examples, scorer.scores(model), mixed, plain, strict=True):
        own = slice(len(example.options) if task.name == "multiple-choice" else None)
        expected = with_all if int(example.id) % 3 else without
        assert torch.allclose(found[:, own], expected[:, own], atol=1e-5)
    ratios = scorer.ratios(model)
    assert [not int(one.id) % 3 for one in examples] == ratios.isnan().tolist()


def test_without_a_ratio_the_target_side_is_that_of_the_plain_model(task, model, tokenizer, optimization):
    examples, translations = READ[task.name]("de", 9), READ[task.name]("en", 9)
    scorer = paired_scorer(task, tokenizer, optimization, examples, translations, ratio=0.0)
    plain = evaluation(task, examples, tokenizer, optimization).scores(model)
    assert scorer.ratios(model).tolist() == [0.0] * len(examples)
    if task.name in ONE_ANSWER:
        there = evaluation(task, translations, tokenizer, optimization).scores(model)
        plain = [
            ((one.softmax(dim=1) + other.softmax(dim=1)) / 2).log()
            for one, other in zip(plain, there, strict=True)
        ]
    assert close(scorer.scores(model), plain)


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
    examples, translations = READ[task.name]("de", 9), READ[task.name]("en", 9)
    labelled = paired_scorer(task, tokenizer, optimization, examples, translations)
    bare = paired_scorer(
        task,
        tokenizer,
        optimization,
        *([replace(one, **field) for one in some] for some in (examples, translations)),
    )
    assert close(labelled.scores(model), bare.scores(model), atol=0)


def test_a_translation_with_other_options_is_refused(bert_folder, tokenizer, optimization):
    examples = READ["multiple-choice"]("de", 3)
    there = [replace(one, options=one.options[:2], label=None) for one in READ["multiple-choice"]("en", 3)]
    with pytest.raises(DataError, match=r"example '1'.*3 options.*translation 2"):
        paired_scorer(TASKS["multiple-choice"], tokenizer, optimization, examples, there)


def test_each_window_of_a_long_sentence_is_scored_once(bert_folder, tokenizer, optimization):
    task, examples = TASKS["upos"], sentences("de", 6, longest=90)
    scorer = paired_scorer(task, tokenizer, optimization, examples, sentences("en", 6, longest=90)[1:])
    model = task.head(bert_folder, seed=0)
    assert len(scorer.rows) > len(examples) + 1
    assert [len(tags) for tags in scorer.predict(model)] == [len(one.words) for one in examples]
    assert scorer.ratios(model).isnan().tolist() == [True, *[False] * 5]


# By word links


def test_each_example_is_mixed_with_what_its_translation_is_linked_to(bert_folder, tokenizer, optimization):
    """From an example to its translation lead the links, so the words of the example are the second ones."""
    task, examples = TASKS["upos"], sentences("de", 9)
    there = [replace(one, links=one.links[1:]) for one in link_words(sentences("en", 9))]
    model = task.head(bert_folder, seed=0)
    scorer = paired_scorer(task, tokenizer, optimization, examples, there, attends="links")
    found = scorer.scores(model)
    for row, example, other in zip(scorer.rows, examples, there, strict=True):
        (own,), (before,) = (task.encode([replace(one, tags=())], tokenizer) for one in (example, other))
        links = torch.zeros(1, *[max(len(own.subwords), len(before.subwords))] * 2, dtype=torch.bool)
        for place, word in enumerate(own.word_of):
            for beside_it, its in enumerate(before.word_of):
                links[0, place, beside_it] = (word, its) in other.links
        batch = collate([before, own], padding=tokenizer.pad_token_id)
        with torch.no_grad(), mixing(model, mixup(attends="links"), batch.mask, links=links):
            alone = task.scores(model, batch)[before.scored :]
        assert torch.allclose(found[row.example], alone, atol=1e-5)
    plain = evaluation(task, examples, tokenizer, optimization).scores(model)
    assert not close(found, plain, atol=1e-3)
    turned = [replace(one, links=tuple((b, a) for a, b in one.links)) for one in there]
    assert not close(
        found, paired_scorer(task, tokenizer, optimization, examples, turned, attends="links").scores(model)
    )


def test_translations_without_links_are_refused_where_words_are_mixed_by_links(tokenizer, optimization):
    task, examples, bare = TASKS["upos"], sentences("de", 3), sentences("en", 3)
    with pytest.raises(DataError, match=r"translations.*inputs: .*attends =.*2 translations.*0, 2\)"):
        paired_scorer(
            task,
            tokenizer,
            optimization,
            examples,
            [bare[0], *link_words(bare[1:2]), bare[2]],
            attends="links",
        )
    paired_scorer(task, tokenizer, optimization, examples, bare, attends="links", ratio=0.0)
