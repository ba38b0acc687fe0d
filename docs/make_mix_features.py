"""Makes the mix of features that comes with the task `anomaly`, of a mix with truth::

python docs/make_mix_features.py WORK/mix        as `python docs/score_baselines.py --work WORK` makes it
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium_tasks.anomaly.baselines import MIX, NAMES, features
from collidium_tasks.anomaly.tally import CARD


def main(directory: Path) -> None:
    dataset = Dataset(directory)
    channels = dataset.table("channels").load()
    ids = channels["event_id"]
    events = EventRange(ids[0].as_py(), ids[-1].as_py() + 1)
    made = np.concatenate([features(tables) for _, tables in dataset.read(CARD.inputs, events)])
    lists = {
        name: pa.array(made[:, [place]].astype(np.float32).tolist(), pa.list_(pa.float32()))
        for place, name in enumerate(NAMES)
    }
    MIX.mkdir(exist_ok=True)
    pq.write_table(channels, MIX / "channels.parquet")
    pq.write_table(pa.table({"event_id": ids, **lists}), MIX / "features.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
