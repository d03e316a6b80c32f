from __future__ import annotations

import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import MakeClient
from servers import Account, Proxy, Reply, Seen, error_type

import medley_client as sdk
from medley_client import Medley, Task


def tasks_of(medley: Medley) -> list[Task]:
    return medley.tasks.list(limit=100).take(1000)


def test_returns_the_task_with_its_output_when_it_has_succeeded(medley: Medley, proxy: Proxy) -> None:
    task = medley.generate("sandbox/image", {"prompt": "A lighthouse"}, metadata={"order": "7"})
    assert [item["content_type"] for item in task["output"]] == ["image/png"]
    assert (task["cost"]["exact"], task["metadata"]) == ("0.010000", {"order": "7"})
    assert proxy.paths() == ["/v1/generate?wait=50"]
    assert proxy.seen[0].headers["user-agent"] == f"medley-client-python/{sdk.__version__}"


def test_reports_the_progress_to_the_end_and_waits_beyond_the_first_answer(medley: Medley, proxy: Proxy) -> None:
    statuses: list[str] = []
    medley.generate(
        "sandbox/image", {"prompt": "A storm [[delay 1s]]"}, on_progress=lambda task: statuses.append(task["status"])
    )
    assert statuses[-1] == "succeeded"
    assert len(statuses) > 1
    assert proxy.paths()[-1].startswith("/v1/tasks/task_")


def test_makes_one_task_when_the_answer_to_the_creation_is_lost(medley: Medley, proxy: Proxy) -> None:
    proxy.decide = lambda seen, nth: "cut" if seen.path.startswith("/v1/generate") and nth <= 2 else "pass"
    task = medley.generate("sandbox/image", {"prompt": "Once"})
    assert len(proxy.creations()) == 3
    assert len({seen.headers["idempotency-key"] for seen in proxy.creations()}) == 1
    assert [each["id"] for each in tasks_of(medley)] == [task["id"]]
    assert medley.key()["spent"]["exact"] == "0.010000"


def test_threads_share_a_client(medley: Medley) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = pool.map(lambda n: medley.generate("sandbox/image", {"prompt": str(n)})["id"], range(16))
        assert len(set(made)) == 16


def test_a_task_outlives_a_service_that_is_away_while_it_is_polled(medley: Medley, proxy: Proxy) -> None:
    def decide(seen: Seen, nth: int) -> Any:
        if nth == 2:
            return "refuse"
        return Reply(503) if nth == 3 else "pass"

    proxy.decide = decide
    task = medley.tasks.create("sandbox/image", {"prompt": "x [[delay 1s]]"})
    assert medley.tasks.wait(task["id"])["status"] == "succeeded"
    assert len(proxy.seen) >= 4


def test_makes_a_new_task_at_each_call_and_the_same_one_with_the_same_key(medley: Medley) -> None:
    ids = [medley.generate("sandbox/image", {"prompt": "Twice"})["id"] for _ in range(2)]
    same = [medley.generate("sandbox/image", {"prompt": "Twice"}, idempotency_key="order-7")["id"] for _ in range(2)]
    assert len({*ids, *same}) == 3
    assert same[0] == same[1]
    with pytest.raises(sdk.InvalidRequestError):
        medley.generate("sandbox/image", {"prompt": "Other"}, idempotency_key="order-7")


def test_waits_as_long_as_retry_after_says_after_a_429(medley: Medley, proxy: Proxy) -> None:
    proxy.decide = lambda _seen, nth: Reply(429, {"retry-after": "1"}) if nth == 1 else "pass"
    medley.generate("sandbox/image", {"prompt": "Later"})
    first, second = proxy.creations()
    assert second.at_s - first.at_s >= 0.99


@pytest.mark.parametrize(
    "headers", [{"retry-after": "3600"}, {"retry-after": "1", "x-should-retry": "false"}], ids=["long", "never"]
)
def test_does_not_wait_for_a_429_that_says_so(medley: Medley, proxy: Proxy, headers: dict[str, str]) -> None:
    proxy.decide = lambda _seen, _nth: Reply(429, headers)
    with pytest.raises(sdk.RateLimitError):
        medley.generate("sandbox/image", {"prompt": "x"})
    assert len(proxy.creations()) == 1


def test_raises_the_error_of_a_task_that_fails_and_makes_no_other(medley: Medley) -> None:
    with pytest.raises(sdk.TaskFailedError) as caught:
        medley.generate("sandbox/image", {"prompt": "x [[moderate]]"})
    error = caught.value
    assert (error.type, error.task["status"], error.task["output"]) == ("content_policy_violation", "failed", [])
    assert [task["id"] for task in tasks_of(medley)] == [error.task_id]
    assert pickle.loads(pickle.dumps(error)).task == error.task


def test_raises_at_once_when_the_balance_is_too_low(
    make_client: MakeClient, poor_account: Account, proxy: Proxy
) -> None:
    medley = make_client(api_key=poor_account.key)
    with pytest.raises(sdk.InsufficientBalanceError) as caught:
        medley.generate("sandbox/image", {"prompt": "x"})
    error = caught.value
    assert (error.status, error.type, bool(error.request_id)) == (402, "insufficient_balance", True)
    assert len(proxy.creations()) == 1
    assert pickle.loads(pickle.dumps(error)).status == 402


def test_raises_when_the_time_of_wait_is_over_and_the_task_goes_on(medley: Medley) -> None:
    with pytest.raises(sdk.WaitTimeoutError) as caught:
        medley.generate("sandbox/image", {"prompt": "x [[delay 2s]]"}, wait=0.2)
    assert medley.tasks.wait(str(caught.value.task_id))["status"] == "succeeded"


@pytest.mark.parametrize("cancel_on_leave", [False, True])
def test_stops_its_requests_when_a_listener_raises(medley: Medley, proxy: Proxy, cancel_on_leave: bool) -> None:
    def leave(_task: Task) -> None:
        raise LookupError("left")

    with pytest.raises(LookupError):
        medley.generate(
            "sandbox/image", {"prompt": "x [[delay 3s]]"}, on_progress=leave, cancel_on_leave=cancel_on_leave
        )
    # While the task is being submitted, a cancel gets 409 with Retry-After, and is sent again.
    cancels = proxy.paths()[1:]
    assert all(path.endswith("/cancel") for path in cancels)
    assert bool(cancels) == cancel_on_leave
    final = medley.tasks.wait(tasks_of(medley)[0]["id"])
    assert error_type(final) == ("canceled" if cancel_on_leave else None)


def test_cancels_the_task_when_ctrl_c_comes_during_its_creation(medley: Medley, proxy: Proxy) -> None:
    def decide(seen: Seen, nth: int) -> Any:
        if nth == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return "pass"

    proxy.decide = decide
    with pytest.raises(KeyboardInterrupt):
        medley.generate("sandbox/image", {"prompt": "x [[delay 5s]]"}, cancel_on_leave=True)
    (task,) = tasks_of(medley)
    assert error_type(task) == "canceled"


def test_a_cancel_whose_answer_was_lost_is_no_conflict(medley: Medley, proxy: Proxy) -> None:
    task = medley.tasks.create("sandbox/image", {"prompt": "x [[delay 5s]]"})
    lost: list[Seen] = []

    def decide(seen: Seen, _nth: int) -> Any:
        if seen.path.endswith("/cancel") and len(lost) < 3:
            lost.append(seen)
            return "cut"
        return "pass"

    proxy.decide = decide
    canceled = medley.tasks.cancel(task["id"])
    assert error_type(canceled) == "canceled"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wait": -1}, "wait"),
        ({"wait": float("nan")}, "wait"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "a\r\nx: y"}, "idempotency_key"),
        ({"idempotency_key": "é"}, "idempotency_key"),
    ],
)
def test_refuses_options_that_are_wrong_before_anything_is_sent(
    medley: Medley, proxy: Proxy, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(sdk.MedleyError, match=message):
        medley.generate("sandbox/image", {"prompt": "x"}, **options)
    assert proxy.seen == []


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800"], ids=["nan", "object", "surrogate"])
def test_refuses_an_input_that_is_no_json_before_anything_is_sent(medley: Medley, proxy: Proxy, value: object) -> None:
    with pytest.raises(sdk.MedleyError, match="JSON"):
        medley.generate("sandbox/image", {"prompt": value})
    assert proxy.seen == []
