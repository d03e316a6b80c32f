import json

from programme import key, run, url
from smolagents import OpenAIModel, Tool
from smolagents.models import ChatMessage, MessageRole


def model_of(model):
    return OpenAIModel(model_id=model, api_base=f"{url}/v1", api_key=key)


def user(*content):
    return [ChatMessage(role=MessageRole.USER, content=list(content))]


class NextResult(Tool):
    name = "next_result"
    description = "Returns the result of a number."
    inputs = {"number": {"type": "integer", "description": "The number."}}
    output_type = "string"

    def forward(self, number: int) -> str:
        return f"result-of-{number}"


class Smolagents:
    def plain(self, model, prompt):
        return model_of(model).generate(user({"type": "text", "text": prompt})).content

    def stream(self, model, prompt):
        stream = model_of(model).generate_stream(user({"type": "text", "text": prompt}))
        for piece in stream:
            yield piece.content

    def tools(self, model, prompt, tool):
        llm = model_of(model)
        messages = user({"type": "text", "text": prompt})
        while True:
            answer = llm.generate(messages, tools_to_call_from=[NextResult()])
            if not answer.tool_calls:
                return answer.content
            for call in answer.tool_calls:
                arguments = call.function.arguments
                if isinstance(arguments, str):
                    arguments = json.loads(arguments)
                text = f"Calling tools: {call.function.name} {arguments}\nObservation: {tool.run(**arguments)}"
                messages = [*messages, *user({"type": "text", "text": text})]

    def image(self, model, prompt, base64):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64}"}}
        return model_of(model).generate(user({"type": "text", "text": prompt}, picture)).content


run(Smolagents())
