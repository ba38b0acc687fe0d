"""Hooks of schemathesis, which test_openapi.py names: bodies of media types that it cannot make by itself."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import schemathesis
from hypothesis import strategies as st

from collidium.api.bodies.receive import PARTIAL
from collidium.api.openapi import PARQUET


def _file(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


FILES = [
    _file(pa.table({"event_id": pa.array([], pa.int64())})),
    _file(pa.table({"event_id": [3, 4], "track_id": [[0, 1], []]})),
    _file(pa.table({"event_id": ["a"], "track_id": [None]})),
]

#: Files that no reader finds wrong before it looks at the columns, files that end early, and anything.
files = st.sampled_from(FILES) | st.sampled_from(FILES).map(lambda file: file[:-5]) | st.binary(max_size=1000)

schemathesis.openapi.media_type(PARQUET, files)
schemathesis.openapi.media_type(PARTIAL, st.binary(max_size=1000))
