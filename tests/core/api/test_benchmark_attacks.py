"""Attacks that worked on similar benchmarks, and the tests that try them here."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
from tests.documents import ROOT

from collidium.testing.plugin import StartServer

#: Attempted attack -> names of the tests that try it.
ATTACKS = {
    "submitting easy hits alone, as what is missing is not counted": [
        "test_hits_left_out_count_against_a_submission",
        "test_hits_not_submitted_count_against_the_submission",
    ],
    "repeating one hit twelve times, with a column that looks like truth": [
        "test_every_bad_file_is_refused_and_leaves_nothing",
        "test_a_few_rows_stand_for_many",
    ],
    "having -1 and noise count as a track and as a particle": [
        "test_unassigned_hits_are_no_track",
        "test_noise_fills_a_track_but_never_owns_it",
    ],
    "being paid for a worthless file because it is the first": ["test_the_loop"],
    "improving in tiny steps, each of which is paid": [
        "test_tiny_steps_are_paid_only_so_often_a_day",
        "test_only_a_gain_above_its_error_is_paid_if_set",
        "test_submissions_per_day_are_limited",
    ],
    "being paid for a time that only the submitter measured": [
        "test_only_what_is_verified_earns_and_raises_a_best",
        "test_a_measured_result_counts_once_an_operator_verifies_it",
    ],
    "being fast by leaving out slow events, or by reading less": [
        "test_omitting_slow_events_gives_no_speed",
        "test_what_was_not_read_is_refused",
    ],
    "submitting twice at once: both are paid, and the best goes down": [
        "test_eight_at_once_never_pay_one_best_twice_nor_lower_it",
        "test_bests_and_credits_stay_true",
    ],
    "a score that is NaN or infinite: an error after the row was written": [
        "test_a_task_that_goes_wrong_is_not_the_submitters_fault",
    ],
    "having no score, and so the first rank": [
        "test_submissions_without_a_speed_are_unranked_and_unpaid",
        "test_a_missing_metric_has_no_error_and_gives_no_place",
    ],
    "wrong types, text and null ids, an empty table, a missing column: an error of the server": [
        "test_every_bad_file_is_refused_and_leaves_nothing",
    ],
    "floats that are silently cut to integers": [
        "test_every_bad_file_is_refused_and_leaves_nothing",
        "test_a_bad_file_is_refused_with_its_problems",
    ],
    "a small file of thirty million rows": ["test_every_bad_file_is_refused_and_leaves_nothing"],
    "an upload that fills the memory": [
        "test_a_large_body_does_not_fill_the_memory",
        "test_an_endless_body_is_refused_early",
    ],
    "scoring that keeps everybody waiting": ["test_the_loop_stays_free_while_a_task_scores"],
    "a hub that is slow, and with it everything": ["test_a_hub_that_hangs_delays_only_calls_that_need_it"],
    "scoring again: scores are lost, or rows are doubled": [
        "test_rescoring_resumes_after_a_kill_and_doubles_nothing",
        "test_submissions_that_a_new_truth_rejects_lose_their_place",
    ],
    "scores of an unknown scorer and truth": [
        "test_the_loop",
        "test_a_preview_shows_what_applying_does",
    ],
}


def test_every_attack_has_its_test() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^(?:async )?def (test_\w+)\(", sources, re.MULTILINE))
    missing = {attack for attack, tests in ATTACKS.items() if not set(tests) <= defined}
    assert not missing


def test_a_hub_that_hangs_delays_only_calls_that_need_it(start_server: StartServer) -> None:
    with ThreadPoolExecutor() as pool, socket.create_server(("127.0.0.1", 0)) as hub:
        server = start_server({"PLATFORM_HUB_URL": f"http://127.0.0.1:{hub.getsockname()[1]}"})
        with httpx.Client(base_url=server.base_url, timeout=60, trust_env=False) as client:
            needing = [
                pool.submit(client.get, "/v1/me", headers={"Authorization": f"Bearer hf_{number}"})
                for number in range(4)
            ]
            for path in ("/healthz", "/v1/benchmark/tasks", "/openapi.json") * 5:
                assert client.get(path).status_code == 200
            assert not any(call.done() for call in needing)
            hub.close()  # which ends the connections that it never took
            assert {call.result().status_code for call in needing} == {503}
