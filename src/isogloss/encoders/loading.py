"""Encoders and models on disk: ordinary Hugging Face folders, read and written safely.

Weights are read from safetensors only and no code that comes with a model is ever run. A folder is read
without the network; a name of the Hugging Face hub is looked up in the local cache, then downloaded. What
cannot be used is a ModelError of one line that says what to do.

``attention`` is "sdpa" (fused) or "eager" (explicit, the only one that can return its probabilities); a
family that computes attention in its own way does so whatever is asked for.
"""

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from isogloss.core.errors import ModelError
from isogloss.core.records import storage_error
from isogloss.core.seeds import derive
from isogloss.encoders import folders
from isogloss.encoders.families import FAMILIES, family_named
from isogloss.encoders.folders import find_folder, one_line
from isogloss.encoders.language_context import keep_language_maps, language_maps_of
from isogloss.encoders.language_files import (
    left_out,
    read_language_maps,
    read_language_modules,
    write_language_maps,
    write_language_modules,
)

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

AutoClass = Literal[
    "AutoModel",
    "AutoModelForMaskedLM",
    "AutoModelForQuestionAnswering",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
]

_CONFIG_FILES = ("*.json",)
_TOKENIZER_FILES = (*_CONFIG_FILES, "*.txt", "*.model")
_MODEL_FILES = (*_TOKENIZER_FILES, "*.safetensors")
_TABLE = "Precompiled"
"""What tokenizers calls a normalizer made of a table of characters."""

SEGMENTS = 2
"""Segments an encoder must tell apart for a pair's to be of use."""


def model_folder(source: str | Path) -> Path:
    """Return the folder a model is loaded from, given a folder or hub name."""
    return find_folder(source, _MODEL_FILES, folders.has_weights)


def load_tokenizer(source: str | Path) -> "PreTrainedTokenizerFast":
    """Load the tokenizer of a folder or hub name; it knows, as model_max_length, what the encoder takes."""
    from transformers import AutoTokenizer

    folder = find_folder(source, _TOKENIZER_FILES, folders.has_tokenizer)
    config = _config(folder)
    folders.check_tokenizer(folder)
    tokenizer = from_pretrained(AutoTokenizer, folder, {})
    restore_characters(tokenizer, folder)
    # Tokenizers of language models, as mmBERT took one over, may know these two by other names only.
    for name, other in (("cls_token", "bos_token"), ("sep_token", "eos_token")):
        if getattr(tokenizer, name) is None and getattr(tokenizer, other) is not None:
            setattr(tokenizer, name, getattr(tokenizer, other))
    lacking = [
        name for name in ("unk", "pad", "cls", "sep") if getattr(tokenizer, f"{name}_token_id") is None
    ]
    if lacking or not tokenizer.is_fast:
        what = f"it has no {'_token, '.join(lacking)}_token" if lacking else "it has no tokenizer.json"
        raise ModelError(
            f"{folder}: this tokenizer cannot be used: {what}. Save a complete fast tokenizer there."
        )
    longest = family_named(config.model_type, str(folder)).longest_text(config)
    tokenizer.model_max_length = min(tokenizer.model_max_length, longest)
    if getattr(config, "type_vocab_size", 0) < SEGMENTS:
        # A tokenizer shared with BERT gives segments, and this encoder would fail on them or ignore them.
        names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
        tokenizer.model_input_names = tokenizer.init_kwargs["model_input_names"] = (
            names  # The latter is saved.
        )
    return tokenizer


def restore_characters(tokenizer: "PreTrainedTokenizerFast", folder: Path) -> None:
    """Give a tokenizer the table of characters of the files it was loaded from, if it has lost that.

    SentencePiece's own table (， → , and ｔｈｅ → the) is dropped by transformers 5: its tokenizer for
    DeBERTa is built without it, both from spm.model and from a tokenizer.json that has it. Without it a
    full-width comma is an unknown subword.
    """
    from tokenizers import models, normalizers

    backend = tokenizer.backend_tokenizer
    before = backend.normalizer
    has_table = before is not None and _TABLE in before.__getstate__().decode()
    if isinstance(backend.model, models.Unigram) and not has_table and (table := _table(folder)):
        parts = [part for part in (normalizers.Precompiled(table), before) if part is not None]
        backend.normalizer = normalizers.Sequence(parts)


def _table(folder: Path) -> bytes | None:
    file = folder / "tokenizer.json"
    if not file.is_file():
        found = [folder / name for name in folders.SENTENCEPIECE if (folder / name).is_file()]
        return _read_table(found[0]) if found else None
    normalizer = json.loads(file.read_text(encoding="utf-8"))["normalizer"] or {}
    parts = normalizer.get("normalizers", [normalizer])
    tables = [part["precompiled_charsmap"] for part in parts if part.get("type") == _TABLE]
    return base64.b64decode(tables[0]) if tables else None


def _read_table(model: Path) -> bytes:
    from sentencepiece import sentencepiece_model_pb2

    read: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    try:
        read.ParseFromString(model.read_bytes())
    except Exception as error:  # The error is protobuf's, which has no reason to be imported here.
        raise ModelError(f"{model}: this tokenizer is damaged. Copy or download the file again.") from error
    table: bytes = read.normalizer_spec.precompiled_charsmap
    return table


def load_encoder_config(source: str | Path) -> "PreTrainedConfig":
    """Load the configuration of a folder or hub name; ModelError when its architecture is not supported."""
    return _config(find_folder(source, _CONFIG_FILES, folders.has_config))


def load_model(
    source: str | Path, auto_class: AutoClass = "AutoModel", *, attention: str = "sdpa"
) -> "PreTrainedModel":
    """Load an encoder (AutoModel) or a finished model in fp32, in evaluation mode; nothing is made up.

    A pooler the weights do not hold is left out of the encoder. ModelError when anything else is missing.
    """
    folder = model_folder(source)
    model, missing, misshapen = _read_model(folder, auto_class, _config(folder), attention)
    check_all_there(folder, auto_class, {name for name in missing if not name.startswith("pooler.")})
    _check_shapes(folder, misshapen)
    if missing:
        model.pooler = None
    return model


def load_masked_lm(source: str | Path, *, attention: str = "sdpa") -> "PreTrainedModel":
    """Load an encoder with its masked-LM head; ModelError when it has none."""
    return load_model(source, "AutoModelForMaskedLM", attention=attention)


def load_whole(source: str | Path, *, attention: str = "sdpa") -> "PreTrainedModel":
    """Load all that was pretrained: the encoder, with its masked-LM head and its pooler where it has them.

    What is changed and saved again lacks nothing then that a new head may start from.
    """
    encoder = load_model(source, attention=attention)
    if not names_masked_lm(load_encoder_config(source)):
        return encoder
    model = load_masked_lm(source, attention=attention)
    if getattr(encoder, "pooler", None) is not None:
        model.base_model.pooler = encoder.pooler
    return model


def names_masked_lm(config: "PreTrainedConfig") -> bool:
    """Tell whether a configuration says that a masked-LM head was saved with the encoder."""
    kinds = config.architectures or ()
    return any(kind.endswith(("ForMaskedLM", "ForPreTraining")) for kind in kinds)


def load_with_new_head(
    source: str | Path,
    auto_class: AutoClass,
    *,
    labels: Sequence[str],
    seed: int,
    attention: str = "sdpa",
) -> "PreTrainedModel":
    """Load an encoder and put a head for these labels on it, in fp32 and evaluation mode.

    A head of the same kind with the same labels, as in a fine-tuned model, is kept, and so is what a head
    shares with the masked-LM head that was pretrained (ModernBERT's); any other is replaced. What is new
    depends on the seed and its own name alone.
    """
    folder = model_folder(source)
    config = _config(folder)
    known, kinds = tuple(config.id2label.values()), config.architectures or ()
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: number for number, label in enumerate(labels)}
    model, missing, misshapen = _read_model(folder, auto_class, config, attention)
    inside = f"{model.base_model_prefix}."
    pooler = f"{inside}pooler."
    check_all_there(
        folder, "whole encoder", {n for n in missing if n.startswith(inside) and not n.startswith(pooler)}
    )
    _check_shapes(folder, {name for name in misshapen if name.startswith(inside)})
    same = known == tuple(labels) and type(model).__name__ in kinds
    kept = same or any(kind.endswith("ForMaskedLM") for kind in kinds)
    head = {name for name, _ in model.named_parameters() if not name.startswith(inside)}
    draw_parameters(model, missing if kept else missing | head, seed=seed)
    return model


def draw_parameters(model: "PreTrainedModel", names: Iterable[str], *, seed: int) -> None:
    """Draw named parameters anew, each from the seed and its own name.

    Matrices come from N(0, initializer_range²), biases become zero, the weights of norms one. No other random
    number is drawn or lost.
    """
    for name in names:
        parameter = model.get_parameter(name)
        with torch.no_grad():
            if parameter.ndim > 1:
                generator = torch.Generator().manual_seed(derive(seed, name))
                drawn = torch.empty(parameter.shape).normal_(
                    0.0, model.config.initializer_range, generator=generator
                )
                parameter.copy_(drawn)
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)


def save_model(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerFast",
    folder: Path,
    extras: Iterable[Callable[[Path], None]] = (),
) -> None:
    """Write model and tokenizer under a temporary name, then rename: the folder is there whole or not at all.

    A folder of this name is replaced. ``extras`` write what else belongs into it; what the
    model carries beside an ordinary one (language maps, language modules) is written into files of its own.
    """
    from safetensors import SafetensorError

    temporary, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("tmp", "old"))
    try:
        temporary.mkdir(parents=True, exist_ok=True)
        with quiet(), left_out(model):
            model.save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        for write in extras:
            write(temporary)
        if maps := language_maps_of(model):
            write_language_maps(maps, temporary)
        write_language_modules(model, temporary)
        if folder.exists():
            folder.replace(old)
        temporary.replace(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
    except SafetensorError as error:  # Its writer has an error of its own for what the disk says.
        raise storage_error(folder, OSError(str(error))) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _config(folder: Path) -> "PreTrainedConfig":
    from transformers import AutoConfig

    content = folders.read_config(folder)
    family_named(str(content.get("model_type", "")), str(folder / folders.CONFIG))
    return from_pretrained(AutoConfig, folder, {})


def _read_model(
    folder: Path, auto_class: AutoClass, config: "PreTrainedConfig", attention: str
) -> tuple["PreTrainedModel", set[str], set[str]]:
    """Return the model and which of its parameters the weights do not hold, or hold in another shape."""
    import transformers

    folders.check_weights(folder, auto_class)
    lacks = FAMILIES[config.model_type].lacks
    options = {
        "config": config,
        "attn_implementation": "eager" if "attention-kinds" in lacks else attention,
        "dtype": torch.float32,
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    with torch.random.fork_rng(devices=[]):
        model, info = from_pretrained(getattr(transformers, auto_class), folder, options)
    maps = read_language_maps(folder, config.hidden_size)
    if maps is not None:
        keep_language_maps(model, maps)
    read_language_modules(model, folder)
    return model.eval(), set(info["missing_keys"]), {name for name, *_ in info["mismatched_keys"]}


def from_pretrained(auto_class: Any, folder: Path, options: dict[str, Any]) -> Any:
    """Load with one of transformers' Auto classes, offline and without foreign code; ModelError else."""
    try:
        with quiet():
            return auto_class.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **options
            )
    except Exception as error:  # Configs, tokenizers and weights each fail with errors of their own kind.
        raise ModelError(
            f"{folder}: transformers cannot load this folder with {auto_class.__name__} ({one_line(error)}). "
            f"Copy or download the folder again."
        ) from error


def check_all_there(folder: Path, kind: str, missing: set[str]) -> None:
    """Raise ModelError when weights are missing that the kind of model needs."""
    if missing:
        raise ModelError(
            f"{folder}: this is no {kind}: the weights have no {_some(missing)}. Give a folder of that kind, "
            f"or copy or download this one again."
        )


def _check_shapes(folder: Path, misshapen: set[str]) -> None:
    if misshapen:
        raise ModelError(
            f"{folder}: config.json and the weights do not belong together: {_some(misshapen)} has another "
            f"shape in the weights. Copy or download the folder again."
        )


def _some(names: set[str]) -> str:
    first, *others = sorted(names)
    return f"{first} (and {len(others)} more)" if others else first


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' bars and remarks from the terminal: what matters is raised as an error here."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
