"""Runs the programme with a client: each step for each model, a line of JSON for each; see programme.mjs.

A client is an object with `plain(model, prompt)`, `stream(model, prompt)` (a generator of pieces of text),
`tools(model, prompt, tool)` and `image(model, prompt, base64)`; what it does not offer is left out.
"""

import asyncio
import contextlib
import contextvars
import json
import os
import signal

programme = json.loads(os.environ["PROGRAMME"])
url = os.environ["MEDLEY_URL"]
key = os.environ["MEDLEY_KEY"]
step_s_max = 90
pieces_before_leaving = 3


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
context = contextvars.copy_context()


def wait(awaitable):
    """Returns the result of an awaitable; all run in one loop and one context, as in one asynchronous programme."""

    async def work():
        return await awaitable

    return loop.run_until_complete(loop.create_task(work(), context=context))


def pieces_of(generator):
    """Yields what an asynchronous generator yields; one task reads it, and is cancelled when the reader leaves."""
    pieces = asyncio.Queue(maxsize=1)

    async def read():
        error = None
        try:
            async with contextlib.aclosing(generator):
                async for piece in generator:
                    await pieces.put((piece, None))
        except Exception as raised:
            error = raised
        await pieces.put((None, error or StopAsyncIteration()))

    task = loop.create_task(read(), context=context)
    try:
        while True:
            piece, error = wait(pieces.get())
            if isinstance(error, StopAsyncIteration):
                return
            if error:
                raise error
            yield piece
    finally:
        task.cancel()
        wait(asyncio.gather(task, return_exceptions=True))


class Tool:
    name = programme["tool_name"]
    description = "Returns the result of a number."
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

    @staticmethod
    def run(number):
        return f"result-of-{number}"


def run(client):
    for model in programme["models"]:
        for step in programme["steps"]:
            offered = getattr(client, {"leave": "stream", "overflow": "plain"}.get(step, step), None)
            line = outcome(step, offered, model) if offered else {"absent": True}
            print("\n" + json.dumps({"model": model, "step": step, **line}), flush=True)
    os._exit(0)


def outcome(step, offered, model):
    prompt = f"Step: {step}."
    signal.signal(signal.SIGALRM, raise_late)
    signal.alarm(step_s_max)
    try:
        if step in ("stream", "leave"):
            return read(offered(model, prompt), pieces_before_leaving if step == "leave" else None)
        if step == "tools":
            text = offered(model, f"{prompt} Call {Tool.name} until it is done.", Tool)
        else:
            text = offered(model, prompt, programme["image_base64"]) if step == "image" else offered(model, prompt)
        return {"text": str(text), "pieces": 1}
    except Exception as error:
        return {"error": {"class": type(error).__name__, "message": str(error)}}
    finally:
        signal.alarm(0)


def raise_late(*_):
    raise TimeoutError(f"no end within {step_s_max} s")


def read(stream, pieces_max):
    text, pieces = "", 0
    for piece in stream:
        if not piece:
            continue
        text, pieces = text + piece, pieces + 1
        if pieces == pieces_max:
            break
    stream.close()
    return {"text": text, "pieces": pieces}
