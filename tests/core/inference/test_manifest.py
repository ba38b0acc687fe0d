"""Manifests are checked, and all problems are reported together."""

from __future__ import annotations

import msgspec
import pytest
from tests.core.inference.toy_models import manifest, task

from collidium.errors import InvalidInput
from collidium.inference.manifest import read_manifest

GOOD = 'pt = { source = "jets.pt", dtype = "float32", unit = "GeV" }'


def problems_of(text: str, name: str = "jets") -> dict[str, str]:
    with pytest.raises(InvalidInput) as raised:
        read_manifest(text.encode(), task(name))
    return {problem["field"]: problem["detail"] for problem in raised.value.errors}


def test_a_manifest_is_read() -> None:
    made = read_manifest(manifest(GOOD).encode(), task("jets"))
    assert made.inputs["pt"].table == "jets"
    assert made.outputs == {"p": ("prob_b", "prob_c", "prob_light")}


def test_all_problems_are_found_at_once() -> None:
    found = problems_of(
        """
        task = "tracking"
        batch = "block"
        author = "me"
        [inputs]
        a = { source = "jets.flavour", dtype = "float32" }
        b = { source = "particles.pdg_id", dtype = "float32" }
        c = { source = "tracks.d0", dtype = "float32", unit = "cm" }
        d = { source = "tracks.d0", dtype = "complex64", unit = "mm" }
        e = { source = "tracks", dtype = "int32", layout = "row_splits" }
        f = { source = "tracks.d0", dtype = "float32", unit = "mm", layout = "padded:0" }
        g = { source = "features/secret", dtype = "float32" }
        h = { source = "tracks", dtype = "float32" }
        i = { source = "tracks.d0", dtype = "int64", layout = "segment", unit = "mm" }
        j = { source = "jets.constituents", dtype = "float32", layout = "mask:4" }
        k = { source = "event_id", dtype = "int64" }
        [outputs]
        one = ["prob_b", "prob_b", "track_id"]
        """
    )
    assert {field.removeprefix("inputs.") for field in found} == {
        *("author", "contract", "task", "batch", "outputs"),
        *"abcdefghijk",
    }


@pytest.mark.parametrize(
    "text", ["", "contract = ", "\x00", "inputs = 3", "[outputs]\nx = 1", "inputs = {a = 1}", "x = [" * 2000]
)
def test_an_invalid_file_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_manifest(text.encode(), task("jets"))


def test_a_key_of_many_parts_is_not_parsed() -> None:
    """32,000 parts took half a minute."""
    with pytest.raises(InvalidInput, match="300 dots"):
        read_manifest(b"a" + b".a" * 301 + b" = 1", task("jets"))
    # Each key below a table took as long as the table's, and a manifest of 64 KB a second.
    with pytest.raises(InvalidInput, match="20 dots"):
        read_manifest(b"x = 1\n  [a" + b".a" * 21 + b"]\n", task("jets"))


@pytest.mark.parametrize("character", ["\\u001b", "\\u0000", "\\n", "\u202e"])
def test_control_characters_in_names_are_problems(character: str) -> None:
    text = manifest(f'"{character}pt" = {{ source = "jets.pt", dtype = "float32", unit = "GeV" }}')
    assert set(problems_of(text)) == {"inputs"}
    assert set(problems_of(f'license = "MIT{character}"\n{manifest(GOOD)}')) == {"license"}


def test_numbers_of_any_size_are_problems() -> None:
    assert "contract" in problems_of(manifest(GOOD).replace("= 1", f"= 0x{'f' * 10_000}"))


def test_a_large_manifest_is_not_read() -> None:
    with pytest.raises(InvalidInput, match="65536"):
        read_manifest(b"#" * 70_000, task("jets"))


def test_a_task_may_accept_no_models() -> None:
    with pytest.raises(InvalidInput, match="takes predictions, not models"):
        read_manifest(manifest(GOOD).encode(), task("data_loading"))


@pytest.mark.parametrize("name", ["jets", "anomaly", "tracking", "tracking_small", "tracking_latency"])
def test_models_read_only_public_columns(name: str) -> None:
    from collidium.datasets.publishing.blinding import PUBLIC

    interface = task(name).model_interface()
    assert interface is not None
    assert set(interface.outputs) < set(task(name).card.column_names)
    for table, columns in interface.inputs.items():
        assert set(columns) <= set(PUBLIC[table])


def test_edges_and_times_need_single_events() -> None:
    hits = 'x = { source = "tracker_hits.x", dtype = "float32", unit = "mm" }'
    for name, rest in {
        "tracking": '[postprocess]\nkind = "components"\nedges = "e"\nscores = "s"',
        "tracking_latency": '[outputs]\nids = "track_id"',
    }.items():
        text = f'contract = 1\ntask = "{name}"\nbatch = "events"\noutputs = {{}}\n[inputs]\n{hits}\n{rest}'
        text = text.replace("outputs = {}\n", "") if "[outputs]" in rest else text
        assert set(problems_of(text, name)) == {"batch"}


def test_a_manifest_is_plain_data() -> None:
    made = read_manifest(manifest(GOOD).encode(), task("jets"))
    assert msgspec.json.decode(msgspec.json.encode(made), type=type(made)) == made
