
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from programme import key, pieces_of, run, url, wait

info = {"vision": True, "function_calling": True, "json_output": True, "structured_output": True, "family": "unknown"}


def client(model):
    return OpenAIChatCompletionClient(model=model, base_url=f"{url}/v1", api_key=key, model_info=info)


def user(prompt):
    return [UserMessage(content=prompt, source="user")]


class AutoGen:
    def plain(self, model, prompt):
        return wait(client(model).create(user(prompt))).content

    def stream(self, model, prompt):
        for piece in pieces_of(client(model).create_stream(user(prompt))):
            if isinstance(piece, str):
                yield piece

    def tools(self, model, prompt, tool):
        def next_result(number: int) -> str:
            return tool.run(number)

        function = FunctionTool(next_result, description=tool.description, name=tool.name)
        agent = AssistantAgent("agent", client(model), tools=[function], max_tool_iterations=8)
        return wait(agent.run(task=prompt)).messages[-1].content

    # AutoGen decodes an image and encodes it anew, so that its bytes cannot be compared: no `image` here.


run(AutoGen())
