"""The one connection of a runner, and what it is used for; needs the library."""

from __future__ import annotations

from collidium.contracts.runner import RunnerUnavailable
from collidium_runners.batch.runner import Handle
from collidium_runners.sfapi.client import NOT_FOUND, BadAnswer, Client
from collidium_runners.sfapi.machine import Machine
from collidium_runners.sfapi.output import Output
from collidium_runners.sfapi.queue import Queue
from collidium_runners.sfapi.site import Site


class Connection:
    """Opens nothing before it is used; ``site`` is complete."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.client = Client(
            site.client_id, site.key(), site.url, site.token_url, site.calls_per_second, site.call_seconds
        )
        self.machine = Machine(self.client, site.machine, site.submit_seconds)
        self.queue = Queue(self.client, site.machine)

    def output(self, handle: Handle) -> Output:
        """The files of a job."""
        source = self._site.directory / handle.request_id
        return Output(self.client, self.machine, self._site.machine, source, handle.parts)

    async def stop(self, job_id: int) -> None:
        """Have a job end; nothing happens when there is none."""
        try:
            answer = await self.client.delete(f"compute/jobs/{self._site.machine}/{job_id}")
            answer.json()
        except BadAnswer as error:
            if error.status != NOT_FOUND:
                raise
        except ValueError:
            raise RunnerUnavailable("the batch API answered a cancellation with nonsense") from None

    async def close(self) -> None:
        await self.client.close()
