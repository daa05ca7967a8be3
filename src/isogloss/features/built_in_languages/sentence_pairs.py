"""Labelled sentence pairs of the built-in languages: inference as in XNLI, paraphrases as in PAWS-X."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

from isogloss.data.examples import SentencePair
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.lexicon import Lexicon
from isogloss.features.built_in_languages.meaning import Attached, Event, Phrase, Rates, Sampler, Sentence
from isogloss.features.built_in_languages.rendering import say

LABELS = ("entailment", "neutral", "contradiction")

PREMISE_RATES = Rates(adjective=0.4, attached=0.6, clause=0.15, link=0.2, negated=0.35)
"""Rates for premises with many removable parts. Negation is frequent, because hypotheses often toggle it."""

_DEFINITE = (c.THE, c.THIS, c.THAT)


def inference_pairs(words: Lexicon, draws: Draws) -> Iterator[SentencePair]:
    """Yield premises and hypotheses without end, in blocks of three that have every label once."""
    return _label_pairs(words, Sampler(draws, PREMISE_RATES), LABELS, _inference)


def paraphrase_pairs(words: Lexicon, draws: Draws) -> Iterator[SentencePair]:
    """Yield pairs of sentences with the same words without end, in blocks of two that have both labels."""
    return _label_pairs(words, Sampler(draws, PARAPHRASE_RATES), ("0", "1"), paraphrase)


def _label_pairs(
    words: Lexicon,
    sampler: Sampler,
    labels: Sequence[str],
    think: Callable[[str, Sampler], tuple[Sentence, Sentence]],
) -> Iterator[SentencePair]:
    numbers = count()
    while True:
        for label in sampler.draws.shuffle(labels):
            first_sentence, second_sentence = think(label, sampler)
            yield SentencePair(
                id=f"{next(numbers)}",
                first=say(first_sentence, words),
                second=say(second_sentence, words),
                label=label,
            )


def _inference(label: str, sampler: Sampler) -> tuple[Sentence, Sentence]:
    premise = _premise(sampler)
    return premise, hypothesize(premise, label, sampler)


def hypothesize(premise: Sentence, label: str, sampler: Sampler) -> Sentence:
    """Draw a hypothesis that has the labelled relation to the premise."""
    hypothesis = _remove_parts(premise, sampler.draws)
    if label == "entailment":
        return hypothesis
    change = _contradict if label == "contradiction" else _drift
    return hypothesis._replace(event=change(hypothesis.event, sampler))


def _premise(sampler: Sampler) -> Sentence:
    """Draw a sentence with removable parts and definite subjects."""
    while True:
        sentence = sampler.sentence()
        second = None if sentence.second is None else _make_definite(sentence.second)
        sentence = sentence._replace(event=_make_definite(sentence.event), second=second)
        if cuts(sentence):
            return sentence


def _make_definite(event: Event) -> Event:
    """Make the subject definite, because "some dog sleeps" and "some dog does not sleep" can both be true."""
    subject = event.subject
    if subject is None or subject.concept not in c.NOUNS or subject.determiner in _DEFINITE:
        return event
    return event._replace(subject=subject._replace(determiner=c.THE))


def _remove_parts(sentence: Sentence, draws: Draws) -> Sentence:
    """Remove one to three parts, as long as any is removable."""
    for _ in range(1 + draws.whole_number(3)):
        ways = cuts(sentence)
        if not ways:
            break
        sentence = draws.choice(ways)
    return sentence


def cuts(sentence: Sentence) -> list[Sentence]:
    """Return every sentence that follows from this one by removing one part."""
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
            event._replace(attached=event.attached[:index] + event.attached[index + 1 :])
            for index in range(len(event.attached))
        ]
        if event.adverb is not None:
            ways.append(event._replace(adverb=None))
    return [*ways, *_with_phrases(event, partial(_phrase_cuts, is_negated=event.negated))]


def _with_phrases(event: Event, change: Callable[[Phrase], list[Phrase]]) -> list[Event]:
    """Return the event with every change of its subject, then of its object."""
    ways = []
    if event.subject is not None:
        ways += [event._replace(subject=way) for way in change(event.subject)]
    if event.object is not None:
        ways += [event._replace(object=way) for way in change(event.object)]
    return ways


def _phrase_cuts(phrase: Phrase, *, is_negated: bool) -> list[Phrase]:
    is_definite = phrase.determiner in _DEFINITE or phrase.concept not in c.NOUNS
    if phrase.determiner == c.EVERY or (is_negated and not is_definite):
        return []
    ways = [
        phrase._replace(adjectives=phrase.adjectives[:index] + phrase.adjectives[index + 1 :])
        for index in range(len(phrase.adjectives))
    ]
    if phrase.modifier is not None:
        ways.append(phrase._replace(modifier=None))
    if phrase.clause is not None:
        ways.append(phrase._replace(clause=None))
    if phrase.joined is not None and phrase.joined[0] == c.AND and not is_negated:
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
    """Return whether exchanging subject and object gives a sensible sentence with a different meaning."""
    subject = event.subject
    object_ = event.object
    frame = c.world().frames[event.verb]
    if subject is None or object_ is None or subject.concept == object_.concept:
        return False
    return c.class_of(object_.concept) in frame.subjects and c.class_of(subject.concept) in frame.objects


def _drift(event: Event, sampler: Sampler) -> Event:
    """Draw a different statement about the same subject."""
    ways: list[Callable[[Event, Sampler], Event]] = [_replace_verb, _replace_verb]
    if event.object is not None:
        ways.append(_replace_object)
    if not event.negated and not (event.attached and event.adverb is not None):
        ways.append(_add_something)
    return sampler.draws.choice(ways)(event, sampler)


def _replace_verb(event: Event, sampler: Sampler) -> Event:
    frames = c.world().frames
    draws = sampler.draws
    kind = c.PERSON if event.subject is None else c.class_of(event.subject.concept)
    verb = event.verb
    while verb | 1 == event.verb | 1 or kind not in frames[verb].subjects:
        verb = draws.draw(c.world().verbs)
    thing = None
    objects = frames[verb].objects
    if event.object is not None and c.class_of(event.object.concept) in objects:
        thing = event.object
    elif objects:
        thing = sampler.phrase(draws.choice(objects))
    return event._replace(verb=verb, negated=draws.chance(PREMISE_RATES.negated), object=thing)


def _replace_object(event: Event, sampler: Sampler) -> Event:
    premise_concepts = frozenset(sampler.mentioned)
    kinds = c.world().frames[event.verb].objects
    thing = sampler.phrase(sampler.draws.choice(kinds))
    while thing.concept in premise_concepts:
        thing = sampler.phrase(sampler.draws.choice(kinds))
    return event._replace(object=thing)


def _add_something(event: Event, sampler: Sampler) -> Event:
    if not event.attached:
        premise_concepts = frozenset(sampler.mentioned)
        attachment = sampler.attachment()
        while attachment.phrase is not None and attachment.phrase.concept in premise_concepts:
            attachment = sampler.attachment()
        return event._replace(attached=(attachment,))
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
"""Rates for sentences with many parts that can be exchanged."""


def paraphrase(label: str, sampler: Sampler) -> tuple[Sentence, Sentence]:
    """Draw a sentence and a reordering of it, with equal meaning (label 1) or a different one (label 0)."""
    draws = sampler.draws
    while True:
        sentence = sampler.sentence()
        paraphrases = reorderings(sentence)
        changes = role_changes(sentence)
        if not paraphrases or not changes:
            continue
        if label == "1":
            return sentence, draws.choice(paraphrases)
        change = draws.choice(changes)
        change_paraphrases = reorderings(change)
        use_paraphrase = change_paraphrases and draws.chance(0.5)
        return sentence, draws.choice(change_paraphrases) if use_paraphrase else change


def reorderings(sentence: Sentence) -> list[Sentence]:
    """Return every sentence with the same words and meaning after one exchange."""
    ways = [sentence._replace(event=event) for event in _event_reorderings(sentence.event)]
    subject = sentence.event.subject
    second = sentence.second
    # A clause with a joined subject must come first: "a sees b and c and d sleep" is ambiguous.
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
        conjunction, second = phrase.joined
        ways.append(second._replace(joined=(conjunction, phrase._replace(joined=None))))
    return ways


def role_changes(sentence: Sentence) -> list[Sentence]:
    """Return every sentence with the same words and a different meaning after one exchange of roles."""
    ways = [sentence._replace(event=event) for event in _event_changes(sentence.event)]
    if sentence.second is not None:
        ways += [sentence._replace(second=event) for event in _event_changes(sentence.second)]
        ways += _exchange_subjects(sentence, sentence.second)
    return ways


def _event_changes(event: Event) -> list[Event]:
    return [way for change in _CHANGES if (way := change(event)) is not None]


def _exchange_roles(event: Event) -> Event | None:
    """Exchange subject and object: "a sees b" becomes "b sees a"."""
    return event._replace(subject=event.object, object=event.subject) if is_reversible(event) else None


def _exchange_adjectives(event: Event) -> Event | None:
    """Exchange the adjectives of subject and object if they fit both nouns."""
    subject = event.subject
    object_ = event.object
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


def _exchange_company(event: Event) -> Event | None:
    """Exchange the subject and a companion: "a sings for b" becomes "b sings for a"."""
    subject = event.subject
    if (
        subject is None
        or subject.concept in c.PRONOUNS
        or subject.joined
        or subject.modifier
        or subject.clause
    ):
        return None
    for index, (adposition, companion) in enumerate(event.attached):
        if (
            companion is None
            or c.class_of(companion.concept) != c.class_of(subject.concept)
            or companion.concept == subject.concept
        ):
            continue
        attachments = (*event.attached[:index], Attached(adposition, subject), *event.attached[index + 1 :])
        return event._replace(subject=companion, attached=attachments)
    return None


_CHANGES: tuple[Callable[[Event], Event | None], ...] = (
    _exchange_roles,
    _exchange_adjectives,
    _exchange_company,
)


def _exchange_subjects(sentence: Sentence, second: Event) -> list[Sentence]:
    """Exchange the subjects of two clauses if each fits both verbs."""
    frames = c.world().frames
    subject = sentence.event.subject
    second_subject = second.subject
    if subject is None or second_subject is None:
        return []
    if subject.concept == second_subject.concept or subject.joined is not None:
        return []
    if c.class_of(second_subject.concept) not in frames[sentence.event.verb].subjects:
        return []
    if c.class_of(subject.concept) not in frames[second.verb].subjects:
        return []
    return [
        sentence._replace(
            event=sentence.event._replace(subject=second_subject), second=second._replace(subject=subject)
        )
    ]
