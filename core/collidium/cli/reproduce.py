"""``collidium bundle`` and ``collidium model reproduce``."""

from __future__ import annotations

import tempfile
import zlib
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile, ZipFile

import click

from collidium import __version__
from collidium.cli.context import client
from collidium.cli.model_sources import (
    TIMED,
    measure_speed,
    open_dataset,
    read_model,
    source_options,
    source_or_training_data,
)
from collidium.cli.options import EXISTING_FILE, FILE, events_option, json_option, locate_source
from collidium.cli.output import (
    note,
    print_record,
    print_table,
    show_message,
    show_value,
)
from collidium.cli.printing import show_evaluation
from collidium.cli.progress import progress_bar
from collidium.errors import InvalidInput
from collidium.presentation.quantities import written

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.inference.timing import Timing
    from collidium.records import EvaluatedModel, LocalScores, Submission

_MAX_JSON_BYTES: Final = 16 * 1024**2
#: What zipfile raises for damaged or unsupported files.
_DAMAGED: Final = (
    *(BadZipFile, EOFError, KeyError, LZMAError, NotImplementedError, OSError, RuntimeError, zlib.error),
)


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--model", type=EXISTING_FILE, required=True, help="The ONNX file that was submitted.")
@click.option("--manifest", type=EXISTING_FILE, required=True, help="Its manifest.")
@click.option("--output", type=FILE, default="bundle.zip", show_default=True, help="The file to write.")
@json_option
def bundle(submission_id: str, model: Path, manifest: Path, output: Path) -> None:
    """Write a zip file that reproduces the model of SUBMISSION.

    It contains the submitted model and manifest, the submission with all versions and hashes, and the
    commands that run the model again.

    \b
    collidium bundle 0123456789abcdef0123456789abcdef --model model.onnx --manifest manifest.toml
    """
    from zipfile import ZIP_DEFLATED, ZipFile

    from collidium.records import encode

    with client() as server:
        sent = server.submission(submission_id)
    submitted = require_same_files(sent, model, manifest)
    with ZipFile(output, "x", ZIP_DEFLATED) as written:
        written.write(model, "model.onnx")
        written.write(manifest, "manifest.toml")
        written.writestr("submission.json", encode(sent))
        requirement = submitted.runtime.replace(" ", "==")
        readme = _README.format(sent=sent, release=__version__, requirement=requirement)
        written.writestr("README.md", readme)
    record = {"bundle": str(output), "submission": submission_id, "model": sent.model}
    show_message(record, f"{output} contains the model, its manifest, submission.json and README.md.")


_README: Final = """\
# A model of {sent.task}

Submission {sent.submission_id} of {sent.hub_username} to {sent.challenge}, by
scorer {sent.scorer_version} and truth {sent.truth_version}, run with {requirement} by
collidium {release}. Scores, hashes and versions are in `submission.json`.

```sh
pip install 'collidium[onnx]=={release}' '{requirement}'
collidium model check model.onnx
collidium model run model.onnx --from DIRECTORY --events FIRST:STOP
collidium score {sent.task} predictions.parquet --from DIRECTORY --events FIRST:STOP
```

DIRECTORY is a dataset with truth, such as the training events that `collidium tasks {sent.task}` shows.
One command runs the bundle and compares the results with those of the server:

```sh
collidium model reproduce BUNDLE.zip --from DIRECTORY --events FIRST:STOP
```
"""


@click.command()
@click.argument("source_of_model", metavar="BUNDLE|SUBMISSION")
@click.option("--model", type=EXISTING_FILE, help="The ONNX file of SUBMISSION; default: model.onnx here.")
@click.option("--manifest", type=EXISTING_FILE, help="Its manifest; default: manifest.toml next to it.")
@source_options
@events_option("Events to run; default: all of the dataset.")
@click.option("--time", "speed", is_flag=True, help=f"Also measure the speed, on at most {TIMED} events.")
@click.option(
    "--server", "by_server", is_flag=True, help="Run SUBMISSION on the server, on its public events."
)
@json_option
def reproduce(
    source_of_model: str,
    model: Path | None,
    manifest: Path | None,
    events: EventRange | None,
    speed: bool,
    by_server: bool,
    **where: Any,
) -> None:
    """Run the model of BUNDLE or SUBMISSION again, on events with truth, and compare the results.

    BUNDLE is a file of `collidium bundle`. SUBMISSION is an id: its scores are read from the server, the
    model and manifest from your files. Results agree within three standard errors; the exit code is 1 if one
    does not. Choose events that the model was not trained on.

    With --server, the server runs the model on its public events, at the price of a submitted model;
    `collidium submissions SUBMISSION` shows the results.

    \b
    collidium model reproduce bundle.zip
    collidium model reproduce bundle.zip --from ./ttbar --events 0:1000 --time
    collidium model reproduce 0123456789abcdef0123456789abcdef --model model.onnx --from ./ttbar
    collidium model reproduce 0123456789abcdef0123456789abcdef --server
    """
    if by_server:
        with client() as server:
            show_evaluation(server, server.reproduce(source_of_model), wait=False)
        return
    from collidium.client import score
    from collidium.inference.running import check, write_predictions

    with tempfile.TemporaryDirectory() as directory:
        if Path(source_of_model).is_file():
            sent = _unpack(Path(source_of_model), Path(directory))
            model, manifest = Path(directory, "model.onnx"), None
        else:
            with client() as server:
                sent = server.submission(source_of_model)
        model = model or Path("model.onnx")
        submitted = require_same_files(sent, model, manifest or model.with_name("manifest.toml"))
        loaded, task = read_model(model, manifest)
        where = source_or_training_data(sent.challenge, task, where)
        parameters = check(loaded, task).n_params
        dataset, wanted = open_dataset(loaded, task, events, **where)
        path = Path(directory, "predictions.parquet")
        with progress_bar("Running (events)") as progress:
            write_predictions(loaded, task, dataset, wanted, path, progress=progress)
        source = locate_source(where["source"], where["hub"], where["revision"])
        scored = score(
            task, path, truth_from=source, config=where["config"], events=wanted, cache=where["cache"]
        )
        some = type(wanted)(wanted.start, min(wanted.stop, wanted.start + TIMED))
        timing = measure_speed(loaded, task, dataset, some, 3) if speed else None
    metrics = [metric.name for metric in task.card.metrics if not metric.self_reported]
    rows = _compare(sent, submitted, scored, metrics, (parameters, timing))
    agree = all(row["agrees"] for row in rows)
    record = {"submission": sent.submission_id, "events": str(wanted), "agree": agree, "results": rows}
    show_value(record, lambda _: _print_comparison(sent, scored, rows, agree=agree))
    if not agree:
        raise SystemExit(1)


def require_same_files(sent: Submission, model: Path, manifest: Path) -> EvaluatedModel:
    """Return the model of a submission; raises InvalidInput unless the files have its hashes."""
    from collidium.files.durable import sha256_of

    if sent.model is None:
        raise InvalidInput(f"submission {sent.submission_id} is of predictions, not of a model")
    problems = [
        {"field": path.name, "detail": f"{path} is not the submitted file, which has sha256 {sha256}"}
        for path, sha256 in ((model, sent.model.sha256), (manifest, sent.model.manifest_sha256))
        if not path.is_file() or sha256_of(path) != sha256
    ]
    if problems:
        raise InvalidInput("these are not the submitted files", errors=problems)
    return sent.model


def _unpack(bundle: Path, directory: Path) -> Submission:
    """Unpack a bundle into a directory and return its submission. Raises InvalidInput."""
    import msgspec

    from collidium.inference import manifest, sandbox
    from collidium.records import Submission

    limits = {
        "model.onnx": sandbox.MAX_MODEL_BYTES,
        "manifest.toml": manifest.MAX_BYTES,
        "submission.json": _MAX_JSON_BYTES,
    }
    try:
        with ZipFile(bundle) as packed:
            for name, limit in limits.items():
                with packed.open(name) as file:
                    content = file.read(limit + 1)
                if len(content) > limit:
                    raise InvalidInput(f"{bundle}: {name} has more than {limit} bytes")
                (directory / name).write_bytes(content)
        return msgspec.json.decode((directory / "submission.json").read_bytes(), type=Submission)
    except (*_DAMAGED, msgspec.MsgspecError) as error:
        raise InvalidInput(f"{bundle} is not a bundle: {error}") from error


def _compare(
    sent: Submission,
    submitted: EvaluatedModel,
    scored: LocalScores,
    metrics: list[str],
    measured: tuple[int, Timing | None],
) -> list[dict[str, Any]]:
    """Compare the server's results with those of this machine."""
    parameters, timing = measured
    rows = [
        _row(
            name,
            (sent.scores[name], sent.uncertainties.get(name)),
            (scored.scores[name], scored.uncertainties.get(name)),
        )
        for name in metrics
        if name in sent.scores and name in scored.scores
    ]
    rows.append(_row("parameters", (submitted.n_params, None), (parameters, None)))
    if timing is not None and submitted.seconds is not None:
        here = timing.seconds, timing.error
        rows.append(_row("seconds of an event", (submitted.seconds, submitted.seconds_error), here))
    return rows


def _row(name: str, server: tuple[float, float | None], here: tuple[float, float | None]) -> dict[str, Any]:
    from collidium.records import Reproduced

    values = {"server": server[0], "server_error": server[1], "here": here[0], "here_error": here[1]}
    return {"name": name, **values, "agrees": Reproduced(name, *server, *here).agrees}


def _print_comparison(
    sent: Submission, scored: LocalScores, rows: list[dict[str, Any]], *, agree: bool
) -> None:
    cells = [
        (
            row["name"],
            written(row["server"], row["server_error"]),
            written(row["here"], row["here_error"]),
            "yes" if row["agrees"] else "no",
        )
        for row in rows
    ]
    print_table(("result", "server", "here", "agrees"), cells)
    print_record(
        {
            "submission": sent.submission_id,
            "events here": f"{scored.events.start}:{scored.events.stop} of {scored.dataset}",
            "scorer": f"{sent.scorer_version} on the server, {scored.scorer_version} here",
        }
    )
    note("The results agree." if agree else "Some results do not agree.")
