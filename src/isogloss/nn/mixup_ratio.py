"""The ratio of X-Mixup: the source's share of mixed states, from the entropy of attention.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Eq. 5 and the line after it.

A is the attention of Eq. 3, head by head. For H(A) its raw weights are normalised over the source's subwords,
for H(Aᵀ) the same raw weights over the target's: only a distribution has an entropy. Padding is neither
attended to nor counted.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class MixupRatio(nn.Module):
    """λ = λ₀·σ((H(A)+H(Aᵀ))·W+b), one for each pair; W and b are trained.

    Both begin at 0, where the sigmoid is steepest: every pair has half of the largest ratio, and the first
    update already distinguishes low entropy from high. (The authors' code has W = 1, which puts λ within
    percents of λ₀ for any text, and never trains it.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, entropy: Float[Tensor, " pair"], largest: float) -> Float[Tensor, " pair"]:
        """Return λ from H(A)+H(Aᵀ), below ``largest`` (λ₀)."""
        return largest * torch.sigmoid(entropy * self.weight + self.bias)


def two_way_entropy(
    raw: Float[Tensor, "pair head target source"],
    *,
    target: Bool[Tensor, "pair target"],
    source: Bool[Tensor, "pair source"],
    log_weights: Float[Tensor, "pair head target source"] | None = None,
) -> Float[Tensor, " pair"]:
    """Return H(A)+H(Aᵀ) in nats from raw weights, before any softmax; the masks are true at real subwords.

    ``log_weights`` are ``log_attention`` of them over the source, where attention has made it already.
    """
    log_weights = log_attention(raw, source) if log_weights is None else log_weights
    forward = attention_entropy(log_weights, queries=target, keys=source)
    backward = attention_entropy(log_attention(raw.transpose(2, 3), target), queries=source, keys=target)
    return forward + backward


def log_attention(
    raw: Float[Tensor, "pair head query key"], keys: Bool[Tensor, "pair key"]
) -> Float[Tensor, "pair head query key"]:
    """Return the logarithm of attention over real subwords, at least in float32."""
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
    unseen = ~keys[:, None, None, :]
    return torch.log_softmax(raw.masked_fill(unseen, torch.finfo(raw.dtype).min), dim=-1)


def attention_entropy(
    log_weights: Float[Tensor, "pair head query key"],
    *,
    queries: Bool[Tensor, "pair query"],
    keys: Bool[Tensor, "pair key"],
) -> Float[Tensor, " pair"]:
    """Return the mean over heads and real queries of the entropy of attention (Eq. 5)."""
    # Outside, the weight is 0 and its logarithm huge: their product must be 0, and so must its gradient.
    inside = log_weights.masked_fill(~keys[:, None, None, :], 0.0)
    entropies = -(log_weights.exp() * inside).sum(dim=3).mean(dim=1)
    return (entropies * queries).sum(dim=1) / queries.sum(dim=1)
