import base64 as base64_of

from openai import AsyncOpenAI
from programme import key, pieces_of, run, url, wait
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory, ChatMessageContent, ImageContent, TextContent
from semantic_kernel.functions import kernel_function



def service(model):
    return OpenAIChatCompletion(ai_model_id=model, async_client=AsyncOpenAI(base_url=f"{url}/v1", api_key=key))


def user(*items):
    return ChatHistory(messages=[ChatMessageContent(role="user", items=list(items))])


def ask(model, history, settings=None, **more):
    settings = settings or OpenAIChatPromptExecutionSettings()
    answer = service(model).get_chat_message_content(chat_history=history, settings=settings, **more)
    return str(wait(answer))


class SemanticKernel:
    def plain(self, model, prompt):
        return ask(model, user(TextContent(text=prompt)))

    def stream(self, model, prompt):
        pieces = service(model).get_streaming_chat_message_content(
            chat_history=user(TextContent(text=prompt)), settings=OpenAIChatPromptExecutionSettings()
        )
        for piece in pieces_of(pieces):
            yield str(piece)

    def tools(self, model, prompt, tool):
        class Results:
            @kernel_function(name=tool.name, description=tool.description)
            def next_result(self, number: int) -> str:
                return tool.run(number)

        kernel = Kernel()
        kernel.add_plugin(Results(), plugin_name="results")
        settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
        return ask(model, user(TextContent(text=prompt)), settings, kernel=kernel)

    def image(self, model, prompt, base64):
        picture = ImageContent(data=base64_of.b64decode(base64), data_format="base64", mime_type="image/png")
        return ask(model, user(TextContent(text=prompt), picture))


run(SemanticKernel())
