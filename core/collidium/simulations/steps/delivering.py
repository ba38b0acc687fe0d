"""From a job's output to a dataset repository of whoever ordered it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.datasets.cards import DatasetFile
from collidium.hub.client import Hub
from collidium.order import Order
from collidium.runtime.failpoints import reached
from collidium.simulations import output, publication, transitions
from collidium.simulations.dataset_card import Provenance
from collidium.simulations.endings import Ending
from collidium.simulations.models import SimulationRequest
from collidium.simulations.orders import max_output_bytes
from collidium.simulations.states import State
from collidium.simulations.steps.ending import end, scratch_of

if TYPE_CHECKING:
    from collidium.platform import Platform


async def collect(platform: Platform, row: SimulationRequest) -> None:
    """Bring the output into the storage backend. A mock has none, and its request is done."""
    reached("collect.before")
    if row.is_mock:
        url = publication.url_of(platform.settings.hub, _repository(row))
        await end(platform, row, Ending(State.COMPLETED, output_hub_repo=url))
        return
    settings, order = platform.settings, _order(row)
    if row.lost_collections >= transitions.MAX_LOST_COLLECTIONS:
        raise output.InvalidOutput(f"reading the output ended {row.lost_collections} processes: {row.reason}")
    files = await output.keep(
        platform.runners.get(row.runner),
        row.handle or "",
        order,
        row.request_id,
        platform.storage,
        scratch_of(platform, row),
        output.Checks(platform.executor, settings.scoring_limits, max_output_bytes(order, settings)),
    )
    reached("collect.stored")
    await transitions.collected(row, files, settings)


async def publish(platform: Platform, row: SimulationRequest) -> None:
    """Make the dataset repository under the requester's account, with their token."""
    settings = platform.settings
    provenance = Provenance(
        request_id=row.request_id,
        order=_order(row),
        pipeline_version=row.pipeline_version,
        platform_tag=settings.platform_tag,
        files=[DatasetFile(**file) for file in row.output],
    )
    hub = Hub(settings.hub, platform.secrets.decrypt(row.encrypted_token or ""))
    target = publication.Target(hub, _repository(row), row.private)
    reached("publish.before")
    url = await publication.publish(provenance, target, platform.storage, scratch_of(platform, row))
    reached("publish.published")
    await end(platform, row, Ending(State.COMPLETED, output_hub_repo=url))


def _order(row: SimulationRequest) -> Order:
    return Order(row.channel, row.events, row.pileup, row.seed)


def _repository(row: SimulationRequest) -> str:
    return f"{row.hub_username}/collidium-{row.request_id}"
