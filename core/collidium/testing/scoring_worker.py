"""Scores blocks in a process of its own, ``python -m``: pickles in on standard input, pickles out.

Imports nothing but the contract and what the task itself imports, as a scoring process does.
"""

from __future__ import annotations

import os
import pickle
import sys


def main() -> None:
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a task prints is no answer
    task, blocks = pickle.load(sys.stdin.buffer)  # noqa: S301 -- from the suite that started this process
    with answer:
        pickle.dump([task.score(block) for block in blocks], answer)


if __name__ == "__main__":
    main()
