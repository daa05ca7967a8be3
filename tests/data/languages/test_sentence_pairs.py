"""Inference pairs and paraphrases of the built-in languages."""

from collections import Counter
from itertools import islice

import pytest

from each import each
from isogloss.data.languages import LANGUAGES, examples
from isogloss.data.languages import concepts as c
from isogloss.data.languages.concepts import Draws
from isogloss.data.languages.lexicon import lexicon
from isogloss.data.languages.meaning import Sampler, Sentence
from isogloss.data.languages.parsing import parse, sentences_in
from isogloss.data.languages.sentence_pairs import LABELS, PREMISE_RATES, hypothesize


def understood(text):
    words = lexicon(LANGUAGES["qaa"])
    [sentence] = sentences_in(text, words)
    return parse(sentence, words)


PAIRS = [(understood(one.first), understood(one.second), one) for one in examples("xnli", "qaa", "dev")]


@pytest.mark.parametrize("code", ["qaa", "qag", "qai"])
@pytest.mark.parametrize(("corpus", "labels"), [("xnli", LABELS), ("pawsx", ("0", "1"))])
def test_labels_are_balanced(corpus, labels, code):
    for split in ("train", "dev", "test"):
        counts = Counter(one.label for one in islice(examples(corpus, code, split), 600))
        assert set(counts) == set(labels) and len(set(counts.values())) == 1


def events(sentence):
    return [event for event in (sentence.event, sentence.second) if event is not None]


def facts(event):
    roles = (event.subject and event.subject.concept, event.object and event.object.concept)
    return (event.verb, event.tense, event.negated, *roles)


def pairs_labelled(label):
    return each(one for one in PAIRS if one[2].label == label)


def test_entailed_sentences_say_less_of_the_same_events():
    for premise, hypothesis, pair in each(pairs_labelled("entailment")):
        assert {*map(facts, events(hypothesis))} <= {*map(facts, events(premise))}
        assert len(pair.second.split()) < len(pair.first.split())


def test_contradicting_sentences_change_one_event_in_one_way():
    for premise, hypothesis, _ in each(pairs_labelled("contradiction")):
        known = [facts(event) for event in events(premise)]
        verb, tense, negated, one, other = facts(hypothesis.event)
        opposites = {
            (verb, tense, not negated, one, other),
            (c.opposite(verb), tense, negated, one, other),
            (verb, tense, negated, other, one),
        }
        assert opposites & set(known) and facts(hypothesis.event) not in known


def test_neutral_sentences_are_neither_said_nor_denied():
    for premise, hypothesis, _ in each(pairs_labelled("neutral")):
        verb, tense, negated, one, other = facts(hypothesis.event)
        known = [facts(event) for event in events(premise)]
        if facts(hypothesis.event) in known:  # something was added
            twin = events(premise)[known.index(facts(hypothesis.event))]
            new = set(hypothesis.event.attached) - set(twin.attached)
            assert new or hypothesis.event.adverb not in (None, twin.adverb)
        else:
            assert (verb, tense, not negated, one, other) not in known
            assert (c.opposite(verb), tense, negated, one, other) not in known


@pytest.mark.nightly
@pytest.mark.slow
def test_length_and_negation_of_the_hypothesis_do_not_tell_the_label():
    lengths, negated = {}, {}
    some = list(islice(examples("xnli", "qaa", "train"), 6000))
    for label in LABELS:
        ones = [one for one in some if one.label == label]
        lengths[label] = sum(len(one.second.split()) for one in ones) / len(ones)
        denied = lexicon(LANGUAGES["qaa"]).words[c.NOT].text
        negated[label] = sum(denied in one.second.split() for one in ones) / len(ones)
    assert max(lengths.values()) - min(lengths.values()) < 0.8
    assert max(negated.values()) - min(negated.values()) < 0.15


def test_nothing_below_every_is_cut():
    sampler = Sampler(Draws(3), PREMISE_RATES)
    events = [sampler.sentence().event for _ in range(300)]
    universal = [one for one in events if one.subject.determiner == c.EVERY and one.subject.adjectives]
    for event in each(universal):
        short = hypothesize(Sentence(event), "entailment", sampler)
        assert short.event.subject.adjectives == event.subject.adjectives


def canonical_phrase(phrase):
    if phrase is None:
        return None
    adjectives = tuple(sorted(phrase.adjectives))
    bare = repr(phrase._replace(adjectives=adjectives, joined=None))
    if phrase.joined is None:
        return bare
    conjunction, other = phrase.joined
    return conjunction, tuple(sorted([bare, canonical_phrase(other)]))


def canonical_event(event):
    attached = tuple(sorted(map(repr, event.attached)))
    bare = event._replace(subject=None, object=None, attached=())
    return repr((bare, canonical_phrase(event.subject), canonical_phrase(event.object), attached))


def canonical(sentence):
    said = [canonical_event(event) for event in events(sentence)]
    return sentence.link, tuple(sorted(said) if sentence.link in (c.AND, c.BUT) else said)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_label_says_whether_the_meaning_is_the_same(split):
    for pair in each(examples("pawsx", "qaa", split)):
        same = canonical(understood(pair.first)) == canonical(understood(pair.second))
        assert pair.first != pair.second and pair.label == str(int(same))


def test_both_sentences_have_the_same_words():
    for pair in each(examples("pawsx", "qaa", "dev")):
        words = [Counter(text.replace(",", "").rstrip(".").split()) for text in (pair.first, pair.second)]
        assert words[0] == words[1]
