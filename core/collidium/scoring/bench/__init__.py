"""What is measured on this machine, to be compared with others: how fast events are loaded.

A loader is a function that is given a :class:`Reading` and returns the events that it names::

    def load(reading: Reading) -> pa.Table:
        return pa.concat_tables([pq.read_table(path) for path in reading.shards])

It may return a table, record batches or tables one after the other, or a mapping from the name of each column
to its values, arrow or NumPy. One row is one event; all columns of the table are there, and no other events.
"""

from collidium.scoring.bench.measuring import Loaded, Loader, Measured, Reading, WrongReading, measure

__all__ = ["Loaded", "Loader", "Measured", "Reading", "WrongReading", "measure"]
