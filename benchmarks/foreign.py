"""Hugging Face's Trainer, set up as its users do."""

import tempfile
from pathlib import Path
from typing import Any

from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from material import BATCH, Material


def trainer(
    material: Material, *, pad_to: int | None = None, is_grouped: bool = False, bfloat16: bool = False
) -> Any:
    """Return a Trainer for one epoch over the material. ``pad_to`` None pads to a batch's longest row."""
    collator = DataCollatorForTokenClassification(
        material.tokenizer, padding="max_length" if pad_to else True, max_length=pad_to
    )
    with tempfile.TemporaryDirectory() as nowhere:  # It must be named, though nothing is saved.
        arguments = TrainingArguments(
            output_dir=nowhere,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            learning_rate=2e-5,
            warmup_steps=0.1,
            weight_decay=0.01,
            bf16=bfloat16,
            bf16_full_eval=False,
            use_cpu=True,
            train_sampling_strategy="group_by_length" if is_grouped else "random",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        result = Trainer(
            model=AutoModelForTokenClassification.from_pretrained(Path(material.folder)),
            args=arguments,
            train_dataset=material.features,
            data_collator=collator,
        )
    result.remove_callback(PrinterCallback)
    return result
