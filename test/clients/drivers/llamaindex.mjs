import { openai } from '@llamaindex/openai';
import { tool as toolOf } from 'llamaindex';
import { key, run, url } from './programme.mjs';

const modelOf = (model) => openai({ model, baseURL: `${url}/v1`, apiKey: key, supportToolCall: true });
const user = (content) => [{ role: 'user', content }];
const chat = async (model, content) => (await modelOf(model).chat({ messages: user(content) })).message.content;

await run({
  plain: chat,
  async *stream(model, prompt) {
    for await (const chunk of await modelOf(model).chat({ messages: user(prompt), stream: true })) yield chunk.delta;
  },
  tools: async (model, prompt, { name, description, parameters, run: execute }) => {
    const tools = [toolOf({ name, description, parameters, execute })];
    const messages = user(prompt);
    for (;;) {
      const { message } = await modelOf(model).chat({ messages, tools });
      const calls = message.options?.toolCall ?? [];
      if (calls.length === 0) return message.content;
      messages.push(message);
      for (const { id, input } of calls) {
        const toolResult = {
          id,
          result: execute(typeof input === 'string' ? JSON.parse(input) : input),
          isError: false,
        };
        messages.push({ role: 'user', content: toolResult.result, options: { toolResult } });
      }
    }
  },
  image: (model, prompt, base64) =>
    chat(model, [
      { type: 'text', text: prompt },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
    ]),
});
