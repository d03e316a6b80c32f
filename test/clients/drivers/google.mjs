import { createPartFromUri, GoogleGenAI } from '@google/genai';
import { key, run, url } from './programme.mjs';

const ai = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
const ask = (model, contents, config) => ai.models.generateContent({ model, contents, config });

const gemini = {
  plain: async (model, prompt) => (await ask(model, prompt)).text,
  async *stream(model, prompt) {
    for await (const chunk of await ai.models.generateContentStream({ model, contents: prompt })) yield chunk.text;
  },
  tools: async (model, prompt, { name, description, parameters, run: call }) => {
    const contents = [{ role: 'user', parts: [{ text: prompt }] }];
    const tools = [{ functionDeclarations: [{ name, description, parametersJsonSchema: parameters }] }];
    for (;;) {
      const answer = await ask(model, contents, { tools });
      const calls = answer.functionCalls ?? [];
      if (calls.length === 0) return answer.text;
      const results = calls.map(({ id, args }) => ({
        functionResponse: { id, name, response: { result: call(args) } },
      }));
      contents.push(answer.candidates[0].content, { role: 'user', parts: results });
    }
  },
  image: async (model, prompt, data) =>
    (await ask(model, [{ inlineData: { mimeType: 'image/png', data } }, { text: prompt }])).text,
};

/** The image is uploaded first, and named by its address. */
const files = {
  ...gemini,
  image: async (model, prompt, base64) => {
    const file = new Blob([Buffer.from(base64, 'base64')], { type: 'image/png' });
    const { name } = await ai.files.upload({ file });
    const { uri, mimeType } = await ai.files.get({ name });
    try {
      return (await ask(model, [createPartFromUri(uri, mimeType), { text: prompt }])).text;
    } finally {
      await ai.files.delete({ name });
    }
  },
};

await run(process.argv[2] === 'files' ? files : gemini);
