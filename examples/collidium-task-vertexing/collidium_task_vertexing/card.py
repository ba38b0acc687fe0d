"""The card of the task."""

from collidium.contracts.task import Card, Column, EventRange, Metric

#: Largest distance, in mm, at which the vertex counts as found. Pileup vertices lie further apart, mostly.
WINDOW = 0.1

CARD = Card(
    name="vertexing",
    title="Primary vertex",
    description=(
        "Find where along the beam the hard scatter happened, among the vertices of pileup. "
        f"A vertex is found when it is given to {WINDOW} mm; events left out are not found."
    ),
    dataset="ttbar_pu200",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracks",),
    columns=(
        Column(name="event_id", kind="integer", description="Each event once."),
        Column(name="z", kind="float", description="Position of the hard scatter along the beam, in mm."),
    ),
    truth_sources=("particles",),
    rows_of="vertices",
    metrics=(
        Metric(
            name="efficiency",
            higher_is_better=True,
            description=f"Fraction of events whose vertex is given to {WINDOW} mm.",
            bounds=(0, 1),
        ),
        Metric(
            name="resolution",
            higher_is_better=False,
            description="Root of the mean squared distance of the vertices found, in \N{MICRO SIGN}m.",
            bounds=(0, 1000 * WINDOW),
        ),
    ),
)
