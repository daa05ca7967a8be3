"""What corpora give: examples, frozen and free of any file format.

Every example carries an ``id`` that is unique within its corpus, language and split, and can be found
again in the file (UD's sent_id, a running number where the format has none).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """Words with one tag each (WikiANN, XTREME's udpos)."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSentence:
    """A sentence of a treebank: words, universal tags and a tree.

    ``heads`` are 1-based word numbers, 0 for the root; ``relations`` are UD relations with their subtypes.
    ``lines`` are the sentence's lines as they stood, so that multi-word ranges, empty nodes, enhanced
    graphs and comments can be written back untouched.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """Two texts and their label (XNLI: premise, hypothesis; PAWS-X: two sentences)."""

    id: str
    first: str
    second: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """One sentence or paragraph of raw text; ``document`` counts from 0."""

    id: str
    text: str
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A text in two languages; ``links`` are 0-based word pairs (first, second) where gold ones exist.

    Words are what spaces part. ``possible`` are further links that an aligner may give but need not.
    """

    id: str
    first: str
    second: str
    links: tuple[tuple[int, int], ...] | None = None
    possible: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a passage; ``answers`` are (character offset in the passage, text).

    ``language`` is that of the passage where answers are compared by its own articles and punctuation
    (MLQA); empty where they are compared as SQuAD's script does, whatever the language. ``title`` is that of
    the article. ``place`` says where the passage stood, as article and paragraph, so that it can be written
    back; ``repaired`` says what the reader put right in the answers. Neither makes another question of it.
    """

    id: str
    passage: str
    question: str
    answers: tuple[tuple[int, str], ...]
    language: str = ""
    title: str = ""
    place: tuple[int, int] = field(default=(0, 0), compare=False)
    repaired: str = field(default="", compare=False)


Example = TaggedSentence | ParsedSentence | SentencePair | TextLine | Translation | Question
