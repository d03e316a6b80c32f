import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { key, run, url } from './programme.mjs';

const agent = (model, tools = {}) =>
  new Agent({
    id: 'agent',
    name: 'agent',
    instructions: 'Answer.',
    model: { id: `medley/${model}`, url: `${url}/v1`, apiKey: key },
    tools,
  });

await run({
  plain: async (model, prompt) => (await agent(model).generate(prompt)).text,
  async *stream(model, prompt) {
    const leaving = new AbortController();
    const { textStream } = await agent(model).stream(prompt, { abortSignal: leaving.signal });
    try {
      yield* textStream;
    } finally {
      leaving.abort();
    }
  },
  tools: async (model, prompt, { name, description, run: call }) => {
    const tool = createTool({
      id: name,
      description,
      inputSchema: z.object({ number: z.number().int() }),
      execute: async (input) => call(input),
    });
    return (await agent(model, { [name]: tool }).generate(prompt, { maxSteps: 8 })).text;
  },
  image: async (model, prompt, base64) => {
    const content = [
      { type: 'text', text: prompt },
      { type: 'image', image: base64, mimeType: 'image/png' },
    ];
    return (await agent(model).generate([{ role: 'user', content }])).text;
  },
});
