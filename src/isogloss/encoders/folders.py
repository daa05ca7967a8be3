"""Model folders: found locally or on the Hugging Face hub, checked, and loaded safely.

A folder is checked before anything is loaded from it. Code that comes with a model is never run.
"""

import errno
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from isogloss.core.atomic_files import check_unicode, disk_error, reading_error
from isogloss.core.checksums import sha256_of
from isogloss.core.errors import IsoglossError, ModelError, did_you_mean, one_line
from isogloss.core.processes import collector_paused
from isogloss.core.untrusted import convert_json, from_home, is_there, join_safely, parse_json, read_regular
from isogloss.data.files import some
from isogloss.encoders.hub import hub_folder, is_hub_name

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Config

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
FURTHER = "tasks"
"""Folder inside a model folder, with the head of each task learned in addition to its main task."""

DIFFERENCE = "difference.json"
"""File that names the model from which the weights of a folder are the difference (``differences``)."""

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spm.model")
"""Files that suffice, each by itself, to build a fast tokenizer."""

SENTENCEPIECE = ("sentencepiece.bpe.model", "spm.model")
"""Tokenizer files that require the packages sentencepiece and protobuf."""

GGUF_START = b"GGUF"
GGUF = ".gguf"
"""Suffix of a file with config, tokenizer and weights, mostly in 4 to 8 bits."""

READS_GGUF = (5, 18)
"""First version of transformers that tokenizes like the file's tokenizer; 5.17 does not (observed with
Gemma)."""

TOKENIZER_FILES = ("*.json", "*.txt", "*.model")
MODEL_FILES = (*TOKENIZER_FILES, "*.safetensors")
"""Patterns of the files downloaded from the hub."""

Json: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[int, ...] | None

SHIPPED = "shipped"
"""Folder of the small encoder that comes with the package."""


def find_folder(source: str | Path, patterns: Sequence[str], complete: Callable[[Path], bool]) -> Path:
    """Return the folder of a path or hub name, downloading the hub's files that match the patterns."""
    if isinstance(source, str) and is_hub_name(source):
        return hub_folder(source, patterns, complete)
    return existing_folder(from_home(source))


def model_folder(source: str | Path) -> Path:
    """Return the folder of a model, given a path or hub name."""
    return find_folder(source, MODEL_FILES, has_weights)


def shipped_folder() -> Path:
    """Return the folder of the encoder that comes with the package."""
    return Path(str(files("isogloss") / SHIPPED))


def existing_folder(path: Path) -> Path:
    """Return the path of an existing folder.

    Raises ModelError, with the nearest name, if it does not exist.
    """
    check_unicode(path)
    with looking_at(path):
        exists = is_there(path)
        if exists and path.is_dir():
            return path
    kind = "this is a file, not a model folder" if exists else "no such folder"
    neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise ModelError(
        f"{path}: {kind}.{did_you_mean(path.name, neighbours)} Give a folder with {CONFIG} and {WEIGHTS}, "
        f"or a model's name on the Hugging Face hub."
    )


def read_config(folder: Path) -> Json:
    """Return the content of config.json, or of a GGUF file's config.

    Raises ModelError without either.
    """
    if path := gguf_file(folder):
        content: Json = _gguf_config(path, path.stat().st_mtime_ns).to_dict()
        return content
    if not (folder / CONFIG).is_file():
        raise ModelError(
            f"{folder}: no {CONFIG}, so this is not a model folder{_contents(folder)}. Give a folder written "
            f"by isogloss or by save_pretrained of transformers."
        )
    return read_json(folder / CONFIG)


def check_tokenizer(folder: Path) -> None:
    """Raise ModelError unless the folder contains a usable tokenizer."""
    if gguf_file(folder):
        return
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise ModelError(
            f"{folder}: no tokenizer ({', '.join(TOKENIZERS)}){_contents(folder)}. Save the encoder's own "
            f"tokenizer there: AutoTokenizer.from_pretrained(NAME).save_pretrained({str(folder)!r})."
        )
    if not any((folder / name).is_file() for name in TOKENIZERS if name not in SENTENCEPIECE):
        model = next(folder / name for name in SENTENCEPIECE if (folder / name).is_file())
        try:
            import_module("sentencepiece.sentencepiece_model_pb2")
        except ImportError as error:
            raise ModelError(
                f"{model}: this tokenizer is read with the packages sentencepiece and protobuf, which are "
                f"not both installed. Install them (pip install sentencepiece protobuf), or save the "
                f"tokenizer as tokenizer.json on a machine with both."
            ) from error


def check_weights(folder: Path, auto_class: str) -> None:
    """Raise ModelError unless all weights exist as undamaged safetensors, or in a GGUF file."""
    from safetensors import SafetensorError, safe_open

    if gguf_file(folder):
        return
    for path in weight_files(folder, auto_class):
        if not path.is_file():
            raise ModelError(f"{path}: this part of the weights is missing. Copy or download it again.")
        try:
            with safe_open(path, framework="numpy"):  # Checks the header against the file size.
                pass
        except (SafetensorError, OSError) as error:
            if failure := disk_error(error):
                raise reading_error(path, failure) from error
            raise ModelError(
                f"{path}: these weights are damaged ({error}). Copy or download the file again; if a run of "
                f"isogloss wrote it, delete the run's folder and run again."
            ) from error


def stored_shapes(folder: Path, auto_class: str) -> "dict[str, Tensor]":
    """Return the weights of a folder by name, as tensors with shapes but without numbers."""
    import torch
    from safetensors import safe_open

    tensors: dict[str, Tensor] = {}
    for path in weight_files(folder, auto_class):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                part = file.get_slice(name)
                is_fraction = str(part.get_dtype()).startswith(("F", "BF"))
                dtype = torch.float32 if is_fraction else torch.int64
                tensors[name] = torch.empty(part.get_shape(), dtype=dtype, device="meta")
    return tensors


def gguf_file(folder: Path) -> Path | None:
    """Return the GGUF file of a folder without config.json, or None.

    Raises ModelError for several GGUF files, a damaged one, a missing package gguf, and a version of
    transformers that would misread the tokenizer.
    """
    paths = [] if (folder / CONFIG).is_file() else sorted(folder.glob(f"*{GGUF}"))
    if not paths:
        return None
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise ModelError(f"{folder}: several GGUF files ({names}). Keep only one: each is a whole model.")
    with paths[0].open("rb") as file:
        start = file.read(len(GGUF_START))
    if start != GGUF_START:
        raise ModelError(f"{paths[0]}: this is not a GGUF file, or a damaged one. Copy or download it again.")
    if find_spec("gguf") is None:
        raise ModelError(
            f"{paths[0]}: GGUF files are read with the package gguf, which is not installed. Install it "
            f'(pip install "isogloss[gguf]").'
        )
    installed_version = version("transformers")
    if tuple(int(part) for part in re.findall(r"\d+", installed_version)[:2]) < READS_GGUF:
        raise ModelError(
            f"{paths[0]}: transformers {installed_version} tokenizes GGUF models incorrectly, without an "
            f"error. Install {READS_GGUF[0]}.{READS_GGUF[1]} or later "
            f'(pip install "isogloss[gguf]").'
        )
    return paths[0]


@lru_cache(maxsize=4)
def _gguf_config(path: Path, _modification_time: int) -> "Config":
    """Read the config in a GGUF file once, because the whole vocabulary is read with it."""
    from transformers import AutoConfig

    return from_pretrained(AutoConfig, path.parent, {"gguf_file": path.name})


def has_weights(folder: Path) -> bool:
    """Return whether the folder contains config and safetensors, including all shards."""
    if not (folder / CONFIG).is_file():
        return False
    if (folder / WEIGHTS).is_file():
        return True
    return (folder / SHARDS).is_file() and all(path.is_file() for path in _shards(folder))


def has_tokenizer(folder: Path) -> bool:
    """Return whether the folder contains a config and a tokenizer."""
    return (folder / CONFIG).is_file() and any((folder / name).is_file() for name in TOKENIZERS)


def has_config(folder: Path) -> bool:
    """Return whether the folder contains a config."""
    return (folder / CONFIG).is_file()


def weight_files(folder: Path, auto_class: str) -> list[Path]:
    """Return the safetensors files of a folder.

    Raises ModelError without any.
    """
    if (folder / DIFFERENCE).is_file():
        name = str(read_json(folder / DIFFERENCE).get("weights"))
        return [join_safely(folder, name, folder / DIFFERENCE, ModelError)]
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / SHARDS).is_file():
        return _shards(folder)
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    if pickles:
        raise ModelError(
            f"{folder}: the weights are only there as pickle ({pickles[0]}), which can run code when it is "
            f"read. Convert them, if you trust where they come from: from transformers import {auto_class}; "
            f"{auto_class}.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
        )
    raise ModelError(
        f"{folder}: no {WEIGHTS}{_contents(folder)}. Copy or download the folder again, with its weights."
    )


def _shards(folder: Path) -> list[Path]:
    index = read_json(folder / SHARDS)
    names = index.get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ModelError(f"{folder / SHARDS}: no weight_map of names. Copy or download the folder again.")
    return [join_safely(folder, name, folder / SHARDS, ModelError) for name in sorted(set(names.values()))]


@dataclass
class _CheckedFields:
    """Fields of a config that isogloss reads. transformers reads the others."""

    model_type: str = ""
    architectures: list[str] | None = None
    id2label: dict[str, str] | None = None
    problem_type: str | None = None
    num_hidden_layers: Annotated[int, Field(ge=0, le=1000)] | None = None
    num_labels: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Number of labels. transformers creates a name for each."""


def read_json(path: Path) -> Json:
    """Return the object in a JSON file of a model.

    Raises ModelError for anything else.
    """
    try:
        content: Json = parse_json(read_regular(path))
    except (OSError, ValueError) as error:
        if failure := disk_error(error):
            raise reading_error(path, failure) from error
        raise ModelError(f"{path}: invalid JSON ({error}). Copy or download the file again.") from error
    if not isinstance(content, dict):
        raise ModelError(
            f"{path}: expected a JSON object, not a list or a single value. Copy or download the file again."
        )
    try:
        convert_json(_CheckedFields, content)
    except ValueError as error:
        raise ModelError(f"{path}: {error}. Copy or download the file again.") from error
    return content


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return f" (found: {', '.join(names[:6])}{' …' if len(names) > 6 else ''})" if names else " (it is empty)"


def fingerprint(folder: Path) -> str:
    """Return a fingerprint of a model's files, which differs for other weights in the same folder."""
    kinds = {".json", ".safetensors", ".model", ".txt", ".spm", ".gguf"}
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in kinds]
    digest = sha256()
    for path in paths:
        digest.update(path.name.encode())
        digest.update(sha256_of(path))
    return digest.hexdigest()[:16]


def differing_shapes(
    parameters: Mapping[str, Any], weights: Mapping[str, Any]
) -> Iterator[tuple[str, Shape, Shape]]:
    """Yield name, actual and expected shape of all weights that do not fit.

    A missing weight or parameter has the shape None.
    """
    expected_shapes = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
    actual_shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted({**expected_shapes, **actual_shapes}):
        if expected_shapes.get(name) != actual_shapes.get(name):
            yield name, actual_shapes.get(name), expected_shapes.get(name)


def hub_commit(name: str) -> str | None:
    """Return the commit of a hub name in the cache, or else on the hub.

    None is returned if the hub cannot be reached. The config is downloaded into the cache. Raises ModelError
    for a name or revision that the hub lacks.
    """
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return hub_folder(name, (CONFIG,), has_config).name
    except ModelError as error:
        if isinstance(error.__cause__, LocalEntryNotFoundError):
            return None
        raise


@collector_paused()
def load_encoder_config(source: str | Path) -> "Config":
    """Load the configuration of a folder or hub name.

    Raises ModelError for unsupported architectures.
    """
    from transformers import AutoConfig

    from isogloss.encoders.families import family_named

    folder = find_folder(source, (CONFIG,), has_config)
    with loading(folder, "AutoConfig"):
        path = gguf_file(folder)
        family_named(str(read_config(folder).get("model_type", "")), str(path or folder / CONFIG))
        if path:
            return deepcopy(_gguf_config(path, path.stat().st_mtime_ns))
        config: "Config" = from_pretrained(AutoConfig, folder, {})
    if sorted(config.id2label) != list(range(len(config.id2label))):
        raise ModelError(
            f"{folder / CONFIG}: id2label has the ids {some(str(key) for key in config.id2label)}; expected "
            f"0 to {len(config.id2label) - 1}, each once. Correct it."
        )
    config.id2label = dict(sorted(config.id2label.items()))  # Other programs write 10 before 2.
    return config


def from_pretrained(auto_class: type, folder: Path, options: Mapping[str, object]) -> Any:
    """Call ``from_pretrained`` of a class of transformers, offline and without remote code.

    With ``state_dict`` among the options, weights are not read from the folder. Raises ModelError if it
    fails.
    """
    if path := gguf_file(folder):
        options = {"gguf_file": path.name, **options}
    # Reading GGUF shows a separate progress bar.
    with (
        loading(folder, auto_class.__name__),
        quiet(),
        redirect_stderr(StringIO()) if path else nullcontext(),
    ):
        result = auto_class.from_pretrained(  # type: ignore[attr-defined]
            None if "state_dict" in options else folder,
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    model = result[0] if isinstance(result, tuple) else result
    if quantizer := getattr(model, "hf_quantizer", None):  # Weights from GGUF are dequantized by now.
        quantizer.remove_quantization_config(model)
    return result


@contextmanager
def loading(folder: Path, content: str) -> Iterator[None]:
    """Turn the various errors of transformers for a folder into a ModelError.

    transformers takes a file that cannot be looked at for a missing one: it reports a wrong name, or loads a
    tokenizer with other settings without a word. Both are a StorageError here.
    """
    try:
        with looking_at(folder):
            yield
    except IsoglossError:
        raise
    except Exception as error:
        if failure := disk_error(error):
            raise reading_error(folder, failure) from error
        raise ModelError(
            f"{folder}: transformers cannot load this folder with {content} ({one_line(error):.300}). "
            f"Copy or download the folder again."
        ) from error


NAME_ERRORS = (errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of looking at a file that are due to its name or link, not to the disk."""


class _Looks:
    """Errors of the system of looking at files, below the folders that anybody watches.

    ``os.path.isfile`` and its neighbours answer no to an error of the disk and leave no trace of it. They all
    call ``os.stat``, which is replaced as long as a folder is watched.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._failures: list[tuple[str, list[OSError]]] = []
        self._stat = os.stat

    def start(self, folder: Path) -> list[OSError]:
        """Watch a folder; return the list that receives its errors."""
        failures: list[OSError] = []
        with self._lock:
            if not self._failures:
                self._stat = os.stat
                os.stat = self._look
            self._failures.append((str(folder), failures))
        return failures

    def end(self, failures: list[OSError]) -> None:
        """Watch a folder no longer."""
        with self._lock:
            self._failures = [entry for entry in self._failures if entry[1] is not failures]
            if not self._failures:
                os.stat = self._stat

    def _look(self, path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        try:
            return self._stat(path, *arguments, **options)
        except OSError as error:
            if disk_error(error) and error.errno not in NAME_ERRORS:
                for folder, failures in self._failures:
                    if str(path).startswith(folder):
                        failures.append(error)
            raise


_LOOKS = _Looks()


@contextmanager
def looking_at(folder: Path) -> Iterator[None]:
    """Raise StorageError if the system failed to look at a file below a folder, however the block ends."""
    failures = _LOOKS.start(folder)
    try:
        yield
    finally:
        _LOOKS.end(failures)
        if failures:
            raise reading_error(folder, failures[0]) from failures[0]


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress transformers' progress bars and warnings, because isogloss raises errors instead."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    has_bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"transformers\.")
            yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()
