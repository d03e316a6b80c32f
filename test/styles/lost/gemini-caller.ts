import type { JsonObject } from '../../../src/catalog/model.ts';
import { schemaOf, type Author } from './marks.ts';

const pdf = 'application/pdf';
const png = 'image/png';
const plain = 'text/plain';

/** A request of Gemini's style with everything in it that its SDKs can say. */
export function geminiOf(author: Author): JsonObject {
  const contents: JsonObject[] = [contentOf(author)];
  for (const index of author.some(() => 0).keys())
    contents.push(...exchange(author, `call_${index}`), contentOf(author));
  const declarations = author.some(() => ({
    name: author.name('tool name'),
    ...author.maybe(() => ({ description: author.text('tool description') })),
    ...author.maybe(() =>
      author.one<JsonObject>(
        () => ({ parameters: schemaOf(author) }),
        () => ({ parametersJsonSchema: schemaOf(author) }),
      ),
    ),
  }));
  return {
    model: 'm',
    contents,
    ...author.maybe(() => ({
      systemInstruction: { parts: [{ text: author.text('system') }, { text: author.text('system') }] },
    })),
    ...(declarations.length > 0 && { tools: [{ functionDeclarations: declarations }] }),
    generationConfig: {
      maxOutputTokens: 100,
      ...author.maybe(() => ({ responseMimeType: 'application/json', responseJsonSchema: schemaOf(author) })),
      ...author.maybe(() => ({ stopSequences: [author.text('stop')] })),
    },
  };
}

function contentOf(author: Author): JsonObject {
  return { role: 'user', parts: [{ text: author.text('user text') }, ...author.some(() => part(author))] };
}

function part(author: Author): JsonObject {
  return author.one<JsonObject>(
    () => ({ text: author.text('user text') }),
    () => file(author),
    () => ({ inlineData: { mimeType: 'audio/wav', data: author.base64('audio') } }),
  );
}

function file(author: Author): JsonObject {
  const named = (): JsonObject => author.maybe(() => ({ displayName: author.text('file name') }));
  const text = (): string => Buffer.from(author.text('text file')).toString('base64');
  return author.one<JsonObject>(
    () => ({ inlineData: { mimeType: png, data: author.base64('image') } }),
    () => ({
      inlineData: { mimeType: png, data: author.base64('image'), displayName: author.text('image file name') },
    }),
    () => ({ inlineData: { mimeType: pdf, data: author.base64('document'), ...named() } }),
    () => ({ inlineData: { mimeType: plain, data: text(), ...named() } }),
    () => ({ fileData: { mimeType: png, fileUri: author.url('image link') } }),
    () => ({ fileData: { mimeType: pdf, fileUri: author.url('document link'), ...named() } }),
  );
}

/** Contents of the model, with its call and the result. */
function exchange(author: Author, id: string): JsonObject[] {
  const turn_parts: JsonObject[] = [{ text: author.text('assistant text') }];
  if (author.yes()) turn_parts.unshift({ text: author.text('thinking'), thought: true });
  if (author.yes()) return [{ role: 'model', parts: turn_parts }];
  const name = author.name('called tool');
  const own = author.maybe(() => ({ id }));
  const call = { functionCall: { ...own, name, args: { [author.name('tool call')]: author.text('tool call') } } };
  const response = author.one<JsonObject>(
    () => ({ output: author.text('tool result') }),
    () => ({ error: author.text('tool result') }),
    () => ({ a: author.text('tool result'), b: [author.text('tool result')] }),
  );
  const parts = author.maybe(() => ({ parts: [file(author)] }));
  return [
    { role: 'model', parts: [...turn_parts, call] },
    { role: 'user', parts: [{ functionResponse: { ...own, name, response, ...parts } }] },
  ];
}
