from anthropic import Anthropic
from programme import key, run, url

client = Anthropic(base_url=url, api_key=key)


def ask(model, content, **more):
    return client.messages.create(model=model, max_tokens=1000, messages=[{"role": "user", "content": content}], **more)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


class Messages:
    def plain(self, model, prompt):
        return text_of(ask(model, prompt))

    def stream(self, model, prompt):
        with ask(model, prompt, stream=True) as stream:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    yield event.delta.text

    def tools(self, model, prompt, tool):
        tools = [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters}]
        messages = [{"role": "user", "content": prompt}]
        while True:
            answer = client.messages.create(model=model, max_tokens=1000, messages=messages, tools=tools)
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return text_of(answer)
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": tool.run(**call.input)} for call in calls
            ]
            messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]

    def image(self, model, prompt, base64):
        source = {"type": "base64", "media_type": "image/png", "data": base64}
        return text_of(ask(model, [{"type": "image", "source": source}, {"type": "text", "text": prompt}]))


run(Messages())
