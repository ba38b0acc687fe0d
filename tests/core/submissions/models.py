"""Models for tests, and processes that run them up to a failpoint (``python -m``).

The argument has settings and failpoints as JSON. For each failpoint a process is forked and killed there;
exit codes are printed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.waiting import eventually_async

from collidium import accounts, plugins, settings
from collidium.challenges.tasklist import open_platform
from collidium.inference import timing
from collidium.model_runs import model_files, model_queue, model_runners
from collidium.model_runs.models import Evaluation
from collidium.organising import closing
from collidium.platform import Platform
from collidium.runtime.failpoints import VARIABLE
from collidium.submissions import admissions, model_runner, receiving
from collidium.submissions.submit import Predictions
from collidium.testing.processes import end_with_parent
from collidium.testing.server import run_command
from collidium_tasks.networks import graph

ROOT = Path(__file__).parents[3]
#: In place of an evaluation: the process ends the challenge of tracking, sends it a model, or deletes models.
END, SEND, SWEEP = "end", "send", "sweep"
#: Of `timing`, however busy this machine is: which speed was measured is no matter of these tests.
PATIENT = {"_MAX_SCATTER": 1e9, "_MIN_SHARE": 0.0}

MANIFEST = """contract = 1
task = "{task}"
batch = "event"

[inputs]
layer = {{ source = "tracker_hits.volume_id", dtype = "int64" }}

[outputs]
track = "track_id"
"""


def layers(number: int = 0) -> bytes:
    """A model that makes a track of each layer; each number gives another file."""
    return graph(
        "layers (int64[N] layer) => (int64[N] track) { track = Add(layer, zero) }",
        zero=np.array(0),
        **{f"unused{number}": np.array(number)},
    )


def crashing() -> bytes:
    """A model whose division ends its process."""
    return graph(
        "crash (int64[N] layer) => (int64[N] track) { low = Min(layer, least) track = Div(low, minus) }",
        least=np.array(np.iinfo(np.int64).min),
        minus=np.array(-1),
    )


@asynccontextmanager
async def opened(chosen: Mapping[str, Any]) -> AsyncIterator[Platform]:
    """A platform on this machine."""
    configured = settings.load(scoring_workers=1, submissions_per_day=1000, **chosen)
    async with open_platform(configured) as platform:
        yield platform


async def send(
    platform: Platform,
    model: bytes,
    *,
    of: str = "ada",
    to: str = "tracking",
    manifest: str = "",
    recorded: bool = True,
    may_wait: bool = False,
) -> str:
    """Send a model, as if a process had recorded that it runs models; the id of its evaluation."""
    if recorded:
        await model_runners.record("")
    account = await accounts.recognise(of, signup_grant=Decimal(0))
    file = platform.settings.data_dir / "model.onnx"
    file.write_bytes(model)
    sent = Predictions(file, hashlib.sha256(model).hexdigest(), len(model))
    async with admissions.admitted(platform, account, to) as admission:
        text = manifest or MANIFEST.format(task=to)
        row, _ = await receiving.receive(
            platform, admission, sent, text, check_claim=no_claim, may_wait=may_wait
        )
    return str(row.id)


async def no_claim(repo: str) -> None:
    return None


async def scored(platform: Platform, model: bytes, **options: str) -> str:
    """Send a model and run all; the id of its evaluation."""
    evaluation_id = await send(platform, model, **options)
    await run_all(platform)
    return evaluation_id


async def claimed() -> Evaluation:
    """Lease the next evaluation, also if it is not due yet."""
    await Evaluation.filter(turn__gte=0).update(due_at=model_queue.now() - timedelta(minutes=1))
    row = await model_queue.claim({}, 60)
    assert row is not None
    return row


def priced(platform: Platform, price: str) -> Platform:
    """The platform with a price of models."""
    changed = platform.settings.model_copy(update={"model_price": Decimal(price)})
    return replace(platform, settings=changed)


async def run_all(platform: Platform) -> None:
    """Run models until all have ended, without the pauses."""

    async def ended() -> bool:
        await Evaluation.filter(turn__gte=0, lease="").update(due_at=model_queue.now())
        model_queue.RECEIVED.notify()
        return not await Evaluation.exists(turn__gte=0)

    async with model_runner.evaluating(platform):
        await eventually_async(ended)


def kill_each(failpoints: Mapping[str, str], chosen: Mapping[str, object]) -> list[int]:
    """The exit codes of processes, one for each evaluation, that run it up to a failpoint."""
    plan = {"lives": failpoints, "settings": {name: str(value) for name, value in chosen.items()}}
    done = run_command([json.dumps(plan)], os.environ, ROOT, (sys.executable, "-m", __name__))
    sys.stderr.write(done.stderr)
    assert done.returncode == 0, done.stderr
    codes: list[int] = json.loads(done.stdout)
    return codes


async def _live(evaluation_id: str, chosen: Mapping[str, Any]) -> None:
    async with asyncio.timeout(60), opened(chosen) as platform:
        if evaluation_id == END:
            await closing.end(platform, "tracking")
        elif evaluation_id == SEND:
            await send(platform, layers())
        elif evaluation_id == SWEEP:
            await model_files.sweep(platform.storage, model_queue.now())
        if evaluation_id in (END, SEND, SWEEP):
            return
        waiting = Evaluation.filter(turn__gte=0).exclude(id=evaluation_id)
        await waiting.update(due_at=model_queue.now() + timedelta(hours=1))
        await Evaluation.filter(id=evaluation_id).update(due_at=model_queue.now())
        row = await model_queue._claim((await model_queue.find(evaluation_id)).challenge, 60)
        assert row is not None
        assert row.id == evaluation_id
        model_runner.reached("evaluate.claimed")
        await model_runner.evaluate(platform, row)


def _fork(evaluation_id: str, failpoint: str, chosen: Mapping[str, Any]) -> int:
    child = os.fork()
    if not child:
        end_with_parent()
        os.environ[VARIABLE] = failpoint
        try:
            asyncio.run(_live(evaluation_id, chosen))
        except BaseException:  # shown: the forked process ends without pytest
            traceback.print_exc()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _main() -> None:
    plan = json.loads(sys.argv[1])
    plugins.load()
    vars(timing).update(PATIENT)
    lives = partial(_fork, chosen=plan["settings"])
    sys.stdout.write(json.dumps([lives(*life) for life in plan["lives"].items()]) + "\n")


if __name__ == "__main__":
    _main()
