"""Other orders of subject, verb and object for parsed text and for the questions of a corpus.

Hsu, Liu and Lee (2019), "Zero-shot Reading Comprehension by Cross-lingual Transfer Learning with
Multi-lingual Language Representation Model", reordered the English of SQuAD as subject, object, verb; Efimov
et al. (2023, Section 5.3) train on it. The order is changed on dependency trees, as by Ravfogel, Goldberg and
Linzen (2019): subject and object of a verb are moved with everything that depends on them.

In each clause with a subject or an object, the places of subject, verb and object are filled anew in the
wanted order; all other words keep their places. Auxiliaries, particles and negations directly next to the
verb are moved with it. Copulas are not moved, since no object belongs to them. A sentence whose tree has
crossing arcs stays as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from operator import attrgetter

from isogloss.core.errors import DataError
from isogloss.data.examples import ParsedSentence, Question
from isogloss.data.files import short

WORD_ORDERS = tuple("".join(order) for order in permutations("SVO"))
"""Subject, verb and object in any order."""

SUBJECTS = {"nsubj", "csubj"}
OBJECTS = {"obj", "dobj"}
PARTS_OF_VERBS = {"aux"}
PARTICLE = "compound:prt"


@dataclass(frozen=True)
class MovedWord:
    """A word of a reordered text."""

    start: int
    """Offset of its first character in the original text."""
    end: int
    """Offset behind its last character in the original text."""
    moved_start: int
    """Offset of its first character in the reordered text."""

    def move(self, offset: int) -> int:
        """Return the offset in the reordered text for one in the word, or for its nearest end."""
        return self.moved_start + min(max(offset, self.start), self.end) - self.start


@dataclass(frozen=True)
class ReorderedText:
    """A reordered text."""

    text: str
    words: Sequence[MovedWord]
    """Its words in the original order."""

    def move_span(self, start: int, text: str) -> tuple[int, str] | None:
        """Return start and text of a span of the original text in this text. None if its words are apart."""
        end = start + len(text)
        inside = [word for word in self.words if word.start < end and word.end > start]
        if not inside:
            return None
        first_word = min(inside, key=attrgetter("moved_start"))
        last_word = max(inside, key=attrgetter("moved_start"))
        span = [
            word for word in self.words if first_word.moved_start <= word.moved_start <= last_word.moved_start
        ]
        if len(span) != len(inside):
            return None
        begin = first_word.move(max(start, first_word.start))
        return begin, self.text[begin : last_word.move(min(end, last_word.end))]


def reorder_words(sentence: ParsedSentence, order: str = "SOV") -> list[int]:
    """Return the positions of a sentence's words in a different order of subject, verb and object."""
    heads = sentence.heads
    count = len(heads)
    dependents: list[list[int]] = [[] for _ in range(count + 1)]
    for position, head in enumerate(heads):
        dependents[head].append(position)
    from_root: list[int] = list(dependents[0])
    for position in from_root:
        from_root += dependents[position + 1]
    spans: dict[int, list[int]] = {}
    for position in reversed(from_root):
        items = sorted([*dependents[position + 1], position])
        ends = [word for item in items for word in (spans[item] if item != position else [item])]
        if max(ends) - min(ends) + 1 != len(ends):
            return list(range(count))
        spans[position] = _order_clause(sentence, position, items, spans, order)
    return [word for root in dependents[0] for word in spans[root]]


def _order_clause(
    sentence: ParsedSentence, verb: int, items: Sequence[int], spans: dict[int, list[int]], order: str
) -> list[int]:
    """Return the words of a head and of what depends on it, with subject, verb and object in an order."""
    roles = {item: _role(sentence.relations[item]) for item in items if item != verb}
    groups: list[tuple[str, list[int]]] = []
    verb_index = items.index(verb)
    begin = verb_index
    while begin > 0 and _belongs_to_verb(sentence, items[begin - 1]):
        begin -= 1
    end = verb_index
    while end + 1 < len(items) and _belongs_to_verb(sentence, items[end + 1]):
        end += 1
    for index, item in enumerate(items):
        words = [item] if item == verb else spans[item]
        if begin <= index <= end:
            if index == begin:
                groups.append(("V", []))
            groups[-1][1].extend(words)
        else:
            groups.append((roles[item], words))
    places = [index for index, (role, _) in enumerate(groups) if role]
    ordered_places = sorted(places, key=lambda index: order.index(groups[index][0]))
    new_places = dict(zip(places, ordered_places, strict=True))
    return [word for index in range(len(groups)) for word in groups[new_places.get(index, index)][1]]


def _role(relation: str) -> str:
    base = relation.partition(":")[0]
    if base in SUBJECTS:
        return "S"
    return "O" if base in OBJECTS else ""


def _belongs_to_verb(sentence: ParsedSentence, position: int) -> bool:
    relation = sentence.relations[position]
    negates = relation == "advmod" and sentence.tags[position] == "PART"
    return relation.partition(":")[0] in PARTS_OF_VERBS or relation == PARTICLE or negates


def reorder_text(text: str, sentences: Sequence[ParsedSentence], order: str = "SOV") -> ReorderedText:
    """Return a text with the words of its sentences in a different order.

    Words are separated as before, where their neighbour is the same, and else by a space. DataError where the
    sentences have other words than the text.
    """
    places = _find_words(text, sentences)
    new_text = text[: places[0][0]] if places else ""
    new_starts: dict[int, int] = {}
    offset = 0
    previous = None
    for sentence in sentences:
        for position in reorder_words(sentence, order):
            index = offset + position
            start, end = places[index]
            if previous is None:
                gap = ""
            elif previous == index - 1:
                gap = text[places[previous][1] : start]
            else:
                is_attached = index > 0 and places[index - 1][1] == start
                gap = "" if is_attached and sentence.tags[position] == "PUNCT" else " "
            new_text += gap
            new_starts[index] = len(new_text)
            new_text += text[start:end]
            previous = index
        offset += len(sentence.words)
    words = [MovedWord(start, end, new_starts[index]) for index, (start, end) in enumerate(places)]
    return ReorderedText(new_text, words)


def _find_words(text: str, sentences: Sequence[ParsedSentence]) -> list[tuple[int, int]]:
    """Return the position of each word of some sentences in a text, ignoring white space."""
    places = []
    index = 0
    for sentence in sentences:
        for word in sentence.words:
            start = -1
            for character in word:
                if character.isspace():
                    continue
                while index < len(text) and text[index].isspace():
                    index += 1
                if index >= len(text) or text[index] != character:
                    raise DataError(
                        f"{sentence.where or sentence.id}: the word {word!r}, but the text goes on with "
                        f"{short(text[index:] or 'nothing')}. Parse each passage and then its questions, in "
                        f"the order of the file, with the words as they are written."
                    )
                start = index if start < 0 else start
                index += 1
            places.append((max(start, 0), index))
    return places


@dataclass(frozen=True)
class ReorderedQuestions:
    """Reordered questions, and the ids of questions without an answer whose words are still together."""

    questions: list[Question]
    left_out: list[str]
    """Ids of questions whose answers are scattered by the order."""


def reorder_passages(
    questions: Iterable[Question], trees: Iterable[ParsedSentence], order: str = "SOV"
) -> ReorderedQuestions:
    """Return questions with reordered passages and questions, and answers at their new offsets.

    ``trees`` are the sentences of each passage and then of its questions, in their order.
    """
    sentences = iter(trees)
    questions_in_order = []
    left_out = []
    for _, passage_questions in groupby(questions, key=attrgetter("place", "passage")):
        several = list(passage_questions)
        passage = _reorder_next(several[0].passage, sentences, order)
        for question in several:
            new_question = _reorder_next(question.question, sentences, order).text
            moved_answers = (passage.move_span(start, text) for start, text in question.answers)
            answers = tuple(answer for answer in moved_answers if answer)
            if answers:
                questions_in_order.append(
                    replace(
                        question, passage=passage.text, question=new_question, answers=answers, repaired=""
                    )
                )
            else:
                left_out.append(question.id)
    return ReorderedQuestions(questions_in_order, left_out)


def _reorder_next(text: str, sentences: Iterator[ParsedSentence], order: str) -> ReorderedText:
    """Reorder a text with the next sentences, as many as it has."""
    length = sum(not character.isspace() for character in text)
    trees = []
    while length > 0:
        sentence = next(sentences, None)
        if sentence is None:
            raise DataError(
                f"the trees end before the text {short(text)}. Parse each passage and then its questions, in "
                f"the order of the file."
            )
        trees.append(sentence)
        length -= sum(not character.isspace() for word in sentence.words for character in word)
    return reorder_text(text, trees, order)
