"""The tracker in ACTS: tracking geometry, material and magnetic field.

The field is 3 T everywhere, as in the reference for all but the outer half of the last disc: a map of it
would cost propagation for nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import acts
import acts.examples.arrow
import acts.examples.json
import acts.json
import numpy as np
import numpy.typing as npt

from collidium.physics import module_id
from collidium_plugins.acts_pipeline.detector import layout, material

#: At level ERROR, ACTS reports single particles that it cannot propagate, which is no error here.
LOG_LEVEL: Final = acts.logging.FATAL

GEV: Final[float] = acts.UnitConstants.GeV
NANOSECOND: Final[float] = acts.UnitConstants.ns
TESLA: Final[float] = acts.UnitConstants.T

ARROW: Final[Any] = acts.examples.arrow
JSON: Final[Any] = acts.examples.json

_BEAM_PIPE: Final = "BeamPipe"
_SUPPORT_TUBE: Final = "SupportTube"
_SOLENOID: Final = "Solenoid"
#: Envelope of layers and of the world, mm.
_CLEARANCE: Final = 1.0
_MARGIN: Final = 10.0
_FACE: Final = acts.CylinderVolumeBounds.Face
_DISCS: Final = {"-": _FACE.NegativeDisc, "+": _FACE.PositiveDisc}
_AXES: Final = acts.AxisDirection


@dataclass(frozen=True, slots=True, eq=False)
class Detector:
    """The tracker: ACTS objects, and arrays with one entry per module in the order of ``modules``."""

    tracking_geometry: Any
    field: Any
    #: Geometry ids of modules, sorted.
    modules: npt.NDArray[np.uint64]
    centres: npt.NDArray[np.float64]
    normals: npt.NDArray[np.float64]
    #: Directions of the first local axis.
    axes: npt.NDArray[np.float64]
    #: Copies of the modules' planes, by geometry id; see :func:`_plane_copies`.
    planes: Mapping[Any, Any]
    #: ``acts.GeometryIdentifier`` by its value.
    ids: Mapping[int, Any]
    #: Field along z.
    field_tesla: float
    #: Material, as :func:`material.slabs` returns it.
    slabs: Mapping[str, material.Slab | material.Bins]


def build(
    *, field: float = layout.FIELD_TESLA, slabs: Mapping[str, material.Slab | material.Bins] | None = None
) -> Detector:
    """Build the tracker, which takes one or two seconds.

    Parameters
    ----------
    field : float
        Tesla, along z.
    slabs : mapping of str to slab, optional
        The material; default: :func:`material.slabs`.
    """
    slabs = material.slabs() if slabs is None else slabs
    blueprint = _blueprint()
    context = acts.GeometryContext.dangerouslyDefaultConstruct()
    geometry = blueprint.construct(acts.BlueprintOptions(), context, level=LOG_LEVEL)
    surfaces: list[Any] = []
    geometry.visitSurfaces(surfaces.append)
    surfaces.sort(key=lambda surface: surface.geometryId.value)
    _give_material(geometry, surfaces, slabs)
    origin, any_direction = acts.Vector3(0, 0, 0), acts.Vector3(0, 0, 1)
    return Detector(
        tracking_geometry=geometry,
        field=acts.ConstantBField(acts.Vector3(0, 0, field * TESLA)),
        modules=np.array([surface.geometryId.value for surface in surfaces], np.uint64),
        centres=np.array([_numbers(surface.center(context)) for surface in surfaces]),
        normals=np.array([_numbers(surface.normal(context, origin, any_direction)) for surface in surfaces]),
        axes=np.array([_first_axis(surface, context) for surface in surfaces]),
        planes=_plane_copies(surfaces, context),
        ids={surface.geometryId.value: surface.geometryId for surface in surfaces},
        field_tesla=field,
        slabs=slabs,
    )


def identifier(
    volume: npt.NDArray[Any], layer: npt.NDArray[Any], surface: npt.NDArray[Any]
) -> npt.NDArray[np.uint64]:
    """Return ACTS's geometry ids of modules from the ids in the hosted tables."""
    ids: npt.NDArray[np.uint64] = module_id({"volume_id": volume, "layer_id": layer, "surface_id": surface})
    return ids


def parts(identifiers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], ...]:
    """Return volume, layer and surface ids of modules from their geometry ids."""
    return tuple((identifiers >> shift) & np.uint64(2**bits - 1) for shift, bits in _FIELDS)


def _shift(**part: int) -> np.uint64:
    """Position of the lowest bit of a part of a geometry id."""
    return np.uint64(acts.GeometryIdentifier(**part).value.bit_length() - 1)


#: Position and number of bits of volume, layer and surface in a geometry id.
_FIELDS: Final = ((_shift(volume=1), 8), (_shift(layer=1), 12), (_shift(sensitive=1), 20))


def _blueprint() -> Any:
    root = acts.Blueprint(envelope=acts.ExtentEnvelope(r=[0.0, _MARGIN], z=[_MARGIN, _MARGIN]))
    tracker = root.addCylinderContainer("Tracker", direction=_AXES.AxisR)
    tracker.attachmentStrategy = acts.VolumeAttachmentStrategy.Gap  # do not move the tubes
    pixels, *strips = layout.systems()
    _add_tube(tracker, _BEAM_PIPE, 0.0, layout.BEAM_PIPE_RADIUS)
    _add_system(tracker, pixels)
    radius = layout.SUPPORT_TUBE_RADIUS
    _add_tube(tracker, _SUPPORT_TUBE, radius - _CLEARANCE, radius)
    for system in strips:
        _add_system(tracker, system)
    radius = layout.SOLENOID_RADIUS
    _add_tube(tracker, _SOLENOID, radius - _CLEARANCE, radius)
    # The space ends behind the solenoid, so particles that stop in it have not left.
    end = acts.CylinderVolumeBounds(radius, layout.RADIUS, layout.HALF_LENGTH)
    tracker.addStaticVolume(acts.Transform3.Identity(), end, "End")
    return root


def _add_tube(parent: Any, name: str, inner: float, outer: float) -> None:
    """Add an empty volume with material on its outer cylinder."""
    material_node = _with_material(parent, {name: _FACE.OuterCylinder})
    bounds = acts.CylinderVolumeBounds(inner, outer, layout.HALF_LENGTH)
    material_node.addStaticVolume(acts.Transform3.Identity(), bounds, name)


def _with_material(parent: Any, faces: Mapping[str, Any]) -> Any:
    """Add a node whose child has material on ``faces``, given by material key."""
    node, everywhere = parent.addMaterial(next(iter(faces))), acts.AxisSpec.DeferredEquidistant(1)
    for key, face in faces.items():
        node.configureFace(face, everywhere, everywhere, materialKey=key)
    return node


def _add_system(parent: Any, system: layout.System) -> None:
    outside = _with_material(parent, {f"{system.name}Outside": _FACE.OuterCylinder})
    along = outside.addCylinderContainer(system.name, direction=_AXES.AxisZ)
    if system.name == "Pixel":
        _add_end_plates(along)
    for volume in system.volumes:
        faces = {f"{volume.name}End{side}": face for side, face in _DISCS.items()}
        ids = (_with_material(along, faces) if volume.barrel else along).withGeometryIdentifier()
        ids.setAllVolumeIdsTo(volume.volume_id)
        direction = _AXES.AxisR if volume.barrel else _AXES.AxisZ
        container = ids.addCylinderContainer(volume.name, direction=direction)
        for layer in volume.layers:
            _add_layer(container, volume, layer)


def _add_end_plates(pixels: Any) -> None:
    """Add empty discs with material on the side towards the origin."""
    inner, outer = layout.END_PLATE_RADII
    for side, face in zip(_DISCS, reversed(_DISCS.values()), strict=True):
        centre = acts.Vector3(0, 0, float(f"{side}{layout.END_PLATE_Z + _CLEARANCE}"))
        bounds = acts.CylinderVolumeBounds(inner, outer, _CLEARANCE)
        plate = _with_material(pixels, {f"PixelEnd{side}": face})
        plate.addStaticVolume(acts.Transform3(centre), bounds, f"PixelEnd{side}")


def _add_layer(container: Any, volume: layout.Volume, layer: layout.Layer) -> None:
    ids = container.withGeometryIdentifier()
    ids.setLayerIdTo(layer.layer_id)
    node = ids.addLayer(f"{volume.name}{layer.layer_id}")
    kinds, lookup = acts.LayerBlueprintNode.LayerType, acts.SurfaceArrayNavigationPolicy
    node.surfaces = [_surface(module) for module in layer.modules]
    node.layerType = kinds.Cylinder if layer.barrel else kinds.Disc
    node.envelope = acts.ExtentEnvelope(r=[_CLEARANCE] * 2, z=[_CLEARANCE] * 2)
    node.navigationPolicyFactory = (
        acts.NavigationPolicyFactory.make()
        .add(acts.TryAllNavigationPolicy, acts.TryAllNavigationPolicy.Config(portals=True, sensitives=False))
        .add(
            lookup,
            lookup.Config(
                layerType=lookup.LayerType.Cylinder if layer.barrel else lookup.LayerType.Disc,
                bins=layer.bins,
            ),
        )
    )


def _surface(module: layout.Module) -> Any:
    axes = (module.x, module.y, module.normal)
    rotation = acts.RotationMatrix3(*(acts.Vector3(*axis) for axis in axes))
    transform = acts.Transform3(acts.Vector3(*module.centre), rotation)
    surface = acts.Surface.createPlane(transform, _bounds(*module.half_lengths))
    surface.assignIsSensitive(True)
    return surface


def _bounds(x: float, second: float, third: float | None = None) -> Any:
    """Bounds of a rectangle from two half lengths, or of a trapezoid from three."""
    if third is None:
        return acts.RectangleBounds(x, second)
    return acts.TrapezoidBounds(x, second, third, 0.0)


def _plane_copies(surfaces: list[Any], context: Any) -> dict[Any, Any]:
    """Copy the planes of modules for digitisation.

    ACTS digitises hits within a module's thickness of its plane. The modules here have thickness zero, so
    rounding would lose hits; for planes that are not sensitive ACTS has a tolerance.
    """
    return {
        surface.geometryId: acts.Surface.createPlane(
            surface.localToGlobalTransform(context), type(surface.bounds)(surface.bounds.values())
        )
        for surface in surfaces
    }


def _give_material(geometry: Any, surfaces: list[Any], slabs: Mapping[str, Any]) -> None:
    converter = acts.json.TrackingGeometryMaterialJsonConverter()
    keyed = from_file(material.document(slabs), converter.fromFile).keyedSurfaces
    everything = acts.TrackingGeometryMaterial()
    everything.surfaceMaterials = {
        surface.geometryId: keyed[str(surface.geometryId.volume)].material for surface in surfaces
    }
    everything.keyedSurfaces = {name: one for name, one in keyed.items() if not name.isdigit()}
    everything.apply(geometry)


def from_file(document: Mapping[str, Any], read: Callable[[str], Any]) -> Any:
    """Return what ``read`` reads from a JSON file of the document: ACTS reads it only from files."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "document.json"
        path.write_text(json.dumps(document))
        return read(str(path))


def _first_axis(surface: Any, context: Any) -> tuple[float, float, float]:
    centre = surface.center(context)
    next_to = surface.localToGlobal(context, acts.Vector2(1.0, 0.0), centre)
    return next_to[0] - centre[0], next_to[1] - centre[1], next_to[2] - centre[2]


def _numbers(vector: Any) -> tuple[float, float, float]:
    return vector[0], vector[1], vector[2]
