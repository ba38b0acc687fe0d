"""Data loaders: batches of events as ragged arrays for NumPy, torch, JAX and awkward.

::

    from collidium.learning import EventStream

    stream = EventStream("alice/odd-ttbar", "ttbar_pu0", "tracker_hits", ["x", "y", "z"], shuffle=True)
    for batch in stream:
        batch["x"].values, batch["x"].offsets
        batch.padded(2048).to_torch()

:mod:`collidium.learning.torch` and :mod:`collidium.learning.grain` wrap a stream as a dataset of these
frameworks.
"""

from collidium.learning.batch import Batch, Padded, concatenate
from collidium.learning.stream import EventStream, read_splits
from collidium.physics.ragged import Ragged

__all__ = ["Batch", "EventStream", "Padded", "Ragged", "concatenate", "read_splits"]
