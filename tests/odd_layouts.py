"""Layouts of tagging and text files in the field: small files in each layout, and the expected contents.

Small files were counted by hand, the corpora's files with a few lines that share no code with the readers.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Odd(NamedTuple):
    name: str
    body: str
    """Fields of the description, without files and language."""
    content: str | bytes
    sentences: int
    labels: dict[str, int]
    remark: str = ""
    error: str = ""


TAGGING = 'kind = "tagging"\nformat = "conll"\n'
TEXT = 'kind = "text"\nformat = "tsv"\n'


NUMBERED = "columns = { text = 0, label = 1 }\n"


def columns(word: int, label: int) -> str:
    return f"{TAGGING}columns = {{ word = {word}, label = {label} }}\n"


WORDS = "Anna B-PER\nBo I-PER\nin O\nOslo B-LOC\n\nshe O\nleft O\n"
"""PER 1, LOC 1 in two sentences."""
NAMES = {"PER": 1, "LOC": 1}

GERMEVAL = (
    "#\thttp://de.wikipedia.org/wiki/Oslo\t[2010-01-16]\n1\tAnna\tB-PER\tO\n2\tin\tO\tO\n3\tOslo\tB-LOC\tO\n\n"
    "#\thttp://de.wikipedia.org/wiki/Bo\t[2010-01-17]\n1\t#\tO\tO\n"
)
MULTICONER = (
    "# id 5239d808-f300\tdomain=en\nanna _ _ B-PER\nin _ _ O\noslo _ _ B-LOC\n\n"
    "# id 6a\tdomain=en\nit _ _ O\n"
)
ONTONOTES = (
    "#begin document (bc/cctv/00/cctv_0000); part 000\n"
    "bc/cctv/00/cctv_0000 0 0 In IN (TOP* - - - Speaker#1 * (ARG*) -\n"
    "bc/cctv/00/cctv_0000 0 1 New NNP * - - - Speaker#1 (GPE* * -\n"
    "bc/cctv/00/cctv_0000 0 2 York NNP *) - - - Speaker#1 *) * -\n\n"
    "bc/cctv/00/cctv_0000 0 0 Anna NNP (TOP*) - - - Speaker#1 (PERSON) * * -\n\n#end document\n"
)
CONLL_2003 = (
    "-DOCSTART- -X- -X- O\n\nEU NNP B-NP I-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP I-MISC\n\n"
    "Peter NNP B-NP I-PER\nBlackburn NNP I-NP I-PER\nParis NNP I-NP B-PER\n"
)
LINCE = (
    "# sent_enum = 1\nHola\tlang2\tO\n#amigo\tlang2\tO\nAnna\tne\tB-PER\n\n# sent_enum = 2\nOslo\tne\tB-LOC\n"
)
XSID = (
    "# text: show Oslo\n# intent: weather/find\n# slots: 5:9:location\n"
    "1\tshow\tweather/find\tO\n2\tOslo\tweather/find\tB-location\n"
)
UNER = (
    "# sent_id = a-1\n# text = Anna left\n1\tAnna\tB-PER\t-\tstephen\n2\tleft\tO\t-\t-\n\n"
    "1\tOslo\tB-LOC\t-\t-\n"
)
ENDING = WORDS.replace(" ", "\t").replace("\n", "\t\n").replace("\n\t\n", "\n\n")
WNUT = "@anna\tO\nOslo\tB-location\n\t\n#hash\tO\nbig\tB-product,B-group\n"
IOBES = "Anna B-PER\nBo I-PER\nLi E-PER\nin O\nOslo S-LOC\n"

LAYOUTS = (
    Odd(
        "CoNLL-2002: word, POS, IOB2",
        columns(0, -1),
        "Anna NP B-PER\nen SP O\nOslo NC B-LOC\n\nva V O\n",
        2,
        NAMES,
    ),
    Odd(
        "CoNLL-2003: documents, IOB1",
        columns(0, -1),
        CONLL_2003,
        2,
        {"ORG": 1, "MISC": 1, "PER": 2},
        "1 comment line skipped, IOB1 read as BIO",
    ),
    Odd(
        "GermEval 2014: index, sources after #", columns(1, 2), GERMEVAL, 2, NAMES, "2 comment lines skipped"
    ),
    Odd("UNER: index, # text =", columns(1, 2), UNER, 2, NAMES, "2 comment lines skipped"),
    Odd(
        "UNER without its columns",
        TAGGING,
        UNER,
        0,
        {},
        error=":1: column 0 ",
    ),
    Odd("xSID: # text: …", columns(1, 3), XSID, 1, {"location": 1}, "3 comment lines skipped"),
    Odd("MasakhaNER: word, space, tag", TAGGING, WORDS, 2, NAMES),
    Odd("HiNER: tabs", TAGGING, WORDS.replace(" ", "\t"), 2, NAMES),
    Odd("KazNERD: no-break space in a word", TAGGING, "10\u00a0000 B-NUM\nans O\n", 1, {"NUM": 1}),
    Odd("LinCE: word, language, tag", columns(0, 2), LINCE, 2, NAMES, "2 comment lines skipped"),
    Odd("MultiCoNER: # id, underscores", TAGGING, MULTICONER, 2, NAMES, "2 comment lines skipped"),
    Odd(
        "OntoNotes (CoNLL-2012): brackets",
        columns(3, 10),
        ONTONOTES,
        2,
        {"GPE": 1, "PERSON": 1},
        "2 comment lines skipped, brackets read as BIO",
    ),
    Odd(
        "WikiANN: en: before each word",
        TAGGING,
        "en:Anna B-PER\nen:in O\n\n" * 5,
        0,
        {},
        error=":1: column 0 with 'en:' before each word",
    ),
    Odd(
        "WNUT-17: a tab between sentences, two tags",
        TAGGING,
        WNUT,
        1,
        {"location": 1},
        error=":5: tag 'B-product,B-group'",
    ),
    Odd("IOBES", TAGGING, IOBES, 1, NAMES, "IOBES read as BIO"),
    Odd("BILOU", TAGGING, IOBES.replace("E-", "L-").replace("S-", "U-"), 1, NAMES, "BILOU read as BIO"),
    Odd("BMES", TAGGING, IOBES.replace(" I-", " M-"), 1, NAMES, "BMES read as BIO"),
    Odd("IOB1", TAGGING, WORDS.replace("B-", "I-"), 2, NAMES, "IOB1 read as BIO"),
    Odd("CRLF", TAGGING, WORDS.replace("\n", "\r\n"), 2, NAMES),
    Odd("CR alone", TAGGING, WORDS.replace("\n", "\r"), 2, NAMES),
    Odd("byte order mark", TAGGING, "\ufeff" + WORDS, 2, NAMES),
    Odd("UTF-16", TAGGING, WORDS.encode("utf-16"), 0, {}, error=":1: this is UTF-16; expected UTF-8"),
    Odd("no line end at the end", TAGGING, WORDS.rstrip("\n"), 2, NAMES),
    Odd(
        "a tab at the end of each line",
        TAGGING,
        ENDING,
        2,
        NAMES,
        "a separator at the end of every line skipped",
    ),
    Odd(
        "blanks between sentences, two spaces",
        TAGGING,
        WORDS.replace("\n\n", "\n   \n").replace(" B", "  B"),
        2,
        NAMES,
    ),
    Odd(
        "# sent 1",
        TAGGING,
        f"# sent 1\n{WORDS}".replace("\n\n", "\n\n# sent 2\n"),
        2,
        NAMES,
        "2 comment lines skipped",
    ),
    Odd("words that begin with #", TAGGING, "# O\n#Oslo B-LOC\n\n#1 O\nAnna B-PER\n", 2, NAMES),
    Odd(
        "0 for O",
        TAGGING,
        WORDS.replace("in O", "in 0"),
        1,
        {},
        error=":3: tag '0'",
    ),
    Odd(
        "a label that is empty",
        TAGGING,
        WORDS.replace(" ", "\t").replace("left\tO", "left\t"),
        1,
        NAMES,
        error=":7: no label; expected one of",
    ),
    Odd(
        "a space in a word",
        TAGGING,
        WORDS + "\nNew York B-LOC\n",
        2,
        NAMES,
        error=":9: 3 columns in 'New York B-LOC'; expected 2 columns",
    ),
    Odd(
        "a comment inside a sentence",
        TAGGING,
        WORDS.replace("in O", "# page 3\nin O"),
        1,
        {},
        error=":3: 3 columns in '# page 3'; expected 2 columns",
    ),
    Odd(
        "text: label missing in one row",
        f"{TEXT}{NUMBERED}",
        "a\tx\nb\t\nc\ty\n",
        2,
        {"x": 1, "y": 1},
        error=":2: no label; expected one of x, y",
    ),
    Odd(
        "text: CRLF, several labels, no header",
        f'{TEXT}predicts = "labels"\ncolumns = {{ text = 0, label = 1 }}\n',
        "a\t1\r\nb\t8, 1\r\n",
        2,
        {"1": 2, "8": 1},
    ),
    Odd(
        "a header where columns are numbered",
        f"{TEXT}{NUMBERED}",
        "text\tlabel\na\tx\nb\ty\n",
        0,
        {},
        error=":1: a header, with 'label'",
    ),
    Odd(
        "a header of words and tags",
        TAGGING,
        "token\ttag\nAnna\tX\nis\tY\nhere\tY\n",
        1,
        {"Y": 2, "X": 1},
        "the header in line 1 skipped",
    ),
    Odd(
        "text: a tab in one text",
        f"{TEXT}{NUMBERED}",
        "a\tx\nb\tb\ty\n",
        1,
        {"x": 1},
        error=":2: 3 cells; expected 2 as in the first row",
    ),
    Odd(
        "text: two columns of one name",
        TEXT,
        "text\tlabel\tlabel\na\tx\ty\n",
        0,
        {},
        error=":1: 2 columns 'label'; expected one",
    ),
    Odd(
        "text: nan for a missing label",
        f"{TEXT}{NUMBERED}",
        "a\tx\nb\tnan\nc\ty\n",
        2,
        {"x": 1, "y": 1},
        error=":2: no label ('nan'); expected one of x, y",
    ),
    Odd(
        "text: labels that differ in case",
        f"{TEXT}{NUMBERED}",
        "a\tPos\nb\tpos\n",
        2,
        {"Pos": 1, "pos": 1},
        "labels that differ only in case or width: Pos, pos",
    ),
    Odd(
        "tags in small letters",
        TAGGING,
        "anna b-per\nis O\n",
        1,
        {"per": 1},
        "'b-TYPE' read as 'B-TYPE'",
    ),
    Odd(
        "spans that are read as labels of words",
        f'{TAGGING}scheme = "words"\n',
        "Anna B-PER\nBo I-PER\n",
        1,
        {"B-PER": 1, "I-PER": 1},
    ),
    Odd(
        "comments anywhere",
        f'{TAGGING}comments = "# "\n',
        "Anna B-PER\n# page 3\nBo I-PER\n",
        1,
        {"PER": 1},
        "1 comment line skipped",
    ),
    Odd("words alone", TAGGING, "Anna\nleft\n\nOslo\n", 2, {}, "no labels"),
    Odd("texts alone", f'{TEXT}columns = {{ text = "tweet" }}\n', "tweet\na\nb\n", 2, {}, "no labels"),
)


class Real(NamedTuple):
    """A file of a corpus in the folder of real data, what describes it, and how it is counted."""

    path: str
    body: str
    language: str
    count: Callable[[list[str]], tuple[int, Counter[str]]]
    left_out: int = 0
    """Invalid rows that are skipped."""


Counted = tuple[int, Counter[str]]


def spans(tag: int, *, begins_with_b: bool = True) -> Callable[[list[str]], Counted]:
    """Count sentences and spans. In IOB1 a span also begins where the type does."""

    def count(lines: list[str]) -> Counted:
        result = Counter[str]()
        sentences = 0
        text_before = ""
        for line in (str.strip(value) for value in lines):
            if line and not line.startswith("# "):
                sentences += not text_before
                part = line.replace("\t", " ").split(" ")[tag]
                if part[0] == "B" or (part[0] == "I" and not begins_with_b and text_before[2:] != part[2:]):
                    result[part[2:]] += 1
                text_before = part
            elif not line:
                text_before = ""
        return sentences, result

    return count


def cells(label: int, *, header: bool, parted_text: str = "") -> Callable[[list[str]], Counted]:
    def count(lines: list[str]) -> Counted:
        rows = [line.rstrip("\r").split("\t") for line in lines[header:] if line]
        rows = [row for row in rows if all(cell.strip() for cell in row)]
        labels = [row[label].split(parted_text) if parted_text else [row[label]] for row in rows]
        return len(rows), Counter(name.strip() for names in labels for name in names)

    return count


def tags_of_conllu(lines: list[str]) -> Counted:
    rows = [line.split("\t") for line in lines if line[:1].isdigit()]
    words = [row for row in rows if row[0].isdecimal()]
    return sum(row[0] == "1" for row in words), Counter(row[3] for row in words)


def answers(lines: list[str]) -> Counted:
    count = 0
    for row in (json.loads(value) for value in (item for item in lines if item)):
        (text,) = row["answer_pivot"]["text"]
        (start,) = row["answer_pivot"]["answer_start"]
        near_context = row["context"][max(start - 1, 0) : start + len(text) + 1]
        count += start >= 0 and (text in near_context or row["context"].count(text) == 1)
    return count, Counter()


NLI = 'kind = "pair"\nformat = "tsv"\ncolumns = { id = "id", first = "premise", second = "hypothesis" }\n'
SPAN = (
    'kind = "span"\nformat = "jsonl"\n'
    'columns = { id = "id", question = "question_translated", answers = "answer_pivot" }\n'
)

REAL = (
    Real("uner/en_ewt-ud-test.iob2", columns(1, 2), "en", spans(2)),
    *(
        Real(f"xsid/{name}.conll", columns(1, 3), "en", spans(3))
        for name in ("en.test", "ja.test", "de.valid", "de-st.test")
    ),
    Real("kaznerd/IOB2_valid.txt", TAGGING, "kk", spans(-1)),
    Real("hiner/validation.conll", TAGGING, "hi", spans(-1)),
    Real("lener/dev.conll", TAGGING, "pt", spans(-1)),
    Real("enp/enp_FR.bnf.bio", TAGGING, "fr", spans(-1, begins_with_b=False)),
    Real("sagt/qtd_sagt-ud-test.conllu", 'kind = "tagging"\n', "de", tags_of_conllu),
    Real(
        "naija/train.tsv",
        'kind = "text"\nformat = "tsv"\ncolumns = { text = "tweet" }\n',
        "pcm",
        cells(1, header=True),
    ),
    Real(
        "xed/en-annotated.first4000.tsv",
        f'{TEXT}predicts = "labels"\ncolumns = {{ text = 0, label = 1 }}\n',
        "en",
        cells(1, header=False, parted_text=","),
    ),
    Real("anli/nah.tsv", NLI, "nah", cells(4, header=True), 3),
    Real("afriqa/gold_span_passages.afriqa.swa.en.test.json", SPAN, "en", answers, 32),
)


def lines_of(folder: Path, path: str) -> list[str]:
    return gzip.decompress((folder / f"{path}.gz").read_bytes()).decode().split("\n")
