import { openAICompatible } from '@genkit-ai/compat-oai';
import { genkit } from 'genkit';
import { key, run, url } from './programme.mjs';

const ai = genkit({ plugins: [openAICompatible({ name: 'medley', apiKey: key, baseURL: `${url}/v1` })] });

// Of a stream that is left, Genkit rejects a promise that no caller can reach.
process.on('unhandledRejection', () => undefined);

await run({
  plain: async (model, prompt) => (await ai.generate({ model: `medley/${model}`, prompt })).text,
  async *stream(model, prompt) {
    const leaving = new AbortController();
    const { stream, response } = ai.generateStream({ model: `medley/${model}`, prompt, abortSignal: leaving.signal });
    response.catch(() => undefined);
    try {
      for await (const chunk of stream) yield chunk.text;
    } finally {
      leaving.abort();
    }
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const tool = ai.dynamicTool({ name, description, inputJsonSchema: parameters }, async (input) => call(input));
    return (await ai.generate({ model: `medley/${model}`, prompt, tools: [tool] })).text;
  },
  image: async (model, prompt, base64) => {
    const media = { url: `data:image/png;base64,${base64}`, contentType: 'image/png' };
    return (await ai.generate({ model: `medley/${model}`, prompt: [{ text: prompt }, { media }] })).text;
  },
});
