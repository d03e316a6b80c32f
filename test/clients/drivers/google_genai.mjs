import { createPartFromBase64, createPartFromFunctionResponse, GoogleGenAI } from '@google/genai';
import { key, run, url } from './programme.mjs';

const { models } = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });

await run({
  plain: async (model, contents) => (await models.generateContent({ model, contents })).text,
  async *stream(model, contents) {
    for await (const chunk of await models.generateContentStream({ model, contents })) yield chunk.text;
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const contents = [{ role: 'user', parts: [{ text: prompt }] }];
    const tools = [{ functionDeclarations: [{ name, description, parametersJsonSchema: parameters }] }];
    for (;;) {
      const answer = await models.generateContent({ model, contents, config: { tools } });
      if (!answer.functionCalls?.length) return answer.text;
      const parts = answer.functionCalls.map(({ id, name: called, args }) =>
        createPartFromFunctionResponse(id ?? called, called, { output: call(args) }),
      );
      contents.push(answer.candidates[0].content, { role: 'user', parts });
    }
  },
  image: async (model, prompt, base64) => {
    const contents = [prompt, createPartFromBase64(base64, 'image/png')];
    return (await models.generateContent({ model, contents })).text;
  },
});
