"""ROC curves and their metrics, for tasks that score signal against background."""

from collidium_tasks.ranking.resampling import resampled
from collidium_tasks.ranking.roc import Roc
from collidium_tasks.ranking.scores import Scores

__all__ = ["Roc", "Scores", "resampled"]
