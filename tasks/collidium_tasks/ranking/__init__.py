"""What tasks share that ask for a score to tell signal from background by: the curve, and metrics of it."""

from collidium_tasks.ranking.resampling import resampled
from collidium_tasks.ranking.roc import Roc
from collidium_tasks.ranking.scores import Scores

__all__ = ["Roc", "Scores", "resampled"]
