"""Regularized fine-tuning: R3F smooths predictions around inputs, L2-SP keeps weights near their start."""
