"""Parallel text as two treebanks of Universal Dependencies that share their sentences' sent_ids.

So the Parallel UD treebanks have it: UD_English-PUD and UD_German-PUD are a thousand sentences of news and
Wikipedia in translation (Zeman et al. 2017, Section 3).
"""

from collections.abc import Iterator

from isogloss.data.conllu import read_conllu, text_comment
from isogloss.data.corpora import Split
from isogloss.data.examples import ParsedSentence, TextLine, Translation
from isogloss.data.files import File, Folder
from isogloss.data.layouts import TREEBANKS
from isogloss.data.matching import matched
from isogloss.data.spacing import running_text


def find_treebanks(folder: Folder, name: str, split: Split, first: str, second: str) -> list[File]:
    """Find the treebanks of this name (pud) of both languages; none unless both are there."""
    sides = [
        folder.find([f"{place}UD_*/{language}_{name.lower()}-ud-{split}.conllu" for place in TREEBANKS])
        for language in (first, second)
    ]
    return [side[0] for side in sides] if name.isalnum() and all(sides) else []


def read_treebanks(files: list[File]) -> Iterator[Translation]:
    """Match the sentences by sent_id, in the order of the first; DataError where one has no match."""
    first, second = ((_line(sentence) for sentence in read_conllu(file)) for file in files)
    for one, other in matched(first, second, names=(files[0].name, files[1].name)):
        yield Translation(id=one.id, first=one.text, second=other.text)


def _line(sentence: ParsedSentence) -> TextLine:
    return TextLine(id=sentence.id, text=text_comment(sentence) or running_text(sentence.words))
