"""Render a meaning in a language: words with their position in the tree, entity and keys."""

from collections.abc import Container, Sequence
from typing import NamedTuple

from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.lexicon import Form, Lexicon
from isogloss.features.built_in_languages.meaning import Attached, Event, Phrase, Sentence

_MAIN = 1
_SECOND = 2
"""Nodes of the two events of a sentence."""

_SUBJECT = 1
_OBJECT = 2
_ATTACHED = 3
_MODIFIER = 5
_CLAUSE = 6
_JOINED = 7
"""Roles of child nodes. Attached phrases have two, from ``_ATTACHED``."""

_CHILDREN_PER_NODE = 8
"""A node's number is its parent's number times this, plus its role, so it is the same in every language."""

SUBJECT_NODE, OBJECT_NODE, FIRST_ATTACHED_NODE = (
    _MAIN * _CHILDREN_PER_NODE + role for role in (_SUBJECT, _OBJECT, _ATTACHED)
)

_KEYS_PER_NODE = 64
"""Maximum number of keys of a node: itself, its markers and function words, then the words of its name."""
_SELF, _PLURAL, _CASE, _DETERMINER, _NUMERAL, _TENSE, _NOT, _ADVERB, _LINK, _RELATIVE, _COMMA, _STOP = range(
    12
)
_ADJECTIVE = 12
_NAME = 16

CLAUSE_ORDERS = {"SVO": "SVOAP", "SOV": "SPOAV", "VSO": "VASOP"}
"""Order of subject, verb, object, adverb and adpositional phrases."""

COMMA = Form(",", ",", "PUNCT", "_")
STOP = Form(".", ".", "PUNCT", "_")
ASK = Form("?", "?", "PUNCT", "_")
PUNCTUATION = {form.text: form for form in (COMMA, STOP, ASK)}


class Word(NamedTuple):
    """A word in its sentence. ``node`` and ``head`` are node numbers; the root's head is 0.

    ``keys`` identify the parts of the meaning that the word expresses. Words of two languages with a common
    key are translations of each other.
    """

    form: Form
    node: int
    head: int
    relation: str
    keys: tuple[int, ...]
    entity: str = "O"


def render(sentence: Sentence, words: Lexicon) -> list[Word]:
    """Render a sentence in the language of a lexicon, as words."""
    return _SentenceWriter(words).sentence(sentence)


def say(sentence: Sentence, words: Lexicon) -> str:
    """Render a sentence as running text."""
    return text_of([word.form.text for word in render(sentence, words)], spaces=has_spaces(words))


def text_of(words: Sequence[str], *, spaces: bool) -> str:
    """Join words into running text, with punctuation attached, and without spaces in a Han-like script."""
    if not spaces:
        return "".join(words)
    return " ".join(words).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def has_spaces(words: Lexicon) -> bool:
    """Return whether a language writes spaces between its words."""
    return words.language.script != "han"


def is_within(node: int, ancestor: int) -> bool:
    """Return whether a node is an ancestor node or below it."""
    while node > ancestor:
        node //= _CHILDREN_PER_NODE
    return node == ancestor


def restore_tree(words: Sequence[Word]) -> list[Word]:
    """Return words as a tree after some were removed.

    Children of a removed word are attached to the nearest remaining node above it. The first word without any
    such node becomes the root.
    """
    nodes = {word.node for word in words if word.node}
    candidates = [index for index, word in enumerate(words) if not _nearest_node(word.head, nodes)]
    root = min(candidates, key=lambda index: (words[index].node or _CHILDREN_PER_NODE**9, index))
    root_node = words[root].node or _CHILDREN_PER_NODE**9
    tree = [word._replace(head=_nearest_node(word.head, nodes) or root_node) for word in words]
    tree[root] = words[root]._replace(node=root_node, head=0, relation="root")
    return [word._replace(relation="dep") if word.relation == "root" and word.head else word for word in tree]


def _nearest_node(node: int, nodes: Container[int]) -> int:
    """Return a node, or the nearest existing node above it, or 0 without one."""
    while node and node not in nodes:
        node //= _CHILDREN_PER_NODE
    return node


def is_case_key(key: int) -> bool:
    """Return whether a key stands for a phrase's adposition or case, which answers do not contain."""
    return key % _KEYS_PER_NODE == _CASE


class _SentenceWriter:
    """Writer that appends the words of a sentence in the order of its language."""

    __slots__ = ("adjectives_before", "language", "lexicon", "out", "prepositions", "relative_before")

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.language = lexicon.language
        self.out: list[Word] = []
        self.prepositions = self.language.adposition == "before"
        self.relative_before = self.language.relative == "before"
        self.adjectives_before = self.language.adjective == "before"

    def sentence(self, sentence: Sentence) -> list[Word]:
        words = self.out
        self.event(sentence.event, _MAIN, 0, "root")
        if sentence.second is not None and sentence.link is not None:
            form = self.lexicon.words[sentence.link]
            is_adverbial = sentence.link in c.ADVERBIAL
            words.append(
                Word(form, 0, _SECOND, "mark" if is_adverbial else "cc", (_SECOND * _KEYS_PER_NODE + _LINK,))
            )
            self.event(sentence.second, _SECOND, _MAIN, "advcl" if is_adverbial else "conj")
        if words[-1].form is COMMA:
            words.pop()  # The stop closes a clause at the end of the sentence.
        stop = ASK if sentence.question else STOP
        words.append(Word(stop, 0, _MAIN, "punct", (_MAIN * _KEYS_PER_NODE + _STOP,)))
        return words

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
            for index, attachment in enumerate(event.attached):
                self.attachment(attachment, node * _CHILDREN_PER_NODE + _ATTACHED + index, node, "obl")
        elif part == "A" and event.adverb is not None:
            form = self.lexicon.words[event.adverb]
            self.out.append(Word(form, 0, node, "advmod", (node * _KEYS_PER_NODE + _ADVERB,)))

    def verb(self, event: Event, node: int, head: int, relation: str) -> None:
        language = self.language
        words = self.lexicon.words
        key = node * _KEYS_PER_NODE
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

    def attachment(self, attachment: Attached, node: int, head: int, relation: str) -> None:
        if attachment.phrase is None:
            form = self.lexicon.words[attachment.adposition]
            self.out.append(Word(form, node, head, "advmod", (node * _KEYS_PER_NODE,)))
        else:
            self.phrase(attachment.phrase, node, head, relation, attachment.adposition)

    def phrase(self, phrase: Phrase, node: int, head: int, relation: str, marker: int = 0) -> None:
        """Append the words of a phrase.

        ``marker`` is its adposition, or OBJECT, written as a particle, an affix or not at all.
        """
        if phrase.clause is not None and self.relative_before:
            self.clause(phrase.clause, node)
        if self.prepositions:
            self.marker(marker, node)
        else:
            self.modifier(phrase, node)
        template = Word(_NONE, node, head, relation, (node * _KEYS_PER_NODE,))
        if phrase.concept < c.NOUNS.stop:
            self.noun(phrase, template, is_object=marker == c.OBJECT)
        elif phrase.concept >= c.PERSONS.start:
            self.name(phrase.concept, template)
        else:
            self.out.append(template._replace(form=self.lexicon.words[phrase.concept]))
        if self.prepositions:
            self.modifier(phrase, node)
        else:
            self.marker(marker, node)
        if phrase.clause is not None and not self.relative_before:
            self.clause(phrase.clause, node)
        if phrase.joined is not None:
            self.conjunct(phrase.joined, node, marker)

    def modifier(self, phrase: Phrase, node: int) -> None:
        if phrase.modifier is not None:
            self.attachment(phrase.modifier, node * _CHILDREN_PER_NODE + _MODIFIER, node, "nmod")

    def conjunct(self, conjunct: tuple[int, Phrase], node: int, marker: int) -> None:
        conjunction, phrase = conjunct
        child = node * _CHILDREN_PER_NODE + _JOINED
        self.out.append(
            Word(self.lexicon.words[conjunction], 0, child, "cc", (child * _KEYS_PER_NODE + _LINK,))
        )
        self.phrase(phrase, child, node, "conj", marker)

    def marker(self, marker: int, node: int) -> None:
        if marker and (marker != c.OBJECT or self.language.case == "particle"):
            self.out.append(
                Word(self.lexicon.words[marker], 0, node, "case", (node * _KEYS_PER_NODE + _CASE,))
            )

    def name(self, concept: int, template: Word) -> None:
        kind = c.ENTITY_OF_CLASS[c.class_of(concept)]
        first_form, *other_forms = self.lexicon.names[concept]
        self.out.append(template._replace(form=first_form, entity=f"B-{kind}"))
        for index, form in enumerate(other_forms):
            key = template.keys[0] + _NAME + index
            self.out.append(Word(form, 0, template.node, "flat", (key,), f"I-{kind}"))

    def noun(self, phrase: Phrase, template: Word, *, is_object: bool) -> None:
        """Append determiner, numeral, adjectives, noun and number, in the language's order."""
        language = self.language
        node = template.node
        outer = self.determiners(phrase, node)
        inner = self.adjectives(phrase, node)
        keys = template.keys
        if phrase.plural and language.number != "particle":
            keys += (node * _KEYS_PER_NODE + _PLURAL,)
        if is_object and language.case != "none":
            keys += () if language.case == "particle" else (node * _KEYS_PER_NODE + _CASE,)
        core = [
            template._replace(form=self.lexicon.nouns[phrase.concept][phrase.plural][is_object], keys=keys)
        ]
        if phrase.plural and language.number == "particle":
            particle = Word(self.lexicon.words[c.PLURAL], 0, node, "det", (node * _KEYS_PER_NODE + _PLURAL,))
            core.insert(0 if self.prepositions else 1, particle)
        core = [*inner, *core] if self.adjectives_before else [*core, *inner]
        self.out += [*outer, *core] if language.determiner == "before" else [*core, *reversed(outer)]

    def determiners(self, phrase: Phrase, node: int) -> list[Word]:
        words = self.lexicon.words
        determiners = []
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
                (node * _KEYS_PER_NODE + _ADJECTIVE + index,),
            )
            for index, adjective in enumerate(phrase.adjectives)
        ]

    def clause(self, clause: Event, head: int) -> None:
        """Append a relative clause, with its pronoun next to the noun and a comma at the other end."""
        node = head * _CHILDREN_PER_NODE + _CLAUSE
        is_subject_clause = clause.subject is None
        form = self.lexicon.words[c.WHICH_DOES if is_subject_clause else c.WHICH_IS_DONE]
        pronoun = Word(
            form, 0, node, "nsubj" if is_subject_clause else "obj", (node * _KEYS_PER_NODE + _RELATIVE,)
        )
        comma = Word(COMMA, 0, node, "punct", (node * _KEYS_PER_NODE + _COMMA,))
        if not self.relative_before:
            self.out.append(pronoun)
        elif self.out:
            self.out.append(comma)
        self.event(clause, node, head, "acl:relcl")
        self.out.append(pronoun if self.relative_before else comma)


_NONE = Form("", "", "", "_")
