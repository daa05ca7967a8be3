"""Which Hugging Face dataset holds which corpus: repository, config, splits, languages, as on their cards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from isogloss.core.languages import NAMES, language_name
from isogloss.data import CORPORA
from isogloss.data.corpora import Corpus, Split
from isogloss.data.hub_rows import Rows, pairs, parsed, questions, questions_by_id, tagged
from isogloss.data.mlqa import Mlqa
from isogloss.data.ud import DEFAULTS, Ud

Splits = Mapping[Split, str]
"""What the hub calls our splits."""

ALL: Splits = {"train": "train", "dev": "validation", "test": "test"}
TRAIN_DEV: Splits = {"train": "train", "dev": "validation"}
DEV_TEST: Splits = {"dev": "validation", "test": "test"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset that holds a corpus."""

    corpus: Corpus
    repository: str
    config: str
    """With ``{language}`` or its English ``{name}`` in it."""
    languages: str
    rows: Rows
    splits: Splits


@dataclass(frozen=True, kw_only=True)
class Place:
    """One split of one language of a dataset."""

    source: Source
    language: str
    split: Split

    @property
    def corpus(self) -> Corpus:
        """The corpus in whose format it is given."""
        return self.source.corpus

    @property
    def config(self) -> str:
        """The dataset's config."""
        return self.source.config.format(language=self.language, name=language_name(self.language))

    @property
    def hub_split(self) -> str:
        """What the hub calls the split."""
        return self.source.splits[self.split]


@lru_cache(maxsize=1)
def places() -> dict[str, Place]:
    """Give what there is, by the place where the corpus's reader looks for it."""
    return {
        source.corpus.path(language, split): Place(source=source, language=language, split=split)
        for source in sources()
        for language in source.languages.split()
        for split in source.splits
    }


def sources() -> Iterator[Source]:
    """Give all datasets."""
    yield from _pairs()
    yield from _words()
    yield from _questions()


def _pairs() -> Iterator[Source]:
    nli = pairs("premise", "hypothesis")
    two = pairs("sentence1", "sentence2", {"not_equivalent": "0", "equivalent": "1"})
    multinli: Splits = {"train": "train", "dev": "validation_matched", "test": "validation_mismatched"}
    xnli = "ar bg de el en es fr hi ru sw th tr ur vi zh"
    yield _source("xnli", "facebook/xnli", "{language}", xnli, nli)
    yield _source("pawsx", "google-research-datasets/paws-x", "{language}", "de en es fr ja ko zh", two)
    yield _source("mrpc", "nyu-mll/glue", "mrpc", "en", two)
    yield _source("snli", "stanfordnlp/snli", "plain_text", "en", nli)
    yield _source("multinli", "nyu-mll/multi_nli", "default", "en", nli, multinli)


def _words() -> Iterator[Source]:
    udpos = (
        "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur vi yo zh"
    )
    yield _source("wikiann", "unimelb-nlp/wikiann", "{language}", " ".join(NAMES), tagged("ner_tags"))
    yield _source("udpos", "google/xtreme", "udpos.{name}", udpos, tagged("pos_tags"))
    pud = "ar cs de en es fi fr hi id it ja ko pl pt ru th tr zh"
    treebanks = [*DEFAULTS.items(), *((language, "PUD") for language in pud.split())]
    for language, treebank in treebanks:
        yield Source(
            corpus=Ud(treebanks=((language, treebank),)),
            repository="universal-dependencies/universal_dependencies",
            config=f"{language}_{treebank.lower()}",
            languages=language,
            rows=parsed,
            splits={"test": "test"} if treebank == "PUD" else ALL,
        )


def _questions() -> Iterator[Source]:
    tydi = "google-research-datasets/tydiqa"
    xquad = "ar de el en es hi ro ru th tr vi zh"
    mlqa = "ar de en es hi vi zh"
    yield _source("squad", "rajpurkar/squad", "plain_text", "en", questions, TRAIN_DEV)
    yield _source("squad", "google/xquad", "xquad.{language}", xquad, questions, {"test": "validation"})
    yield _source("tydiqa", tydi, "secondary_task", "ar bn en fi id ko ru sw te", questions_by_id, TRAIN_DEV)
    for asked in mlqa.split():
        yield Source(
            corpus=Mlqa(questions=asked),
            repository="facebook/mlqa",
            config=f"mlqa.{{language}}.{asked}",
            languages=mlqa,
            rows=questions,
            splits=DEV_TEST,
        )


def _source(
    corpus: str, repository: str, config: str, languages: str, rows: Rows, splits: Splits = ALL
) -> Source:
    return Source(
        corpus=CORPORA[corpus],
        repository=repository,
        config=config,
        languages=languages,
        rows=rows,
        splits=splits,
    )
