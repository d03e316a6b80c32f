import sys

from langchain_core.messages import HumanMessage, ToolMessage
from programme import key, run, url


def model_of(model):
    if sys.argv[1] == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=model, base_url=url, api_key=key)
    if sys.argv[1] == "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model=model, base_url=url, api_key=key)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model, base_url=f"{url}/v1", api_key=key)


def text_of(message):
    if isinstance(message.content, str):
        return message.content
    return "".join(block.get("text", "") for block in message.content)


class LangChain:
    def plain(self, model, prompt):
        return text_of(model_of(model).invoke(prompt))

    def stream(self, model, prompt):
        for chunk in model_of(model).stream(prompt):
            yield text_of(chunk)

    def tools(self, model, prompt, tool):
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        bound = model_of(model).bind_tools([{"type": "function", "function": function}])
        messages = [HumanMessage(prompt)]
        while True:
            answer = bound.invoke(messages)
            if not answer.tool_calls:
                return text_of(answer)
            messages.append(answer)
            for call in answer.tool_calls:
                messages.append(ToolMessage(tool.run(**call["args"]), tool_call_id=call["id"]))

    def image(self, model, prompt, base64):
        image_url = {"url": f"data:image/png;base64,{base64}"}
        content = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": image_url}]
        return text_of(model_of(model).invoke([HumanMessage(content)]))


run(LangChain())
