"""pydantic-ai; the word after the file is the model class."""

import base64 as base64_of
import sys

from programme import key, pieces_of, run, url, wait
from pydantic_ai import Agent, BinaryContent, Tool



def model_of(name):
    if sys.argv[1] == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key))
    if sys.argv[1] == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key=key))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model_class = OpenAIChatModel if sys.argv[1] == "chat" else OpenAIResponsesModel
    return model_class(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))


def ask(agent, content):
    return wait(agent.run(content)).output


class PydanticAi:
    def plain(self, model, prompt):
        return ask(Agent(model_of(model)), prompt)

    def stream(self, model, prompt):
        async def read():
            async with Agent(model_of(model)).run_stream(prompt) as result:
                async for piece in result.stream_text(delta=True, debounce_by=None):
                    yield piece

        return pieces_of(read())

    def tools(self, model, prompt, tool):
        function = Tool.from_schema(
            lambda number: tool.run(number), name=tool.name, description=tool.description, json_schema=tool.parameters
        )
        return ask(Agent(model_of(model), tools=[function]), prompt)

    def image(self, model, prompt, base64):
        picture = BinaryContent(data=base64_of.b64decode(base64), media_type="image/png")
        return ask(Agent(model_of(model)), [prompt, picture])


run(PydanticAi())
