/** LangChain's chat models: the word after the file is the model class. */
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { key, run, url } from './programme.mjs';

const models = {
  openai: async (model, more = {}) => {
    const { ChatOpenAI } = await import('@langchain/openai');
    return new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: `${url}/v1` }, ...more });
  },
  responses: (model) => models.openai(model, { useResponsesApi: true }),
  anthropic: async (model) => {
    const { ChatAnthropic } = await import('@langchain/anthropic');
    return new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: url });
  },
  google: async (model) => {
    const { ChatGoogleGenerativeAI } = await import('@langchain/google-genai');
    return new ChatGoogleGenerativeAI({ model, apiKey: key, baseUrl: url });
  },
};
const modelOf = models[process.argv[2]];
const textOf = ({ content }) =>
  typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');

await run({
  plain: async (model, prompt) => textOf(await (await modelOf(model)).invoke(prompt)),
  async *stream(model, prompt) {
    for await (const chunk of await (await modelOf(model)).stream(prompt)) yield textOf(chunk);
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const bound = (await modelOf(model)).bindTools([{ type: 'function', function: { name, description, parameters } }]);
    const messages = [new HumanMessage(prompt)];
    for (;;) {
      const answer = await bound.invoke(messages);
      if (!answer.tool_calls?.length) return textOf(answer);
      messages.push(answer);
      for (const { id, args } of answer.tool_calls) {
        messages.push(new ToolMessage({ tool_call_id: id, content: call(args) }));
      }
    }
  },
  // Its Google class refuses an image by itself unless the model's name begins as one of Google's does.
  image:
    process.argv[2] !== 'google' &&
    (async (model, prompt, base64) => {
      const content = [
        { type: 'text', text: prompt },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
      ];
      return textOf(await (await modelOf(model)).invoke([new HumanMessage({ content })]));
    }),
});
