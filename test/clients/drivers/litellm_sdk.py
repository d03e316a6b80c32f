"""LiteLLM's SDK; the word after the file is the provider's prefix."""

import json
import sys

import litellm
from programme import key, run, url

prefix = sys.argv[1]
api_base = url if prefix == "anthropic" else f"{url}/v1"


def ask(model, messages, **more):
    return litellm.completion(
        model=f"{prefix}/{model}", messages=messages, api_base=api_base, api_key=key, max_retries=0, **more
    )


def user(content):
    return [{"role": "user", "content": content}]


class LiteLlm:
    def plain(self, model, prompt):
        return ask(model, user(prompt)).choices[0].message.content

    def stream(self, model, prompt):
        stream = ask(model, user(prompt), stream=True)
        for chunk in stream:
            yield chunk.choices[0].delta.content

    def tools(self, model, prompt, tool):
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        messages = user(prompt)
        while True:
            message = ask(model, messages, tools=[{"type": "function", "function": function}]).choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                result = tool.run(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def image(self, model, prompt, base64):
        image_url = {"url": f"data:image/png;base64,{base64}"}
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": image_url}]
        return ask(model, user(content)).choices[0].message.content


run(LiteLlm())
