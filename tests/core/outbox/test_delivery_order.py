"""The choice of what is delivered next, over any backlog."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from collidium.outbox.turns import FIRST_ONLY, LIMITS, Due, Memory, Receiver, ReceiverStanding, in_turn

RECEIVERS = st.builds(Receiver, st.integers(1, 30), st.sampled_from(["a.example", "b.example", "c.example"]))
STANDINGS = st.dictionaries(RECEIVERS, st.sampled_from(ReceiverStanding), max_size=40)


def over(
    receivers: list[Receiver], standings: dict[Receiver, ReceiverStanding], standing: ReceiverStanding
) -> list[str]:
    """The limits of a standing that deliveries of that standing or worse exceed."""
    counted = [
        receiver for receiver in receivers if standings.get(receiver, ReceiverStanding.NEW) >= standing
    ]
    limits = LIMITS[standing]
    return [
        name
        for name, counts, limit in (
            ("process", [len(counted)], limits.process),
            ("account", Counter(receiver.account_id for receiver in counted).values(), limits.account),
            ("host", Counter(receiver.host for receiver in counted).values(), limits.host),
        )
        if max(counts, default=0) > limit
    ]


@given(st.lists(RECEIVERS, max_size=150), STANDINGS)
def test_turns_keep_every_limit_and_waste_no_place(
    receivers: list[Receiver], standings: dict[Receiver, ReceiverStanding]
) -> None:
    due = [Due(number, receiver) for number, receiver in enumerate(receivers)]

    def standing(receiver: Receiver) -> ReceiverStanding:
        return standings.get(receiver, ReceiverStanding.NEW)

    chosen = in_turn(due, [], standing, {})
    assert len({delivery.id for delivery in chosen}) == len(chosen)
    started = [delivery.receiver for delivery in chosen]
    assert not any(over(started, standings, worst) for worst in ReceiverStanding)
    for left in set(due) - set(chosen):
        is_second = any(receiver.account_id == left.receiver.account_id for receiver in started)
        assert (is_second and len(started) >= FIRST_ONLY) or any(
            over([*started, left.receiver], standings, better) for better in ReceiverStanding
        )
    # What is under way counts as what was chosen.
    assert not in_turn([delivery for delivery in due if delivery not in chosen], started, standing, {})


@given(st.lists(RECEIVERS, max_size=80), st.lists(RECEIVERS, max_size=20))
def test_turns_go_to_who_has_the_fewest_under_way(
    receivers: list[Receiver], under_way: list[Receiver]
) -> None:
    """No delivery is started while an account with fewer under way could start one."""
    due = [Due(number, receiver) for number, receiver in enumerate(receivers)]
    chosen = in_turn(due, under_way, lambda _: ReceiverStanding.ANSWERING, {})
    counts = Counter(receiver.account_id for receiver in under_way)
    levels = []
    for delivery in chosen:
        levels.append(counts[delivery.receiver.account_id])
        counts[delivery.receiver.account_id] += 1
    assert levels == sorted(levels)


def test_turns_go_round_though_one_account_waits_for_longer() -> None:
    """A backlog that is older than everything else gets its turn, and no more."""
    memory, order = Memory(), []
    due = [Due(n, Receiver(1, "a.example")) for n in range(5)] + [
        Due(10 + n, Receiver(2 + n % 2, "b.example")) for n in range(4)
    ]
    busy = [Receiver(account_id, f"h{account_id % 9}.example") for account_id in range(100, 163)]
    while due:
        (chosen,) = in_turn(due, busy, lambda _: ReceiverStanding.ANSWERING, memory.last_turns)
        memory.turn_of(chosen.receiver.account_id)
        order.append(chosen.receiver.account_id)
        due.remove(chosen)
    assert order == [1, 2, 3, 1, 2, 3, 1, 1, 1]


def test_failing_receivers_leave_room_for_new_and_answering_ones() -> None:
    def standing(receiver: Receiver) -> ReceiverStanding:
        return ReceiverStanding(2 - receiver.account_id // 1000)

    due = [
        Due(account_id, Receiver(account_id, f"{account_id}.example"))
        for kind in (0, 1000, 2000)
        for account_id in range(kind + 1, kind + 100)
    ]
    counts = Counter(standing(delivery.receiver) for delivery in in_turn(due, [], standing, {}))
    assert counts == {ReceiverStanding.FAILING: 16, ReceiverStanding.NEW: 32, ReceiverStanding.ANSWERING: 16}


def test_sixteen_accounts_leave_places_to_others() -> None:
    due = [Due(n, Receiver(n % 16, f"{n}.example")) for n in range(200)]
    held = [delivery.receiver for delivery in in_turn(due, [], lambda _: ReceiverStanding.ANSWERING, {})]
    assert len(held) == FIRST_ONLY
    other = Due(1000, Receiver(100, "other.example"))
    assert in_turn([*due, other], held, lambda _: ReceiverStanding.ANSWERING, {}) == [other]


def test_receivers_are_known_by_their_last_event() -> None:
    memory = Memory()
    good, bad, unseen = Receiver(1, "good.example"), Receiver(1, "bad.example"), Receiver(1, "new.example")
    assert memory.standing(good) is ReceiverStanding.NEW
    memory.answered(good)
    assert [memory.failed(bad) for _ in range(3)] == [1, 2, 3]
    # With names of its own an account is not new again and again.
    assert [memory.standing(receiver) for receiver in (good, bad, unseen)] == [
        ReceiverStanding.ANSWERING,
        ReceiverStanding.FAILING,
        ReceiverStanding.FAILING,
    ]
    memory.answered(bad)
    assert memory.standing(bad) is ReceiverStanding.ANSWERING
    assert memory.standing(unseen) is ReceiverStanding.NEW
    assert memory.standing(Receiver(2, "bad.example")) is ReceiverStanding.NEW
