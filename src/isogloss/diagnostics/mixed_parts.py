"""The parts of models that are mixed on paths and planes, and which models cannot be mixed."""

HEAD = "head"

MODEL_PARTS = ("all", "encoder", HEAD)

FACTORS = "factors"
"""The adapters of models with LoRA (DoRA, IA3) before they are merged, with the head."""

INCOMPATIBLE_MIXUPS = (
    "these models mix inputs with translations in different layers or ways, so points between them are not "
    "meaningful. Take x-mixup models that differ in ratio and weights only, or leave inputs out."
)
