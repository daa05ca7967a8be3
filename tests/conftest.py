"""What all tests share: where the real corpora are, and tiny random encoders of both families."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from isogloss.core.runs import Optimization
from isogloss.data.files import DiskFolder
from isogloss.tasks import TASKS
from isogloss.training.setting import Setting
from made_up import TEXT, tagged

# A busy machine is no broken law.
settings.register_profile("isogloss", deadline=None)
settings.load_profile("isogloss")

WORD_PIECES = ("s", "ed", "ing", "ly", "al", "un", "happen", "cas", "low", "slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-data", default="../shared/data", help="folder of the real corpora, from the project's root"
    )


@pytest.fixture(scope="session")
def real_data(pytestconfig: pytest.Config) -> DiskFolder:
    place = pytestconfig.getoption("--real-data")
    path = Path(pytestconfig.rootpath, place)
    if not path.is_dir():
        pytest.skip(f"the real corpora are not on this machine (no folder {place})")
    return DiskFolder(path)


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for letter in TEXT if letter != " "})
    vocabulary = list(
        dict.fromkeys(
            [*special, *letters, *(f"##{part}" for part in [*letters, *WORD_PIECES]), *TEXT.split()]
        )
    )
    tokenizer = BertTokenizer(
        vocab={piece: number for number, piece in enumerate(vocabulary)}, do_lower_case=False
    )
    config = BertConfig(**_sizes(len(vocabulary)), max_position_embeddings=160, pad_token_id=0)
    return _saved(tmp_path_factory, "bert", lambda: BertForMaskedLM(config), tokenizer)


@pytest.fixture(scope="session")
def xlm_roberta_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaTokenizer

    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    letters = [(letter, -9.0) for letter in sorted({letter for letter in TEXT if letter != " "})]
    pieces = [(piece, -6.0) for piece in WORD_PIECES if len(piece) > 1]
    words = [(f"▁{word}", -5.0) for word in dict.fromkeys(TEXT.split())]
    vocabulary = [*special, ("▁", -8.0), *letters, *pieces, *words, ("<mask>", 0.0)]
    tokenizer = XLMRobertaTokenizer(vocab=vocabulary)
    config = XLMRobertaConfig(
        **_sizes(len(vocabulary)), max_position_embeddings=162, type_vocab_size=1, pad_token_id=1
    )
    return _saved(tmp_path_factory, "xlm-roberta", lambda: XLMRobertaForMaskedLM(config), tokenizer)


@pytest.fixture(params=["bert", "xlm-roberta"])
def encoder_folder(request: pytest.FixtureRequest) -> Path:
    """Each family's folder in turn: config.json, model.safetensors (with masked-LM head), tokenizer."""
    return request.getfixturevalue(f"{request.param.replace('-', '_')}_folder")


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
        how = {
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
            train=lambda language: tagged(language, 40),
            dev=lambda language: tagged(language, 20, seed=1),
            source=source,
            target=target,
            optimization=Optimization(**(how | optimization)),
            folder=folder or tmp_path / "work",
            seed=seed,
        )

    return make


def _sizes(vocabulary: int) -> dict[str, int | float]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "initializer_range": 0.2,
    }


def _saved(factory: pytest.TempPathFactory, name: str, make: Callable[[], object], tokenizer: object) -> Path:
    folder = factory.mktemp("encoders") / name
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of finished runs of the tiny recipe, made once; read it, do not write into it."""
    import isogloss
    from tiny import tiny

    folder = tmp_path_factory.mktemp("tiny")
    result = isogloss.run(tiny(folder), out=folder / "runs", jobs=1)
    assert not result.outcome.failed
    return result.out
