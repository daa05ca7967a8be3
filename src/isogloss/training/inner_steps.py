"""Steps that a meta-learner imagines: from a gradient to what is taken off the parameters, differentiably.

Wang, Lipton & Tsvetkov (2020), Algorithm 1, prints plain gradient descent. Adam moves each number by about
the rate, however small its gradient, so what descent with Adam's rate imagines is far shorter than what
Adam then does, and the term of the hypergradient that comes through it some hundredths of the other; the
preconditioned step is as long, and the term as large.
"""

from torch import Tensor

from isogloss.training.hypergradient import Parameters, Step


def plain(rate: float) -> Step:
    """Return gradient descent: the rate times the gradient."""
    return lambda gradient: {name: rate * part for name, part in gradient.items()}


def preconditioned(rate: float, moments: Parameters, *, updates: int, beta2: float, epsilon: float) -> Step:
    """Return Adam's step without its memory of older gradients, which φ no longer changes.

    ``moments`` are the running means of squared gradients after ``updates`` steps; the new gradient enters
    them first, as in Adam, so the derivative is that of the normalised step.
    """
    gathered = 1 - beta2 ** (updates + 1)

    def moved(name: str, part: Tensor) -> Tensor:
        square = (beta2 * moments[name] + (1 - beta2) * part.square()) / gathered
        step = rate * part / (square + epsilon**2).sqrt()
        return step.where(part != 0, 0.0)  # What the batch does not touch, φ cannot move.

    return lambda gradient: {name: moved(name, part) for name, part in gradient.items()}
