"""Official corpora of questions about passages in SQuAD's JSON."""

from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About


def translated_questions(folder: str, official: str, split: str) -> tuple[str, ...]:
    """Return the layouts of XTREME's translations of questions."""
    file = f"translate-{split}/{folder}.translate.{split}.{{language}}.json"
    return tuple(f"{parent}/{file}" for parent in (folder, official, f"xtreme_translations/{official}"))


def released_with_mlqa(split: str) -> tuple[str, ...]:
    """Return the layouts of the translations of SQuAD that were released with MLQA."""
    file = f"mlqa-translate-train/{{language}}_squad-translate-train-{split}-v1.1.json"
    return f"mlqa/{file}", file


MLQA = LabelledCorpus(
    kind="span",
    name="mlqa",
    tasks=("qa",),
    about=About(
        """MLQA: extractive question answering in seven languages, passages and questions in any two of
    them. Lewis et al. (2020), "MLQA: Evaluating Cross-lingual Extractive Question Answering". It has no
    training split.""",
        url="https://github.com/facebookresearch/MLQA",
        licence="CC BY-SA 3.0",
    ),
    layouts={
        split: tuple(
            f"{folder}{split}/{split}-context-{{language}}-question-{{collection}}.json"
            for folder in ("mlqa/MLQA_V1/", "MLQA_V1/", "mlqa/")
        )
        for split in ("dev", "test")
    },
    translations={split: translated_questions("mlqa", "MLQA", split) for split in ("dev", "test")},
    written="mlqa/MLQA_V1/{split}/{split}-context-{language}-question-{collection}.json",
    version=1.0,
    own_rules=("ar", "de", "en", "es", "hi", "vi", "zh"),
)
"""XTREME's translations have passages and questions of one language."""

SQUAD = LabelledCorpus(
    kind="span",
    name="squad",
    tasks=("qa",),
    about=About(
        """SQuAD and XQuAD: where in a passage does the answer to a question stand. Train and dev are
    SQuAD 1.1 (English; Rajpurkar et al., 2016) and its translations; test is XQuAD (Artetxe et al., 2020),
    professional translations of 1,190 questions of SQuAD's dev. All passages of XQuAD are in SQuAD's dev,
    so dev is no training data for it.""",
        url="https://rajpurkar.github.io/SQuAD-explorer",
        licence="CC BY-SA 4.0",
    ),
    layouts={
        "train": (
            "squad/train-v1.1.json{en}",
            "squad/train-v1.1.rebuilt.json{en}",
            "squad/train-{language}.json",
            "squad/squad.translate.train.en-{language}.json",
            *released_with_mlqa("train"),
        ),
        "dev": (
            *("squad/dev-v1.1.json{en}", "squad/dev-v1.1.rebuilt.json{en}", "squad/dev-{language}.json"),
            *released_with_mlqa("dev"),
        ),
        "test": ("xquad/xquad.{language}.json", "squad/test-{language}.json"),
    },
    translations={
        "train": (
            *translated_questions("squad", "SQuAD", "train"),
            "squad/translate-train-en/squad.translate.train.{language}.json",
            "squad/squad.translate.train.{language}.json",
        ),
        "dev": translated_questions("squad", "SQuAD", "dev"),
        "test": translated_questions("xquad", "XQuAD", "test"),
    },
    written="squad/{split}-{language}.json",
    version="1.1",
)
"""XTREME's translations: en-sw of SQuAD, sw-en of XQuAD."""

_TYDIQA_BY_CODE = "tydiqa/tydiqa-goldp-v1.1-{split}/tydiqa.goldp.{language}.{split}.json"
_TYDIQA_TOGETHER = "tydiqa/tydiqa-goldp-v1.1-train.json"

TYDIQA = LabelledCorpus(
    kind="span",
    name="tydiqa",
    tasks=("qa",),
    about=About(
        """TyDi QA, gold passage task: questions asked by people who wanted to know, in nine languages.
    Clark et al. (2020), "TyDi QA: A Benchmark for Information-Seeking Question Answering …". Its test
    answers are not public: XTREME and the papers after it measure on dev.""",
        url="https://github.com/google-research-datasets/tydiqa",
        licence="Apache-2.0",
    ),
    layouts={
        "train": (
            _TYDIQA_BY_CODE.replace("{split}", "train"),
            "tydiqa-goldp/{name}_tydiqa_train.json",
            _TYDIQA_TOGETHER,
        ),
        "dev": (
            _TYDIQA_BY_CODE.replace("{split}", "dev"),
            "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{name}.json",
            "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{name}.json",
            "tydiqa-goldp/{name}_tydiqa_dev.json",
        ),
    },
    translations={
        "train": (
            *translated_questions("tydiqa", "TyDiQA-GoldP", "train"),
            "tydiqa/translate-train-en/tydiqa.translate.train.{language}.json",
        ),
        "dev": translated_questions("tydiqa", "TyDiQA-GoldP", "test"),
    },
    written=_TYDIQA_BY_CODE,
    ids_by_language=_TYDIQA_TOGETHER,
)
"""What XTREME's translations call test is dev."""
