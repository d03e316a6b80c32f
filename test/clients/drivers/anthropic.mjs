import Anthropic from '@anthropic-ai/sdk';
import { key, run, url } from './programme.mjs';

const client = new Anthropic({ baseURL: url, apiKey: key });
const user = (content) => [{ role: 'user', content }];
const textOf = ({ content }) => content.map((block) => block.text ?? '').join('');
const max_tokens = 1_000;

await run({
  plain: async (model, prompt) => textOf(await client.messages.create({ model, max_tokens, messages: user(prompt) })),
  async *stream(model, prompt) {
    const stream = await client.messages.create({ model, max_tokens, messages: user(prompt), stream: true });
    for await (const event of stream) if (event.delta?.type === 'text_delta') yield event.delta.text;
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const messages = user(prompt);
    const tools = [{ name, description, input_schema: parameters }];
    for (;;) {
      const answer = await client.messages.create({ model, max_tokens, messages, tools });
      const calls = answer.content.filter((block) => block.type === 'tool_use');
      if (calls.length === 0) return textOf(answer);
      const results = calls.map(({ id, input }) => ({ type: 'tool_result', tool_use_id: id, content: call(input) }));
      messages.push({ role: 'assistant', content: answer.content }, { role: 'user', content: results });
    }
  },
  image: async (model, prompt, base64) => {
    const source = { type: 'base64', media_type: 'image/png', data: base64 };
    const content = [
      { type: 'image', source },
      { type: 'text', text: prompt },
    ];
    return textOf(await client.messages.create({ model, max_tokens, messages: user(content) }));
  },
});
