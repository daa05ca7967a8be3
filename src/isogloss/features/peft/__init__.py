"""Parameter-efficient training: low-rank matrices, adapters, sparse changes, and frozen layers."""
