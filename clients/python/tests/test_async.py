from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from servers import Proxy, Reply, Seen, error_type
from test_chat import ask, record_of
from test_files import audio

import medley_client as sdk
from medley_client import AsyncMedley, Medley, Task

MakeAsync = Callable[[], AsyncMedley]


def test_many_tasks_are_made_at_once(make_async: MakeAsync, medley: Medley) -> None:
    async def work() -> None:
        async with make_async() as client:
            inputs = [{"prompt": f"{n} [[delay 1s]]"} for n in range(12)]
            tasks = await asyncio.gather(*(client.generate("sandbox/image", each) for each in inputs))
            assert len({task["id"] for task in tasks}) == 12

    asyncio.run(work())
    assert len(medley.tasks.list().take(100)) == 12


@pytest.mark.parametrize("is_async", [False, True])
def test_progress_is_reported_to_functions_of_both_kinds(make_async: MakeAsync, is_async: bool) -> None:
    statuses: list[str] = []

    def on_progress(task: Task) -> None:
        statuses.append(task["status"])

    async def on_progress_async(task: Task) -> None:
        await asyncio.sleep(0)
        on_progress(task)

    async def work() -> None:
        async with make_async() as client:
            listener = on_progress_async if is_async else on_progress
            await client.generate("sandbox/image", {"prompt": "x [[delay 1s]]"}, on_progress=listener)

    asyncio.run(work())
    assert statuses[-1] == "succeeded"


def test_a_creation_whose_answer_is_lost_is_one_task(make_async: MakeAsync, proxy: Proxy, medley: Medley) -> None:
    def decide(_seen: object, nth: int) -> str | Reply:
        if nth == 1:
            return "cut"
        return Reply(429, {"retry-after": "0"}) if nth == 2 else "pass"

    async def work() -> None:
        async with make_async() as client:
            proxy.decide = decide
            await client.generate("sandbox/image", {"prompt": "Once"})

    asyncio.run(work())
    assert len(proxy.creations()) == 3
    assert len(medley.tasks.list().take(100)) == 1


@pytest.mark.parametrize("cancel_on_leave", [False, True])
@pytest.mark.parametrize("is_created", [False, True])
def test_a_canceled_wait_cancels_the_task_if_it_should(
    make_async: MakeAsync, proxy: Proxy, medley: Medley, cancel_on_leave: bool, is_created: bool
) -> None:
    async def work() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def decide(seen: object, nth: int) -> str:
            if nth == (2 if is_created else 1):
                loop.call_soon_threadsafe(begun.set)
            return "pass"

        proxy.decide = decide
        async with make_async() as client:
            call = client.generate(
                "sandbox/image",
                {"prompt": "x [[delay 5s]]"},
                on_progress=lambda _task: None,
                cancel_on_leave=cancel_on_leave,
            )
            waiting = asyncio.ensure_future(call)
            await begun.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(work())
    for task in medley.tasks.list():
        final = medley.tasks.wait(task["id"])
        assert error_type(final) == ("canceled" if cancel_on_leave else None)
    if is_created or cancel_on_leave:
        assert len(medley.tasks.list().take(10)) == 1


def test_a_second_cancellation_leaves_the_cancel_of_the_task_alone(
    make_async: MakeAsync, proxy: Proxy, medley: Medley
) -> None:
    canceled_twice = threading.Event()

    async def work() -> None:
        polled, canceling = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def decide(seen: Seen, nth: int) -> str:
            if seen.path.endswith("/cancel"):
                loop.call_soon_threadsafe(canceling.set)
                assert canceled_twice.wait(120)
            elif nth == 2:
                loop.call_soon_threadsafe(polled.set)
            return "pass"

        proxy.decide = decide
        async with make_async() as client:
            call = client.generate("sandbox/image", {"prompt": "x [[delay 60s]]"}, cancel_on_leave=True)
            waiting = asyncio.ensure_future(call)
            for event in (polled, canceling):
                await event.wait()
                waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            canceled_twice.set()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(work())
    (task,) = medley.tasks.list()
    assert error_type(task) == "canceled"


def test_errors_are_those_of_the_other_client(make_async: MakeAsync) -> None:
    async def work() -> None:
        async with make_async() as client:
            with pytest.raises(sdk.TaskFailedError):
                await client.generate("sandbox/image", {"prompt": "x [[fail]]"})
            with pytest.raises(sdk.InvalidRequestError):
                await client.generate("sandbox/image", {"prompt": 7})
            with pytest.raises(sdk.WaitTimeoutError):
                await client.generate("sandbox/image", {"prompt": "x [[delay 2s]]"}, wait=0)
            with pytest.raises(sdk.NotFoundError):
                await client.models.get("no/model")

    asyncio.run(work())


def test_chat_streams_in_a_loop_and_ends_when_it_is_left(make_async: MakeAsync, medley: Medley) -> None:
    async def work() -> str | None:
        async with make_async() as client:
            answer = await client.chat.create("sandbox/chat", ask("[[tokens 10]]"))
            assert answer.usage is not None
            stream = client.chat.stream("sandbox/chat", ask("[[tokens 30]]"))
            texts = [text async for text in stream.texts()]
            assert len(texts) > 1
            assert "".join(texts) == stream.text
            final = await stream.final()
            assert (final.text, final.request_id, final.cost and final.cost["currency"]) == (
                stream.text,
                stream.request_id,
                "USD",
            )
            async with client.chat.stream("sandbox/chat", ask("[[tokens 5000]]"), max_tokens=5000) as left:
                async for _ in left:
                    break
            return left.request_id

    assert record_of(medley, asyncio.run(work()))["status"] == 499


def test_lists_are_read_over_pages(make_async: MakeAsync) -> None:
    async def work() -> None:
        async with make_async() as client:
            ids = [(await client.tasks.create("sandbox/image", {"prompt": str(n)}))["id"] for n in range(3)]
            assert [task["id"] async for task in client.tasks.list(limit=1)] == ids[::-1]
            assert len(await client.tasks.list(limit=1).take(2)) == 2
            assert len((await client.tasks.list(limit=2).first()).data) == 2
            assert [model["id"] async for model in client.models.list(modality="video", limit=1)]
            for id_ in ids:
                await client.tasks.wait(id_)

    asyncio.run(work())


def test_files_go_up_and_down(make_async: MakeAsync, tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield audio[:1000]
        yield audio[1000:]

    async def work() -> None:
        path = tmp_path / "talk.wav"
        path.write_bytes(audio)
        async with make_async() as client:
            with path.open("rb") as file:
                uploaded = [
                    await client.files.upload(path),
                    await client.files.upload(audio),
                    await client.files.upload(file),
                    await client.files.upload(chunks()),
                ]
            assert {each["bytes"] for each in uploaded} == {len(audio)}
            task = await client.generate("sandbox/audio", {"prompt": "A song", "duration": 1})
            (item,) = task["output"]
            await client.download_to(item, tmp_path / "song.wav")
            async with aclosing(client.download_stream(item)) as stream:
                streamed = b"".join([chunk async for chunk in stream])
            assert streamed == await client.download(item) == (tmp_path / "song.wav").read_bytes()
            assert len(streamed) == item["size_bytes"]

    asyncio.run(work())


def test_has_what_the_other_client_has() -> None:
    def names(cls: type) -> set[str]:
        return {name.replace("aclose", "close") for name in vars(cls) if not name.startswith("_")}

    for one, other in [
        (sdk.AsyncMedley, sdk.Medley),
        (sdk.AsyncTasks, sdk.Tasks),
        (sdk.AsyncFiles, sdk.Files),
        (sdk.AsyncModels, sdk.Models),
        (sdk.AsyncChat, sdk.Chat),
        (sdk.AsyncChatStream, sdk.ChatStream),
        (sdk.AsyncCursor, sdk.Cursor),
    ]:
        assert names(one) == names(other)
