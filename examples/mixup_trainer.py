"""Fine-tune with transformers.Trainer, each pair of texts mixed with its translation.

python examples/mixup_trainer.py    # paper: "Enhancing Cross-lingual Transfer by Manifold Mixup", Eq. 7
"""

from pathlib import Path

from torch import tensor
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

import isogloss

LABELS = ("entailment", "neutral", "contradiction")


class MixupTrainer(Trainer):
    def __init__(self, model, **options):
        model.mixup = isogloss.MixupLoss(model)  # Part of the model: the Trainer also trains its W and b.
        super().__init__(model, **options)

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        loss = model.mixup(inputs["source"], inputs["target"])
        return (loss, None) if return_outputs else loss


def main(path: Path, examples: int = 1000) -> MixupTrainer:
    encoder, tokenizer = isogloss.load_encoder("shipped")
    model = AutoModelForSequenceClassification.from_pretrained(encoder.name_or_path, num_labels=3)

    def collate_rows(rows):
        sides = {}
        for name, pairs in zip(("source", "target"), zip(*rows, strict=True), strict=True):
            texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
            sides[name] = dict(tokenizer(*texts, padding=True, return_tensors="pt"))
            sides[name]["labels"] = tensor([LABELS.index(pair.label) for pair in pairs])
        return sides

    data = (isogloss.load_corpus("xnli", language, examples=examples) for language in ("qaa", "qaa-qad"))
    arguments = TrainingArguments(path, remove_unused_columns=False, report_to="none", save_strategy="no")
    dataset = list(zip(*data, strict=True))
    trainer = MixupTrainer(model, args=arguments, data_collator=collate_rows, train_dataset=dataset)
    trainer.train()
    return trainer


if __name__ == "__main__":
    main(Path("runs/mixup_trainer"))
