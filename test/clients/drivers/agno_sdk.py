import base64 as base64_of

from agno.agent import Agent
from agno.media import Image
from agno.models.openai import OpenAIChat
from agno.run.agent import RunContentEvent, RunErrorEvent
from programme import key, run, url


def agent(model, **more):
    return Agent(model=OpenAIChat(id=model, base_url=f"{url}/v1", api_key=key), telemetry=False, **more)


def text_of(result):
    if "error" in str(result.status).lower():
        raise RuntimeError(result.content)
    return result.content


class Agno:
    def plain(self, model, prompt):
        return text_of(agent(model).run(prompt))

    def stream(self, model, prompt):
        for event in agent(model).run(prompt, stream=True):
            if isinstance(event, RunErrorEvent):
                raise RuntimeError(event.content)
            if isinstance(event, RunContentEvent):
                yield event.content

    def tools(self, model, prompt, tool):
        def next_result(number: int) -> str:
            """Returns the result of a number."""
            return tool.run(number)

        return text_of(agent(model, tools=[next_result]).run(prompt))

    def image(self, model, prompt, base64):
        picture = Image(content=base64_of.b64decode(base64), mime_type="image/png", format="png")
        return text_of(agent(model).run(prompt, images=[picture]))


run(Agno())
