"""What the contract's test cannot know from the document, or does not cause: each with its reason."""

from __future__ import annotations

from typing import Final

#: Routes that the document does not have; those of plugins have another prefix and their own documents.
UNDOCUMENTED: Final = {
    "/openapi.json": "the document itself",
    "/metrics": "text for Prometheus",
    "/mail": "pages that links in e-mails open",
    "/": "the front page, or a redirect to the document",
}
#: Fields whose values must also be right in ways that no schema holds. Past their limits they are refused.
NOT_BY_SCHEMA: Final = {
    "cursor": "of the Link header of the same list",
    "metric": "one of the task",
    "preset": "one of GET /v1/presets",
    "pareto": "of a task that trades two metrics",
    "tables": "those of the dataset",
    "vary": "variations that GET /v1/limits lists",
    "url": "its host is looked up",
    "webhook_url": "its host is looked up",
    "from": "before `to`, which is at most 31 days later",
    "to": "after `from`, and at most 31 days later",
    "teams_frozen_at": "before the challenge closes",
    "opens_at": "before the challenge closes, and not of one that is open",
}
#: Declared errors that the walk does not cause: those that follow from what an operation takes, and what
#: shows them of all operations at once.
OF_ALL: Final = {
    "hub_token": (429, "a limit of unknown tokens: test_unknown_tokens.py"),
    "Idempotency-Key": (409, "a key of another call: test_idempotent_actions.py"),
}
_SUBMITTING: Final = ("submit", "submit_to_challenge", "check", "check_for_challenge", "submit_from_hub")
#: Others that the walk does not cause, by the tests that do, or by what would.
ELSEWHERE: Final[dict[tuple[str, int], tuple[str, ...]]] = {
    ("core/submissions/test_evaluations.py", 402): ("submit_model", "reproduce"),
    ("core/api/test_challenges.py: before it opens and when it has closed", 409): (
        *_SUBMITTING,
        "submit_model",
    ),
    ("core/api/test_challenges.py: what is not ranked, or chosen already", 409): (
        *("set_links", "admin_preview_standing"),
    ),
    ("core/api/test_teams.py", 409): ("team", "invite_to_team", "join", "remove_from_team"),
    ("core/api/test_splits.py: a split challenge", 409): ("admin_preview_split",),
    ("core/api/test_resumable_uploads.py: while another request appends", 409): ("cancel_upload",),
    ("core/simulations/test_following.py: what has ended", 409): ("cancel",),
    ("core/submissions/test_evaluations.py: what has ended", 409): ("cancel_evaluation",),
    ("plugins/test_event_display.py: a config of several datasets", 409): ("event",),
    ("no test: another call at the same moment", 409): ("results", "set_webhook"),
    ("plugins/test_event_display.py", 413): ("event",),
    ("core/hub: a limit of an address", 429): ("models", "card"),
    ("core/hub: an invalid response", 502): ("models", "card", "datasets", "event", "submit_from_hub"),
    ("core/hub, core/event_display: no response", 503): ("models", "card", "datasets", "event"),
    ("core/api/test_benchmark_api.py, test_faulty_tasks.py", 503): (*_SUBMITTING, "append_to_upload"),
    ("core/submissions/test_model_runners.py", 503): ("submit_model", "reproduce"),
    ("core/outbox/test_look_ups.py", 503): ("set_webhook",),
    ("core/api/test_metrics.py, core/cli/test_serve.py", 503): ("ready", "health"),
}
#: Inputs for which the walk has no response without an error: why, operations and fields.
NEVER_ACCEPTED: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    (
        "what they act on does not exist here, or is not in that state",
        (
            *("admin_cancel_evaluation", "admin_rerun_evaluation", "admin_remove_member"),
            *(
                "admin_remove_member_of_team",
                "admin_retry_waiting",
                "admin_verify",
                "admin_withdraw_operator",
            ),
            *("admin_correct_announcement", "admin_disqualify", "admin_reinstate", "admin_dissolve_team"),
            *("admin_leave_out", "admin_refresh_hidden"),
        ),
        ("Idempotency-Key",),
    ),
    ("there is no announcement", ("admin_correct_announcement",), ("at", "text")),
    ("it is disqualified already", ("admin_disqualify",), ("reason", "take_back")),
    ("there is no team", ("admin_dissolve_team",), ("name",)),
    ("there is no invitation", ("join",), ("code",)),
    ("no file waits", ("admin_leave_out",), ("reason",)),
    ("there is no other truth", ("admin_new_challenge", "admin_refresh_hidden"), ("truth_version",)),
    ("only with one scope", ("admin_add_operator",), ("challenge",)),
    ("the server sends no e-mail", ("set_notifications",), ("email",)),
    ("the address of the example is looked up", ("set_webhook",), ("rotate_secret",)),
    ("there is no file", ("submit", "submit_to_challenge", "submit_model"), ("model_repo",)),
    ("there is no file on the hub", ("submit_from_hub",), ("source", "model_repo")),
)
#: A stream lasts as long as what it watches.
STREAMS: Final = frozenset({"request_progress", "evaluation_progress"})
#: Organisers may not do them, also not in their own challenge.
ACTIONS_OF_BENCHMARKS: Final = frozenset({"admin_refresh_hidden"})
