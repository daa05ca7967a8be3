"""Create files of tests: small adapters of the library adapters, with its outputs.

Run it in an environment with adapters 1.3; --read checks what isogloss wrote instead:

    python benchmarks/adapterhub_fixture.py tests/features/publishing/adapterhub
    python benchmarks/adapterhub_fixture.py FOLDER --read EXPORTS

The library requires transformers 4.57, so it needs a separate environment. Each family's folder has a random
encoder (``base``), an adapter folder for each kind, and ``expected.safetensors`` with the library's last
states, masked-LM scores and tag scores of the input ``ids``.
"""

import argparse
from pathlib import Path

import adapters
import torch
from adapters import AutoAdapterModel
from adapters.composition import Stack
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

SHAPE = {
    "vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 16, "hidden_act": "gelu",
}  # fmt: skip
FAMILIES = {"bert": (BertConfig, BertForMaskedLM), "xlm-roberta": (XLMRobertaConfig, XLMRobertaForMaskedLM)}
KINDS = {
    "pfeiffer": ("seq_bn", {"reduction_factor": 4}),
    "pfeiffer-invertible": ("seq_bn_inv", {"reduction_factor": 4}),
    "houlsby": ("double_seq_bn", {"reduction_factor": 4}),
    "houlsby-invertible": ("double_seq_bn_inv", {"reduction_factor": 4}),
    "mad-x-2": ("seq_bn_inv", {"reduction_factor": 2, "leave_out": [1]}),
    "task": ("seq_bn", {"reduction_factor": 8}),
}
LABELS = {"DET": 0, "NOUN": 1, "VERB": 2}


def stir(module: torch.nn.Module) -> None:
    """Give all weights of adapters, heads and norms numbers that matter."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.3)


def make(folder: Path, family: str) -> None:
    """Write a family's encoder, its adapters and the library's outputs."""
    config_class, model_class = FAMILIES[family]
    torch.manual_seed(0)
    model = model_class(config_class(**SHAPE)).eval()
    stir(model)
    model.save_pretrained(folder / "base")
    ids = torch.tensor([[2, 7, 9, 11, 3], [2, 12, 8, 5, 3]])
    outputs = {"ids": ids}
    flexible = AutoAdapterModel.from_pretrained(folder / "base").eval()
    flexible.add_tagging_head(
        "task", num_labels=len(LABELS), id2label={n: name for name, n in LABELS.items()}
    )
    for name, (kind, options) in KINDS.items():
        config = adapters.AdapterConfig.load(kind, **options)
        flexible.add_adapter(name, config=config)
    for name, module in flexible.named_modules():
        if name.endswith(tuple(f"adapters.{kind}" for kind in KINDS)) or name == "heads.task":
            stir(module)
    for name in KINDS:
        flexible.save_adapter(folder / name, name, with_head=name == "task", use_safetensors=True)
    flexible.save_adapter(folder / "pickled", "pfeiffer-invertible", with_head=False)
    outputs |= read(folder, family, ids)
    save_file(outputs, folder / "expected.safetensors")
    for path in folder.glob("*/*.json"):  # No folder of this machine.
        path.write_text(path.read_text().replace(str(folder / "base"), f"tiny-{family}"))


def read(folder: Path, family: str, ids: torch.Tensor, path: Path | None = None) -> dict[str, torch.Tensor]:
    """Return the library's outputs of the adapters in a folder, on the encoder of ``folder``."""
    outputs = {}
    path = path or folder
    _, model_class = FAMILIES[family]
    bias = model_class.from_pretrained(folder / "base").get_output_embeddings().bias
    flexible = AutoAdapterModel.from_pretrained(folder / "base").eval()
    with torch.no_grad():
        flexible.heads["default"][-1].bias.copy_(bias)  # The only weight that it does not read.
        for name in KINDS:
            if not (path / name).is_dir():
                continue
            flexible.load_adapter(
                str(path / name), load_as=name, with_head=name == "task", use_safetensors=True
            )
            flexible.active_adapters = name
            flexible.active_head = "default"
            outcome = flexible(ids, output_hidden_states=True)
            outputs[f"{name}/states"] = outcome.hidden_states[-1].clone()
            outputs[f"{name}/scores"] = outcome.logits
        for language in KINDS:
            if language in flexible.adapters_config and language != "task" and "task" in flexible.heads:
                flexible.active_adapters = Stack(language, "task")
                flexible.active_head = "task"
                outputs[f"{language}/tags"] = flexible(ids).logits
    return outputs


def main() -> None:
    """Make the fixture, or compare the outputs of other adapter folders with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--read", type=Path, help="Adapter folders to read instead, by family.")
    arguments = parser.parse_args()
    for family in FAMILIES:
        folder = arguments.folder / family
        if not arguments.read:
            make(folder, family)
            continue
        expected_outputs = load_file(folder / "expected.safetensors")
        for name, output in read(folder, family, expected_outputs["ids"], arguments.read / family).items():
            print(f"{family}  {name:32} {float((output - expected_outputs[name]).abs().max()):.1e}")


if __name__ == "__main__":
    main()
