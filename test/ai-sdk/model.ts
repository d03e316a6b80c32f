import type { Answer } from '../clients/answers.ts';
import type { UpstreamRequest } from '../helpers/chat-upstream.ts';

/** An imitated model: its answer depends on the request alone, as that of a real one does. */

export const image_base64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export const pdf_base64 = Buffer.from(
  '%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n',
).toString('base64');

export const audio_base64 = Buffer.from('RIFF\u0000\u0000\u0000\u0000WAVEfmt sound of a recording').toString('base64');

export function modelAnswer({ body }: UpstreamRequest): Answer {
  const text = JSON.stringify(body);
  const schema = schemaIn(body);
  if (schema !== undefined) return { text: JSON.stringify(instanceOf(schema)) };
  if (text.includes('getTemperature')) return musicFor(text);
  if (text.includes('calculator'))
    return { call: { id: 'call_sum', name: 'calculator', input: { expression: '2+2' } } };
  if (has(text, image_base64)) return { text: 'I see a cat in the picture.' };
  if (has(text, pdf_base64)) return { text: 'The document is about an embedding.' };
  if (has(text, audio_base64)) return { text: 'Somebody speaks of Galileo.' };
  return { text: 'Words in a row, one two three four five.' };
}

/** Two calls, one behind the other: the second needs the result of the first. */
function musicFor(text: string): Answer {
  if (text.includes('Foggy Morning')) return { text: 'I play "Foggy Morning".' };
  if (text.includes('15 degrees')) return { call: { id: 'call_2', name: 'playMusic', input: { temperature: 15 } } };
  return { call: { id: 'call_1', name: 'getTemperature', input: { city: 'San Francisco' } } };
}

/** Google's API takes both alphabets of base64. */
function has(text: string, base64: string): boolean {
  return text.includes(base64) || text.includes(base64.replaceAll('+', '-').replaceAll('/', '_'));
}

type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minItems?: number;
  enum?: unknown[];
  anyOf?: Schema[];
};

const schema_names = ['schema', 'responseJsonSchema', 'responseSchema'];

/** The schema that the answer has to fit, wherever the style has it. */
function schemaIn(value: unknown): Schema | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, below] of Object.entries(value)) {
    if (name === 'tools') continue;
    if (schema_names.includes(name) && typeof below === 'object') return below as Schema;
    const schema = schemaIn(below);
    if (schema) return schema;
  }
  return undefined;
}

const words = 'A text that is long enough for every check that somebody could think of, and a little longer.';

function instanceOf(schema: Schema): unknown {
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return instanceOf(schema.anyOf[0] ?? {});
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, each]) => [name, instanceOf(each)]),
      );
    case 'array':
      return Array.from({ length: Math.max(schema.minItems ?? 0, 5) }, () => instanceOf(schema.items ?? {}));
    case 'number':
    case 'integer':
      return 7;
    case 'boolean':
      return true;
    default:
      return words;
  }
}
