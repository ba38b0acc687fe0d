"""The card of the tracking benchmark."""

from __future__ import annotations

from collidium.contracts.task import Card, Column, EventRange, Metric

CARD = Card(
    name="tracking",
    title="Charged-particle tracking",
    description=(
        "Group the tracker hits of each event into tracks, one for each charged particle. "
        "A track is correct when one particle owns at least half of its hits and has at least half of "
        "its own hits in it. Hits given track_id -1, and hits not submitted, belong to no track."
    ),
    dataset="ttbar_pu200",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracker_hits",),
    columns=(
        Column(name="event_id", kind="integer", description="Event of the hit."),
        Column(name="hit_id", kind="integer", description="The hit within its event; each hit at most once."),
        Column(
            name="track_id",
            kind="integer",
            description="Track of the hit, 0 or more; -1 for a hit without a track.",
        ),
    ),
    left_out="Hits that are not submitted, and hits with track_id -1, belong to no track: their weight is "
    "lost.",
    truth_sources=("tracker_hits", "particles"),
    rows_of="hits",
    metrics=(
        Metric(
            name="trackml_weighted_efficiency",
            title="TrackML efficiency",
            higher_is_better=True,
            description="Weight of the hits that correct tracks share with their particle, over the weight "
            "of all hits that a particle left. Hits weigh as in TrackML unless the truth was imported with "
            "other weights (truth_notes).",
            formula="weight of the dominating particle's hits in correct tracks / weight of all hits but "
            "noise; a particle dominates a track of which it owns 50% of the hits or more, and the track is "
            "correct when that is 50% of the particle's own hits or more. A weight is an order factor times "
            "a pT factor, and the weights of an event add up to 1. Order: 10, 8, 6, 5, 3, 3, 3, 5, 6, "
            "stretched linearly over the particle's hits by |z - vz| and normalised to 1, equal ones share "
            "the middle place; at most 20 hits; 0 for particles with fewer than 4. "
            "pT: 0 below 0.05 GeV, 0.2 up to 0.5 GeV, linear to 1 at 3 GeV. "
            "Noise weighs 0, secondaries weigh as primaries. Departures from TrackML: both majorities need "
            "half or more, TrackML's more than half; of two particles with half of a track each, the one "
            "that makes it correct dominates, the one of the smaller id where both do; hits without a row "
            "count as unassigned; z is measured where the dataset has no true_z; without vz, hits are "
            "ordered by distance from the origin, and without momenta the pT factor is 1",
            source="after S. Amrouche et al., The Tracking Machine Learning challenge: Accuracy phase, "
            "arXiv:1904.06778",
            bounds=(0, 1),
        ),
        Metric(
            name="fake_rate",
            title="Fake rate",
            higher_is_better=False,
            description="Fraction of tracks of which no particle owns at least half the hits, among tracks "
            "of at least 4 hits.",
            formula="tracks of at least 4 hits that no particle dominates / tracks of at least 4 hits",
            bounds=(0, 1),
        ),
        Metric(
            name="duplicate_rate",
            title="Duplicate rate",
            higher_is_better=False,
            description="Fraction of particles that dominate more than one track of at least 4 hits.",
            formula="particles that dominate more than one track of at least 4 hits / particles that have a "
            "hit",
            bounds=(0, 1),
        ),
        Metric(
            name="physics_eff_pt1",
            title="Efficiency above 1 GeV",
            higher_is_better=True,
            description="Fraction of primary particles with transverse momentum above 1 GeV that dominate a "
            "track which holds at least 3 of their hits.",
            formula="primary particles with pt > 1 GeV that dominate a track with at least 3 of their hits "
            "(all, where they have fewer) / primary particles with pt > 1 GeV that have a hit; no other cut; "
            "where the dataset has no flag primary, all particles count as primary",
            bounds=(0, 1),
        ),
        Metric(
            name="double_majority_eff_pt1",
            title="Double-majority efficiency above 1 GeV",
            higher_is_better=True,
            description="Fraction of primary particles with transverse momentum above 1 GeV, |eta| < 3 and "
            "at least 6 hits that have a correct track.",
            formula="primary particles with pt > 1 GeV, |eta| < 3 and at least 6 hits that dominate a track "
            "which has half of their hits or more / all such particles; without momenta along z all have "
            "|eta| < 3",
            reward=0,
            bounds=(0, 1),
        ),
    ),
)
