"""What is in a PostgreSQL database, so that what a failed restore has put there can be dropped."""

from __future__ import annotations

from typing import Final

from collidium import database

#: A class of the catalogue and an object of it.
Object = tuple[int, int]

# In the order in which they are dropped: a member of an extension cannot be dropped alone.
_OBJECTS: Final = """
WITH own AS (
    SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
)
SELECT 1 AS turn, 'pg_extension'::regclass::oid::bigint AS class, oid::bigint AS object FROM pg_extension
UNION ALL SELECT 2, 'pg_namespace'::regclass::oid::bigint, oid::bigint FROM own
UNION ALL SELECT 3, 'pg_class'::regclass::oid::bigint, oid::bigint FROM pg_class
    WHERE relnamespace IN (SELECT oid FROM own) AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
UNION ALL SELECT 4, 'pg_proc'::regclass::oid::bigint, oid::bigint FROM pg_proc
    WHERE pronamespace IN (SELECT oid FROM own)
UNION ALL SELECT 5, 'pg_type'::regclass::oid::bigint, oid::bigint FROM pg_type
    WHERE typnamespace IN (SELECT oid FROM own) AND typtype IN ('d', 'e', 'r')
ORDER BY turn
"""
# Null for what was dropped with another object.
_NAME: Final = """
SELECT format('%s %s', replace(type, 'composite ', ''), identity) AS name
FROM pg_identify_object(CAST(? AS bigint)::oid, CAST(? AS bigint)::oid, 0) WHERE identity IS NOT NULL
"""


async def objects(url: str) -> list[Object]:
    """Return schemas, tables, sequences, functions and types of a database, without those of the system."""
    async with database.connected(url):
        return await _objects()


async def drop_others(url: str, kept: list[Object]) -> None:
    """Drop all objects of a database but those that are ``kept``, in one transaction."""
    async with database.connected(url):
        await _drop_others(frozenset(kept))


@database.transactional
async def _drop_others(kept: frozenset[Object]) -> None:
    for found in await _objects():
        if found not in kept:
            for row in await database.rows_of(_NAME, *found):
                await database.connection().execute_script(f"DROP {row['name']} CASCADE")


async def _objects() -> list[Object]:
    return [(row["class"], row["object"]) for row in await database.rows_of(_OBJECTS)]
