import io
import sys
from base64 import b64decode

from google import genai
from google.genai import types
from programme import key, run, url

client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))


def ask(model, contents, **config):
    return client.models.generate_content(model=model, contents=contents, config=config or None)


class Gemini:
    def plain(self, model, prompt):
        return ask(model, prompt).text

    def stream(self, model, prompt):
        for chunk in client.models.generate_content_stream(model=model, contents=prompt):
            yield chunk.text

    def tools(self, model, prompt, tool):
        function = {"name": tool.name, "description": tool.description, "parameters_json_schema": tool.parameters}
        contents = [types.Content(role="user", parts=[types.Part(text=prompt)])]
        while True:
            answer = ask(model, contents, tools=[types.Tool(function_declarations=[function])])
            if not answer.function_calls:
                return answer.text
            results = [
                types.Part.from_function_response(name=call.name, response={"result": tool.run(**call.args)})
                for call in answer.function_calls
            ]
            contents += [answer.candidates[0].content, types.Content(role="user", parts=results)]

    def image(self, model, prompt, base64):
        return ask(model, [types.Part.from_bytes(data=b64decode(base64), mime_type="image/png"), prompt]).text


class Files(Gemini):
    """The image is uploaded first, and named by its address."""

    def image(self, model, prompt, base64):
        file = client.files.upload(file=io.BytesIO(b64decode(base64)), config={"mime_type": "image/png"})
        try:
            return ask(model, [client.files.get(name=file.name), prompt]).text
        finally:
            client.files.delete(name=file.name)


run(Files() if sys.argv[1] == "files" else Gemini())
