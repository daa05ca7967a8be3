"""Meta-learning: modules of languages learn to improve the parameters that all languages share."""
