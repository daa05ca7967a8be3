"""Say a meaning in a language: words with their position in the tree, entity and keys."""

from collections.abc import Container, Sequence
from typing import NamedTuple

from isogloss.data.languages import concepts as c
from isogloss.data.languages.lexicon import Form, Lexicon
from isogloss.data.languages.meaning import Attached, Event, Phrase, Sentence

_MAIN, _SECOND = 1, 2
_SUBJECT, _OBJECT, _ATTACHED, _MODIFIER, _CLAUSE, _JOINED = 1, 2, 3, 5, 6, 7
_CHILDREN_PER_NODE = 8
"""A node's number is its parent's times _CHILDREN plus its role, so that it is the same in every language."""

SUBJECT_NODE, OBJECT_NODE, FIRST_ATTACHED_NODE = (
    _MAIN * _CHILDREN_PER_NODE + role for role in (_SUBJECT, _OBJECT, _ATTACHED)
)

_KEYS_PER_NODE = 64
"""Most keys a node has: itself, its markers and function words, then its name's words."""
_SELF, _PLURAL, _CASE, _DETERMINER, _NUMERAL, _TENSE, _NOT, _ADVERB, _LINK, _RELATIVE, _COMMA, _STOP = range(
    12
)
_ADJECTIVE, _NAME = 12, 16

CLAUSE_ORDERS = {"SVO": "SVOAP", "SOV": "SPOAV", "VSO": "VASOP"}
"""Order of subject, verb, object, adverb and adpositional phrases."""

COMMA = Form(",", ",", "PUNCT", "_")
STOP = Form(".", ".", "PUNCT", "_")
ASK = Form("?", "?", "PUNCT", "_")
PUNCTUATION = {form.text: form for form in (COMMA, STOP, ASK)}


class Word(NamedTuple):
    """A word in its sentence. ``node`` and ``head`` are node numbers; the root's head is 0.

    ``keys`` say what of the meaning the word expresses: words of two languages with a key in common are
    translations of each other.
    """

    form: Form
    node: int
    head: int
    relation: str
    keys: tuple[int, ...]
    entity: str = "O"


def render(sentence: Sentence, words: Lexicon) -> list[Word]:
    """Say a sentence in the language of a lexicon."""
    return _SentenceWriter(words).sentence(sentence)


def say(sentence: Sentence, words: Lexicon) -> str:
    """Say a sentence as running text."""
    return text_of([word.form.text for word in render(sentence, words)], spaces=has_spaces(words))


def text_of(words: Sequence[str], *, spaces: bool) -> str:
    """Join words to running text: punctuation attached; no spaces at all in a Han-like script."""
    if not spaces:
        return "".join(words)
    return " ".join(words).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def has_spaces(words: Lexicon) -> bool:
    """Return whether a language writes spaces between its words."""
    return words.language.script != "han"


def is_within(node: int, other: int) -> bool:
    """Return whether a node is another one or below it."""
    while node > other:
        node //= _CHILDREN_PER_NODE
    return node == other


def rooted(words: Sequence[Word]) -> list[Word]:
    """Return words of which some may be missing as a tree again.

    What hung on a missing word hangs on the next one above it, and without any above on the first word of
    the highest: that is the root.
    """
    nodes = {word.node for word in words if word.node}
    tops = [index for index, word in enumerate(words) if not _above(word.head, nodes)]
    root = min(tops, key=lambda index: (words[index].node or _CHILDREN_PER_NODE**9, index))
    node = words[root].node or _CHILDREN_PER_NODE**9
    tree = [word._replace(head=_above(word.head, nodes) or node) for word in words]
    tree[root] = words[root]._replace(node=node, head=0, relation="root")
    return [word._replace(relation="dep") if word.relation == "root" and word.head else word for word in tree]


def _above(node: int, nodes: Container[int]) -> int:
    """Return a node, or the next one above it that is there; 0 without one."""
    while node and node not in nodes:
        node //= _CHILDREN_PER_NODE
    return node


def is_of_case(key: int) -> bool:
    """Return whether a key stands for a phrase's adposition or case, which answers do not contain."""
    return key % _KEYS_PER_NODE == _CASE


class _SentenceWriter:
    """Appends the words of a sentence in the order of its language."""

    __slots__ = ("adjectives_before", "language", "lexicon", "out", "prepositions", "relative_before")

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon, self.language = lexicon, lexicon.language
        self.out: list[Word] = []
        self.prepositions = self.language.adposition == "before"
        self.relative_before = self.language.relative == "before"
        self.adjectives_before = self.language.adjective == "before"

    def sentence(self, sentence: Sentence) -> list[Word]:
        out = self.out
        self.event(sentence.event, _MAIN, 0, "root")
        if sentence.second is not None and sentence.link is not None:
            form, adverbial = self.lexicon.words[sentence.link], sentence.link in c.ADVERBIAL
            out.append(
                Word(form, 0, _SECOND, "mark" if adverbial else "cc", (_SECOND * _KEYS_PER_NODE + _LINK,))
            )
            self.event(sentence.second, _SECOND, _MAIN, "advcl" if adverbial else "conj")
        if out[-1].form is COMMA:
            out.pop()  # A clause at the end of the sentence is closed by the stop alone.
        stop = ASK if sentence.question else STOP
        out.append(Word(stop, 0, _MAIN, "punct", (_MAIN * _KEYS_PER_NODE + _STOP,)))
        return out

    def event(self, event: Event, node: int, head: int, relation: str) -> None:
        for part in CLAUSE_ORDERS[self.language.order]:
            if part == "V":
                self.verb(event, node, head, relation)
            else:
                self.role(part, event, node)

    def role(self, part: str, event: Event, node: int) -> None:
        if part == "S" and event.subject is not None:
            self.phrase(event.subject, node * _CHILDREN_PER_NODE + _SUBJECT, node, "nsubj")
        elif part == "O" and event.object is not None:
            self.phrase(event.object, node * _CHILDREN_PER_NODE + _OBJECT, node, "obj", c.OBJECT)
        elif part == "P":
            for which, attached in enumerate(event.attached):
                self.attached(attached, node * _CHILDREN_PER_NODE + _ATTACHED + which, node, "obl")
        elif part == "A" and event.adverb is not None:
            form = self.lexicon.words[event.adverb]
            self.out.append(Word(form, 0, node, "advmod", (node * _KEYS_PER_NODE + _ADVERB,)))

    def verb(self, event: Event, node: int, head: int, relation: str) -> None:
        language, words, key = self.language, self.lexicon.words, node * _KEYS_PER_NODE
        keys: tuple[int, ...] = (key,)
        particles = []
        if event.negated:
            if language.negation == "particle":
                particles.append(Word(words[c.NOT], 0, node, "advmod", (key + _NOT,)))
            else:
                keys += (key + _NOT,)
        if event.tense:
            if language.tense == "particle":
                form = words[c.PAST if event.tense == c.PAST_TENSE else c.FUTURE]
                particles.append(Word(form, 0, node, "aux", (key + _TENSE,)))
            else:
                keys += (key + _TENSE,)
        verb = Word(self.lexicon.verbs[event.verb][event.tense][event.negated], node, head, relation, keys)
        self.out += [*particles, verb] if self.prepositions else [verb, *reversed(particles)]

    def attached(self, attached: Attached, node: int, head: int, relation: str) -> None:
        if attached.phrase is None:
            form = self.lexicon.words[attached.adposition]
            self.out.append(Word(form, node, head, "advmod", (node * _KEYS_PER_NODE,)))
        else:
            self.phrase(attached.phrase, node, head, relation, attached.adposition)

    def phrase(self, phrase: Phrase, node: int, head: int, relation: str, marker: int = 0) -> None:
        """Say a phrase; ``marker`` is its adposition, or OBJECT: a particle, an affix or nothing."""
        if phrase.clause is not None and self.relative_before:
            self.clause(phrase.clause, node)
        if self.prepositions:
            self.marker(marker, node)
        else:
            self.modifier(phrase, node)
        index = Word(_NONE, node, head, relation, (node * _KEYS_PER_NODE,))
        if phrase.concept < c.NOUNS.stop:
            self.noun(phrase, index, marked=marker == c.OBJECT)
        elif phrase.concept >= c.PERSONS.start:
            self.name(phrase.concept, index)
        else:
            self.out.append(index._replace(form=self.lexicon.words[phrase.concept]))
        if self.prepositions:
            self.modifier(phrase, node)
        else:
            self.marker(marker, node)
        if phrase.clause is not None and not self.relative_before:
            self.clause(phrase.clause, node)
        if phrase.joined is not None:
            self.joined(phrase.joined, node, marker)

    def modifier(self, phrase: Phrase, node: int) -> None:
        if phrase.modifier is not None:
            self.attached(phrase.modifier, node * _CHILDREN_PER_NODE + _MODIFIER, node, "nmod")

    def joined(self, joined: tuple[int, Phrase], node: int, marker: int) -> None:
        child = node * _CHILDREN_PER_NODE + _JOINED
        self.out.append(
            Word(self.lexicon.words[joined[0]], 0, child, "cc", (child * _KEYS_PER_NODE + _LINK,))
        )
        self.phrase(joined[1], child, node, "conj", marker)

    def marker(self, marker: int, node: int) -> None:
        if marker and (marker != c.OBJECT or self.language.case == "particle"):
            self.out.append(
                Word(self.lexicon.words[marker], 0, node, "case", (node * _KEYS_PER_NODE + _CASE,))
            )

    def name(self, concept: int, index: Word) -> None:
        kind, key = c.ENTITY_OF_CLASS[c.class_of(concept)], index.keys[0]
        first, *others = self.lexicon.names[concept]
        self.out.append(index._replace(form=first, entity=f"B-{kind}"))
        for which, form in enumerate(others):
            self.out.append(Word(form, 0, index.node, "flat", (key + _NAME + which,), f"I-{kind}"))

    def noun(self, phrase: Phrase, index: Word, *, marked: bool) -> None:
        """Say determiner, numeral, adjectives, noun and number, in the language's order."""
        node, language = index.node, self.language
        outer, inner = self.determiners(phrase, node), self.adjectives(phrase, node)
        keys = index.keys
        if phrase.plural and language.number != "particle":
            keys += (node * _KEYS_PER_NODE + _PLURAL,)
        if marked and language.case != "none":
            keys += () if language.case == "particle" else (node * _KEYS_PER_NODE + _CASE,)
        core = [index._replace(form=self.lexicon.nouns[phrase.concept][phrase.plural][marked], keys=keys)]
        if phrase.plural and language.number == "particle":
            particle = Word(self.lexicon.words[c.PLURAL], 0, node, "det", (node * _KEYS_PER_NODE + _PLURAL,))
            core.insert(0 if self.prepositions else 1, particle)
        core = [*inner, *core] if self.adjectives_before else [*core, *inner]
        self.out += [*outer, *core] if language.determiner == "before" else [*core, *reversed(outer)]

    def determiners(self, phrase: Phrase, node: int) -> list[Word]:
        words, determiners = self.lexicon.words, []
        if phrase.determiner is not None:
            determiners.append(
                Word(words[phrase.determiner], 0, node, "det", (node * _KEYS_PER_NODE + _DETERMINER,))
            )
        if phrase.numeral is not None:
            determiners.append(
                Word(words[phrase.numeral], 0, node, "nummod", (node * _KEYS_PER_NODE + _NUMERAL,))
            )
        return determiners

    def adjectives(self, phrase: Phrase, node: int) -> list[Word]:
        forms = self.lexicon.adjectives
        return [
            Word(
                forms[adjective][phrase.plural],
                0,
                node,
                "amod",
                (node * _KEYS_PER_NODE + _ADJECTIVE + which,),
            )
            for which, adjective in enumerate(phrase.adjectives)
        ]

    def clause(self, clause: Event, head: int) -> None:
        """Say a relative clause: its pronoun on the side of the noun, a comma on the other."""
        node = head * _CHILDREN_PER_NODE + _CLAUSE
        subject = clause.subject is None
        form = self.lexicon.words[c.WHICH_DOES if subject else c.WHICH_IS_DONE]
        pronoun = Word(form, 0, node, "nsubj" if subject else "obj", (node * _KEYS_PER_NODE + _RELATIVE,))
        comma = Word(COMMA, 0, node, "punct", (node * _KEYS_PER_NODE + _COMMA,))
        if not self.relative_before:
            self.out.append(pronoun)
        elif self.out:
            self.out.append(comma)
        self.event(clause, node, head, "acl:relcl")
        self.out.append(pronoun if self.relative_before else comma)


_NONE = Form("", "", "", "_")
