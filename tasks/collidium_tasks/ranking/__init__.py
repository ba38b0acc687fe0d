"""ROC curves and their metrics, for tasks that score signal against background."""

from collidium_tasks.ranking.resampling import resampled
from collidium_tasks.ranking.scores import Roc, Scores

__all__ = ["Roc", "Scores", "resampled"]
