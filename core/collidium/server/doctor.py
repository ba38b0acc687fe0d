"""The checks of ``collidium doctor``: each part of a configuration, and what several machines need."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import SecretStr

from collidium import __version__, database, simulations
from collidium.accounts.identities import Identities
from collidium.challenges import truth_in_use
from collidium.contracts.identity import IdentityUnavailable
from collidium.contracts.storage import probe
from collidium.files import data_directory
from collidium.inference.availability import NOT_INSTALLED
from collidium.inference.sandbox import CONFINED_BY, confinement, is_installed
from collidium.runtime import libraries, release
from collidium.secrets import open_secrets
from collidium.settings import GIBIBYTE, without_password
from collidium.submissions import giving_back
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.plugins import Plugins
    from collidium.settings import Settings

#: Maximum difference between this machine's clock and the database's: leases and deadlines compare both.
CLOCK_SECONDS: Final = 2.0
#: Number of models and submissions that a check names.
MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of a check; ``advice`` is what to do unless it is ok."""

    name: str
    status: Literal["ok", "warning", "failed"]
    found: str
    advice: str = ""


#: What a check found, and advice if it is a warning. A check that raises has failed.
Finding = tuple[str, str]
Part = Callable[["Settings", "Plugins"], Awaitable[Finding]]


async def examine(settings: Settings, loaded: Plugins) -> list[HealthCheck]:
    """Check every part of the configuration. This creates only what a starting server creates, too."""
    found = [await run_check(name, settings, loaded, *part) for name, part in PARTS.items()]
    if found[-1].status == "failed":  # the database
        return found
    async with database.connected(settings.database):
        return found + [await run_check(name, settings, loaded, *part) for name, part in IN_DATABASE.items()]


async def run_check(
    name: str, settings: Settings, loaded: Plugins, part: Part, advice_if_failed: str
) -> HealthCheck:
    """Return the result of one check, whatever it raises."""
    try:
        found, advice = await part(settings, loaded)
    except Exception as error:  # the other checks continue
        found = str(error) or type(error).__name__
        return HealthCheck(name, "failed", _masked(found, settings), advice_if_failed)
    return HealthCheck(name, "warning" if advice else "ok", _masked(found, settings), advice)


def _masked(found: str, settings: Settings) -> str:
    """Mask the passwords of all URLs in the settings."""
    for value in settings.model_dump().values():
        written = value.get_secret_value() if isinstance(value, SecretStr) else value
        if isinstance(written, str) and "://" in written:
            found = without_password(written, found)
    return found


async def _release(settings: Settings, loaded: Plugins) -> Finding:
    return await asyncio.to_thread(release.described), ""


async def _data_directory(settings: Settings, loaded: Plugins) -> Finding:
    await asyncio.to_thread(data_directory.prepare, settings)
    free = shutil.disk_usage(settings.data_dir).free
    full = free < settings.max_submission_bytes
    advice = "make room for at least one upload of PLATFORM_MAX_SUBMISSION_BYTES" if full else ""
    return f"{settings.data_dir}, {free / GIBIBYTE:.1f} GiB free", advice


async def _plugins(settings: Settings, loaded: Plugins) -> Finding:
    failed = loaded.failures
    if failed:
        return f"not loaded: {', '.join(failed)}", "`collidium plugin list` shows why"
    return "all are loaded", ""


async def _libraries(settings: Settings, loaded: Plugins) -> Finding:
    if found := await asyncio.to_thread(libraries.untested):
        return ", ".join(found), "the platform relies on their internals: install tested versions"
    return "of tested versions", ""


async def _secrets(settings: Settings, loaded: Plugins) -> Finding:
    if missing := settings.missing_to_share():
        raise RuntimeError("; ".join(missing))
    if settings.secret_key is None:
        return "this machine's own", "for several machines set PLATFORM_SECRET_KEY and ADMIN_TOKEN"
    await asyncio.to_thread(open_secrets, settings)
    return "are set", ""


async def _database(settings: Settings, loaded: Plugins) -> Finding:
    if not settings.database_url:
        await database.migrate(settings.database)  # as a server does when it starts
    if problems := await database.check(settings.database):
        raise RuntimeError("; ".join(problems))
    async with database.connected(settings.database):
        await database.require_writable()
    if settings.sqlite_file:
        return "SQLite, with the schema of this release", "for several machines use PostgreSQL"
    return "PostgreSQL, with the schema of this release", ""


async def _storage(settings: Settings, loaded: Plugins) -> Finding:
    storage = loaded.storages(settings).get(settings.storage)
    try:
        with tempfile.TemporaryDirectory() as directory:
            await probe(storage, Path(directory))
    finally:
        await storage.close()
    advice = "" if storage.is_shared else "for several machines use PLATFORM_STORAGE=s3"
    return f"{storage.name}: a file was stored, read and deleted", advice


async def _hub(settings: Settings, loaded: Plugins) -> Finding:
    if not settings.hub_url:
        return "the local hub, which the server serves", "for several machines set PLATFORM_HUB_URL"
    provider = loaded.identity_providers(settings).get(settings.identity)
    identities = Identities(provider, settings)
    try:
        await identities.check()
    except IdentityUnavailable as error:
        raise RuntimeError(f"{settings.hub}: {error}") from error
    finally:
        await identities.close()
    return f"{provider.name} responds at {settings.hub}", ""


async def _proxy(settings: Settings, loaded: Plugins) -> Finding:
    if settings.trusted_proxies:
        found = f"X-Forwarded-For of {settings.trusted_proxies} is trusted: let nothing else reach the port"
        advice = "set PLATFORM_PUBLIC_URL: links in e-mails begin with it, and sign-ins lead back to it"
        return found, "" if settings.public_url else advice
    if settings.public_url:
        advice = (
            "set PLATFORM_TRUSTED_PROXIES if a proxy ends TLS: else all callers share one address's limits"
        )
        return "none is trusted", advice
    return "none", ""


async def _sign_on(settings: Settings, loaded: Plugins) -> Finding:
    if not settings.oidc_issuer:
        return "none is configured", ""
    found = loaded.identity_providers(settings).things.values()
    try:
        advice = [await provider.check() for provider in found if provider.prefix]
    finally:
        for provider in found:
            await provider.close()
    return f"{settings.oidc_issuer} responds as an OpenID provider", "; ".join(filter(None, advice))


async def _runner(settings: Settings, loaded: Plugins) -> Finding:
    runner = loaded.runners(settings).get(settings.runner_name)
    try:
        await asyncio.to_thread(runner.check)
        advice = [await asyncio.to_thread(runner.leftovers)]
    finally:
        await runner.close()
    if not runner.is_shared:
        advice.append("for several machines follow requests on one, or use a batch system")
    return f"{runner.name} can run jobs", "; ".join(filter(None, advice))


async def _scoring(settings: Settings, loaded: Plugins) -> Finding:
    executor = loaded.executors(settings).get(settings.executor)
    try:
        calls = executor.map(release_of_worker, [None], settings.scoring_limits)
        releases = [release async for release in calls]
    finally:
        await executor.close()
    if releases != [__version__]:
        raise RuntimeError(f"a worker has release {releases[0]}, this is {__version__}")
    return f"{executor.name}: a worker of this release responds", ""


async def _models(settings: Settings, loaded: Plugins) -> Finding:
    if not is_installed():
        return f"{NOT_INSTALLED}: this machine runs none", ""
    found = await asyncio.to_thread(confinement)
    missing = sorted({*CONFINED_BY, "cgroup", "processes"}.difference(found))
    if not missing:
        return f"are kept from: {', '.join(found)}", ""
    unconfined = f"models are not kept from: {', '.join(missing)}"
    if set(CONFINED_BY) <= set(found):
        advice = "processes: use an account other than root; cgroup: one that this account may write to"
        return unconfined, advice
    if settings.model_unconfined:
        return unconfined, "PLATFORM_MODEL_UNCONFINED is set: only for events that anyone may see"
    advice = "needs Linux 5.13 with Landlock and seccomp, and root or unprivileged user namespaces"
    return f"this machine runs no models: {unconfined}", advice


def release_of_worker(_: None) -> str:
    """Return the release of this process; run in a scoring worker."""
    return __version__


async def _clock(settings: Settings, loaded: Plugins) -> Finding:
    if settings.sqlite_file:
        return "the database has this machine's", ""
    before = time.time()
    (row,) = await database.rows_of("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8 AS moment")
    off = abs(float(row["moment"]) - (before + time.time()) / 2)
    if off > CLOCK_SECONDS:
        raise RuntimeError(f"this machine's and the database's differ by {off:.1f} s")
    return f"this machine's and the database's differ by {off:.2f} s", ""


async def _stored(settings: Settings, loaded: Plugins) -> Finding:
    if lacking := await registry.without_hash():
        return (
            f"{lacking} manifests of truth have no hash, by which reads are compared",
            "each gets its own when a server next reads it",
        )
    return "every stored file has its hash in the database", ""


async def _draws(settings: Settings, loaded: Plugins) -> Finding:
    if public := await truth_in_use.with_public_draws():
        advice = "score their challenges' submissions again (`collidium challenge rescore NAME --apply`)"
        return f"the standard errors of an earlier release have public draws: {', '.join(public)}", advice
    return "come from secret seeds", ""


async def _taken(settings: Settings, loaded: Plugins) -> Finding:
    found = await giving_back.taken(loaded.tasks().things)
    if not found.models and not found.places:
        return "no model and no place was lost to a scoring process that died", ""
    ids = [*(one.evaluation_id for one in found.models), *(one.submission_id for one in found.places)]
    more = f" and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
    return (
        f"{len(found.models):,} models ended as not_scored and {len(found.places):,} submissions with scores "
        f"have no place, some perhaps because a scoring process died: {', '.join(ids[:MOST_NAMED])}{more}",
        "`collidium benchmark give-back` shows them, and with --apply tries them again",
    )


async def _processes(settings: Settings, loaded: Plugins) -> Finding:
    running = await simulations.processes()
    if settings.secret_key is not None:
        own = (await asyncio.to_thread(open_secrets, settings)).fingerprint(settings)
        found = [
            f"another {name} than here: {', '.join(processes)}"
            for name, processes in (await simulations.other_settings(own)).items()
        ]
        if found:
            raise RuntimeError("; ".join(found))
    others = [f"{one.process} runs {one.release}" for one in running if one.release != __version__]
    if others:
        return "; ".join(others), f"restart them with {__version__}, which this command has"
    if not any(one.follows for one in running):
        return "none follows requests", "start `collidium serve` or `collidium worker`"
    return f"{len(running)} of this release, with the same settings", ""


#: Each check, and the advice if it fails. Plugins come after the checks that use them.
PARTS: Final[Mapping[str, tuple[Part, str]]] = {
    "release": (_release, ""),
    "libraries": (_libraries, ""),
    "data directory": (_data_directory, "give the account of the platform a PLATFORM_DATA_DIR of its own"),
    "secrets": (_secrets, "set the same in the environment of every machine"),
    "storage": (_storage, "see PLATFORM_STORAGE and the settings that begin with it"),
    "hub": (_hub, "see PLATFORM_HUB_URL and PLATFORM_IDENTITY"),
    "proxy": (_proxy, ""),
    "single sign-on": (_sign_on, "see PLATFORM_OIDC_ISSUER and the settings that begin with PLATFORM_OIDC"),
    "runner": (_runner, "see PLATFORM_RUN_MODE, PLATFORM_RUNNER and the runner's settings"),
    "scoring": (_scoring, "see PLATFORM_EXECUTOR and PLATFORM_SCORING_MEMORY_BYTES"),
    "models": (_models, "see the log, and docs/models.md"),
    "plugins": (_plugins, ""),
    "database": (_database, "see PLATFORM_DATABASE_URL; `collidium db migrate` migrates its schema"),
}
IN_DATABASE: Final[Mapping[str, tuple[Part, str]]] = {
    "clock": (_clock, "synchronise the clocks of all machines (chrony, systemd-timesyncd)"),
    "stored files": (_stored, ""),
    "draws for standard errors": (_draws, ""),
    "lost scores": (_taken, ""),
    "processes": (_processes, "give all machines the same, and restart those that had another"),
}
