"""Floor 10: using a model: predict, evaluate, export."""

from isogloss.using.exporting import export
from isogloss.using.model import Model, load_model
from isogloss.using.predicting import PredictOptions, predict_file
from isogloss.using.scoring import EvaluateOptions, evaluate

__all__ = ["EvaluateOptions", "Model", "PredictOptions", "evaluate", "export", "load_model", "predict_file"]
