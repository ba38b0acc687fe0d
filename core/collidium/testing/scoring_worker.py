"""Scores blocks in a separate process: reads a pickle from standard input, and writes one to standard output.

As in a scoring process, only the contract and the modules of the task are imported.
"""

from __future__ import annotations

import os
import pickle
import sys


def main() -> None:
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for output of the task
    task, blocks = pickle.load(sys.stdin.buffer)  # noqa: S301 -- from the suite that started this process
    with answer:
        pickle.dump([task.score(block) for block in blocks], answer)


if __name__ == "__main__":
    main()
