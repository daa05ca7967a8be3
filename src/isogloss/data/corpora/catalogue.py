"""The catalogue of corpora: contents, layouts of files, licences."""

from collections.abc import Mapping

from isogloss.data.corpora.bitext import Bitext, Bucc
from isogloss.data.corpora.labelled import PAIRS, LabelledCorpus
from isogloss.data.corpora.questions import MLQA, SQUAD, TYDIQA
from isogloss.data.corpora.texts_and_trees import Bible, RawText, Ud
from isogloss.data.corpus import About, Corpus, Split, every_split, in_places, joined, of_english
from isogloss.data.formats.conllu import UPOS
from isogloss.data.formats.tables import AnyOf

NLI = ("entailment", "neutral", "contradiction")
PARAPHRASE = ("0", "1")
"""1: a paraphrase."""


CAD_NLI = LabelledCorpus(
    name="cad-nli",
    tasks=("nli",),
    about=About(
        """CAD-NLI: pairs of SNLI that people changed as little as turns the label, in English. Kaushik et
    al. (2020), "Learning the Difference that Makes a Difference with Counterfactually-Augmented Data". It
    derives from SNLI, its test pairs from SNLI's test: whoever trains on the one must not test on the
    other.""",
        url="https://github.com/acmi-lab/counterfactually-augmented-data",
        licence="Apache-2.0",
    ),
    labels=NLI,
    columns={part: PAIRS[part] for part in ("first", "second", "label")},
    layouts=of_english(
        "cad-nli",
        every_split(
            "counterfactually-augmented-data/NLI/{collection}/{split}.tsv",
            "cad-nli/{collection}/{split}.tsv",
            "cad-nli/NLI/{collection}/{split}.tsv",
            "nli-train-en/cad_nli_{collection}_{split}.tsv",
        ),
    ),
    collection="all_combined",
)
"""Its collections are official folders: all_combined, original, revised_combined, revised_hypothesis and
revised_premise."""

MRPC = LabelledCorpus(
    name="mrpc",
    tasks=("paraphrase",),
    about=About(
        """MRPC, the Microsoft Research Paraphrase Corpus: do two English sentences of the news say the
    same. Dolan and Brockett (2005), "Automatically Constructing a Corpus of Sentential Paraphrases".
    Layouts: the official ``msr_paraphrase_train.txt`` and ``msr_paraphrase_test.txt`` (without an official
    dev), GLUE's ``MRPC/train.tsv``, and ``msr-para-train.tsv``, which holds 500 training pairs back as
    ``msr-para-val.tsv``.""",
        url="https://www.microsoft.com/en-us/download/details.aspx?id=52398",
        licence="Microsoft Research Shared Source licence (non-commercial)",
    ),
    labels=PARAPHRASE,
    columns={"first": "#1 String", "second": "#2 String", "label": "Quality"},
    layouts=of_english(
        "mrpc",
        in_places(
            ("mrpc/", "MRPC/", "glue_data/MRPC/"),
            {
                "train": ("msr_paraphrase_train.txt", "train.tsv", "msr-para-train.tsv"),
                "dev": ("dev.tsv", "msr-para-val.tsv"),
                "test": ("msr_paraphrase_test.txt", "test.tsv", "msr-para-test.tsv"),
            },
        ),
    ),
    unlabelled=("test",),
)
"""Pairs have no id in any layout; GLUE's test file has no labels."""

_MULTINLI: Mapping[Split, str] = {"train": "train", "dev": "dev_matched", "test": "dev_mismatched"}
"""What the official files call our splits."""

MULTINLI = LabelledCorpus(
    name="multinli",
    tasks=("nli",),
    about=About(
        """MultiNLI: SNLI's question about English of ten genres, the training data of XNLI. Williams et
    al. (2018), "A Broad-Coverage Challenge Corpus for Sentence Understanding through Inference". Dev is the
    official ``dev_matched`` (the genres of train). The labels of the official tests are not public, so test
    is ``dev_mismatched`` (other genres). Layouts: ``multinli_1.0_train.txt`` and ``.jsonl``, and GLUE's
    ``MNLI``. Rows whose label is "-" are left out and counted.""",
        url="https://cims.nyu.edu/~sbowman/multinli/",
        licence="OANC's, CC BY-SA 3.0 and others, by genre",
    ),
    labels=NLI,
    columns={**PAIRS, "id": "pairID"},
    skip=("-",),
    layouts=of_english(
        "multinli",
        {
            split: (
                *(
                    f"{folder}/multinli_1.0_{name}{end}"
                    for end in (".txt", ".jsonl")
                    for folder in ("multinli_1.0", "multinli", "xnli/multinli_1.0")
                ),
                f"MNLI/{name}.tsv",
                f"glue_data/MNLI/{name}.tsv",
            )
            for split, name in _MULTINLI.items()
        },
    ),
)

PAWSX = LabelledCorpus(
    name="pawsx",
    tasks=("paraphrase",),
    about=About(
        """PAWS-X: do two sentences made of much the same words mean the same, in seven languages. Yang et
    al. (2019), "PAWS-X: A Cross-lingual Adversarial Dataset for Paraphrase Identification". Layouts: the
    official ``x-final/de/dev_2k.tsv`` (training: ``train.tsv`` and ``translated_train.tsv``), XTREME's,
    whose test files have no labels, and XTREME's translations (``translate-train/en-de-translated.tsv``).""",
        url="https://github.com/google-research-datasets/paws/tree/master/pawsx",
        licence="free for any purpose; Google LLC as the source is to be acknowledged",
    ),
    labels=PARAPHRASE,
    layouts=joined(
        in_places(
            ("pawsx/x-final/{language}/", "x-final/{language}/", "pawsx/{language}/"),
            {
                "train": ("train.tsv", "translated_train.tsv"),
                "dev": ("dev_2k.tsv",),
                "test": ("test_2k.tsv",),
            },
        ),
        every_split("pawsx/{split}-{language}.tsv"),
    ),
    translations=joined(
        in_places(
            ("pawsx/", "PAWSX/", "xtreme_translations/PAWSX/"),
            {
                "train": (
                    "translate-train/{language}-translated.tsv",
                    "x-final/{into}/translated_train.tsv",
                    "{into}/translated_train.tsv",
                    "translate-train-en/translated_train.{back}-en.tsv",
                ),
                "dev": ("translate-dev/dev-{language}-translated.tsv", "translate-dev/dev_2k.{from}.tsv"),
                "test": ("translate-test/test-{language}-translated.tsv", "translate-test/test.{from}.tsv"),
            },
        ),
        {"train": ("x-final/{into}/translated_train.tsv",)},
    ),
    unlabelled=("test",),
)

_SICK: Mapping[Split, str] = {"train": "SICK_train", "dev": "SICK_trial", "test": "SICK_test_annotated"}

SICK = LabelledCorpus(
    name="sick",
    tasks=("nli",),
    about=About(
        """SICK: SNLI's question about English sentences made from captions by rule, with negation and
    passives. Marelli et al. (2014), "A SICK cure for the evaluation of compositional distributional
    semantic models". Layouts: the shared task's ``SICK_train.txt``, ``SICK_trial.txt`` (dev) and
    ``SICK_test_annotated.txt``, and the later ``SICK.txt`` with all splits in one file.""",
        url="https://zenodo.org/records/2787612",
        licence="CC BY-NC-SA 3.0",
    ),
    labels=NLI,
    spelled={label.upper(): label for label in NLI},
    columns={
        "first": "sentence_A",
        "second": "sentence_B",
        "label": AnyOf(("entailment_judgment", "entailment_label")),
        "id": "pair_ID",
    },
    split_column="SemEval_set",
    split_names={"train": "TRAIN", "dev": "TRIAL", "test": "TEST"},
    layouts=of_english(
        "sick",
        {
            split: tuple(
                f"{folder}/{file}.txt"
                for file in (name, "SICK")
                for folder in ("sick", "SICK", "sick2014", "nli-train-en/sick2014")
            )
            for split, name in _SICK.items()
        },
    ),
)

SNLI = LabelledCorpus(
    name="snli",
    tasks=("nli",),
    about=About(
        """SNLI: does one English sentence entail another, contradict it, or neither; captions of
    photographs. Bowman et al. (2015), "A large annotated corpus for learning natural language inference".
    Layouts: the official ``snli_1.0_train.txt`` and ``.jsonl``, and plain tables ``snli_dev.tsv``. Rows
    whose label is "-" (no three of five annotators agreed) are left out and counted, as everywhere.""",
        url="https://nlp.stanford.edu/projects/snli/",
        licence="CC BY-SA 4.0",
    ),
    labels=NLI,
    columns={**PAIRS, "id": "pairID"},
    skip=("-",),
    layouts=of_english(
        "snli",
        every_split(
            *(
                f"{folder}/snli_1.0_{{split}}{end}"
                for end in (".txt", ".jsonl")
                for folder in ("snli_1.0", "snli", "snli/snli_1.0")
            ),
            "snli/snli_{split}.tsv",
            "nli-train-en/snli_{split}.tsv",
        ),
    ),
)

MASAKHAPOS = LabelledCorpus(
    name="masakhapos",
    kind="tagging",
    tasks=("upos",),
    about=About(
        """MasakhaPOS: the universal part-of-speech tags of news in twenty African languages. Dione et al.
    (2023), "MasakhaPOS: Part-of-Speech Tagging for Typologically Diverse African Languages". Its conventions
    are its own, not those of one treebank.""",
        url="https://github.com/masakhane-io/masakhane-pos",
        licence="CC BY-NC 4.0; the text is that of news sites",
    ),
    labels=tuple(sorted(UPOS)),
    separator=" ",
    written="masakhapos/{language}/{split}.txt",
    layouts=every_split("masakhapos/{language}/{split}.txt", "masakhane-pos/data/{language}/{split}.txt"),
)

UDPOS = LabelledCorpus(
    name="udpos",
    kind="tagging",
    tasks=("upos",),
    about=About(
        """XTREME's part-of-speech corpus: the universal tags of all UD 2.5 treebanks of a language. Hu et
    al. (2020), "XTREME: A Massively Multilingual Multi-task Benchmark …".""",
        url="https://github.com/google-research/xtreme",
        licence="that of each treebank (CC BY-SA or CC BY-NC-SA)",
    ),
    labels=tuple(sorted(UPOS)),
    layouts=every_split("udpos/{split}-{language}.tsv", "udpos-xtreme/{split}-{language}.tsv"),
)

WIKIANN = LabelledCorpus(
    name="wikiann",
    kind="tagging",
    tasks=("ner",),
    about=About(
        """WikiANN (PAN-X): named entities of Wikipedia sentences, made without hand for 282 languages.
    Pan et al. (2017), "Cross-lingual name tagging and linking for 282 languages"; splits of Rahimi et al.
    (2019). Layouts: XTREME's ``panx/train-en.tsv`` and the original archives' ``en/train``, whose words
    read ``en:word``. An I- tag that follows no B- is kept as found: repair belongs to scoring.""",
        url="https://github.com/afshinrahimi/mmner",
        licence="none stated; the text is Wikipedia's (CC BY-SA)",
    ),
    labels=("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER"),
    written="panx/{split}-{language}.tsv",
    layouts=every_split(
        "panx/{split}-{language}.tsv",
        "wikiann/{split}-{language}.tsv",
        "wikiann/{language}/{split}",
        "panx/{language}/{split}",
        "panx_dataset/{language}/{split}",
    ),
)

_XNLI_TRAIN = "XNLI-MT-1.0/multinli/multinli.train.{into}.tsv"

XNLI = LabelledCorpus(
    name="xnli",
    tasks=("nli",),
    about=About(
        """XNLI: does a premise entail a hypothesis, contradict it, or neither, in fifteen languages.
    Conneau et al. (2018), "XNLI: Evaluating Cross-lingual Sentence Representations". Layouts: the official
    ``xnli.dev.tsv`` with all languages in one file, the official (translated) training files
    ``multinli.train.sw.tsv``, MultiNLI's own training file, XTREME's ``dev-sw.tsv``, and XTREME's
    translations (``translate-train/en-sw-translated.tsv``, ``translate-test/test-sw-en-translated.tsv``).
    XTREME takes the labels out of its test files: such a file can be predicted, not scored.""",
        url="https://github.com/facebookresearch/XNLI",
        licence="CC BY-NC 4.0",
    ),
    labels=NLI,
    spelled={label: label for label in NLI} | {"contradictory": "contradiction"},
    all_languages=every_split(
        "xnli/xnli.{split}.tsv", "XNLI-1.0/xnli.{split}.tsv", "xnli/XNLI-1.0/xnli.{split}.tsv"
    ),
    layouts=joined(
        in_places(
            ("xnli/", "XNLI-MT-1.0/multinli/", "xnli/XNLI-MT-1.0/multinli/"),
            {"train": ("multinli.train.{language}.tsv",)},
        ),
        every_split("xnli/{split}-{language}.tsv", "xnli/xtreme-format/{split}-{language}.tsv"),
        in_places(("multinli_1.0/", "xnli/multinli_1.0/"), {"train": ("multinli_1.0_train.txt{en}",)}),
    ),
    translations=joined(
        in_places(
            ("xnli/", "XNLI/", "xtreme_translations/XNLI/"),
            {
                "train": (
                    "translate-train/{language}-translated.tsv",
                    _XNLI_TRAIN,
                    "multinli.train.{into}.tsv",
                    "translate-train-en/multinli.train.{back}-en.tsv",
                ),
                "dev": ("translate-dev/dev-{language}-translated.tsv",),
                "test": ("translate-test/test-{language}-translated.tsv", "translate-test/test.{from}.tsv"),
            },
        ),
        {"train": (_XNLI_TRAIN,)},
    ),
    unlabelled=("test",),
)
"""The official translated training files spell it contradictory."""

_ALL: tuple[Corpus, ...] = (
    *(Bible(), Bitext(), Bucc(), RawText(), Ud()),
    *(CAD_NLI, MRPC, MULTINLI, PAWSX, SICK, SNLI, XNLI),
    *(MASAKHAPOS, UDPOS, WIKIANN),
    *(MLQA, SQUAD, TYDIQA),
)

CORPORA: dict[str, Corpus] = {corpus.name: corpus for corpus in sorted(_ALL, key=lambda corpus: corpus.name)}
"""All corpora by name, with the default of every field."""
