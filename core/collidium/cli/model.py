"""``collidium model``: check, run and time models on this machine as a server does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.model_sources import (
    TIMED,
    manifest_option,
    measure_speed,
    model_argument,
    open_dataset,
    read_manifest,
    read_model,
    source_options,
    source_or_training_data,
)
from collidium.cli.options import (
    DIRECTORY,
    EXISTING_FILE,
    FILE,
    complete_installed_tasks,
    events_option,
    json_option,
)
from collidium.cli.output import json_wanted, note, print_record, show_record, show_value
from collidium.cli.progress import progress_bar
from collidium.cli.reproduce import reproduce

if TYPE_CHECKING:
    from collidium.contracts.model import ModelInterface
    from collidium.contracts.task import EventRange
    from collidium.inference.sandbox import Facts
    from collidium.inference.timing import Timing

_MIB: Final = 1024**2


@click.group()
def model() -> None:
    """Check, run and time models as a server does: ONNX files with a manifest, run in a sandbox."""


model.add_command(reproduce)


@model.command()
@model_argument
@manifest_option
@json_option
def check(file: Path, manifest: Path | None) -> None:
    """Check MODEL and its manifest, load it, and show its size.

    \b
    collidium model check model.onnx
    collidium model check model.onnx --manifest jets.toml --json
    """
    from collidium.inference.running import check as check_here

    _show_facts(check_here(*read_model(file, manifest)))


@model.command()
@model_argument
@json_option
def count(file: Path) -> None:
    """Count the parameters of MODEL as leaderboards do. Needs no manifest.

    The count is that of all numbers in the file, or a quarter of their bytes if that is more. A tree counts
    two for each split and one for each weight of a leaf.

    \b
    collidium model count model.onnx
    """
    from collidium.inference.running import count as count_here

    _show_facts(count_here(file.read_bytes()))


@model.command()
@model_argument
@manifest_option
@source_options
@events_option("Events to run; default: all of the dataset.")
@click.option(
    "--output",
    type=FILE,
    metavar="FILE",
    default=Path("predictions.parquet"),
    show_default=True,
    help="File of predictions.",
)
@json_option
def run(file: Path, manifest: Path | None, events: EventRange | None, output: Path, **source: Any) -> None:
    """Run MODEL on events, and write its predictions.

    \b
    collidium model run model.onnx
    collidium model run model.onnx --from ./ttbar --events 0:1000
    collidium score jets predictions.parquet --from ./ttbar
    """
    from collidium.inference.running import write_predictions

    loaded, task = read_model(file, manifest)
    where = f" --from {source['source']}" if source["source"] else ""
    dataset, wanted = open_dataset(
        loaded, task, events, **source_or_training_data(task.card.name, task, source)
    )
    with progress_bar("Running (events)") as progress:
        rows = write_predictions(loaded, task, dataset, wanted, output, progress=progress)
    record = {"task": task.card.name, "events": str(wanted), "rows": rows, "predictions": output}
    show_record(record, record)
    if not json_wanted():
        note(f"Score it: collidium score {task.card.name} {output}{where}")


@model.command()
@model_argument
@manifest_option
@source_options
@events_option(f"Events to time; default: the first {TIMED} of the dataset.")
@click.option(
    "--blocks",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Repetitions, each in fresh processes.",
)
@json_option
def time(file: Path, manifest: Path | None, events: EventRange | None, blocks: int, **source: Any) -> None:
    """Measure the speed of MODEL: CPU time per event on one core, relative to a reference model.

    Leaderboards use the same measure. Fails if the machine is too busy to measure.

    \b
    collidium model time model.onnx
    collidium model time model.onnx --from ./ttbar --events 0:20 --blocks 1 --json
    """
    loaded, task = read_model(file, manifest)
    where = source_or_training_data(task.card.name, task, source)
    dataset, wanted = open_dataset(loaded, task, events, first=TIMED, **where)
    show_value(measure_speed(loaded, task, dataset, wanted, blocks), _print_timing)


def _print_timing(timing: Timing) -> None:
    blocks = timing.blocks
    print_record(
        {
            "seconds per event, nominal": f"{timing.seconds:.4g} ± {timing.error:.2g}",
            "CPU seconds here": ", ".join(f"{block.cpu_seconds:.4g}" for block in blocks),
            "wall-clock seconds here": ", ".join(f"{block.wall_seconds:.4g}" for block in blocks),
            "memory": f"{max(block.memory_bytes for block in blocks) / _MIB:.0f} MiB",
            **({"energy here": f"{joules:.2g} J"} if (joules := timing.in_addition["joules"]) else {}),
            "reference": ", ".join(f"{block.reference_seconds:.3g} s" for block in blocks),
            "events": timing.events,
        }
    )


@model.command()
@click.argument("task", shell_complete=complete_installed_tasks)
@click.argument("name", required=False)
@click.option("--output", type=DIRECTORY, metavar="DIR", default=Path(), help="Directory of the files.")
@json_option
def example(task: str, name: str | None, output: Path) -> None:
    """Write the example NAME of TASK: a baseline as model.onnx and manifest.toml.

    Without NAME, show the inputs and outputs of models of TASK, and list its examples.

    \b
    collidium model example jets
    collidium model example jets deepsets --output deepsets
    """
    from collidium import plugins
    from collidium.errors import NotFound
    from collidium.inference.manifest import interface_of

    found = plugins.load().tasks().find(task)
    examples = found.model_examples()
    if name is None:
        _show_interface(interface_of(found), tuple(examples))
        return
    if name not in examples:
        raise NotFound(f"{task} has no example {name}; it has {', '.join(examples) or 'none'}")
    output.mkdir(parents=True, exist_ok=True)
    files = examples[name]()
    for file, content in files.items():
        (output / file).write_bytes(content)
    record = {"task": task, "example": name, "files": [str(output / file) for file in files]}
    show_record(record, record)


@model.command()
@click.argument("trained", metavar="MODULE:NAME")
@click.argument("manifest", type=EXISTING_FILE)
@click.option(
    "--output", type=FILE, default=Path("model.onnx"), show_default=True, metavar="FILE", help="The model."
)
@json_option
def export(trained: str, manifest: Path, output: Path) -> None:
    """Write a fitted scikit-learn estimator or a JAX function as a model for MANIFEST, and check it.

    The manifest of an estimator has one input, float32 features, and one of the outputs `probabilities`,
    `variable` or `scores`. A function takes the inputs of the manifest and returns its outputs, in their
    order; it needs collidium[jax]. For PyTorch, use torch.onnx and `collidium model check`.

    \b
    collidium model export my_training:forest manifest.toml
    collidium model export my_training:deep_set manifest.toml --output deepset.onnx
    """
    from collidium.inference.export import exported
    from collidium.inference.running import Model
    from collidium.inference.running import check as check_here

    parsed, task = read_manifest(manifest)
    content = exported(trained, parsed, task)
    facts = check_here(Model(content, parsed), task)
    output.write_bytes(content)
    _show_facts(facts)


def _show_interface(interface: ModelInterface, examples: tuple[str, ...]) -> None:
    record = {
        "rows": interface.rows or "events",
        "inputs": {table: list(columns) for table, columns in interface.inputs.items()},
        "features": {
            name: {"shape": feature.shape, "description": feature.description}
            for name, feature in interface.features.items()
        },
        "outputs": interface.outputs,
        "postprocess": interface.postprocess,
        "examples": examples,
    }
    shown = {
        "a row for each of": record["rows"],
        **{table: ", ".join(columns) for table, columns in interface.inputs.items()},
        **{
            f"features/{name}": f"shape (rows, {', '.join(map(str, feature.shape))}). {feature.description}"
            for name, feature in interface.features.items()
        },
        "outputs": ", ".join(interface.outputs),
        "postprocess": ", ".join(interface.postprocess) or "none",
        "examples": ", ".join(examples) or "none",
    }
    show_record(record, shown)


def _show_facts(facts: Facts) -> None:
    rows = {
        "parameters": facts.n_params,
        "numbers": f"{facts.numbers} in {facts.number_bytes} bytes",
        "file": f"{facts.file_bytes} bytes",
        "nodes, opset": (facts.nodes, facts.opset),
        "operators": ", ".join(f"{name} {number}" for name, number in sorted(facts.operators.items())),
        "confined by": ", ".join(facts.confined_by) or "nothing",
    }
    show_record(facts, rows)
