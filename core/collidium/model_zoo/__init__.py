"""Models that their owners share on the hub: whatever carries the platform's tag, and nothing else.

There is no registry here, no approval and no copy: the hub is asked, and its answers are kept for a moment.
"""

from collidium.model_zoo.listing import Found, ModelZoo, Question
from collidium.model_zoo.reading import HubModel

__all__ = ["Found", "HubModel", "ModelZoo", "Question"]
