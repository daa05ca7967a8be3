"""Self-training: a model learns from unlabelled text of the target that an earlier model has labelled."""
