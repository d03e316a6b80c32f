import json

from openai import OpenAI
from programme import key, run, url

client = OpenAI(base_url=f"{url}/v1", api_key=key)


def ask(model, content, **more):
    messages = [{"role": "user", "content": content}]
    return client.chat.completions.create(model=model, messages=messages, **more)


class Chat:
    def plain(self, model, prompt):
        return ask(model, prompt).choices[0].message.content

    def stream(self, model, prompt):
        with ask(model, prompt, stream=True) as stream:
            for chunk in stream:
                if chunk.choices:
                    yield chunk.choices[0].delta.content

    def tools(self, model, prompt, tool):
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        messages = [{"role": "user", "content": prompt}]
        while True:
            tools = [{"type": "function", "function": function}]
            message = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = tool.run(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def image(self, model, prompt, base64):
        image_url = {"url": f"data:image/png;base64,{base64}"}
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": image_url}]
        return ask(model, content).choices[0].message.content


run(Chat())
