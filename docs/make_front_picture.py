"""Draws the front page's event, with which the display opens: ``python docs/make_front_picture.py``.

Some hits are dots, the faster of the reconstructed tracks helices, jets cones, barrels of the tracker
outlines, all seen from the side and a little from the front. The same event and code give the same picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from collidium.datasets.sample import CONFIGS
from collidium.physics import Helix

PICTURE = Path(__file__).parents[1] / "plugins/collidium_plugins/webapps/static/img/event.svg"

CONFIG = "ttbar_pu40"
#: One of so many hits is drawn, and tracks from this transverse momentum on, GeV: a small file.
HITS, MIN_PT = 40, 1.0
#: Half angle of cones in eta and phi, and the calorimeter's radius and half length, mm.
CONE, FACE = 0.4, (1250.0, 3150.0)
#: Points of the picture, of which one is `SCALE` mm.
WIDTH, HEIGHT, SCALE = 960, 540, 6.4
#: Degrees by which the beam is turned away from the plane of the picture, and by which we look down on it.
TURN, TILT = 28.0, 14.0
#: Radius and half length of the barrels' outlines in mm.
BARRELS = ((172.0, 500.0), (660.0, 1080.0), (1020.0, 1080.0))
#: Where the tracker ends, in mm; and points of a track in between.
RADIUS, HALF_LENGTH, POINTS = 1030.0, 3000.0, 9
#: Transverse momentum in GeV from which on a track has each colour.
COLOURS = ((0.0, "#3f6fb5"), (1.0, "#53b8d8"), (3.0, "#ffd27a"), (10.0, "#ff8d4d"))

Floats = npt.NDArray[np.float64]


def picture() -> str:
    """The picture as SVG."""
    hits = row_of("tracker_hits")
    points = seen(np.stack([hits["x"], hits["y"], hits["z"]], axis=1)[::HITS])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" fill="none">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#0a0e14"/>',
        f'<path stroke="#233041" d="{"".join(map(barrel, BARRELS))}"/>',
        f'<path stroke="#8fa3b8" stroke-width="1.9" stroke-linecap="round" d="{dots(points)}"/>',
        f'<path fill="#ffd166" fill-opacity=".13" stroke="#ffd166" stroke-opacity=".5" d="{jets()}"/>',
        *tracks(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def row_of(table: str) -> dict[str, Floats]:
    """The columns of the event in a table, an array each; those of lists are left out."""
    row = pq.read_table(CONFIGS[CONFIG] / f"{table}.parquet")
    return {
        name: row[name][0].values.to_numpy(zero_copy_only=False).astype(np.float64)
        for name in row.column_names
        if name not in {"event_id", "hit_ids"}
    }


def seen(positions: Floats) -> Floats:
    """Where points of space (mm; one a row) are in the picture."""
    x, y, z = positions.T
    turn, tilt = np.radians(TURN), np.radians(TILT)
    across = z * np.cos(turn) + x * np.sin(turn)
    towards = x * np.cos(turn) - z * np.sin(turn)
    up = y * np.cos(tilt) - towards * np.sin(tilt)
    return np.stack([WIDTH / 2 + across / SCALE, HEIGHT / 2 - up / SCALE], axis=1)


def barrel(size: tuple[float, float]) -> str:
    """Both ends of a cylinder around the beam, and four lines between them."""
    radius, half = size
    angles = np.linspace(0, 2 * np.pi, 49)
    ring = np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full_like(angles, half)], axis=1)
    front, back = seen(ring), seen(ring * (1, 1, -1))
    sides = [np.stack([front[i], back[i]]) for i in range(0, 48, 12)]
    return "".join(map(line, (front, back, *sides)))


def tracks() -> Iterator[str]:
    """The tracks' helices to the end of the tracker, a path for each colour, the hardest on top."""
    rows = row_of("tracks")
    momenta = np.abs(np.sin(rows["theta"]) / rows["qop"])
    fast = momenta >= MIN_PT
    momenta, rows = momenta[fast], {name: column[fast] for name, column in rows.items()}
    kinds = np.searchsorted([least for least, _ in COLOURS], momenta, side="right") - 1
    lines = dict.fromkeys(range(len(COLOURS)), "")
    for number, kind in enumerate(kinds):
        lines[int(kind)] += curve(seen(helix({name: float(column[number]) for name, column in rows.items()})))
    for kind, (_, colour) in enumerate(COLOURS):
        width = 1.2 + 0.4 * kind
        yield f'<path stroke="{colour}" stroke-width="{width:.1f}" stroke-linecap="round" d="{lines[kind]}"/>'


def jets() -> str:
    """The outline of a cone for each jet, from the origin to the face of the calorimeter, and its rim."""
    rows, angles = row_of("jets"), np.linspace(0, 2 * np.pi, 25)
    cones = ""
    for eta, phi in zip(rows["eta"], rows["phi"], strict=True):
        length = min(FACE[0] * np.cosh(eta), FACE[1] / max(abs(np.tanh(eta)), 1e-9))
        etas, phis = eta + CONE * np.cos(angles), phi + CONE * np.sin(angles)
        along = np.stack([np.cos(phis), np.sin(phis), np.sinh(etas)], axis=1) / np.cosh(etas)[:, None]
        rim, origin = seen(length * along)[:-1], seen(np.zeros((1, 3)))[0]
        sides = (rim - origin) @ np.stack([mean := (rim - origin).mean(axis=0), (-mean[1], mean[0])], axis=1)
        slopes = sides[:, 1] / sides[:, 0]
        ends = np.stack([rim[slopes.argmin()], origin, rim[slopes.argmax()]])
        cones += f"{line(rim)}Z{line(ends)}"
    return cones


def helix(track: dict[str, float]) -> Floats:
    """Points of a track, x, y and z in mm, as far as it is inside the tracker."""
    line = Helix.from_tracks(track)
    # As far as one half turn, where a slow one comes back.
    ends = ((HALF_LENGTH - abs(track["z0"])) / line.cot_theta, np.pi / line.curvature)
    points = line.points(np.linspace(0, min(RADIUS * 1.2, *map(abs, ends)), POINTS))[0]
    inside: Floats = points[np.hypot(points[:, 0], points[:, 1]) <= RADIUS]
    return inside


def curve(points: Floats) -> str:
    """A smooth line through the points: each Bézier's handles lie along the chord of its neighbours."""
    ends = np.concatenate([points[:1], points, points[-1:]])
    slopes = (ends[2:] - ends[:-2]) / 6
    parts = [f"M{pair(points[0])}"]
    for start, stop, out, into in zip(points, points[1:], slopes, slopes[1:], strict=False):
        parts.append(f"C{pair(start + out)} {pair(stop - into)} {pair(stop)}")
    return "".join(parts)


def line(points: Floats) -> str:
    return "M" + "L".join(map(pair, points))


def dots(points: Floats) -> str:
    return "".join(f"M{pair(point)}h0" for point in points)


def pair(point: Floats) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
