"""A Les Houches file of muon pairs."""

from __future__ import annotations

HEAD = """<LesHouchesEvents version="1.0">
<header>
# two processes
</header>
<init>
 2212 2212 7.0e3 7.0e3 0 0 247000 247000 -4 2
 1.5e3 2.0e0 1.5e3 1
 4.0e2 1.0e0 4.0e2 2
</init>
"""


def muon_pairs(events: int) -> str:
    """Events of u ubar to muons across the beams, of 50 + k GeV in event k; odd weights are negative."""
    written = [HEAD]
    for event in range(events):
        energy = 50.0 + event
        weight = -1.5 if event % 2 else 2.0
        flow = (
            *(f"2 -1 0 0 501 0 0 0 {energy} {energy} 0 0 9", f"-2 -1 0 0 0 501 0 0 {-energy} {energy} 0 0 9"),
            *(f"13 1 1 2 0 0 {energy} 0 0 {energy} 0 0 9", f"-13 1 1 2 0 0 {-energy} 0 0 {energy} 0 0 9"),
        )
        lines = [f"4 1 {weight} {2 * energy} 0.0078 0.118", *flow]
        written.append("<event>\n" + "\n".join(lines) + "\n</event>\n")
    return "".join(written) + "</LesHouchesEvents>\n"
