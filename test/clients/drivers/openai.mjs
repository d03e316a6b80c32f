import OpenAI from 'openai';
import { key, run, url } from './programme.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
const user = (content) => [{ role: 'user', content }];

const chat = {
  plain: async (model, prompt) => {
    const answer = await client.chat.completions.create({ model, messages: user(prompt) });
    return answer.choices[0].message.content;
  },
  async *stream(model, prompt) {
    const stream = await client.chat.completions.create({ model, messages: user(prompt), stream: true });
    for await (const chunk of stream) yield chunk.choices[0]?.delta.content;
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const messages = user(prompt);
    const tools = [{ type: 'function', function: { name, description, parameters } }];
    for (;;) {
      const { message } = (await client.chat.completions.create({ model, messages, tools })).choices[0];
      if (!message.tool_calls?.length) return message.content;
      messages.push(message);
      for (const { id, function: called } of message.tool_calls) {
        messages.push({ role: 'tool', tool_call_id: id, content: call(JSON.parse(called.arguments)) });
      }
    }
  },
  image: async (model, prompt, base64) => {
    const content = [
      { type: 'text', text: prompt },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
    ];
    return (await client.chat.completions.create({ model, messages: user(content) })).choices[0].message.content;
  },
};

const responses = {
  plain: async (model, input) => (await client.responses.create({ model, input })).output_text,
  async *stream(model, input) {
    for await (const event of await client.responses.create({ model, input, stream: true })) {
      if (event.type === 'response.output_text.delta') yield event.delta;
    }
  },
  /** By `previous_response_id`, as the SDK's own guide does it. */
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const tools = [{ type: 'function', name, description, parameters, strict: false }];
    let answer = await client.responses.create({ model, input: prompt, tools });
    for (;;) {
      const calls = answer.output.filter((item) => item.type === 'function_call');
      if (calls.length === 0) return answer.output_text;
      const input = calls.map((one) => ({
        type: 'function_call_output',
        call_id: one.call_id,
        output: call(JSON.parse(one.arguments)),
      }));
      answer = await client.responses.create({ model, input, tools, previous_response_id: answer.id });
    }
  },
  image: async (model, prompt, base64) => {
    const content = [
      { type: 'input_text', text: prompt },
      { type: 'input_image', image_url: `data:image/png;base64,${base64}`, detail: 'auto' },
    ];
    return (await client.responses.create({ model, input: user(content) })).output_text;
  },
};

await run({ chat, responses }[process.argv[2]]);
