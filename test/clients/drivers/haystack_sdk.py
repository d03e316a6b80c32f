import queue
import threading

from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent
from haystack.tools import Tool
from haystack.utils import Secret
from programme import key, run, url


def generator(model, **more):
    return OpenAIChatGenerator(model=model, api_base_url=f"{url}/v1", api_key=Secret.from_token(key), **more)


def ask(model, messages, **more):
    return generator(model, **more).run(messages=messages)["replies"][0]


class Left(Exception):
    pass


class Haystack:
    def plain(self, model, prompt):
        return ask(model, [ChatMessage.from_user(prompt)]).text

    def stream(self, model, prompt):
        """Its stream is a callback: a thread asks, and a callback that raises leaves."""
        pieces = queue.Queue()
        left = threading.Event()

        def callback(chunk):
            if left.is_set():
                raise Left
            pieces.put(chunk.content)

        def work():
            try:
                ask(model, [ChatMessage.from_user(prompt)], streaming_callback=callback)
            except Left:
                pass
            except Exception as error:
                pieces.put(error)
            pieces.put(None)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            left.set()
            thread.join()

    def tools(self, model, prompt, tool):
        function = Tool(
            name=tool.name, description=tool.description, parameters=tool.parameters, function=lambda number: tool.run(number)
        )
        messages = [ChatMessage.from_user(prompt)]
        while True:
            answer = ask(model, messages, tools=[function])
            messages.append(answer)
            if not answer.tool_calls:
                return answer.text
            for call in answer.tool_calls:
                messages.append(ChatMessage.from_tool(tool.run(**call.arguments), origin=call))

    def image(self, model, prompt, base64):
        picture = ImageContent(base64_image=base64, mime_type="image/png")
        return ask(model, [ChatMessage.from_user(content_parts=[prompt, picture])]).text


run(Haystack())
