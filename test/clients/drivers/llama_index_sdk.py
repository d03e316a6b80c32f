from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from programme import key, run, url


def model_of(model):
    return OpenAILike(
        model=model, api_base=f"{url}/v1", api_key=key, is_chat_model=True, is_function_calling_model=True
    )


def user(*blocks):
    return [ChatMessage(role="user", blocks=list(blocks))]


class LlamaIndex:
    def plain(self, model, prompt):
        return model_of(model).chat(user(TextBlock(text=prompt))).message.content

    def stream(self, model, prompt):
        for piece in model_of(model).stream_chat(user(TextBlock(text=prompt))):
            yield piece.delta

    def tools(self, model, prompt, tool):
        def next_result(number: int) -> str:
            return tool.run(number)

        llm = model_of(model)
        function = FunctionTool.from_defaults(next_result, name=tool.name, description=tool.description)
        messages = user(TextBlock(text=prompt))
        while True:
            answer = llm.chat_with_tools([function], chat_history=messages)
            calls = llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
            messages.append(answer.message)
            if not calls:
                return answer.message.content
            for call in calls:
                more = {"tool_call_id": call.tool_id, "name": call.tool_name}
                text = tool.run(**call.tool_kwargs)
                messages.append(ChatMessage(role="tool", content=text, additional_kwargs=more))

    def image(self, model, prompt, base64):
        picture = ImageBlock(image=base64.encode(), image_mimetype="image/png")
        return model_of(model).chat(user(TextBlock(text=prompt), picture)).message.content


run(LlamaIndex())
