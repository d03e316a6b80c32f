"""The Agents SDK; the word after the file is its API."""

import asyncio
import json
import sys

import agents
from openai import AsyncOpenAI
from programme import key, pieces_of, run, url, wait

agents.set_default_openai_client(AsyncOpenAI(base_url=f"{url}/v1", api_key=key), use_for_tracing=False)
agents.set_tracing_disabled(True)
if sys.argv[1] == "chat":
    agents.set_default_openai_api("chat_completions")


def agent(model, tools=()):
    return agents.Agent(name="agent", model=agents.OpenAIProvider().get_model(model), tools=list(tools))


def ask(an_agent, content):
    return wait(agents.Runner.run(an_agent, content)).final_output


class AgentsSdk:
    def plain(self, model, prompt):
        return ask(agent(model), prompt)

    def stream(self, model, prompt):
        async def read():
            result = agents.Runner.run_streamed(agent(model), prompt)
            try:
                async for event in result.stream_events():
                    if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                        yield event.data.delta
            finally:
                result.cancel()
                await asyncio.sleep(0.2)  # the task that it cancels ends

        return pieces_of(read())

    def tools(self, model, prompt, tool):
        async def call(_context, arguments):
            return tool.run(**json.loads(arguments))

        function = agents.FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema={**tool.parameters, "additionalProperties": False},
            on_invoke_tool=call,
        )
        return ask(agent(model, [function]), prompt)

    def image(self, model, prompt, base64):
        content = [
            {"type": "input_text", "text": prompt},
            {"type": "input_image", "image_url": f"data:image/png;base64,{base64}", "detail": "auto"},
        ]
        return ask(agent(model), [{"role": "user", "content": content}])


run(AgentsSdk())
