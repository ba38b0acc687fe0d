"""What saturates first when a cluster scores, by a discrete model: no cluster of this size was measured.

    python perf/scale_model.py              1e11 hits in submissions of 1.5e9; 1 to 1,000 machines
    python perf/scale_model.py --hits 1e8   in submissions of that size
    python perf/scale_model.py --spread     each submission on all machines

Submissions come all at once. The predictions of each go from a server to the store, from there to as many
machines as the executor chooses, in whole; truth goes to each machine once. Their calls pass the scheduler,
run on cores, and end with a conclusion on a server and a transaction. Each resource serves one after
the other: the store and each machine's link by bytes, the scheduler by calls, cores by hits. Rates are those
of `perf/README.md` on one core, and of the reference measurements of Dask; the network's are assumed.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Generator
from itertools import count
from typing import Final

TOTAL: Final = 1e11
#: Measured: hits a second of a core, bytes a hit, rows of a call, seconds of a call beyond its hits.
RATE, PREDICTIONS, TRUTH, ROWS, OVERHEAD = 36e6, 1.93, 10.7, 3e6, 0.006
#: Seconds of the scheduler for a call (of 2.3 ms a call streamed, in all processes), of a conclusion on a
#: server, and of the transaction that keeps a submission.
SCHEDULING, CONCLUDING, KEEPING = 0.001, 1.0, 0.005
#: Assumed, bytes a second: the store's as a whole, and each machine's link.
STORE, LINK = 10e9, 1.25e9
SERVERS: Final = 2
#: Of the machines that the executor chooses for a submission.
CHOSEN_CORES: Final = 16


class Resource:
    """Serves one after the other, in the order of asking, on as many places as there are."""

    def __init__(self, places: int = 1) -> None:
        self._free = [0.0] * places
        self.busy = 0.0
        self.places = places

    def serve(self, ready: float, seconds: float) -> float:
        """When something is done that is ready at a time and takes so long."""
        self.busy += seconds
        done = max(ready, heapq.heappop(self._free)) + seconds
        heapq.heappush(self._free, done)
        return done


#: What a process asks for next, and for how many seconds.
Process = Generator[tuple[Resource, float], None, None]


class Simulation:
    """Runs processes in the order of time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, Process]] = []
        self._numbers = count()
        self.now = 0.0

    def start(self, process: Process) -> None:
        heapq.heappush(self._waiting, (self.now, next(self._numbers), process))

    def run(self) -> float:
        """When the last process has ended."""
        while self._waiting:
            self.now, number, process = heapq.heappop(self._waiting)
            for resource, seconds in process:
                heapq.heappush(self._waiting, (resource.serve(self.now, seconds), number, process))
                break
        return self.now


class Cluster:
    """Machines, and what they share."""

    def __init__(self, machines: int, hits: float, cores: int, share: int) -> None:
        self.simulation = Simulation()
        self.store, self.scheduler, self.database = Resource(), Resource(), Resource()
        self.servers = [Resource() for _ in range(SERVERS)]
        self.links = [Resource() for _ in range(machines)]
        self.cores = [Resource(cores) for _ in range(machines)]
        self.hits = hits
        self.share = min(machines, share)
        #: Machines that have not fetched the predictions of a submission, and calls that have not ended.
        self.left: dict[int, int] = {}

    def truth(self, machine: int) -> Process:
        yield self.store, self.hits * TRUTH / STORE
        yield self.links[machine], self.hits * TRUTH / LINK

    def submission(self, number: int) -> Process:
        size = self.hits * PREDICTIONS
        yield self.servers[number % SERVERS], size / LINK
        yield self.store, size / STORE
        machines = [(number * self.share + offset) % len(self.links) for offset in range(self.share)]
        calls = max(self.share, round(self.hits / ROWS))
        self.left[number] = calls
        for place, machine in enumerate(machines):
            own = calls // self.share + (place < calls % self.share)
            self.simulation.start(self.fetching(number, machine, own, calls))

    def fetching(self, number: int, machine: int, own: int, calls: int) -> Process:
        yield self.store, self.hits * PREDICTIONS / STORE
        yield self.links[machine], self.hits * PREDICTIONS / LINK
        for _ in range(own):
            self.simulation.start(self.call(number, machine, self.hits / calls))

    def call(self, number: int, machine: int, rows: float) -> Process:
        yield self.scheduler, SCHEDULING
        yield self.cores[machine], OVERHEAD + rows / RATE
        self.left[number] -= 1
        if not self.left[number]:
            yield self.servers[number % SERVERS], CONCLUDING
            yield self.database, KEEPING

    def run(self) -> float:
        """Seconds until all submissions are scored and kept."""
        for machine in range(len(self.links)):
            self.simulation.start(self.truth(machine))
        for number in range(max(1, round(TOTAL / self.hits))):
            self.simulation.start(self.submission(number))
        return self.simulation.run()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hits", type=float, default=1.5e9, help="of a submission")
    parser.add_argument("--cores", type=int, default=32, help="of a machine")
    parser.add_argument("--spread", action="store_true", help="each submission on all machines")
    parser.add_argument("--quick", action="store_true", help="few machines")
    options = parser.parse_args()
    print(f"{TOTAL:.0e} hits in submissions of {options.hits:.1e}; machines of {options.cores} cores\n")
    print("| machines | seconds | store | links | cores | scheduler | servers | database |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for machines in (1, 10) if options.quick else (1, 3, 10, 30, 100, 300, 1000):
        share = machines if options.spread else -(-CHOSEN_CORES // options.cores)
        cluster = Cluster(machines, options.hits, options.cores, share)
        taken = cluster.run()
        kinds = (
            [cluster.store],
            cluster.links,
            cluster.cores,
            [cluster.scheduler],
            cluster.servers,
            [cluster.database],
        )
        used = (sum(one.busy for one in kind) / sum(one.places for one in kind) / taken for kind in kinds)
        print(f"| {machines:,} | {taken:,.0f} | " + " | ".join(f"{part:.0%}" for part in used) + " |")


if __name__ == "__main__":
    main()
