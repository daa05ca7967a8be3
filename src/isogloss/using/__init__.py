"""Floor 6: using a model: predict, evaluate, export."""

from isogloss.using.exporting import export
from isogloss.using.model import Model, load_model
from isogloss.using.predicting import How, predict_file
from isogloss.using.scoring import Wanted, evaluate

__all__ = ["How", "Model", "Wanted", "evaluate", "export", "load_model", "predict_file"]
