"""Labelled sentence pairs of the built-in languages: inference as in XNLI, paraphrases as in PAWS-X."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

from isogloss.data.examples import SentencePair
from isogloss.data.languages import concepts as c
from isogloss.data.languages.concepts import Draws
from isogloss.data.languages.lexicon import Lexicon
from isogloss.data.languages.meaning import Attached, Event, Phrase, Rates, Sampler, Sentence
from isogloss.data.languages.rendering import say

LABELS = ("entailment", "neutral", "contradiction")

PREMISE_RATES = Rates(adjective=0.4, attached=0.6, clause=0.15, link=0.2, negated=0.35)
"""Premises with much to cut; negation is frequent, as a hypothesis often toggles it."""

_DEFINITE = (c.THE, c.THIS, c.THAT)


def inference_pairs(words: Lexicon, draws: Draws) -> Iterator[SentencePair]:
    """Yield premises and hypotheses, every label once in any three in a row; without end."""
    return _labelled(words, Sampler(draws, PREMISE_RATES), LABELS, _inference)


def paraphrase_pairs(words: Lexicon, draws: Draws) -> Iterator[SentencePair]:
    """Yield pairs of sentences of the same words, both labels in any two in a row; without end."""
    return _labelled(words, Sampler(draws, PARAPHRASE_RATES), ("0", "1"), paraphrase)


def _labelled(
    words: Lexicon,
    sampler: Sampler,
    labels: Sequence[str],
    think: Callable[[str, Sampler], tuple[Sentence, Sentence]],
) -> Iterator[SentencePair]:
    numbers = count()
    while True:
        for label in sampler.draws.shuffled(labels):
            first, second = think(label, sampler)
            yield SentencePair(
                id=f"{next(numbers)}", first=say(first, words), second=say(second, words), label=label
            )


def _inference(label: str, sampler: Sampler) -> tuple[Sentence, Sentence]:
    premise = _premise(sampler)
    return premise, hypothesize(premise, label, sampler)


def hypothesize(premise: Sentence, label: str, sampler: Sampler) -> Sentence:
    """Draw a hypothesis whose relation to the premise is the label."""
    short = _shortened(premise, sampler.draws)
    if label == "entailment":
        return short
    change = _contradict if label == "contradiction" else _drift
    return short._replace(event=change(short.event, sampler))


def _premise(sampler: Sampler) -> Sentence:
    """Draw a sentence from which something can be cut, about somebody or something definite."""
    while True:
        sentence = sampler.sentence()
        second = None if sentence.second is None else _about_definite(sentence.second)
        sentence = sentence._replace(event=_about_definite(sentence.event), second=second)
        if cuts(sentence):
            return sentence


def _about_definite(event: Event) -> Event:
    """Make the subject definite: "some dog sleeps" and "some dog does not sleep" can both be true."""
    subject = event.subject
    if subject is None or subject.concept not in c.NOUNS or subject.determiner in _DEFINITE:
        return event
    return event._replace(subject=subject._replace(determiner=c.THE))


def _shortened(sentence: Sentence, draws: Draws) -> Sentence:
    """Cut one thing, often two or three."""
    for _ in range(1 + draws.below(3)):
        ways = cuts(sentence)
        if not ways:
            break
        sentence = draws.choice(ways)
    return sentence


def cuts(sentence: Sentence) -> list[Sentence]:
    """Return every sentence that follows from this one by leaving out one thing."""
    ways = [sentence._replace(event=event) for event in _event_cuts(sentence.event)]
    if sentence.second is not None:
        if sentence.link != c.WHEN or not sentence.event.negated:
            ways.append(Sentence(sentence.event))
        if sentence.link != c.WHEN:
            ways.append(Sentence(sentence.second))
    return ways


def _event_cuts(event: Event) -> list[Event]:
    ways = []
    if not event.negated:
        ways += [
            event._replace(attached=event.attached[:which] + event.attached[which + 1 :])
            for which in range(len(event.attached))
        ]
        if event.adverb is not None:
            ways.append(event._replace(adverb=None))
    return [*ways, *_with_phrases(event, partial(_phrase_cuts, negated=event.negated))]


def _with_phrases(event: Event, change: Callable[[Phrase], list[Phrase]]) -> list[Event]:
    """Return the event with every change of its subject, then of its object."""
    ways = []
    if event.subject is not None:
        ways += [event._replace(subject=way) for way in change(event.subject)]
    if event.object is not None:
        ways += [event._replace(object=way) for way in change(event.object)]
    return ways


def _phrase_cuts(phrase: Phrase, *, negated: bool) -> list[Phrase]:
    definite = phrase.determiner in _DEFINITE or phrase.concept not in c.NOUNS
    if phrase.determiner == c.EVERY or (negated and not definite):
        return []
    ways = [
        phrase._replace(adjectives=phrase.adjectives[:which] + phrase.adjectives[which + 1 :])
        for which in range(len(phrase.adjectives))
    ]
    if phrase.modifier is not None:
        ways.append(phrase._replace(modifier=None))
    if phrase.clause is not None:
        ways.append(phrase._replace(clause=None))
    if phrase.joined is not None and phrase.joined[0] == c.AND and not negated:
        ways.append(phrase._replace(joined=None))
    return ways


def _contradict(event: Event, sampler: Sampler) -> Event:
    ways: list[Event] = [event._replace(negated=not event.negated)]
    if not event.negated:
        ways.append(event._replace(verb=c.opposite(event.verb)))
        if is_reversible(event):
            ways.append(event._replace(subject=event.object, object=event.subject))
    return sampler.draws.choice(ways)


def is_reversible(event: Event) -> bool:
    """Return whether subject and object can change places and still make sense, and another one."""
    subject, object_, frame = event.subject, event.object, c.world().frames[event.verb]
    if subject is None or object_ is None or subject.concept == object_.concept:
        return False
    return c.class_of(object_.concept) in frame.subjects and c.class_of(subject.concept) in frame.objects


def _drift(event: Event, sampler: Sampler) -> Event:
    """Say something else about the same subject."""
    ways: list[Callable[[Event, Sampler], Event]] = [_other_verb, _other_verb]
    if event.object is not None:
        ways.append(_other_object)
    if not event.negated and not (event.attached and event.adverb is not None):
        ways.append(_something_added)
    return sampler.draws.choice(ways)(event, sampler)


def _other_verb(event: Event, sampler: Sampler) -> Event:
    frames, draws = c.world().frames, sampler.draws
    kind = c.PERSON if event.subject is None else c.class_of(event.subject.concept)
    verb = event.verb
    while verb | 1 == event.verb | 1 or kind not in frames[verb].subjects:
        verb = draws.weighted(c.world().verbs)
    thing, objects = None, frames[verb].objects
    if event.object is not None and c.class_of(event.object.concept) in objects:
        thing = event.object
    elif objects:
        thing = sampler.phrase(draws.choice(objects))
    return event._replace(verb=verb, negated=draws.chance(PREMISE_RATES.negated), object=thing)


def _other_object(event: Event, sampler: Sampler) -> Event:
    mentioned, kinds = frozenset(sampler.mentioned), c.world().frames[event.verb].objects
    thing = sampler.phrase(sampler.draws.choice(kinds))
    while thing.concept in mentioned:
        thing = sampler.phrase(sampler.draws.choice(kinds))
    return event._replace(object=thing)


def _something_added(event: Event, sampler: Sampler) -> Event:
    if not event.attached:
        mentioned, attached = frozenset(sampler.mentioned), sampler.attachment()
        while attached.phrase is not None and attached.phrase.concept in mentioned:
            attached = sampler.attachment()
        return event._replace(attached=(attached,))
    return event._replace(adverb=sampler.adverb())


PARAPHRASE_RATES = Rates(
    adjective=0.4,
    attached=0.6,
    second_attached=0.4,
    joined=0.3,
    link=0.35,
    clause=0.05,
    modifier=0.05,
    name=0.5,
)
"""Sentences with much that can change places."""


def paraphrase(label: str, sampler: Sampler) -> tuple[Sentence, Sentence]:
    """Draw a sentence and reorder it: with the same meaning (label 1) or another (label 0)."""
    draws = sampler.draws
    while True:
        sentence = sampler.sentence()
        keeping, changing = reorderings(sentence), role_changes(sentence)
        if not keeping or not changing:
            continue
        if label == "1":
            return sentence, draws.choice(keeping)
        changed = draws.choice(changing)
        again = reorderings(changed)
        return sentence, draws.choice(again) if again and draws.chance(0.5) else changed


def reorderings(sentence: Sentence) -> list[Sentence]:
    """Return every sentence of the same words and meaning that one exchange leads to."""
    ways = [sentence._replace(event=event) for event in _event_reorderings(sentence.event)]
    subject, second = sentence.event.subject, sentence.second
    # A clause whose subject is joined must come first: "a sees b and c and d sleep" can be read twice.
    if second is not None and sentence.link in (c.AND, c.BUT) and (subject is None or subject.joined is None):
        ways.append(sentence._replace(event=second, second=sentence.event))
    return ways


def _event_reorderings(event: Event) -> list[Event]:
    ways = [event._replace(attached=event.attached[::-1])] if len(event.attached) > 1 else []
    return [*ways, *_with_phrases(event, _phrase_reorderings)]


def _phrase_reorderings(phrase: Phrase) -> list[Phrase]:
    ways = []
    if len(phrase.adjectives) > 1:
        ways.append(phrase._replace(adjectives=phrase.adjectives[::-1]))
    if phrase.joined is not None:
        conjunction, other = phrase.joined
        ways.append(other._replace(joined=(conjunction, phrase._replace(joined=None))))
    return ways


def role_changes(sentence: Sentence) -> list[Sentence]:
    """Return every sentence of the same words and another meaning that one exchange of roles leads to."""
    ways = [sentence._replace(event=event) for event in _event_changes(sentence.event)]
    if sentence.second is not None:
        ways += [sentence._replace(second=event) for event in _event_changes(sentence.second)]
        ways += _exchanged_subjects(sentence, sentence.second)
    return ways


def _event_changes(event: Event) -> list[Event]:
    return [way for change in _CHANGES if (way := change(event)) is not None]


def _exchanged_roles(event: Event) -> Event | None:
    """Exchange subject and object: "a sees b" becomes "b sees a"."""
    return event._replace(subject=event.object, object=event.subject) if is_reversible(event) else None


def _exchanged_adjectives(event: Event) -> Event | None:
    """Exchange what subject and object are like, where either may be like that."""
    subject, object_ = event.subject, event.object
    if subject is None or object_ is None or set(subject.adjectives) == set(object_.adjectives):
        return None
    if not (_may_be(subject, object_.adjectives) and _may_be(object_, subject.adjectives)):
        return None
    return event._replace(
        subject=subject._replace(adjectives=object_.adjectives),
        object=object_._replace(adjectives=subject.adjectives),
    )


def _may_be(phrase: Phrase, adjectives: tuple[int, ...]) -> bool:
    if phrase.concept not in c.NOUNS:
        return False
    return set(adjectives) <= set(c.world().adjectives[c.class_of(phrase.concept)].items)


def _exchanged_company(event: Event) -> Event | None:
    """Exchange the subject and who something is done with or for: "a sings for b", "b sings for a"."""
    subject = event.subject
    if (
        subject is None
        or subject.concept in c.PRONOUNS
        or subject.joined
        or subject.modifier
        or subject.clause
    ):
        return None
    for index, (adposition, other) in enumerate(event.attached):
        if (
            other is None
            or c.class_of(other.concept) != c.class_of(subject.concept)
            or other.concept == subject.concept
        ):
            continue
        attached = (*event.attached[:index], Attached(adposition, subject), *event.attached[index + 1 :])
        return event._replace(subject=other, attached=attached)
    return None


_CHANGES: tuple[Callable[[Event], Event | None], ...] = (
    _exchanged_roles,
    _exchanged_adjectives,
    _exchanged_company,
)


def _exchanged_subjects(sentence: Sentence, second: Event) -> list[Sentence]:
    """Exchange the subjects of two clauses, where each can do what the other does."""
    subject, other, frames = sentence.event.subject, second.subject, c.world().frames
    if subject is None or other is None or subject.concept == other.concept or subject.joined is not None:
        return []
    if c.class_of(other.concept) not in frames[sentence.event.verb].subjects:
        return []
    if c.class_of(subject.concept) not in frames[second.verb].subjects:
        return []
    return [
        sentence._replace(
            event=sentence.event._replace(subject=other), second=second._replace(subject=subject)
        )
    ]
