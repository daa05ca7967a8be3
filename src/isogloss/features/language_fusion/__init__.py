"""Language fusion: LoRA whose bottleneck fuses the states of a text with those of its translation (FLARE)."""
