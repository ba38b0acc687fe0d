"""How benchmarks of this kind were gamed or brought down, and the tests that show that it fails here.

Each attempt was shown on some running system. Those that no other test tries are tried below, through HTTP.
"""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.documents import ROOT

from collidium.testing.plugin import StartServer

API, BENCHMARKS, SCORING, TASKS = (
    "tests/core/api",
    "tests/core/benchmarks",
    "tests/core/scoring",
    "tests/tasks",
)
HERE = f"{API}/test_benchmark_attacks.py"

#: What was tried -> where it fails.
ATTEMPTS = {
    "submitting easy hits alone, as what is missing is not counted": [
        f"{API}/test_benchmark_api.py::test_hits_left_out_count_against_a_submission",
        f"{TASKS}/tracking/test_metrics_by_hand.py::test_hits_not_submitted_count_against_the_submission",
    ],
    "repeating one hit twelve times, with a column that looks like truth": [
        f"{API}/test_bad_predictions.py::test_every_bad_file_is_refused_and_leaves_nothing",
        f"{TASKS}/tracking/test_problems.py::test_repeating_one_hit_does_not_make_a_track",
    ],
    "having -1 and noise count as a track and as a particle": [
        f"{TASKS}/tracking/test_metrics_by_hand.py::test_unassigned_hits_are_no_track",
        f"{TASKS}/tracking/test_metrics_by_hand.py::test_noise_fills_a_track_but_never_owns_it",
    ],
    "being paid for a worthless file because it is the first": [
        f"{API}/test_benchmark_api.py::test_the_loop",
    ],
    "improving in tiny steps, each of which is paid": [
        f"{API}/test_quotas.py::test_tiny_steps_are_paid_only_so_often_a_day",
        f"{API}/test_quotas.py::test_only_a_gain_above_its_error_is_paid_if_set",
        f"{API}/test_quotas.py::test_only_so_many_submissions_of_a_day_are_kept",
    ],
    "being paid for a time that only the submitter measured": [
        f"{API}/test_verification.py::test_only_what_is_verified_earns_and_raises_a_best",
        f"{TASKS}/data_loading/test_on_a_server.py"
        "::test_a_measured_result_counts_once_an_operator_verifies_it",
    ],
    "being fast by leaving out slow events, or by reading less": [
        f"{TASKS}/tracking_latency/test_task.py::test_omitting_slow_events_gives_no_speed",
        f"{TASKS}/data_loading/test_task.py::test_what_was_not_read_is_refused",
    ],
    "submitting twice at once: both are paid, and the best goes down": [
        f"{API}/test_benchmark_api.py::test_eight_at_once_never_pay_one_best_twice_nor_lower_it",
        f"{BENCHMARKS}/test_submission_histories.py::test_bests_and_credits_stay_true",
    ],
    "a score that is NaN or infinite: an error after the row was written": [
        f"{SCORING}/test_engine.py::test_a_task_that_goes_wrong_is_not_the_submitters_fault",
    ],
    "having no score, and so the first rank": [
        f"{API}/test_tracking_variants.py::test_what_has_no_speed_has_no_place_and_earns_nothing",
        f"{SCORING}/test_missing_metrics.py::test_a_missing_metric_has_no_error_and_gives_no_place",
    ],
    "wrong types, text and null ids, an empty table, a missing column: an error of the server": [
        f"{API}/test_bad_predictions.py::test_every_bad_file_is_refused_and_leaves_nothing",
    ],
    "floats that are silently cut to integers": [
        f"{API}/test_bad_predictions.py::test_every_bad_file_is_refused_and_leaves_nothing",
        f"{SCORING}/test_predictions.py::test_a_bad_file_is_refused_with_its_problems",
    ],
    "a small file of thirty million rows": [
        f"{API}/test_bad_predictions.py::test_every_bad_file_is_refused_and_leaves_nothing",
    ],
    "an upload that fills the memory": [
        f"{API}/test_bodies.py::test_a_file_does_not_fill_the_memory",
        f"{API}/test_bodies.py::test_an_endless_body_is_refused_early",
    ],
    "scoring that keeps everybody waiting": [
        f"{SCORING}/test_engine.py::test_the_loop_stays_free_while_a_task_scores",
    ],
    "a hub that is slow, and with it everything": [
        f"{HERE}::test_a_hub_that_hangs_delays_only_calls_that_need_it",
    ],
    "scoring again: scores are lost, or rows are doubled": [
        f"{API}/test_rescoring.py::test_rescoring_resumes_after_a_kill_and_doubles_nothing",
        f"{API}/test_rescoring.py::test_what_cannot_be_rescored_leaves_the_leaderboard",
    ],
    "scores of an unknown scorer and truth": [
        f"{API}/test_benchmark_api.py::test_the_loop",
        f"{API}/test_rescoring.py::test_a_preview_shows_what_applying_does",
    ],
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_every_attempt_has_its_test(attempt: str) -> None:
    for place in ATTEMPTS[attempt]:
        file, _, name = place.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), place


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
