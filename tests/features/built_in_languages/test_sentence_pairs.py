"""Inference pairs and paraphrases of the built-in languages."""

from collections import Counter
from itertools import islice

import pytest

from each import each
from isogloss.features.built_in_languages import LANGUAGES, examples
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.lexicon import lexicon
from isogloss.features.built_in_languages.meaning import Sampler, Sentence
from isogloss.features.built_in_languages.parsing import parse, sentences_in
from isogloss.features.built_in_languages.sentence_pairs import LABELS, PREMISE_RATES, hypothesize


def understood(text):
    words = lexicon(LANGUAGES["qaa"])
    [sentence] = sentences_in(text, words)
    return parse(sentence, words)


PAIRS = [
    (understood(example.first), understood(example.second), example)
    for example in examples("xnli", "qaa", "dev")
]


@pytest.mark.parametrize("language", ["qaa", "qag", "qai"])
@pytest.mark.parametrize(("corpus", "labels"), [("xnli", LABELS), ("pawsx", ("0", "1"))])
def test_labels_are_balanced(corpus, labels, language):
    for split in ("train", "dev", "test"):
        counts = Counter(example.label for example in islice(examples(corpus, language, split), 600))
        assert set(counts) == set(labels) and len(set(counts.values())) == 1


def events(sentence):
    return [event for event in (sentence.event, sentence.second) if event is not None]


def facts(event):
    roles = (event.subject and event.subject.concept, event.object and event.object.concept)
    return (event.verb, event.tense, event.negated, *roles)


def pairs_labelled(label):
    return each(pair for pair in PAIRS if pair[2].label == label)


def test_entailed_sentences_say_less_of_the_same_events():
    for premise, hypothesis, pair in each(pairs_labelled("entailment")):
        assert {facts(value) for value in events(hypothesis)} <= {facts(value) for value in events(premise)}
        assert len(pair.second.split()) < len(pair.first.split())


def test_contradicting_sentences_change_one_event_in_one_way():
    for premise, hypothesis, _ in each(pairs_labelled("contradiction")):
        known_facts = [facts(event) for event in events(premise)]
        verb, tense, negated_fact, fact, other_fact = facts(hypothesis.event)
        opposites = {
            (verb, tense, not negated_fact, fact, other_fact),
            (c.opposite(verb), tense, negated_fact, fact, other_fact),
            (verb, tense, negated_fact, other_fact, fact),
        }
        assert opposites & set(known_facts) and facts(hypothesis.event) not in known_facts


def test_neutral_sentences_are_neither_said_nor_denied():
    for premise, hypothesis, _ in each(pairs_labelled("neutral")):
        verb, tense, negated_fact, fact, other_fact = facts(hypothesis.event)
        known_facts = [facts(event) for event in events(premise)]
        if facts(hypothesis.event) in known_facts:  # something was added
            twin = events(premise)[known_facts.index(facts(hypothesis.event))]
            new_difference = set(hypothesis.event.attached) - set(twin.attached)
            assert new_difference or hypothesis.event.adverb not in (None, twin.adverb)
        else:
            assert (verb, tense, not negated_fact, fact, other_fact) not in known_facts
            assert (c.opposite(verb), tense, negated_fact, fact, other_fact) not in known_facts


@pytest.mark.nightly
@pytest.mark.slow
def test_length_and_negation_of_the_hypothesis_do_not_tell_the_label():
    lengths = {}
    negated_ratios = {}
    items = list(islice(examples("xnli", "qaa", "train"), 6000))
    for label in LABELS:
        ones_tensor = [example for example in items if example.label == label]
        lengths[label] = sum(len(pair.second.split()) for pair in ones_tensor) / len(ones_tensor)
        denied_text = lexicon(LANGUAGES["qaa"]).words[c.NOT].text
        negated_ratios[label] = sum(denied_text in pair.second.split() for pair in ones_tensor) / len(
            ones_tensor
        )
    assert max(lengths.values()) - min(lengths.values()) < 0.8
    assert max(negated_ratios.values()) - min(negated_ratios.values()) < 0.15


def test_nothing_below_every_is_cut():
    sampler = Sampler(Draws(3), PREMISE_RATES)
    events = [sampler.sentence().event for _ in range(300)]
    universal = [item for item in events if item.subject.determiner == c.EVERY and item.subject.adjectives]
    for event in each(universal):
        short_hypothesis = hypothesize(Sentence(event), "entailment", sampler)
        assert short_hypothesis.event.subject.adjectives == event.subject.adjectives


def canonical_phrase(phrase):
    if phrase is None:
        return None
    adjectives = tuple(sorted(phrase.adjectives))
    bare_text = repr(phrase._replace(adjectives=adjectives, joined=None))
    if phrase.joined is None:
        return bare_text
    conjunction, other_item = phrase.joined
    return conjunction, tuple(sorted([bare_text, canonical_phrase(other_item)]))


def canonical_event(event):
    attached_value = tuple(sorted(repr(value) for value in event.attached))
    bare_value = event._replace(subject=None, object=None, attached=())
    return repr((bare_value, canonical_phrase(event.subject), canonical_phrase(event.object), attached_value))


def canonical(sentence):
    canonical_events = [canonical_event(event) for event in events(sentence)]
    return sentence.link, tuple(
        sorted(canonical_events) if sentence.link in (c.AND, c.BUT) else canonical_events
    )


@pytest.mark.parametrize("split", ["dev", "test"])
def test_label_says_whether_the_meaning_is_the_same(split):
    for pair in each(examples("pawsx", "qaa", split)):
        is_same = canonical(understood(pair.first)) == canonical(understood(pair.second))
        assert pair.first != pair.second and pair.label == str(int(is_same))


def test_both_sentences_have_the_same_words():
    for pair in each(examples("pawsx", "qaa", "dev")):
        words = [Counter(text.replace(",", "").rstrip(".").split()) for text in (pair.first, pair.second)]
        assert words[0] == words[1]
