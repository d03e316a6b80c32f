import { Agent, ImageBlock, TextBlock, tool as toolOf } from '@strands-agents/sdk';
import { OpenAIModel } from '@strands-agents/sdk/models/openai';
import { key, run, url } from './programme.mjs';

const agent = (modelId, tools = []) =>
  new Agent({
    model: new OpenAIModel({ api: 'chat', modelId, apiKey: key, clientConfig: { baseURL: `${url}/v1` } }),
    tools,
    printer: false,
  });
const textOf = ({ lastMessage }) => lastMessage.content.map((block) => block.text ?? '').join('');

await run({
  plain: async (model, prompt) => textOf(await agent(model).invoke(prompt)),
  async *stream(model, prompt) {
    for await (const event of agent(model).stream(prompt)) {
      const one = event.event ?? event;
      if (one.type === 'modelContentBlockDeltaEvent' && one.delta.type === 'textDelta') yield one.delta.text;
    }
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const tool = toolOf({ name, description, inputSchema: parameters, callback: call });
    return textOf(await agent(model, [tool]).invoke(prompt));
  },
  image: async (model, prompt, base64) => {
    const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
    return textOf(
      await agent(model).invoke([new TextBlock(prompt), new ImageBlock({ format: 'png', source: { bytes } })]),
    );
  },
});
