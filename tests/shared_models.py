"""Every function that takes a model, called on one model, and all that can be seen of a model."""

from contextlib import contextmanager

import numpy as np
import torch

import isogloss
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.language_modules import module_tree
from isogloss.encoders.computation import transformer_layers
from made_up import TEXT

WORDS = TEXT.split()
FIRST = [" ".join(WORDS[start : start + 5]) for start in range(8)]
SECOND = [" ".join(reversed(WORDS[start : start + 5])) for start in range(8)]
LINKS = [[(word, 4 - word) for word in range(5)]] * len(FIRST)
LANGUAGES = ("en", "de")
QUIET = {"on_progress": lambda _: None}
OPTIONS = {"languages": LANGUAGES, "precision": "bfloat16", **QUIET}


def encode_texts(tokenizer, texts):
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def batches(tokenizer):
    """Two batches of each of two languages."""
    return {
        language: [encode_texts(tokenizer, texts[:3]), encode_texts(tokenizer, texts[3:6])]
        for language, texts in zip(LANGUAGES, (FIRST, SECOND), strict=True)
    }


def mean_square(model, batch):
    """Return the mean square of the states of an encoder, or of the logits of a model with a head."""
    return model(**batch)[0].square().mean()


def train(model, inputs, steps, language="en"):
    """Train a model with dropout, whose numbers come from torch's own generator. Yield its modes."""
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], 1e-3)
    torch.manual_seed(5)
    for step in steps:
        with active_language(model, language):
            loss = mean_square(model, inputs[step % len(inputs)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield [module.training for module in model.modules()]


def size(model):
    with torch.no_grad():
        return float(sum(weight.square().sum() for weight in model.parameters()))


MEASUREMENTS = {
    "cka": lambda model, tokenizer, _, __: isogloss.cka(model, tokenizer, FIRST, SECOND, **OPTIONS),
    "retrieval": lambda model, tokenizer, _, __: isogloss.retrieval(
        model, tokenizer, FIRST, SECOND, limit=6, **OPTIONS
    ),
    "word_distances": lambda model, tokenizer, _, __: isogloss.word_distances(
        model, tokenizer, FIRST, SECOND, LINKS, **OPTIONS
    ),
    "align": lambda model, tokenizer, _, __: isogloss.align(FIRST, SECOND, model, tokenizer, **OPTIONS),
    "align by the last layer": lambda model, tokenizer, _, __: isogloss.align(
        FIRST, SECOND, model, tokenizer, layer=-1, matching="itermax", **OPTIONS
    ),
    "path": lambda model, _, other_item, inputs: isogloss.path(
        model,
        other_item,
        lambda moved_value: float(mean_square(moved_value, inputs["en"][0])),
        [0, 0.5],
        **QUIET,
    ),
    "plane": lambda model, _, other_item, __: isogloss.plane(
        model, other_item, other_item, size, [0, 0.5], **QUIET
    ),
    "deltas": lambda model, _, other_item, __: isogloss.deltas(model, other_item, other_item),
    "average": lambda model, _, other_item, __: flat(isogloss.average([model, other_item], [0.25, 0.75])),
    "gradient_conflict": lambda model, _, __, inputs: isogloss.gradient_conflict(
        model, inputs, mean_square, **QUIET
    ),
    "language_gates": lambda model, _, __, inputs: isogloss.language_gates(
        model, inputs, mean_square, steps=2, draws=1, **QUIET
    ),
}
"""By name: functions of a model, its tokenizer, another model of its shapes, and batches by language."""

LOSSES = {
    "AlignmentLoss": lambda model, tokenizer, _, __: isogloss.AlignmentLoss(
        model, tokenizer, FIRST, SECOND, LINKS, languages=LANGUAGES
    )().detach(),
}
"""Losses of a training with the same arguments and the model's dropout."""


def flat(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def equal(left, right):
    """Compare two results to the bit."""
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if hasattr(left, "equals"):
        return left.equals(right)
    return left == right


def list_state(model):
    """Return all that another thread can see of a model, but the numbers in its weights."""
    tree = module_tree(model) if hasattr(model, "base_model") else None
    modules = {
        name: (
            module.training,
            sorted(vars(module)),
            id(vars(module).get("forward")),
            {
                kind: list(hooks)
                for kind, hooks in vars(module).items()
                if "hooks" in kind and isinstance(hooks, dict)
            },
        )
        for name, module in model.named_modules()
    }
    tensors = {
        name: (
            id(tensor),
            tensor.data_ptr(),
            tensor.dtype,
            tensor.requires_grad,
            tensor.device,
            tensor.is_leaf,
        )
        for tensors in (model.named_parameters(remove_duplicate=False), model.named_buffers())
        for name, tensor in tensors
    }
    return modules, tensors, tree and tree.active.languages


def differences(left, right):
    """Name what differs between two states of ``seen``."""
    names = [
        name
        for parts in zip(left[:2], right[:2], strict=True)
        for name in parts[0]
        if parts[0][name] != parts[1].get(name)
    ]
    return [*names, *(["languages"] if left[2] != right[2] else []), *(set(right[0]) - set(left[0]))]


def numbers(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def list_changes(state_before, model):
    return [
        name for name, tensor in model.state_dict().items() if not torch.equal(tensor, state_before[name])
    ]


def random_states():
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist()


@contextmanager
def observe(model, look):
    """Call ``look`` whenever the model, or a copy of it, has computed embeddings, a layer or its states."""
    layers = transformer_layers(model).values()
    tables = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    hooked_values = dict.fromkeys([model.base_model, *layers, *tables])
    handles = [module.register_forward_hook(lambda *_: look()) for module in hooked_values]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
