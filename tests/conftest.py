"""Shared by all tests: paths of the real corpora, and tiny random encoders of every kind of family."""

import gc
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
from filelock import FileLock
from hypothesis import settings

import says
import shapes  # noqa: F401  # Before anything of ours is imported.
from covering import leave_products_to_the_night
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.files import DiskFolder
from isogloss.features.built_in_languages import SIZES
from isogloss.reports.drawing import Figure, FigureLayout
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.tasks import TASKS
from isogloss.training.setting import Setting
from made_up import TEXT, tagged_sentences
from order import long_first

gc.disable()  # Until all is imported and collected, which drops nothing.

pytest_plugins = (
    "browser_fixtures",
    "clones",
    "cluster_fixtures",
    "command_line",
    "corpus_fixtures",
    "known_skips",
    "model_fixtures",
    "planning_fixtures",
)

STUDIES = Path(__file__).parent / "reports" / "studies"
"""Four tiny studies that were really run: their recipes, records, and what earlier reports said of them."""

# A busy machine is no broken law, and no change is judged by luck: the same examples are tried every time, so
# that more of them cost more and find nothing new. `make nightly` tries ten times as many, and
# "--hypothesis-profile search" draws others.
settings.register_profile("isogloss", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("night", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile("isogloss")

WORD_PIECES = ("s", "ed", "ing", "ly", "al", "un", "happen", "cas", "low", "slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-data", default="../shared/data", help="folder of the real corpora, from the project's root"
    )
    parser.addoption(
        "--clones", default="../shared/clones", help="folder of other projects' clones, named owner+name"
    )
    parser.addoption("--record-messages", action="store_true", help="record the wordings of errors anew")
    parser.addoption("--nightly", action="store_true", help="run the tests marked nightly, too")
    parser.addoption("--gpu", action="store_true", help="let tests see GPUs; test_on_gpu.py is for them")


def pytest_configure(config: pytest.Config) -> None:
    """Hide GPUs, which torch searches on first use. Write files without waiting for the disk."""
    os.fsync = lambda index: None  # No test cuts the power, and disks are slow.
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # For weights this small, threads cost more than reading.
    says.is_recorded_anew = config.getoption("--record-messages")
    if not config.getoption("--gpu"):
        os.environ |= dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "-1")


DRAWN = Figure.drawn

RECIPES_MADE = ("made", "mixup_runs")
"""Fixtures that run a whole recipe, which takes seconds. Tests that use them are slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if set(RECIPES_MADE) & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    leave_to_the_night(items)
    leave_products_to_the_night(items)
    if not config.getoption("--nightly") and not any("[" in name for name in config.args):
        nightly_tests = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly_tests)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    long_first(items)


def leave_to_the_night(items: list[pytest.Item]) -> None:
    """Mark slow cases as nightly, except one of a test without a fast case, and cases that markers choose."""
    slow_cases = defaultdict[str, list[pytest.Item]](list)
    with_fast_cases: set[str] = set()
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        name = item.nodeid.partition("[")[0]
        if not marks & {"slow", "nightly"}:
            with_fast_cases.add(name)
        elif "slow" in marks and not marks & {"every_case", "nightly", "sample"}:
            slow_cases[name].append(item)
    for name, cases in slow_cases.items():
        for case in cases[0 if name in with_fast_cases else 1 :]:
            case.add_marker(pytest.mark.nightly)


def _skip_drawing(figure: Figure, layout: FigureLayout, *formats: str) -> dict[str, bytes]:
    return dict.fromkeys(formats, b"<svg/>")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw the figures of reports only in tests marked so, because drawing takes longest."""
    Figure.drawn = DRAWN if item.get_closest_marker("draws") else _skip_drawing


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Remove folders of code that a test added to the path, because every import searches them."""
    path_before = list(sys.path)
    result = yield
    sys.path[:] = path_before
    return result


def pytest_collection_finish() -> None:
    """Exclude objects of imports and collection from every garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # A test makes little garbage, and looking for it often takes long.
    gc.enable()


@pytest.fixture(scope="session")
def real_data(pytestconfig: pytest.Config) -> DiskFolder:
    place = pytestconfig.getoption("--real-data")
    path = Path(pytestconfig.rootpath, place)
    if not path.is_dir():
        pytest.skip(f"the real corpora are not on this machine (no folder {place})")
    return DiskFolder(path)


def _encoder(model: str, tokenizer: Callable[[], object], **config: object) -> object:
    """Make a fixture: the folder of a tiny encoder, a class of transformers with random weights."""

    @pytest.fixture(scope="session")
    def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
        import transformers

        kind = getattr(transformers, model)
        subwords = tokenizer()
        place = tmp_path_factory.mktemp("encoders") / kind.config_class.model_type
        with torch.random.fork_rng():
            torch.manual_seed(0)
            result = kind(kind.config_class(vocab_size=len(subwords), **config))
        result.save_pretrained(place)
        subwords.save_pretrained(place)
        return place

    return folder


def _word_pieces() -> object:
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = _letters()
    pieces = [*special, *letters, *(f"##{part}" for part in [*letters, *WORD_PIECES]), *TEXT.split()]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    return BertTokenizer(vocab=vocabulary, do_lower_case=False)


def _unigrams(kind: str, *special: str, mask: str = "<mask>", **options: object) -> Callable[[], object]:
    """Unigram subwords in a tokenizer of transformers, which may have only their numbers."""
    letters = [(letter, -9.0) for letter in _letters()]
    pieces = [(piece, -6.0) for piece in WORD_PIECES if len(piece) > 1]
    words = [(f"▁{word}", -5.0) for word in dict.fromkeys(TEXT.split())]
    vocab = [*((name, 0.0) for name in special), ("▁", -8.0), *letters, *pieces, *words, (mask, 0.0)]

    def tokenizer() -> object:
        import transformers

        numbers = {piece: index for index, (piece, _) in enumerate(vocab)}
        return getattr(transformers, kind)(vocab=numbers if kind == "NllbTokenizer" else vocab, **options)

    return tokenizer


def _bytes(frame: tuple[str, str] | None = None, **special: str) -> Callable[[], object]:
    """Byte-level BPE. Texts are framed by two of the special subwords, or by nothing."""

    def tokenizer() -> object:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
        from transformers import PreTrainedTokenizerFast

        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=330,
            special_tokens=list(dict.fromkeys(special.values())),
            initial_alphabet=alphabet,
            show_progress=False,
        )
        backend.train_from_iterator([TEXT] * 4, trainer)
        if frame is not None:
            first_frame, last_frame = frame
            backend.post_processor = processors.TemplateProcessing(
                single=f"{first_frame} $A {last_frame}",
                pair=f"{first_frame} $A {last_frame} $B:1 {last_frame}:1",
                special_tokens=[(name, backend.token_to_id(name)) for name in (first_frame, last_frame)],
            )
        return PreTrainedTokenizerFast(tokenizer_object=backend, **special)

    return tokenizer


def _gemma_pieces() -> object:
    """BPE over characters with ▁ for spaces. A text has a first special subword, but no last one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    names = {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>", "unk_token": "<unk>"}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Replace("▁", " ")
    trainer = trainers.BpeTrainer(
        vocab_size=90,
        special_tokens=list(names.values()),
        initial_alphabet=["▁", *_letters()],
        show_progress=False,
    )
    tokenizer.train_from_iterator([f" {word}" for word in TEXT.split()] * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _letters() -> list[str]:
    return sorted({letter for letter in TEXT if letter != " "})


_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "initializer_range": 0.2,
    "max_position_embeddings": 160,
}
_XLM_R_SIZES = {**_SIZES, "max_position_embeddings": 162, "type_vocab_size": 1}
_DECODER_SIZES = {**_SIZES, "num_key_value_heads": 2, "head_dim": 12}
"""Keys that two heads share, and heads wider than their part of the states."""
_HALF_SIZES = {"layers": 3, "attention_heads": 4, "ffn_dim": 48}
"""Families of the encoder and of the decoder."""

_XLM_R_UNIGRAMS = _unigrams("XLMRobertaTokenizer", "<s>", "<pad>", "</s>", "<unk>")

bert_folder = _encoder("BertForMaskedLM", _word_pieces, **_SIZES, pad_token_id=0)

distilbert_folder = _encoder(
    "DistilBertForMaskedLM",
    _word_pieces,
    **{"hidden_dim" if name == "intermediate_size" else name: size for name, size in _SIZES.items()},
)
"""As on the hub: with BERT's own tokenizer, which knows segments."""

xlm_roberta_folder = _encoder("XLMRobertaForMaskedLM", _XLM_R_UNIGRAMS, **_XLM_R_SIZES, pad_token_id=1)

deberta_v2_folder = _encoder(
    "DebertaV2ForMaskedLM",
    _unigrams("DebertaV2Tokenizer", "[PAD]", "[CLS]", "[SEP]", "[UNK]", mask="[MASK]"),
    **_SIZES,
    relative_attention=True,
    position_buckets=8,
    norm_rel_ebd="layer_norm",
    share_att_key=True,
    pos_att_type="p2c|c2p",
    position_biased_input=False,
    type_vocab_size=0,
)
"""Only relative positions, without segments, as in mDeBERTa-v3."""

modernbert_folder = _encoder(
    "ModernBertForMaskedLM",
    _bytes(
        frame=("[CLS]", "[SEP]"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ),
    **_SIZES,
    local_attention=4,
    pad_token_id=0,
    cls_token_id=2,
    sep_token_id=3,
    bos_token_id=2,
    eos_token_id=3,
)
"""Bytes without a space before the text, and layers that see few neighbours, as ModernBERT has it."""

xlm_roberta_xl_folder = _encoder("XLMRobertaXLForMaskedLM", _XLM_R_UNIGRAMS, **_XLM_R_SIZES, pad_token_id=1)

xmod_folder = _encoder(
    "XmodForMaskedLM",
    _XLM_R_UNIGRAMS,
    **_XLM_R_SIZES,
    languages=["en_XX", "sw_KE", "de_DE"],
    default_language="en_XX",
)
"""Adapters of three languages, named as on the hub, and a default language for texts."""

rembert_folder = _encoder(
    "RemBertForMaskedLM", _word_pieces, **_SIZES, input_embedding_size=8, output_embedding_size=24
)

eurobert_folder = _encoder(
    "EuroBertForMaskedLM",
    _bytes(
        frame=("[BEGIN]", "[END]"),
        pad_token="[PAD]",
        bos_token="[BEGIN]",
        eos_token="[END]",
        mask_token="[MASK]",
    ),
    **_SIZES,
    num_key_value_heads=2,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    mask_token_id=3,
)
"""Bytes, and hence no unknown subword. Keys that two heads share."""

llama_folder = _encoder(
    "LlamaForCausalLM",
    _bytes(bos_token="[BEGIN]", eos_token="[END]"),
    **_DECODER_SIZES,
    bos_token_id=0,
    eos_token_id=1,
)
"""As on the hub: no subword closes or separates texts, and padding is missing."""

qwen3_folder = _encoder(
    "Qwen3ForCausalLM",
    _bytes(eos_token="[END]", pad_token="[END]"),
    **_DECODER_SIZES,
    bos_token_id=None,
    eos_token_id=0,
)
"""As on the hub: the end of a text is also the padding, without an opening subword."""

gemma3_text_folder = _encoder(
    "Gemma3ForCausalLM",
    _gemma_pieces,
    **_DECODER_SIZES,
    sliding_window=4,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    query_pre_attn_scalar=8,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=2,
)
"""Two of three layers see a window of few neighbours."""

m2m_100_folder = _encoder(
    "M2M100ForConditionalGeneration",
    _unigrams("NllbTokenizer", "<s>", "<pad>", "</s>", "<unk>"),
    **{
        f"{half_name}_{part}": size
        for half_name in ("encoder", "decoder")
        for part, size in _HALF_SIZES.items()
    },
    d_model=32,
    max_position_embeddings=160,
    init_std=0.2,
)
"""A whole translation model, as NLLB on the hub."""

mt5_folder = _encoder(
    "MT5ForConditionalGeneration",
    _unigrams("T5Tokenizer", "<pad>", "</s>", "<unk>", extra_ids=0),
    d_model=32,
    d_kv=8,
    d_ff=48,
    num_layers=3,
    num_heads=4,
    num_decoder_layers=1,
)
"""A whole translation model, as on the hub."""

ENCODERS = ("bert", "xlm-roberta", "distilbert", "deberta-v2", "modernbert")
"""Families that differ in their layers. Roberta and camembert are built like xlm-roberta."""

MASKED = ("xlm-roberta-xl", "rembert", "eurobert", "xmod")
"""Further ones with a masked-LM head."""

WITHOUT_HEAD = ("llama", "qwen3", "gemma3_text", "mt5", "m2m_100")
"""Decoders, and halves of translation models."""

LIKE_OTHERS = (
    "xlm-roberta", "distilbert", "xlm-roberta-xl", "rembert", "eurobert", "llama", "qwen3", "m2m_100",
)  # fmt: skip
"""Families of whose layers another one's tell most: left to the slow tests."""


def _make_family_fixture(*families: str) -> object:
    """Make a fixture: the folders of families in turn, those like others left to the slow tests."""
    names = [
        pytest.param(family, marks=pytest.mark.slow if family in LIKE_OTHERS else ()) for family in families
    ]

    @pytest.fixture(params=names)
    def folder(request: pytest.FixtureRequest) -> Path:
        return request.getfixturevalue(f"{request.param.replace('-', '_')}_folder")

    return folder


encoder_folder = _make_family_fixture(*ENCODERS)
"""Each kind of family's folder: config.json, model.safetensors (with masked-LM head), tokenizer."""

any_folder = _make_family_fixture(*ENCODERS, *MASKED, *WITHOUT_HEAD)
"""The folder of every family, for the laws of families themselves."""

any_language_folder = _make_family_fixture(
    *(encoders for encoders in (*ENCODERS, *MASKED, *WITHOUT_HEAD) if encoders != "xmod")
)
"""Families that read any language. X-MOD is limited to its languages."""

tied_folder = _make_family_fixture(*ENCODERS, "xlm-roberta-xl", "eurobert")
"""Those whose masked-LM head compares states with embeddings. RemBERT's are wider."""

headed_folder = _make_family_fixture(*ENCODERS, *MASKED)
"""Those that have a masked-LM head."""

headless_folder = _make_family_fixture(*WITHOUT_HEAD)
"""Those that have no masked-LM head, and for which heads are our own."""


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Put folders into a cache as the hub's client keeps it, which is asked offline. Give their commits."""
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def add_dataset(name: str, folder: Path, *, revision: str = "main") -> str:
        commit = sha256(f"{name} {revision} {folder}".encode()).hexdigest()[:40]
        model = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        shutil.copytree(folder, model / "snapshots" / commit)
        (model / "refs").mkdir(exist_ok=True)
        (model / "refs" / revision).write_text(commit)
        return commit

    return add_dataset


@pytest.fixture
def make_setting(bert_folder: Path, tmp_path: Path) -> Callable[..., Setting]:
    """Make what a fine-tuning method is given: UPOS on made-up sentences in any languages."""

    def make(
        source: tuple[str, ...] = ("en",),
        target: tuple[str, ...] = (),
        *,
        seed: int = 0,
        folder: Path | None = None,
        encoder: Path | None = None,
        **optimization: object,
    ) -> Setting:
        options = {
            "epochs": 2,
            "learning_rate": 1e-3,
            "batch_size": 8,
            "limit": 48,
            "overlap": 8,
            "precision": "float32",
            "checkpoint_every": 3,
        }
        return Setting(
            task=TASKS["upos"],
            start=str(encoder or bert_folder),
            train=lambda language: tagged_sentences(language, 40),
            dev=lambda language: tagged_sentences(language, 20, seed=1),
            source=source,
            target=target,
            optimization=with_fields(Optimization(), **(options | optimization)),
            folder=folder or tmp_path / "work",
            seed=seed,
        )

    return make


@pytest.fixture(scope="module")
def few_sentences() -> Iterator[None]:
    """Let raw text and bitext of the built-in languages be short, for runs of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for corpus in ("text", "bitext"):
            patch.setitem(SIZES[corpus], "train", 400)
        yield


@pytest.fixture(scope="session")
def runs_of(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str, str], Path]:
    """Run a recipe in one of the processes that test. Give each a copy of the finished runs."""
    import isogloss
    from tiny import tiny

    path = tmp_path_factory.getbasetemp()
    shared = path if worker_id == "master" else path.parent

    def get_study(name: str, recipe: str) -> Path:
        folder = shared / f"recipe-{name}"
        with FileLock(shared / f"{name}.lock"):
            if not (folder / "done").exists():
                folder.mkdir()
                assert not isogloss.run(
                    tiny(folder, recipe), out=folder / "runs", jobs=1, report=False
                ).outcome.failed
                (folder / "done").touch()
        return Path(shutil.copytree(folder, tmp_path_factory.mktemp(name) / "copy")) / "runs"

    return get_study


@pytest.fixture(scope="session")
def pair_model(runs_of: Callable[[str, str], Path]) -> Path:
    """The folder of a fine-tuned run that labels pairs."""
    from tiny import PAIRS

    (model,) = runs_of("pairs", PAIRS).glob("*/model")
    return model.parent


@pytest.fixture(scope="session")
def mixup_runs(runs_of: Callable[[str, str], Path]) -> Path:
    """A folder of finished runs: a tagger that mixes, its scores with and without, and a sweep."""
    from tiny import MIXING

    return runs_of("mixing", MIXING)


@pytest.fixture(scope="session")
def tiny_runs(runs_of: Callable[[str, str], Path]) -> Path:
    """A folder of finished runs of the tiny recipe. Read it, do not write into it."""
    from tiny import TINY

    return runs_of("tiny", TINY)


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpack a study: plan, records and predictions, as `isogloss run` left them."""

    @cache
    def unpack(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        with ZipFile(STUDIES / f"{name}.zip") as archive:
            archive.extractall(folder)
        return folder

    return unpack


@pytest.fixture(scope="session")
def study(study_folder: Callable[[str], Path]) -> Callable[[str], Measurements]:
    """Read a study."""
    return cache(lambda name: read_measurements(study_folder(name)))
