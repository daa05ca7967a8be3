"""The classes of rows of isogloss's own measurements and runs. Features add theirs."""

from isogloss.core.rows import models

SCORES = (models.ScoreRow,)
RUN_VARIANCE = (models.SeedSpreadRow,)
TRANSFER_GAP = (models.GapRow,)
FINE_TUNE = (
    *(models.TrainingStepRow, models.EpochRow, models.StoppingRow, models.BitextReadRow),
    *(models.ConflictStepRow, models.TrainedParametersRow, models.AveragedModelRow),
    *(models.FurtherTaskScoreRow, models.SilverLabelsRow),
)
