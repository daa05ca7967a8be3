from collections import Counter
from itertools import islice

import pytest

from isogloss.data.languages import LANGUAGES, examples
from isogloss.data.languages import concepts as c
from isogloss.data.languages.lexicon import lexicon
from isogloss.data.languages.parsing import parse, sentences_in


def understood(text):
    words = lexicon(LANGUAGES["qaa"])
    [sentence] = sentences_in(text, words)
    return parse(sentence, words)


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
    events = [canonical_event(event) for event in (sentence.event, sentence.second) if event is not None]
    return sentence.link, tuple(sorted(events) if sentence.link in (c.AND, c.BUT) else events)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_label_says_whether_the_meaning_is_the_same(split):
    for pair in examples("pawsx", "qaa", split):
        same = canonical(understood(pair.first)) == canonical(understood(pair.second))
        assert pair.first != pair.second and pair.label == str(int(same))


def test_both_sentences_have_the_same_words():
    for pair in examples("pawsx", "qaa", "dev"):
        words = [Counter(text.replace(",", "").rstrip(".").split()) for text in (pair.first, pair.second)]
        assert words[0] == words[1]


@pytest.mark.parametrize("code", ["qaa", "qag"])
def test_labels_are_balanced(code):
    for split in ("train", "dev", "test"):
        counts = Counter(one.label for one in islice(examples("pawsx", code, split), 600))
        assert counts["0"] == counts["1"] == sum(counts.values()) / 2
