/** The Agents SDK; the word after the file is its API. */
import { Agent, run as runAgent, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { key, run, url } from './programme.mjs';

setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: key }));
setTracingDisabled(true);
if (process.argv[2] === 'chat') setOpenAIAPI('chat_completions');

const agent = (model, tools = []) => new Agent({ name: 'agent', model, tools });

await run({
  plain: async (model, prompt) => (await runAgent(agent(model), prompt)).finalOutput,
  async *stream(model, prompt) {
    const leaving = new AbortController();
    const result = await runAgent(agent(model), prompt, { stream: true, signal: leaving.signal });
    try {
      yield* result.toTextStream();
    } finally {
      leaving.abort();
      await result.completed.catch(() => undefined);
    }
  },
  tools: async (model, prompt, { name, description, parameters, run: execute }) => {
    const strict_parameters = { ...parameters, additionalProperties: false };
    const tools = [tool({ name, description, parameters: strict_parameters, execute })];
    return (await runAgent(agent(model, tools), prompt)).finalOutput;
  },
  image: async (model, prompt, base64) => {
    const content = [
      { type: 'input_text', text: prompt },
      { type: 'input_image', image: `data:image/png;base64,${base64}` },
    ];
    return (await runAgent(agent(model), [{ role: 'user', content }])).finalOutput;
  },
});
