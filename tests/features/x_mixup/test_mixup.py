import json
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.language_modules import language_site
from isogloss.encoders.added.module_settings import KINDS
from isogloss.encoders.computation import offer_explicit_attention
from isogloss.encoders.families import family_of
from isogloss.encoders.mixup import LearnedRatio, Mixup, check_mixup, load_mixup, mixing, save_mixup
from isogloss.encoders.saving import save_model
from isogloss.features.x_mixup.mixed_model import last_states
from networks import fresh, hooks, modular, stir_modules, tagger

FAMILIES = ("bert", "xlm-roberta", "distilbert")
LENGTHS = ((5, 7), (6, 4), (3, 3))
"""Subwords of source and target of three pairs."""


@pytest.fixture(params=FAMILIES)
def folder(request):
    return request.getfixturevalue(f"{request.param.replace('-', '_')}_folder")


def mixup(layer=2, **changes):
    ratio = LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    return Mixup(layer=layer, ratio_module=ratio, **changes)


def pairs(lengths=LENGTHS, *, more=0):
    """Rows [sources. Targets] of random subwords, padded to the longest and ``more``."""
    longest = max(max(pair) for pair in lengths) + more
    ordered_lengths = [item for item, _ in lengths] + [other_length for _, other_length in lengths]
    rows = torch.full((len(ordered_lengths), longest), 1)  # The rest is padding: the mask must hide it.
    for index, length in enumerate(ordered_lengths):
        generator = torch.Generator().manual_seed(1000 * index + length)
        rows[index, :length] = torch.randint(5, 40, (length,), generator=generator)
    mask = torch.arange(longest) < torch.tensor(ordered_lengths)[:, None]
    return rows, mask.long()


def states(model, rows, mask, options=None):
    inputs = {"input_ids": rows, "attention_mask": mask}
    if options is None:
        return model.base_model(**inputs).last_hidden_state
    with mixing(model, options, mask):
        return model.base_model(**inputs).last_hidden_state


def real(hidden_state, mask):
    return hidden_state[mask.bool()]


@pytest.mark.parametrize("attention", ["sdpa", "explicit"])
def test_without_a_ratio_the_model_is_unmixed_to_the_bit(folder, attention):
    attention = offer_explicit_attention() if attention == "explicit" else attention
    model = fresh(folder, attention=attention).train()
    rows, mask = pairs()
    torch.manual_seed(0)
    plain_last_hidden_state = states(model, rows, mask)
    torch.manual_seed(0)
    assert torch.equal(states(model, rows, mask, mixup(ratio=0.0)), plain_last_hidden_state)


@pytest.mark.each_value
@pytest.mark.parametrize("layer", [1, 2, 3])
def test_the_source_side_goes_on_unmixed_and_the_target_side_does_not(folder, layer):
    model = fresh(folder)
    rows, mask = pairs()
    plain_last_hidden_state = states(model, rows, mask)
    mixed_last_hidden_state = states(model, rows, mask, mixup(layer))
    assert torch.equal(mixed_last_hidden_state[:3], plain_last_hidden_state[:3])
    assert not torch.allclose(
        real(mixed_last_hidden_state, mask)[14:], real(plain_last_hidden_state, mask)[14:], atol=1e-2
    )


def mix_states(model, options, rows, mask, links=None):
    """Give the states that leave the mixing, the last ones, and the trace."""
    site = family_of(model).sites(model)[options.layer - 1]
    calls = []
    feed_forward = site.module(model, "feed_forward_in")
    handle = feed_forward.register_forward_pre_hook(lambda _, inputs: calls.append(inputs[0]))
    with torch.no_grad(), mixing(model, options, mask, links=links) as trace:
        last_hidden_state = model.base_model(input_ids=rows, attention_mask=mask).last_hidden_state
    handle.remove()
    return calls[0], last_hidden_state, trace


def attend(model, site, subwords, language=""):
    """Give one text's states after the self-attention sub-layer, and before its norm."""
    outputs = []
    norm = site.module(model, "attention_norm")
    handle = norm.register_forward_hook(lambda _, inputs, output: outputs.append((output[0], inputs[0][0])))
    with torch.no_grad(), active_language(model, language):
        model.base_model(input_ids=subwords[None])
    handle.remove()
    return outputs[0]


def compute_equation_4(model, site, options, crossed_value, target, entropy):
    """Return Eq. 4 and the ratio of Eq. 5; ``target`` are h_T and what it is the norm of."""
    ratio = 0.5 / (1 + math.exp(-(-0.5 * entropy + 1.0))) if options.learned else 0.5
    own_target = target[options.residual == "summed"]
    norm = site.module(model, "attention_norm")
    mean = ratio * crossed_value + (1 - ratio) * own_target
    return nn.functional.layer_norm(mean, norm.normalized_shape, norm.weight, norm.bias, norm.eps), ratio


@pytest.mark.parametrize("residual", ["normed", "summed"])
@pytest.mark.parametrize("learned_value", [True, False])
@pytest.mark.parametrize("languages", [("", ""), ("en", "sw"), ("sw", "en")])
def test_the_layer_computes_the_equations(folder, residual, learned_value, languages):
    """Eqs 2-5 by hand, pair by pair without padding, one head after the other. With modules, the target's."""
    model = fresh(folder).double()
    if all(languages):
        stir_modules(modular(model, "attention"), seed=5, size=0.2)
    options = mixup(residual=residual, learned=learned_value)
    options.ratio_module.double()
    rows, mask = pairs()
    plain_site = family_of(model).sites(model)[options.layer - 1]
    source, target = (language_site(model, plain_site, language) for language in languages)
    with active_language(model, [language for language in languages for _ in range(3)]):
        state, _, trace = mix_states(model, options, rows, mask)
    for index, (source_length, target_length) in enumerate(LENGTHS):
        h_s, _ = attend(model, source, rows[index, :source_length], languages[0])
        h_t = attend(model, target, rows[3 + index, :target_length], languages[1])
        crossed_value, entropy = attend_slowly(model, target, h_t[0], h_s)
        expected, ratio = compute_equation_4(model, target, options, crossed_value, h_t, entropy)
        assert trace.ratios[index].item() == pytest.approx(ratio, abs=1e-9)
        assert torch.allclose(state[index, :source_length], h_s, rtol=0, atol=1e-9)
        assert torch.allclose(state[3 + index, :target_length], expected, rtol=0, atol=1e-9)


def attend_slowly(model, site, h_t, h_s):
    """Return MultiHead(h_T, h_S, h_S) and H(A)+H(Aᵀ)."""
    heads = model.config.num_attention_heads
    query, key, value = (
        site.module(model, part)(states).chunk(heads, dim=-1)
        for part, states in (("query", h_t), ("key", h_s), ("value", h_s))
    )
    parts = []
    entropy = 0.0
    for q, k, v in zip(query, key, value, strict=True):
        raw = q @ k.T / math.sqrt(q.shape[1])
        parts.append(raw.softmax(dim=1) @ v)
        entropy += entropy_of(raw.softmax(dim=1), raw.T.softmax(dim=1)) / heads
    return site.module(model, "attention_output")(torch.cat(parts, dim=1)), entropy


def entropy_of(*both_ways):
    return sum(torch.special.entr(both_way).sum(dim=1).mean().item() for both_way in both_ways)


@pytest.mark.parametrize("residual", ["normed", "summed"])
def test_by_cosine_a_subword_takes_up_the_values_of_those_that_are_like_it(folder, residual):
    """Eqs 3-5 by hand with a softmax of 20 times the cosine, pair by pair without padding."""
    model = fresh(folder).double()
    options = mixup(attends="cosine", residual=residual)
    options.ratio_module.double()
    rows, mask = pairs()
    site = family_of(model).sites(model)[options.layer - 1]
    states, _, trace = mix_states(model, options, rows, mask)
    for index, (source_length, target_length) in enumerate(LENGTHS):
        h_s, _ = attend(model, site, rows[index, :source_length])
        h_t = attend(model, site, rows[3 + index, :target_length])
        raw = 20 * torch.cosine_similarity(h_t[0][:, None], h_s[None], dim=2)
        probabilities = raw.softmax(dim=1)
        back = raw.T.softmax(dim=1)
        crossed_value = site.module(model, "attention_output")(
            probabilities @ site.module(model, "value")(h_s)
        )
        expected, ratio = compute_equation_4(
            model, site, options, crossed_value, h_t, entropy_of(probabilities, back)
        )
        assert trace.ratios[index].item() == pytest.approx(ratio, abs=1e-9)
        weights = trace.weights[index, 0, :target_length, :source_length]
        assert torch.allclose(weights, probabilities, rtol=0, atol=1e-9)
        assert torch.allclose(states[3 + index, :target_length], expected, rtol=0, atol=1e-9)


def test_by_cosine_a_text_finds_itself(folder):
    model = fresh(folder)
    rows, mask = pairs()
    twice = torch.cat((rows[:3], rows[:3]))
    tensors = torch.cat((mask[:3], mask[:3]))
    with mixing(model, mixup(attends="cosine"), tensors) as trace:
        model.base_model(input_ids=twice, attention_mask=tensors)
    for weights, length in zip(trace.weights[:, 0], mask[:3].sum(dim=1), strict=True):
        assert weights[:length].argmax(dim=1).tolist() == list(range(length))


@pytest.mark.parametrize("attends", [None, "cosine"])
def test_padding_changes_nothing(folder, attends):
    model = fresh(folder).double()
    options = mixup(attends=attends)
    options.ratio_module.double()
    rows, mask = pairs()
    wide, wide_mask = pairs(more=6)
    with mixing(model, options, mask) as trace:
        narrow = model.base_model(input_ids=rows, attention_mask=mask).last_hidden_state
    with mixing(model, options, wide_mask) as trace_wide:
        padded_last_hidden_state = model.base_model(
            input_ids=wide, attention_mask=wide_mask
        ).last_hidden_state
    assert torch.allclose(real(padded_last_hidden_state, wide_mask), real(narrow, mask), rtol=0, atol=1e-10)
    assert torch.allclose(trace_wide.ratios, trace.ratios, rtol=0, atol=1e-12)
    assert trace.ratios.std() > 0


@pytest.mark.parametrize("residual", ["normed", "summed"])
def test_gradients_are_those_of_finite_differences(folder, residual):
    """The direction is random in all weights at once, including the weights of the ratio."""
    model = fresh(folder).double()
    options = mixup(residual=residual)
    options.ratio_module.double()
    rows, mask = pairs()
    weights = [*model.parameters(), *options.ratio_module.parameters()]
    generator = torch.Generator().manual_seed(0)
    steps = [torch.randn(weight.shape, generator=generator, dtype=torch.float64) for weight in weights]
    tensor = torch.randn(len(rows), 32, generator=generator, dtype=torch.float64)

    def loss():
        return (states(model, rows, mask, options)[:, 0] * tensor).sum()

    def compute_moved_loss(size):
        with torch.no_grad():
            for weight, step in zip(weights, steps, strict=True):
                weight.add_(step, alpha=size)
        return loss().item()

    loss().backward()
    slope = sum(
        float((weight.grad * step).sum())
        for weight, step in zip(weights, steps, strict=True)
        if weight.grad is not None
    )
    assert all(weight.grad.abs() > 0 for weight in options.ratio_module.parameters())
    size = 1e-6
    upper_moved_loss = compute_moved_loss(size)
    lower_moved_loss = compute_moved_loss(-2 * size)
    assert (upper_moved_loss - lower_moved_loss) / (2 * size) == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_a_small_ratio_is_near_the_unmixed_layer_only_where_the_residual_is_summed(folder):
    model = fresh(folder)
    with torch.no_grad():  # A norm that was trained is not its own square.
        for site in family_of(model).sites(model):
            site.module(model, "attention_norm").weight.mul_(torch.linspace(0.5, 2, 32))
    rows, mask = pairs()
    plain_result = real(states(model, rows, mask), mask)

    def near(residual):
        options = mixup(ratio=1e-7, residual=residual)
        return torch.allclose(real(states(model, rows, mask, options), mask), plain_result, atol=1e-4)

    assert near("summed")
    assert not near("normed")


def test_dropout_is_the_layers_own(folder):
    """In training the second attention drops what the first does: here everything."""
    model = fresh(folder)
    options = mixup(layer=3)
    site = family_of(model).sites(model)[2]
    rows, mask = pairs()
    attention = model.get_submodule(site.attention_dropout)
    names = [name for name in (site.attention_dropout, site.output_dropout) if name]
    plain_last_hidden_state = states(model, rows, mask, options)
    for name in names:
        part = model.get_submodule(name)
        rate = part.p
        part.p = 1.0
        assert torch.equal(states(model, rows, mask, options), plain_last_hidden_state)  # Not in evaluation …
        part.train()
        last_hidden_state = states(model, rows, mask, options)
        assert not torch.allclose(
            real(last_hidden_state, mask)[14:], real(plain_last_hidden_state, mask)[14:], atol=1e-3
        )  # … in training.
        part.eval()
        part.p = rate
    assert attention.p == rate


def test_no_hook_remains_and_last_states_are_those_a_head_reads(folder):
    model = tagger(folder)
    hooks_before = hooks(model)
    rows, mask = pairs()
    with mixing(model, mixup(), mask), last_states(model) as result:
        model(input_ids=rows, attention_mask=mask)
    assert torch.equal(result[0], states(model, rows, mask, mixup()))
    with pytest.raises(RuntimeError, match="stop"), mixing(model, mixup(), mask), last_states(model):
        assert hooks(model) == hooks_before + 2
        raise RuntimeError("stop")
    assert hooks(model) == hooks_before


def test_other_families_are_refused_with_the_reason(deberta_v2_folder, modernbert_folder):
    for folder, message in (
        (deberta_v2_folder, "projects distances"),
        (modernbert_folder, "normalises before"),
    ):
        model = fresh(folder)
        with pytest.raises(ModelError, match=f"{message}.*bert.*camembert.*distilbert"):
            states(model, *pairs(), mixup())


@pytest.mark.parametrize("layer", [0, 4])
def test_a_layer_that_is_not_there_is_refused(bert_folder, layer):
    with pytest.raises(ConfigError, match=f"{layer}.*encoder.*1.*3"):
        check_mixup(fresh(bert_folder).config, layer)


def test_what_is_saved_is_read_again_beside_an_ordinary_model(folder, tmp_path):
    from transformers import AutoModel

    model = fresh(folder)
    options = mixup(ratio=0.3, learned=False, residual="summed", attends="cosine")
    tokenizer = nn.Identity()
    tokenizer.save_pretrained = lambda _: None
    save_model(
        model, tokenizer, tmp_path / "model", extra_writers=(lambda place: save_mixup(options, place),)
    )
    result = load_mixup(tmp_path / "model")
    assert result == options
    assert {
        name: parameter.item() for name, parameter in result.ratio_module.named_parameters()
    } == pytest.approx({"weight": -0.5, "bias": 1.0})
    again = AutoModel.from_pretrained(tmp_path / "model")
    rows, mask = pairs()
    assert torch.equal(states(again, rows, mask), states(model, rows, mask))


def test_a_model_without_mixup_has_none_and_a_damaged_one_is_an_error(tmp_path):
    assert load_mixup(tmp_path) is None
    save_mixup(mixup(), tmp_path)
    assert replace(load_mixup(tmp_path), layer=3) == mixup(layer=3)
    settings = json.loads((tmp_path / "mixup.json").read_text(encoding="utf-8"))
    del settings["attends"]  # As in a model older than this choice.
    (tmp_path / "mixup.json").write_text(json.dumps(settings), encoding="utf-8")
    assert load_mixup(tmp_path) == mixup()
    (tmp_path / "mixup.json").write_text('{"layer": 2}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"mixup.json.*mixup.safetensors"):
        load_mixup(tmp_path)
    save_mixup(mixup(), tmp_path)
    (tmp_path / "mixup.safetensors").write_bytes(b"no")
    with pytest.raises(ModelError, match="damaged"):
        load_mixup(tmp_path)


# With language modules


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
def test_equal_modules_of_two_languages_mix_as_none_do(folder, kind):
    rows, mask = pairs()
    with torch.no_grad():
        plain_last_hidden_state = states(fresh(folder), rows, mask, mixup())
        model = modular(fresh(folder), kind)
        for languages in (("en",) * 3 + ("sw",) * 3, ("sw",) * 6, "sw"):
            with active_language(model, languages):
                last_hidden_state = states(model, rows, mask, mixup())
            torch.testing.assert_close(
                real(last_hidden_state, mask), real(plain_last_hidden_state, mask), atol=1e-5, rtol=1e-4
            )
    assert hooks(model) == 0


def test_a_side_in_two_languages_is_not_mixed(folder):
    model = modular(fresh(folder), "attention", ("en", "sw", "fr"))
    rows, mask = pairs()
    text = r"en.*fr\+sw"
    with pytest.raises(ConfigError, match=text), active_language(model, ("en",) * 3 + ("sw", "sw", "fr")):
        states(model, rows, mask, mixup())
