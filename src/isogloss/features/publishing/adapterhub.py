"""Adapters in the format of the library adapters, as AdapterHub publishes them: read and written.

A folder has ``adapter_config.json`` and the weights of an adapter (Pfeiffer's or Houlsby's bottlenecks, also
with invertible ones), and with a task's adapter its head. Language adapters become language modules, and a
task's adapters stay a task's, with the same outputs. Old files are pickles: only their weights are read
(``weights_only`` of torch, which builds tensors and runs nothing), and only with ``pickle``.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import ZipFile, is_zipfile

import torch
from pydantic import Field
from torch import Tensor, nn

from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.run_parts import Modules
from isogloss.core.untrusted import convert_json, join_safely
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.added_weights import copy_weights, read_weights, write_weights
from isogloss.encoders.added.language_modules import (
    INVERTIBLE,
    TREE,
    ModuleTree,
    TaskAdapters,
    add_modules,
    changed_modules,
    encoder_of,
    module_tree,
    owners,
)
from isogloss.encoders.added.module_settings import ADAPTER, ADAPTERS, FEED_FORWARD, layers_left_out
from isogloss.encoders.added.task_adapters import attach_task_adapter, task_adapter, task_placement
from isogloss.encoders.families import BERT
from isogloss.encoders.family import Model, head_parameters
from isogloss.encoders.folders import read_json
from isogloss.encoders.loading import AutoClass, load_whole, load_with_new_head

ADAPTER_CONFIG = "adapter_config.json"
HEAD_CONFIG = "head_config.json"
ADAPTER_WEIGHTS = "adapter.safetensors"
HEAD_WEIGHTS = "model_head.safetensors"
PICKLES = {ADAPTER_WEIGHTS: "pytorch_adapter.bin", HEAD_WEIGHTS: "pytorch_model_head.bin"}

ADAPTER_PARTS = {"down": "adapter_down.0", "up": "adapter_up"}
INVERTIBLE_PARTS = {"f.down": "F.0", "f.up": "F.2", "g.down": "G.0", "g.up": "G.2"}
"""The library's names of the layers of an invertible adapter, by ours."""

_OLD_NAMES = re.compile(r"(attention|layer)_text_(task|lang)_adapters|(?<=invertible_)lang_(?=adapters)")
_OUTSIDE = re.compile(r"^.*?(?=encoder\.layer\.|invertible_adapters\.)")
_NAMED = re.compile(r"(?<=adapters\.).+?\.(?=adapter_(?:down|up)\.|[FG]\.\d)")
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")


@dataclass(frozen=True, kw_only=True)
class BottleneckConfig:
    """The fields of the library's configuration that change outputs, with the values that are supported."""

    mh_adapter: bool
    output_adapter: Literal[True]
    reduction_factor: Annotated[float, Field(ge=1, multiple_of=1)]
    non_linearity: Literal["relu", "swish", "silu", "gelu"]
    original_ln_before: bool = False
    original_ln_after: Literal[True] = True
    residual_before_ln: Literal[True] = True
    adapter_residual_before_ln: Literal[False] = False
    ln_before: Literal[False] = False
    ln_after: Literal[False] = False
    is_parallel: Literal[False] = False
    use_gating: Literal[False] = False
    phm_layer: Literal[False] = False
    scaling: Annotated[float, Field(ge=1, le=1)] = 1.0
    inv_adapter: Literal["nice"] | None = None
    inv_adapter_reduction_factor: Annotated[float, Field(ge=2, le=2)] | None = None
    leave_out: tuple[int, ...] = ()
    """Layers without adapters, from 0."""


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """The fields of the configuration of a head."""

    head_type: str
    layers: int
    label2id: dict[str, int] = field(default_factory=dict)
    num_labels: int = 2
    activation_function: str | None = "tanh"
    use_pooler: Literal[False] = False
    bias: Literal[True] = True


HEADS: Mapping[str, tuple[AutoClass, int]] = {
    "tagging": ("AutoModelForTokenClassification", 1),
    "classification": ("AutoModelForSequenceClassification", 2),
    "question_answering": ("AutoModelForQuestionAnswering", 1),
}
"""The class of transformers with the same head, and its layers, by their type of head."""


ROOM = 1 << 20
"""Bytes that an archive of weights may unpack to in addition to twice its size."""


@dataclass(frozen=True)
class HubAdapter:
    """An adapter of a folder, with its head if it has one."""

    path: Path
    trained_on: tuple[str, object]
    """Family and hidden size of its encoder."""
    config: BottleneckConfig
    weights: dict[str, Tensor]
    """By the library's names from the layer on, without the adapter's name."""
    head: HeadConfig | None
    head_weights: list[Tensor]
    """In the order of the head's layers."""

    @property
    def placement(self) -> dict[str, Any]:
        """The fields of ``Modules`` that describe it."""
        config = self.config
        activation = {"gelu": None, "silu": "swish"}.get(config.non_linearity, config.non_linearity)
        return {
            "reduction": int(config.reduction_factor),
            "after": None if config.mh_adapter else FEED_FORWARD,
            "invertible": bool(config.inv_adapter) or None,
            "normed": config.original_ln_before or None,
            "activation": activation,
            "leave_out": tuple(layer + 1 for layer in config.leave_out) or None,
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its head in the order of their numbers."""
        ids = self.head.label2id if self.head else {}
        names = sorted(ids, key=ids.__getitem__)
        return tuple(names or (f"LABEL_{index}" for index in range(len(self.head_weights[-1]))))


def read_hub_adapter(folder: Path, *, pickle: bool = False) -> HubAdapter:
    """Read the folder of an adapter.

    ``pickle`` allows files that are pickles, but reads only their weights. Raises ModelError for damaged
    files, and for settings without an equivalent here.
    """
    body = read_json(folder / ADAPTER_CONFIG) if (folder / ADAPTER_CONFIG).is_file() else {}
    if "config" not in body:
        raise ModelError(
            f"{folder}: no adapters of AdapterHub are here (no {ADAPTER_CONFIG} of theirs). Give the folder "
            f"that their library wrote; one of peft is a model and an encoder as it is."
        )
    config = _fitting(BottleneckConfig, body.get("config"), folder / ADAPTER_CONFIG)
    weights = _weights(folder, ADAPTER_WEIGHTS, pickle=pickle)
    plain_weights = {
        _NAMED.sub("", _OUTSIDE.sub("", _current_name(name))): weight for name, weight in weights.items()
    }
    head = None
    head_weights = list[Tensor]()
    if (folder / HEAD_CONFIG).is_file():
        head_file = _weights(folder, HEAD_WEIGHTS, pickle=pickle)
        content = read_json(folder / HEAD_CONFIG).get("config")
        if content is not None:
            head = _fitting(HeadConfig, content, folder / HEAD_CONFIG)
            _check_head(head, folder / HEAD_CONFIG)
            head_weights = [
                head_file[name]
                for name in sorted(
                    head_file, key=lambda name: (name.rpartition(".")[0], name.endswith("bias"))
                )
            ]
    trained_on = (str(body.get("model_type", "")), body.get("hidden_size"))
    return HubAdapter(folder, trained_on, config, plain_weights, head, head_weights)


def _current_name(name: str) -> str:
    return _OLD_NAMES.sub(lambda match: "adapters" if match[1] else "", name)


def _check_head(head: HeadConfig, path: Path) -> None:
    kind, layers = HEADS.get(head.head_type, (None, 0))
    if kind is None or head.layers != layers or (layers > 1 and head.activation_function != "tanh"):
        raise ModelError(
            f"{path}: a head of type {head.head_type} with {head.layers} layers has no equal here. Known: "
            f"{', '.join(f'{name} with {count}' for name, (_, count) in HEADS.items())}. Remove this file to "
            f"read only the adapter, and train a head."
        )


def _fitting(shape: type[Any], content: object, path: Path) -> Any:
    try:
        return convert_json(shape, content)
    except ValueError as error:
        raise ModelError(
            f"{path}: config.{error}. Bottlenecks of Pfeiffer and Houlsby are read (seq_bn, double_seq_bn, "
            f"with or without _inv), and no other adapter of this library: fine-tune with peft instead."
        ) from error


def _weights(folder: Path, name: str, *, pickle: bool) -> dict[str, Tensor]:
    path = folder / PICKLES[name]
    if (folder / name).is_file() or not path.is_file():
        return read_weights(folder / name)
    if not pickle:
        raise ModelError(
            f"{path}: these weights are a pickle, which can run code when it is read. --pickle reads the "
            f"weights in it, and runs nothing."
        )
    try:
        _check_unpacked(path)
        weights = dict(torch.load(path, map_location="cpu", weights_only=True))
        for key, weight in weights.items():
            if not isinstance(key, str) or not isinstance(weight, torch.Tensor):
                raise TypeError(f"under {key!r:.40} is a {type(weight).__name__}")
        return weights
    except Exception as error:
        raise ModelError(
            f"{path}: this pickle holds more than weights, or is damaged ({one_line(error):.200}). Nothing "
            f"in it was run. Take another copy."
        ) from error


def _check_unpacked(path: Path) -> None:
    """Raise ValueError where the archive of a pickle unpacks to far more than its size.

    torch stores tensors as they are: nothing in its archives is packed.
    """
    if is_zipfile(path):
        with ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > 2 * path.stat().st_size + ROOM:
            raise ValueError(f"it unpacks to {size:,} bytes")


def with_hub_adapters(
    base: str, languages: Mapping[str, HubAdapter], task: HubAdapter | None, leave_out: Sequence[int] = ()
) -> Model:
    """Load an encoder with adapters of languages and of a task, and with the task's head.

    The layers in ``leave_out`` (from 1; -1 is the last) lose the adapters of languages, as in MAD-X 2.0.
    Raises ConfigError if the languages' adapters differ in kind, and ModelError for adapters of a different
    encoder or a language's adapter given as a task's.
    """
    if task is not None and task.config.inv_adapter:
        raise ModelError(
            f"{task.path}: these adapters were given as a task's, and have invertible ones (inv_adapter), "
            f"which are a language's. Pass them as a language's: --language CODE={task.path}."
        )
    if task is not None and task.head is not None:
        kind, _ = HEADS[task.head.head_type]
        model = load_with_new_head(base, kind, labels=task.labels, seed=0)
    else:
        model = load_whole(base)
    for adapter in (*languages.values(), *([task] if task else [])):
        _check_family(adapter, model)
    if languages:
        _add_languages(model, languages, tuple(leave_out))
    if task is not None:
        modules = TaskAdapters(model, task_placement(**{**task.placement, "invertible": None}), seed=0)
        _copy(task, dict(_names(model, modules.placement, modules)))
        attach_task_adapter(model, modules)
        _copy_head(task, model)
    return model


def _check_family(adapter: HubAdapter, model: Model) -> None:
    config = model.config
    if config.model_type not in LIKE_BERT or adapter.trained_on != (config.model_type, config.hidden_size):
        family, dim = adapter.trained_on
        raise ModelError(
            f"{adapter.path}: these adapters are for {family} of hidden size {dim}, and the encoder is "
            f"{config.model_type} of {config.hidden_size}. Give the encoder they were trained on; families: "
            f"{', '.join(LIKE_BERT)}."
        )


LIKE_BERT = [
    name
    for name in FAMILIES.places
    for family in [FAMILIES[name]]
    if (family.layers, family.layer.attention_output) == (BERT.layers, BERT.layer.attention_output)
]
"""Families whose layers have BERT's names, as in the library."""


def _add_languages(model: Model, adapters: Mapping[str, HubAdapter], leave_out: tuple[int, ...]) -> None:
    settings = {
        language: Modules(**{"kind": ADAPTER, **adapter.placement}) for language, adapter in adapters.items()
    }
    first_language, *other_languages = settings
    for language in other_languages:
        if settings[language] != settings[first_language]:
            raise ConfigError(
                f"{adapters[language].path}: the adapters of {language} differ in kind from the "
                f"adapters of {first_language} ({settings[language]} and {settings[first_language]}). All "
                f"languages of an encoder need one kind. Give adapters of one kind."
            )
    modules = settings[first_language]
    if leave_out:
        modules = replace(modules, leave_out=(*(modules.leave_out or ()), *leave_out))
    add_modules(model, modules, tuple(adapters), seed=0)
    tree: ModuleTree = encoder_of(model).get_submodule(TREE)
    omitted_layers = {layer - 1 for layer in layers_left_out(modules, model.config.num_hidden_layers)}
    for language, adapter in adapters.items():
        weights = {
            name: weight
            for name, weight in adapter.weights.items()
            if not ((layer_match := _LAYER.match(name)) and int(layer_match[1]) in omitted_layers)
        }
        _copy(replace(adapter, weights=weights), _language_weights(model, tree, language))


def _language_weights(model: Model, tree: ModuleTree, owner: str) -> dict[str, nn.Parameter]:
    """Return the parameters of a language's adapters by their names in a file of the library."""
    names = changed_modules(encoder_of(model), tree.info.modules)
    return dict(_names(model, tree.info.modules, (tree.get(owner, name) for name in names)))


def _names(
    model: Model, modules: Modules, added_modules: Iterable[nn.Module]
) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the parameters of added modules, in the order of ``changed_modules``, with their names."""
    for (name, kind), module in zip(
        changed_modules(encoder_of(model), modules).items(), added_modules, strict=True
    ):
        is_inverted = kind == INVERTIBLE
        where = "invertible_adapters" if is_inverted else f"{name.rpartition('.')[0]}.adapters"
        for ours, theirs in (INVERTIBLE_PARTS if is_inverted else ADAPTER_PARTS).items():
            for parameter, weight in module.get_submodule(ours).named_parameters():
                yield f"{where}.{theirs}.{parameter}", weight


def _copy(adapter: HubAdapter, parameters: Mapping[str, nn.Parameter]) -> None:
    copy_weights(adapter.path / ADAPTER_WEIGHTS, adapter.weights, parameters)


def _copy_head(adapter: HubAdapter, model: Model) -> None:
    if adapter.head is not None:
        weights = {f"head.{index}": weight for index, weight in enumerate(adapter.head_weights)}
        parameters = enumerate(head_parameters(model).values())
        weight_of = {f"head.{index}": weight for index, weight in parameters}
        copy_weights(adapter.path / HEAD_WEIGHTS, weights, weight_of)


def check_writable(model: Model) -> None:
    """Raise ConfigError unless this format has names for everything that was added to a model."""
    tree = module_tree(model)
    family = model.config.model_type
    if tree is None and task_adapter(model) is None:
        raise ConfigError(
            "--adapter: this model has no adapters. Run without --adapter to write the whole model."
        )
    if tree is not None and (tree.info.modules.kind not in ADAPTERS or tree.info.modules.embedding):
        raise ConfigError(
            f"--adapter: this model has {tree.info.modules.kind} modules for each language"
            f"{' with embeddings' if tree.info.modules.embedding else ''}, and AdapterHub's format has "
            f"only adapters. Run without --adapter."
        )
    if family not in LIKE_BERT:
        raise ConfigError(
            f"--adapter: AdapterHub's format is written for {', '.join(LIKE_BERT)}, and this encoder is "
            f"{family}. Remove --adapter."
        )


def write_hub_adapters(model: Model, folder: Path, base: str) -> list[str]:
    """Write all adapters of a model, and return the names of their folders below ``folder``.

    Each language has a folder; the task's is named task.
    """
    folders = list[str]()
    tree = module_tree(model)
    task = task_adapter(model)
    if tree is not None:
        for owner in owners(tree.info, tree.info.modules.kind):
            weights = _language_weights(model, tree, owner)
            folders.append(owner)
            _write(join_safely(folder, owner), model, tree.info.modules, weights, base)
    if task is not None:
        folders.append("task")
        _write(folder / "task", model, task.placement, dict(_names(model, task.placement, task)), base)
        _write_head(folder / "task", model, base)
    return folders


def _write(folder: Path, model: Model, modules: Modules, weights: Mapping[str, Tensor], base: str) -> None:
    omitted_layers = layers_left_out(modules, model.config.num_hidden_layers)
    config = BottleneckConfig(
        mh_adapter=modules.after is None,
        output_adapter=True,
        reduction_factor=modules.reduction,
        non_linearity=modules.activation or "gelu",
        original_ln_before=bool(modules.normed),
        inv_adapter="nice" if modules.invertible else None,
        inv_adapter_reduction_factor=2 if modules.invertible else None,
        leave_out=tuple(layer - 1 for layer in sorted(omitted_layers)),
    )
    folder.mkdir(parents=True)
    _write_json(folder / ADAPTER_CONFIG, asdict(config), model, folder.name, base)
    inside = f"{encoder_of(model).base_model_prefix}."
    weight_of = {
        inside + name.replace("adapters.", f"adapters.{folder.name}.", 1): weight
        for name, weight in weights.items()
    }
    write_weights(folder / ADAPTER_WEIGHTS, weight_of, {"format": "pt"})


def _write_head(folder: Path, model: Model, base: str) -> None:
    """Write the head of a model, if the library has one of its kind."""
    ends = {head: kind.removeprefix("AutoModel") for head, (kind, _) in HEADS.items()}
    head_type = next((head for head, end in ends.items() if type(model).__name__.endswith(end)), "")
    if not head_type:
        return
    labels = {} if head_type == "question_answering" else dict(model.config.label2id)
    layers = HEADS[head_type][1]
    config = HeadConfig(head_type=head_type, layers=layers, label2id=labels, num_labels=len(labels) or 2)
    # Their classes of other types take no further fields.
    body = {name: value for name, value in asdict(config).items() if name not in ("use_pooler", "bias")}
    _write_json(folder / HEAD_CONFIG, body, model, folder.name, base)
    numbers = (f"heads.{folder.name}.{layer}.{part}" for layer in (1, 4) for part in ("weight", "bias"))
    weights = dict(zip(numbers, head_parameters(model).values(), strict=False))
    write_weights(folder / HEAD_WEIGHTS, weights, {"format": "pt"})


def _write_json(path: Path, config: Mapping[str, Any], model: Model, name: str, base: str) -> None:
    family = model.config.model_type
    body = {
        "config": config,
        "hidden_size": model.config.hidden_size,
        "model_class": f"{type(encoder_of(model)).__name__.removesuffix('Model')}AdapterModel",
        "model_name": base,
        "model_type": family,
        "name": name,
        "version": "adapters.1.3.0",
    }
    write_text(path.parent, path.name, json.dumps(body, ensure_ascii=False, indent=2) + "\n")
