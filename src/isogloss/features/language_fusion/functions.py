"""Language fusion with your model: LoRA that reads a text together with its translation."""

from contextlib import AbstractContextManager

from torch import Tensor, nn

from isogloss.core.arguments import checks_arguments
from isogloss.features.language_fusion.fusion import Fusion, down_projections, fused_adapters
from isogloss.functional.preparing import unwrap_module


@checks_arguments
def fusing(
    model: nn.Module, *, fusion: Fusion = "add-relu", mask: Tensor | None = None
) -> AbstractContextManager[None]:
    """Fuse two languages in LoRA while a model runs on source rows followed by target rows (FLARE).

    Row i of the second half is the translation of row i of the first. Source rows run through the model
    without its adapters. In the bottleneck of each adapter, states of target rows are fused with the source's
    states at the same position: h_T = W₀x_T + (α/r)·B·f(Ax_S, Ax_T). ``fusion`` is f: "add", "multiply",
    "add-relu" (the sum of both without their negative numbers), or "attention" (the target's states plus
    attention to all of the source's). ``mask`` [row subword] is 1 at real subwords, None without padding;
    states at the source's padding are not fused. Train on the target rows of the output. Hooks are in the
    model meanwhile, which fuse only in the thread that entered this context.

    ModelError for a model without adapters of LoRA, with merged ones, or with DoRA.

    Device: as the model. Cost: the source rows of the pass.

    >>> import peft, torch, isogloss
    >>> encoder, tokenizer = isogloss.load_encoder("shipped")
    >>> model = peft.get_peft_model(encoder, peft.LoraConfig(target_modules=["query", "value"]))
    >>> batch = tokenizer(["tuki mirne", "bero zal"], return_tensors="pt", padding=True)
    >>> with torch.no_grad(), isogloss.fusing(model, fusion="add", mask=batch["attention_mask"]):
    ...     source, target = model(**batch).last_hidden_state
    """
    network = unwrap_module(model, "fusing")
    down_projections(network)
    return fused_adapters(network, fusion, mask, in_this_thread=True)
