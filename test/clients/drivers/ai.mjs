/** The AI SDK, versions 5 to 7; the word after the file is the provider. */
import * as ai from 'ai';
import { key, run, url } from './programme.mjs';

const providers = {
  openai: async () => (await import('@ai-sdk/openai')).createOpenAI({ baseURL: `${url}/v1`, apiKey: key }),
  'openai.chat': async () => (await providers.openai()).chat,
  'openai-compatible': async () =>
    (await import('@ai-sdk/openai-compatible')).createOpenAICompatible({
      name: 'medley',
      baseURL: `${url}/v1`,
      apiKey: key,
    }),
  anthropic: async () => (await import('@ai-sdk/anthropic')).createAnthropic({ baseURL: `${url}/v1`, apiKey: key }),
  google: async () =>
    (await import('@ai-sdk/google')).createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: key }),
  openrouter: async () =>
    (await import('@openrouter/ai-sdk-provider')).createOpenRouter({ baseURL: `${url}/v1`, apiKey: key }),
};
const modelOf = await providers[process.argv[2]]();
const stopWhen = (ai.isStepCount ?? ai.stepCountIs)(8);

await run({
  plain: async (model, prompt) => (await ai.generateText({ model: modelOf(model), prompt })).text,
  async *stream(model, prompt) {
    const leaving = new AbortController();
    let failure;
    const onError = ({ error }) => void (failure = error);
    const { textStream } = ai.streamText({ model: modelOf(model), prompt, abortSignal: leaving.signal, onError });
    try {
      yield* textStream;
    } finally {
      leaving.abort();
    }
    if (failure) throw failure;
  },
  tools: async (model, prompt, { name, description, parameters, run: execute }) => {
    const inputSchema = ai.jsonSchema(parameters);
    const tools = { [name]: ai.tool({ description, inputSchema, execute }) };
    return (await ai.generateText({ model: modelOf(model), prompt, tools, stopWhen })).text;
  },
  image: async (model, prompt, base64) => {
    const content = [
      { type: 'text', text: prompt },
      { type: 'file', data: base64, mediaType: 'image/png' },
    ];
    return (await ai.generateText({ model: modelOf(model), messages: [{ role: 'user', content }] })).text;
  },
});
