"""Tracking: TensorBoard, MLflow, Weights & Biases and others follow runs while they train."""
