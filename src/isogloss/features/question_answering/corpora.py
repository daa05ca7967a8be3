"""Official corpora of questions, in SQuAD's JSON. Their language is the language of the passages."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from isogloss.core.languages import language_name
from isogloss.data.corpora.corpus_tables import read_corpora
from isogloss.data.corpora.labelled import Attempts, CorpusFiles, LabelledCorpus
from isogloss.data.corpus import Split, is_translation, only
from isogloss.data.examples import Example, Question
from isogloss.data.files import File
from isogloss.features.question_answering.squad import all_questions, write_questions


def _questions(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:  # noqa: ARG001
    """Yield the questions of a language, or None for a question that lost its answers in translation."""
    passage_language = language.rpartition("-")[2]
    path = file.plain_name.replace("\\", "/")
    has_all = corpus.ids_by_language and path.endswith(corpus.ids_by_language)
    start = f"{language_name(language).lower()}-" if has_all else ""
    questions = all_questions(
        file,
        language=passage_language if passage_language in corpus.own_rules else "",
        answers="translated" if is_translation(language) else "needed",
    )
    for question in questions:
        if question.id.startswith(start):
            yield question if question.answers else None


def _write_lines(corpus: LabelledCorpus, examples: Iterable[Example]) -> Iterator[str]:
    return write_questions(only(Question, examples, corpus.name), version=corpus.version)


QUESTION_FILES = CorpusFiles(attempts=_questions, lines=_write_lines, is_marked=False)

_CORPORA = read_corpora(Path(__file__).with_name("corpora.toml"))

MLQA = _CORPORA["mlqa"]
SQUAD = _CORPORA["squad"]
TYDIQA = _CORPORA["tydiqa"]
