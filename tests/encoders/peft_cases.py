"""Folders that peft writes, made on tiny models: what peft itself makes of them, and what isogloss does."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
from torch import Tensor, nn

from isogloss import load_encoder, load_model
from isogloss.core.errors import IsoglossError

CLASSES = {
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}
EQUAL = 2e-5
"""Numbers that differ by less are equal. By more where peft's own merging rounds large weights."""

NOT_MERGED = ("Lily", "VB-LoRA of the best vectors")
"""The cases that peft cannot merge."""

Damage = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""Changes of the weights of a folder."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """An adapter of peft on a model of a family with a head."""

    name: str
    family: str = "bert"
    head: str = "SEQ_CLS"
    kind: str = "LoraConfig"
    options: dict[str, Any] = field(default_factory=dict)
    on_pretrained: bool = False
    """Whether it was trained on a pretrained encoder with a new head. Else on a whole model with a head."""

    def __str__(self) -> str:
        base = " on a pretrained encoder" if self.on_pretrained else ""
        return f"{self.family} {self.head} {self.name}{base}"

    def config(self) -> peft.PeftConfig:
        """Return peft's configuration."""
        return getattr(peft, self.kind)(**{"task_type": self.head, **self.options})


@dataclass(frozen=True)
class Saved:
    """A folder that peft wrote, with what its model computes."""

    folder: Path
    head: str
    batch: dict[str, Tensor]
    logits: Tensor
    states: Tensor
    again: float
    """By how much peft's own reload differs."""
    rounding: float
    """By how much peft's own merging differs, and at least what rounding makes."""


@dataclass(frozen=True)
class Verdict:
    """Outcome for a folder: equal, refused, different, or failed within peft. With the details."""

    kind: str
    details: str = ""


def base_of(case: Case, pretrained_path: Path, place: Path) -> Path:
    """Return the folder of the model that adapters are trained on, made once."""
    if case.on_pretrained:
        return pretrained_path
    base = place / f"base-{case.family}-{case.head}"
    if not base.is_dir():
        config = transformers.AutoConfig.from_pretrained(pretrained_path)
        labels = 2 if case.head == "QUESTION_ANS" else 3
        config.update({"num_labels": labels, "architectures": None, **_padding(config)})
        with torch.random.fork_rng():
            torch.manual_seed(0)
            getattr(transformers, CLASSES[case.head]).from_config(config).save_pretrained(base)
        transformers.AutoTokenizer.from_pretrained(pretrained_path).save_pretrained(base)
    return base


def _padding(config: Any) -> dict[str, int]:
    """Return a padding subword, which decoders' classifiers require."""
    return {"pad_token_id": 1} if config.pad_token_id is None else {}


def save(case: Case, base: Path, folder: Path) -> Saved:
    """Draw all weights that would be trained, save them with peft, and reload them with peft."""
    kind = getattr(transformers, CLASSES[case.head])
    options = {"num_labels": 3} if case.head in ("SEQ_CLS", "TOKEN_CLS") else {}

    def load_seeded(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return kind.from_pretrained(base, **options)

    with torch.random.fork_rng(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(load_seeded(0), case.config()).eval()
        for weight in model.parameters():
            if weight.requires_grad and weight.is_floating_point():
                weight.add_(0.1 * torch.randn_like(weight))
        model.save_pretrained(folder)
        batch = batch_for(model.config)
        logits = logits_of(model, batch)
        states = states_of(model, batch)
        reloaded_model = peft.PeftModel.from_pretrained(load_seeded(5), folder).eval()
        again = distance(logits_of(reloaded_model, batch), logits)
        rounding = EQUAL
        if not isinstance(case.config(), peft.PromptLearningConfig) and case.name not in NOT_MERGED:
            merged_value = reloaded_model.merge_and_unload()
            rounding += 2 * distance(states_of(merged_value, batch), states_of(model, batch))
    return Saved(folder, case.head, batch, logits, states, again, rounding)


def distance(left: Tensor, right: Tensor) -> float:
    """Return the largest difference of two tensors."""
    return (left - right).abs().max().item()


def batch_for(config: Any) -> dict[str, Tensor]:
    """Return two texts, one of them padded."""
    padding = config.pad_token_id if config.pad_token_id is not None else 1
    ids = torch.tensor([[7, 9, 11, 13, 15, 17], [8, 12, 16, padding, padding, padding]])
    return {"input_ids": ids, "attention_mask": (ids != padding).long()}


def logits_of(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return all numbers of a model's output, or the states of an encoder, only at words."""
    output = model(**batch)
    if "start_logits" in output:
        return torch.stack([output.start_logits, output.end_logits]) * batch["attention_mask"]
    if "logits" not in output:
        return output.last_hidden_state * batch["attention_mask"].unsqueeze(-1)
    is_tagger = output.logits.ndim > 2
    return output.logits * batch["attention_mask"].unsqueeze(-1) if is_tagger else output.logits


def states_of(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the last states of the encoder within a model of peft."""
    inner = model.get_base_model() if isinstance(model, peft.PeftModel) else model
    encoder = inner.base_model
    return encoder(**batch).last_hidden_state * batch["attention_mask"].unsqueeze(-1)


def change(folder: Path, damage: Damage) -> None:
    """Change the weights in a folder of adapters."""
    from safetensors.torch import load_file, save_file

    path = folder / "adapter_model.safetensors"
    save_file(damage(dict(load_file(path))), path, metadata={"format": "pt"})


def verdict_on(saved_folder: Saved) -> Verdict:
    """Load the folder as a model, and as an encoder, and compare both with peft's."""
    try:
        encoder, _ = load_encoder(saved_folder.folder)
        with torch.no_grad():
            states = encoder(**saved_folder.batch).last_hidden_state * saved_folder.batch[
                "attention_mask"
            ].unsqueeze(-1)
        difference = distance(states, saved_folder.states)
        if difference > saved_folder.rounding:
            return Verdict("different", f"states of the encoder differ by {difference:.2g}")
        if saved_folder.head == "FEATURE_EXTRACTION":
            return Verdict("equal")
        network = load_model(saved_folder.folder, precision="float32").network
        with torch.no_grad():
            difference = distance(logits_of(network, saved_folder.batch), saved_folder.logits)
    except IsoglossError as error:
        return Verdict("refused", str(error))
    return Verdict(
        "equal" if difference <= saved_folder.rounding else "different", f"logits differ by {difference:.2g}"
    )


QV = ["query", "value"]

LORA: dict[str, dict[str, Any]] = {
    "plain": {},
    "rank 1": {"r": 1, "lora_alpha": 1},
    "regular expression": {"target_modules": r".*layer\.[12]\..*query"},
    "regular expression of the whole model": {
        "target_modules": r"bert\.encoder\.layer\.\d+\..*\.(query|key)"
    },
    "dense": {"target_modules": ["dense"]},
    "suffix": {"target_modules": ["attention.self.query"]},
    "whole names": {"target_modules": ["bert.encoder.layer.0.attention.self.query"]},
    "excluded": {"exclude_modules": ["layer.0.attention.self.query"]},
    "excluded by a regular expression": {
        "target_modules": "all-linear",
        "exclude_modules": r".*(pooler|classifier).*",
    },
    "layers": {"layers_to_transform": [0, 2], "layers_pattern": "layer"},
    "one layer": {"layers_to_transform": 1},
    "rank pattern": {
        "rank_pattern": {"layer.0.attention.self.query": 2, "value": 4},
        "alpha_pattern": {"value": 32},
    },
    "rank by a regular expression": {
        "rank_pattern": {r"^bert\..*\.1\..*query": 3},
        "alpha_pattern": {r"^bert.*query": 32},
    },
    "rsLoRA": {"use_rslora": True},
    "DoRA": {"use_dora": True},
    "DoRA everywhere": {"use_dora": True, "use_rslora": True, "target_modules": "all-linear"},
    "DoRA with ranks": {
        "use_dora": True,
        "target_modules": [*QV, "dense"],
        "rank_pattern": {"dense": 2},
        "exclude_modules": r".*(pooler|classifier).*",
    },
    "all biases": {"bias": "all"},
    "own biases": {"bias": "lora_only"},
    "all biases, all linear": {"bias": "all", "target_modules": "all-linear"},
    "bias of LoRA": {"lora_bias": True},
    "PiSSA": {"init_lora_weights": "pissa"},
    "fast PiSSA": {"init_lora_weights": "pissa_niter_4"},
    "OLoRA": {"init_lora_weights": "olora"},
    "Gaussian": {"init_lora_weights": "gaussian"},
    "orthogonal": {"init_lora_weights": "orthogonal"},
    "embeddings": {"target_modules": [*QV, "word_embeddings"]},
    "tokens": {"trainable_token_indices": [5, 6, 7]},
    "named tokens": {"trainable_token_indices": {"word_embeddings": [7, 8, 9]}},
    "saved pooler": {"modules_to_save": ["classifier", "pooler"]},
    "saved norms": {"modules_to_save": ["classifier", "LayerNorm"]},
    "saved feed-forward": {"modules_to_save": ["classifier", "intermediate"]},
    "saved layer": {"modules_to_save": ["classifier", "encoder.layer.2"]},
    "saved embeddings": {"modules_to_save": ["classifier", "word_embeddings"]},
    "saved pooler, dense": {"modules_to_save": ["pooler"], "target_modules": ["dense"]},
    "no task": {"task_type": None},
    "no task, saved classifier": {"task_type": None, "modules_to_save": ["classifier"]},
    "classifier": {"task_type": None, "target_modules": [*QV, "classifier"]},
    "classifier of rank 2": {"task_type": None, "r": 2, "target_modules": [*QV, "classifier"]},
    "pooler": {"target_modules": [*QV, "pooler.dense"]},
    "pooler and classifier": {"task_type": None, "target_modules": ["pooler.dense", "classifier"]},
    "all linear": {"target_modules": "all-linear"},
    "all linear, no task": {"task_type": None, "target_modules": "all-linear"},
    "a parameter": {"target_parameters": ["layer.1.intermediate.dense.weight"]},
}
"""Options of LoRA, by what is special about them. Default modules: queries and values."""

TUNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "AdaLoRA": ("AdaLoraConfig", {"target_modules": QV, "total_step": 10}),
    "IA3": (
        "IA3Config",
        {"target_modules": ["key", "value", "output.dense"], "feedforward_modules": ["output.dense"]},
    ),
    "IA3 of keys": ("IA3Config", {"target_modules": ["key"], "feedforward_modules": []}),
    "LoHa": ("LoHaConfig", {"target_modules": QV}),
    "LoKr": ("LoKrConfig", {"target_modules": QV}),
    "LoKr by a factor": ("LoKrConfig", {"target_modules": QV, "decompose_factor": 4, "decompose_both": True}),
    "OFT": ("OFTConfig", {"target_modules": QV, "oft_block_size": 8, "r": 0}),
    "BOFT": ("BOFTConfig", {"target_modules": QV, "boft_block_size": 8}),
    "FourierFT": ("FourierFTConfig", {"target_modules": QV, "n_frequency": 20}),
    "HRA": ("HRAConfig", {"target_modules": QV}),
    "MiSS": ("MissConfig", {"target_modules": QV, "r": 8}),
    "RandLoRA": ("RandLoraConfig", {"target_modules": QV, "r": 4}),
    "SHiRA": ("ShiraConfig", {"target_modules": QV, "r": 2}),
    "C3A": ("C3AConfig", {"target_modules": QV, "block_size": 8}),
    "RoAd": ("RoadConfig", {"target_modules": QV, "group_size": 8}),
    "norms": ("LNTuningConfig", {"target_modules": ["LayerNorm"]}),
    "WaveFT": ("WaveFTConfig", {"target_modules": QV, "n_frequency": 20}),
    "DeLoRA": ("DeloraConfig", {"target_modules": QV}),
    "GraLoRA": ("GraloraConfig", {"target_modules": QV}),
    "OSF": ("OSFConfig", {"target_modules": QV}),
    "tokens alone": ("TrainableTokensConfig", {"token_indices": [7, 8, 9]}),
    "PSOFT": ("PsoftConfig", {"target_modules": QV}),
    "VeRA": ("VeraConfig", {"target_modules": QV, "r": 8}),
    "VeRA without its projections": ("VeraConfig", {"target_modules": QV, "r": 8, "save_projection": False}),
    "VB-LoRA of the best vectors": (
        "VBLoRAConfig",
        {
            "target_modules": QV,
            "vector_length": 8,
            "num_vectors": 16,
            "r": 2,
            "topk": 2,
            "save_only_topk_weights": True,
        },
    ),
    "HiRA": ("HiraConfig", {"target_modules": QV}),
    "PEANuT": ("PeanutConfig", {"target_modules": QV}),
    "supertuning": ("SupertuningConfig", {"target_modules": QV}),
    "VB-LoRA": (
        "VBLoRAConfig",
        {"target_modules": QV, "vector_length": 8, "num_vectors": 16, "r": 2, "topk": 2},
    ),
    "pVeRA": ("PveraConfig", {"target_modules": QV, "r": 8}),
    "Lily": ("LilyConfig", {"target_modules": QV}),
    "prefix": ("PrefixTuningConfig", {"num_virtual_tokens": 4}),
    "prompt": ("PromptTuningConfig", {"num_virtual_tokens": 4}),
    "P-tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 4, "encoder_hidden_size": 16}),
    "cartridge": ("CartridgeConfig", {"num_virtual_tokens": 4}),
    "BEFT": ("BeftConfig", {"target_modules": QV}),
    "AdaMSS": ("AdamssConfig", {"target_modules": QV}),
    "GLoRA": ("GloraConfig", {"target_modules": QV}),
    "DEFT": ("DeftConfig", {"target_modules": QV}),
    "TinyLoRA": ("TinyLoraConfig", {"target_modules": QV}),
    "UniLoRA": ("UniLoraConfig", {"target_modules": QV}),
    "FRoD": ("FrodConfig", {"target_modules": QV}),
}
"""The configurations of peft's methods."""

LIKE_BERT = {
    "queries and values": QV,
    "dense": ["dense"],
    "queries, keys, values and dense": ["query", "key", "value", "dense"],
}
OF_ALL = {"all linear": "all-linear"}
TARGETS: dict[str, dict[str, Any]] = {
    "bert": LIKE_BERT | OF_ALL,
    "xlm-roberta": LIKE_BERT | OF_ALL,
    "roberta": LIKE_BERT | OF_ALL,
    "camembert": LIKE_BERT | OF_ALL,
    "xlm-roberta-xl": LIKE_BERT | OF_ALL,
    "xmod": LIKE_BERT | OF_ALL,
    "rembert": LIKE_BERT | OF_ALL,
    "deberta-v2": {"queries and values": ["query_proj", "value_proj"], "dense": ["dense"]} | OF_ALL,
    "distilbert": {
        "queries and values": ["q_lin", "v_lin"],
        "layers": ["q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"],
        "pre-classifier": ["q_lin", "pre_classifier"],
    }
    | OF_ALL,
    "modernbert": {
        "layers": ["Wqkv", "Wo", "Wi"],
        "attention and dense": ["Wqkv", "dense"],
        "dense": ["dense"],
    }
    | OF_ALL,
    "eurobert": {"queries and values": ["q_proj", "v_proj"], "dense": ["q_proj", "dense"]} | OF_ALL,
    "llama": {"queries and values": ["q_proj", "v_proj"]} | OF_ALL,
    "qwen3": {"queries and values": ["q_proj", "v_proj"]} | OF_ALL,
    "gemma3_text": {"queries and values": ["q_proj", "v_proj"]} | OF_ALL,
    "mt5": {"queries and values": ["q", "v"]} | OF_ALL,
}
"""The modules that guides name for each family."""

FURTHER: dict[str, dict[str, Any]] = {
    "DoRA": {"use_dora": True},
    "all biases": {"bias": "all"},
    "no task": {"task_type": None},
}
"""Options that the classifiers of each family are tried with, on all linear layers."""


def lora_case(name: str, targets: Any, family: str, head: str, **options: Any) -> Case:
    """Return LoRA of these modules on a family."""
    return Case(name=name, family=family, head=head, options={"target_modules": targets, **options})


def bert_cases() -> list[Case]:
    """Return all methods of peft and options of LoRA, on a tiny BERT."""
    loras = [
        Case(name=f"LoRA, {name}", options={"target_modules": QV, **options})
        for name, options in LORA.items()
    ]
    tuners = [Case(name=name, kind=kind, options=options) for name, (kind, options) in TUNERS.items()]
    return [*loras, Case(name="LoRA", head="FEATURE_EXTRACTION", options={"target_modules": QV}), *tuners]


def family_cases() -> list[Case]:
    """Return LoRA of the usual modules for each family and head, on whole models and on new heads."""
    cases = [
        lora_case(name, targets, family, head)
        for family, target in TARGETS.items()
        for head in (CLASSES if family != "mt5" else ["TOKEN_CLS"])  # The other heads belong to a decoder.
        for name, targets in target.items()
    ]
    cases += [replace(case, on_pretrained=True) for case in cases if case.head in ("SEQ_CLS", "TOKEN_CLS")]
    cases += [
        lora_case(f"all linear, {name}", "all-linear", family, "SEQ_CLS", **options)
        for family in TARGETS
        if family != "mt5"
        for name, options in FURTHER.items()
    ]
    return cases + [
        lora_case(f"{name}, one layer", targets, family, "SEQ_CLS", layers_to_transform=[1], bias="lora_only")
        for family, target in TARGETS.items()
        for name, targets in target.items()
        if targets != "all-linear" and family != "mt5"
    ]
