"""Fine-tune in your training loop, in which translated words stay aligned.

python examples/continual_loop.py    # paper: "The Impact of Cross-Lingual Adjustment …", Eq. 2
"""

import torch
from transformers import AutoModelForSequenceClassification

import isogloss

LABELS = ("entailment", "neutral", "contradiction")


def train(model, batches, alignment, optimizer):
    model.train()
    for batch in batches:
        loss = model(**batch).loss + alignment()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main(examples: int = 1000) -> None:
    encoder, tokenizer = isogloss.load_encoder("shipped")
    model = AutoModelForSequenceClassification.from_pretrained(encoder.name_or_path, num_labels=3)
    bitext = isogloss.load_corpus("bitext", "qaa-qad", examples=examples)
    sentences = [pair.first for pair in bitext], [pair.second for pair in bitext]
    alignment = isogloss.AlignmentLoss(model, tokenizer, *sentences, languages=("qaa", "qad"))
    labelled_corpus = isogloss.load_corpus("xnli", "qaa", examples=examples)
    batches = []
    for pairs in (labelled_corpus[start : start + 32] for start in range(0, len(labelled_corpus), 32)):
        texts = [pair.first for pair in pairs], [pair.second for pair in pairs]
        labels = torch.tensor([LABELS.index(pair.label) for pair in pairs])
        batches.append({**tokenizer(*texts, padding=True, return_tensors="pt"), "labels": labels})
    train(model, batches, alignment, torch.optim.AdamW(model.parameters(), lr=3e-4))
    print(isogloss.word_distances(model, tokenizer, *sentences)["auc"])


if __name__ == "__main__":
    main()
