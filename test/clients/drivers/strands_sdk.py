import base64 as base64_of

import strands
from programme import key, pieces_of, run, url
from strands.models.openai import OpenAIModel



def agent(model, **more):
    llm = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": key}, model_id=model)
    return strands.Agent(model=llm, callback_handler=None, **more)


def text_of(result):
    return "".join(block.get("text", "") for block in result.message["content"])


class Strands:
    def plain(self, model, prompt):
        return text_of(agent(model)(prompt))

    def stream(self, model, prompt):
        for event in pieces_of(agent(model).stream_async(prompt)):
            if "data" in event:
                yield event["data"]

    def tools(self, model, prompt, tool):
        @strands.tool(name=tool.name, description=tool.description)
        def next_result(number: int) -> str:
            return tool.run(number)

        return text_of(agent(model, tools=[next_result])(prompt))

    def image(self, model, prompt, base64):
        picture = {"image": {"format": "png", "source": {"bytes": base64_of.b64decode(base64)}}}
        return text_of(agent(model)([{"text": prompt}, picture]))


run(Strands())
