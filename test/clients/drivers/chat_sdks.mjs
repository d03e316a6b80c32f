/** SDKs of providers that speak chat completions in their own spelling; the word after the file is the SDK. */
import { key, run, url } from './programme.mjs';

const imageUrl = (base64) => `data:image/png;base64,${base64}`;

const snake = (ask, stream) => ({
  ask: async (model, messages, tools) => (await ask({ model, messages, ...(tools && { tools }) })).choices[0].message,
  async *stream(model, messages) {
    for await (const chunk of await stream({ model, messages, stream: true })) yield chunk.choices[0]?.delta.content;
  },
  callsOf: (message) => message.tool_calls ?? [],
  result: (id, content) => ({ role: 'tool', tool_call_id: id, content }),
  image: (base64) => ({ type: 'image_url', image_url: { url: imageUrl(base64) } }),
});

const camel = (ask, stream, imageOf) => ({
  ask: async (model, messages, tools) => (await ask({ model, messages, ...(tools && { tools }) })).choices[0].message,
  async *stream(model, messages) {
    for await (const event of await stream({ model, messages, stream: true })) {
      yield (event.data ?? event).choices[0]?.delta.content;
    }
  },
  callsOf: (message) => message.toolCalls ?? [],
  result: (toolCallId, content) => ({ role: 'tool', toolCallId, content }),
  image: (base64) => ({ type: 'image_url', imageUrl: imageOf(imageUrl(base64)) }),
});

const sdks = {
  together: async () => {
    const { default: Together } = await import('together-ai');
    const { completions } = new Together({ baseURL: `${url}/v1`, apiKey: key }).chat;
    return snake(
      (body) => completions.create(body),
      (body) => completions.create(body),
    );
  },
  huggingface: async () => {
    const { InferenceClient } = await import('@huggingface/inference');
    const client = new InferenceClient(key, { endpointUrl: `${url}/v1` });
    return snake(
      (body) => client.chatCompletion(body),
      ({ stream: _stream, ...body }) => client.chatCompletionStream(body),
    );
  },
  openrouter: async () => {
    const { OpenRouter } = await import('@openrouter/sdk');
    const { chat } = new OpenRouter({ serverURL: `${url}/v1`, apiKey: key });
    const send = (chatRequest) => chat.send({ chatRequest });
    return camel(send, send, (address) => ({ url: address }));
  },
  mistral: async () => {
    const { Mistral } = await import('@mistralai/mistralai');
    const { chat } = new Mistral({ serverURL: url, apiKey: key });
    return camel(
      (body) => chat.complete(body),
      ({ stream: _stream, ...body }) => chat.stream(body),
      (address) => address,
    );
  },
};
const sdk = await sdks[process.argv[2]]();
const user = (content) => [{ role: 'user', content }];

await run({
  plain: async (model, prompt) => (await sdk.ask(model, user(prompt))).content,
  stream: (model, prompt) => sdk.stream(model, user(prompt)),
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const messages = user(prompt);
    const tools = [{ type: 'function', function: { name, description, parameters } }];
    for (;;) {
      const message = await sdk.ask(model, messages, tools);
      const calls = sdk.callsOf(message);
      if (calls.length === 0) return message.content;
      messages.push(message);
      for (const { id, function: called } of calls) {
        const input = typeof called.arguments === 'string' ? JSON.parse(called.arguments) : called.arguments;
        messages.push(sdk.result(id, call(input)));
      }
    }
  },
  image: async (model, prompt, base64) =>
    (await sdk.ask(model, user([{ type: 'text', text: prompt }, sdk.image(base64)]))).content,
});
