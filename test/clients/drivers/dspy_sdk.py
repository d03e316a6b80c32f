import dspy
from programme import key, run, url


def ask(model, content, **more):
    llm = dspy.LM(f"openai/{model}", api_base=f"{url}/v1", api_key=key, cache=False, num_retries=0)
    [answer] = llm(messages=[{"role": "user", "content": content}], **more)
    return answer if isinstance(answer, str) else answer["text"]


class Dspy:
    def plain(self, model, prompt):
        return ask(model, prompt)

    def image(self, model, prompt, base64):
        image_url = {"url": f"data:image/png;base64,{base64}"}
        return ask(model, [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": image_url}])


run(Dspy())
