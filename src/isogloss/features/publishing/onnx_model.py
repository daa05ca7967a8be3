"""An exported model that predicts with its ONNX file: torch and transformers are not loaded.

The file contains a checksum of the weights that it was exported from. A file from weights other than the
weights in its folder is never used.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.progress import Progress
from isogloss.core.records import RECORD
from isogloss.core.tag_schemes import normalize_tags
from isogloss.data.examples import Example
from isogloss.encoders.folders import read_config
from isogloss.encoders.subwords import padding_of, set_causal, set_own_frame
from isogloss.features.publishing.file_tokenizers import FileTokenizer, read_tokenizer
from isogloss.tasks import ALL_TASKS, find_task
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.encoded_examples import EncodedExamples, row_limit
from isogloss.tasks.task import Task
from isogloss.training.length_batches import BUDGET, CPU_BATCH_COST, by_length
from isogloss.using.predictor import Predictor, Translations
from isogloss.using.provenance import ELSEWHERE, Provenance, exported_entry, provenance_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from isogloss.encoders.mixup import Mixup

ONNX_FILES = {"float32": "model.onnx", "int8": "model.int8.onnx"}
"""Names of the ONNX files of an export, by precision."""

WEIGHTS_ENTRY = "isogloss_weights"
"""Entry of an ONNX file with the checksum of its weights."""

CAUSAL_ENTRY = "isogloss_causal"
"""Entry of an ONNX file: 1 if the last subword represents a word or text, 0 if the first does."""

NOT_IN_THE_FILE = ("mixup.json", "language_maps.safetensors", "language_modules.safetensors")
"""Files of parts of a model that its ONNX file lacks."""

GPUS = (Path("/dev/nvidia0"), Path("/dev/kfd"))
"""Devices of graphics cards, on which torch is faster than ONNX Runtime on the processor."""

Floats = npt.NDArray[np.float32]


def checksum_of_weights(folder: Path) -> str:
    """Return the SHA-256 of all files of weights in a folder.

    Every byte is read. Size and modification time can stay the same when a weight changes, and samples of a
    file miss the change of a single row.
    """
    digest = sha256()
    for path in sorted(folder.glob("*.safetensors")):
        if not path.is_file():
            raise ModelError(f"{path}: not a regular file. Copy or download the file again.")
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + file_digest(file, "sha256").digest())
    return digest.hexdigest()


@dataclass(frozen=True, repr=False)
class OnnxModel(Predictor):
    """A model that predicts with an ONNX file."""

    session: "InferenceSession"
    tokenizer: FileTokenizer
    task: Task
    provenance: Provenance
    precision: str
    path: Path
    """The file."""
    mixup: "Mixup | None" = None

    def prepare(
        self,
        examples: Sequence[Example],
        *,
        language: str = "",
        translations: Translations = None,  # noqa: ARG002 (it does not mix)
    ) -> EncodedExamples:
        """Encode examples."""
        limit = row_limit(self.task, self.tokenizer.model_max_length, self.provenance.limit)
        rows = self.task.encode(
            examples,
            self.tokenizer,
            limit=limit,
            overlap=self.provenance.overlap,
        )
        gold = self.task.gold(examples)
        return EncodedExamples(task=self.task, examples=examples, rows=rows, gold=gold, language=language)

    def scores_of(self, encoded_examples: EncodedExamples) -> list[Floats]:
        """Return the raw scores of the rows of prepared examples."""
        row_scores: list[Floats] = [np.empty(0, np.float32)] * len(encoded_examples.rows)
        count = 0
        lengths = [len(row.subwords) for row in encoded_examples.rows]
        for indices in by_length(lengths, BUDGET, padding=CPU_BATCH_COST):
            rows = [encoded_examples.rows[index] for index in indices]
            for index, scores in zip(indices, self._scores(rows), strict=True):
                row_scores[index] = scores
            count += len(indices)
            encoded_examples.on_progress(
                Progress("scoring", count, len(encoded_examples.rows), encoded_examples.language)
            )
        return row_scores

    def _scores(self, rows: Sequence[EncodedRow]) -> list[Floats]:
        """Return the raw scores [label class] of the rows of a batch."""
        texts = [text for row in rows for text in row.texts()]
        outputs = self.session.run(None, self._inputs(texts))
        logits = outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)
        if logits.ndim == 2:  # Scores of whole texts.
            parts = iter(logits)
            counts = [len(row.options) or 1 for row in rows]
            scores = [np.stack([next(parts) for _ in range(count)]) for count in counts]
            return [
                row_scores.T if row.options else row_scores
                for row, row_scores in zip(rows, scores, strict=True)
            ]
        return [text_scores[list(row.positions)] for row, text_scores in zip(rows, logits, strict=True)]

    def _inputs(self, texts: Sequence[EncodedRow]) -> dict[str, npt.NDArray[np.int64]]:
        shape = (len(texts), max(len(text.subwords) for text in texts))
        ids = np.full(shape, padding_of(self.tokenizer), np.int64)
        mask = np.zeros(shape, np.int64)
        segments = np.zeros(shape, np.int64)
        for row, text in enumerate(texts):
            length = len(text.subwords)
            ids[row, :length] = text.subwords
            mask[row, :length] = 1
            if text.segments is not None:
                segments[row, :length] = list(text.segments)
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        return {entry.name: values[entry.name] for entry in self.session.get_inputs()}

    def solving(self, task: Task) -> "OnnxModel":
        """Return the same model with a different task, whose labels replace the labels of its task."""
        return replace(self, task=task)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Accept every language: models with language modules or maps have no ONNX file that is used."""


def load_onnx_model(folder: Path, precision: str = "float32") -> OnnxModel:
    """Load an exported model with its ONNX file.

    Raises ModelError if the file cannot be read, or comes from weights other than the weights in the folder.
    """
    import onnxruntime

    path = folder / ONNX_FILES[precision]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # Errors, which are raised as well.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # Idle threads sleep.
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Errors of onnxruntime have no common class.
        raise ModelError(f"{path}: this file cannot be read ({one_line(error)}).") from error
    entries = session.get_modelmeta().custom_metadata_map
    if entries.get(WEIGHTS_ENTRY) != checksum_of_weights(folder):
        raise ModelError(f"{path}: this file was not made from the weights in its folder.")
    provenance, _ = provenance_of(folder)
    own_frame = provenance.method == ELSEWHERE
    tokenizer = read_tokenizer(folder)
    set_causal(tokenizer, causal=entries.get(CAUSAL_ENTRY) == "1")
    if own_frame:
        set_own_frame(tokenizer)
    return OnnxModel(session, tokenizer, _task_of(folder, provenance), provenance, precision, path)


def _task_of(folder: Path, provenance: Provenance) -> Task:
    """Return the task of a model, with the labels in its config.json."""
    id_labels = read_config(folder).get("id2label") or {
        0: "LABEL_0",
        1: "LABEL_1",
    }  # transformers does not write these.
    labels_by_id = {int(index): str(label) for index, label in id_labels.items()}
    labels = tuple(labels_by_id[index] for index in sorted(labels_by_id))
    return find_task(provenance.task, normalize_tags(labels) if provenance.task == "span-tagging" else labels)


def find_onnx_model(
    folders: Sequence[Path], *, onnx: bool | None, int8: bool, say: Callable[[str], None]
) -> OnnxModel | None:
    """Load the ONNX file of an exported model, or return None if torch is to be used.

    ``onnx`` demands the file or forbids it, None leaves the choice. ``say`` receives which file is used, and
    why a file that was looked for is not. Raises ConfigError if the file is demanded and there is none.
    """
    if onnx is False:
        if int8:
            raise ConfigError("--int8 and --no-onnx: int8 is an ONNX file. Remove one of them.")
        return None
    precision = "int8" if int8 else "float32"
    reason = next(_obstacles(folders, precision), "")
    if not reason and onnx is None and not int8 and any(path.exists() for path in GPUS):
        return None
    if reason:
        if onnx or int8:
            option = "--int8" if int8 else "--onnx"
            raise ConfigError(f"{option}: {reason}. Remove {option}, or see isogloss export --help.")
        return None
    path = folders[0] / ONNX_FILES[precision]
    try:
        model = load_onnx_model(folders[0], precision)
    except ModelError as error:
        say(f"{error} Predicting with torch. Export the model again to use the file.")
        return None
    say(f"Predicting with {path} ({precision}). Use --no-onnx to predict with torch.")
    return model


def _obstacles(folders: Sequence[Path], precision: str) -> Iterator[str]:
    """Yield the reasons why models cannot predict with an ONNX file."""
    if len(folders) != 1:
        yield "several models predict together only with torch"
    folder = folders[0]
    path = folder / ONNX_FILES[precision]
    if not path.is_file():
        yield f"{folder} has no {path.name}"
    if (folder / RECORD).exists() or exported_entry(folder) is None:
        yield f"{folder} is not an exported model"
    if lacking := [name for name in NOT_IN_THE_FILE if (folder / name).exists()]:
        yield f"{path} lacks a part of the model ({lacking[0]})"
    provenance, _ = provenance_of(folder)
    if provenance.task not in ALL_TASKS.places:
        yield f"task {provenance.task} belongs to another package and needs torch"
    if find_spec("onnxruntime") is None:
        yield 'onnxruntime is not installed (pip install "isogloss[onnx]")'
