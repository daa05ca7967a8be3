"""Train adapters of languages so that each helps all, in your training loop.

python examples/meta_loop.py    # paper: "On Negative Interference in Multilingual Models", Algorithm 1
"""

import random

import torch
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

import isogloss

LANGUAGES = ("qaa", "qad")


def train(model, meta, steps, optimizer):
    model.train()
    for language, batch, validation in steps:
        meta(language, batch, validation).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main(steps: int = 100) -> None:
    encoder, tokenizer = isogloss.load_encoder("shipped")
    model = AutoModelForMaskedLM.from_pretrained(encoder.name_or_path)
    text = {language: isogloss.load_corpus("ud", language, examples=1000) for language in LANGUAGES}
    mask = DataCollatorForLanguageModeling(tokenizer)
    rng = random.Random(0)

    def batch(language):
        return mask(
            [tokenizer(" ".join(chosen_sample.words)) for chosen_sample in rng.sample(text[language], 16)]
        )

    def step(language):
        return language, batch(language), {language_code: batch(language_code) for language_code in LANGUAGES}

    meta = isogloss.MetaLearner(model, LANGUAGES, own_rate=1e-3, inner_rate=1e-3)
    optimizer = torch.optim.AdamW((w for w in model.parameters() if w.requires_grad), lr=1e-3)
    train(model, meta, (step(LANGUAGES[index % 2]) for index in range(steps)), optimizer)
    for language_value in LANGUAGES:
        with meta.language(language_value):
            print(f"{language_value}: loss {model(**batch(language_value)).loss.item():.3f}")


if __name__ == "__main__":
    main()
