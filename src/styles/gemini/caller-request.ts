import type { Json, JsonObject } from '../../catalog/model.ts';
import { argumentsOf } from '../calls.ts';
import type { Conversation, Part, Source, TextPart, Turn } from '../conversation.ts';
import {
  isObject,
  memberOf,
  mistake,
  needName,
  needObject,
  needText,
  notCarried,
  readList,
  readObject,
  readText,
  wrongType,
} from '../fields.ts';
import type { BodyLink, FetchedFile, Replacement } from '../links.ts';
import { no_thought_signature } from '../thought-signatures.ts';
import { addTurn, OpenCalls } from '../turns.ts';
import { readSettings } from './caller-settings.ts';
import { unsealed } from './caller-signatures.ts';

/** Reads the body of a `generateContent` request. Throws ApiError 400 naming the field that cannot be read. */
export function readGenerateContent(body: JsonObject): Conversation {
  const instruction = readObject(body, 'systemInstruction', 'systemInstruction');
  const system = instruction ? readTexts(instruction, 'systemInstruction') : [];
  const turns: Turn[] = system.length === 0 ? [] : [{ role: 'system', parts: system }];
  addContents(turns, body);
  for (const turn of turns) if (turn.role === 'assistant') turn.parts = withWholeThoughts(turn.parts);
  return readSettings(body, turns);
}

function addContents(turns: Turn[], body: JsonObject): void {
  const calls = new OpenCalls();
  let before: Turn['role'] | undefined;
  for (const [index, value] of (readList(body, 'contents', 'contents') ?? []).entries()) {
    const at = `contents[${index}]`;
    const content = needObject(value, at);
    const role = roleOf(content, at);
    // A stream's pieces come back as contents of their own: what the model said is not over before a user's turn.
    if (role !== 'user' && role !== before) calls.checkAnswered();
    before = role;
    if (role === 'system') turns.push({ role, parts: readTexts(content, at) });
    else if (role === 'user')
      addTurn(
        turns,
        role,
        partsOf(content, at).flatMap(([part, where]) => readUserPart(part, where, calls)),
      );
    else
      addTurn(
        turns,
        role,
        partsOf(content, at).flatMap(([part, where]) => readModelPart(part, where, calls)),
      );
  }
  calls.checkAnswered();
}

function roleOf(content: JsonObject, at: string): Turn['role'] {
  switch (readText(content, 'role', `${at}.role`) ?? '') {
    case '':
    case 'user':
    case 'function': // results of functions, in the first versions of the API
      return 'user';
    case 'model':
      return 'assistant';
    case 'system':
      return 'system';
    default:
      throw mistake(`${at}.role`, 'must be user or model');
  }
}

function partsOf(content: JsonObject, at: string): [part: JsonObject, at: string][] {
  return (readList(content, 'parts', `${at}.parts`) ?? []).map((part, index) => {
    const where = `${at}.parts[${index}]`;
    return [needObject(part, where), where];
  });
}

function readTexts(content: JsonObject, at: string): TextPart[] {
  return partsOf(content, at).map(([part, where]) => {
    if (memberOf(part, 'text') === undefined) throw notCarried(where, 'A part other than text in an instruction');
    return { type: 'text', text: needText(part, 'text', `${where}.text`) };
  });
}

function readUserPart(part: JsonObject, at: string, calls: OpenCalls): Part[] {
  if (memberOf(part, 'functionResponse') !== undefined) return [readResult(part, at, calls)];
  if (memberOf(part, 'text') !== undefined) return [{ type: 'text', text: needText(part, 'text', `${at}.text`) }];
  return readFile(part, at);
}

/** Reads a file, inline or behind a link. */
function readFile(part: JsonObject, at: string): Part[] {
  const inline = readObject(part, 'inlineData', `${at}.inlineData`);
  if (inline) {
    const where = `${at}.inlineData`;
    const media_type = needName(inline, 'mimeType', `${where}.mimeType`).toLowerCase();
    const data = needText(inline, 'data', `${where}.data`);
    if (media_type.startsWith('audio/')) return [{ type: 'audio', format: audioFormat(media_type), data, at: where }];
    return [filePart(inline, media_type, { type: 'base64', media_type: plainType(media_type), data }, where)];
  }
  const linked = readObject(part, 'fileData', `${at}.fileData`);
  if (linked) {
    const where = `${at}.fileData`;
    const media_type = (readText(linked, 'mimeType', `${where}.mimeType`) ?? '').toLowerCase();
    const url = needName(linked, 'fileUri', `${where}.fileUri`);
    return [filePart(linked, media_type, { type: 'url', url }, `${where}.fileUri`)];
  }
  if (isOfGoogle(part)) return [];
  throw notCarried(at, 'A part of this kind');
}

function filePart(holder: JsonObject, media_type: string, source: Source, at: string): Part {
  if (media_type.startsWith('image/')) return { type: 'image', source, at };
  const title = readText(holder, 'displayName', `${at}.displayName`);
  const named = title === undefined ? {} : { title };
  if (source.type === 'base64' && /^text\/|^application\/json$/.test(media_type)) {
    const text = Buffer.from(source.data, 'base64').toString();
    return { type: 'document', source: { type: 'text', text }, ...named, at };
  }
  return { type: 'document', source, ...named, at };
}

function plainType(media_type: string): string {
  return media_type === 'image/jpg' ? 'image/jpeg' : media_type;
}

function audioFormat(media_type: string): string {
  const [type = ''] = media_type.slice('audio/'.length).split(';');
  if (type === 'mpeg') return 'mp3';
  if (type === 'x-wav' || type === 'wave') return 'wav';
  return type === 'l16' ? 'pcm16' : type;
}

/** Parts that a model of Google's wrote for itself: other models do without. */
function isOfGoogle(part: JsonObject): boolean {
  const own = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'];
  return Object.keys(part).length === 0 || own.some((name) => memberOf(part, name) !== undefined);
}

function readResult(part: JsonObject, at: string, calls: OpenCalls): Part {
  const where = `${at}.functionResponse`;
  const result = needObject(part['functionResponse'], where);
  const given_id = readText(result, 'id', `${where}.id`) ?? '';
  const id =
    given_id === ''
      ? calls.answerByName(needName(result, 'name', `${where}.name`), `${where}.name`)
      : calls.answer(given_id, `${where}.id`);
  const response = readObject(result, 'response', `${where}.response`) ?? {};
  const { text, is_error } = resultText(response);
  const files = partsOf(result, where).flatMap(([each, there]) => readFile(each, there));
  const texts: Part[] = text === '' ? [] : [{ type: 'text', text }];
  return { type: 'tool_result', id, parts: [...texts, ...files], is_error };
}

/** The text of a result: what stands in `output` or `error` alone, as the SDKs write it, or else all of it. */
function resultText(response: JsonObject): { text: string; is_error: boolean } {
  const [key, ...others] = Object.keys(response);
  const is_single = others.length === 0 && (key === 'output' || key === 'error');
  const value: Json = is_single ? (response[key] ?? '') : response;
  const text = typeof value === 'string' ? value : Object.keys(response).length === 0 ? '' : JSON.stringify(value);
  return { text, is_error: is_single && key === 'error' };
}

function readModelPart(part: JsonObject, at: string, calls: OpenCalls): Part[] {
  const signature = part['thoughtSignature'];
  if (part['thought'] === true) return readThought(part, at);
  const is_own =
    typeof signature === 'string' && signature !== '' && signature !== no_thought_signature && !unsealed(signature);
  const signed = is_own ? { thought_signature: signature } : {};
  const call = readObject(part, 'functionCall', `${at}.functionCall`);
  if (call) return [{ ...readCall(call, `${at}.functionCall`, calls), ...signed }];
  if (memberOf(part, 'text') !== undefined) {
    const text = needText(part, 'text', `${at}.text`);
    return text === '' && !is_own ? [] : [{ type: 'text', text, ...signed }];
  }
  if (isOfGoogle(part) || is_own) return [];
  throw notCarried(at, 'A part of this kind in a turn of the model');
}

function readThought(part: JsonObject, at: string): Part[] {
  const text = readText(part, 'text', `${at}.text`) ?? '';
  const signature = unsealed(part['thoughtSignature']);
  if (signature?.kind === 'redacted') return [{ type: 'redacted_thinking', data: signature.text }];
  if (signature) return [{ type: 'thinking', text, signature: signature.text }];
  return text === '' ? [] : [{ type: 'thinking', text }];
}

function readCall(call: JsonObject, at: string, calls: OpenCalls): Extract<Part, { type: 'tool_call' }> {
  const name = needName(call, 'name', `${at}.name`);
  const { args } = call;
  if (args !== undefined && args !== null && !isObject(args)) throw wrongType(`${at}.args`, 'an object', args);
  // Most models of Google's name the function alone; results find their calls by it.
  const given_id = readText(call, 'id', `${at}.id`) ?? '';
  const place = at.replaceAll(/\D+/g, '_').replaceAll(/^_|_$/g, '');
  const id = calls.add(given_id === '' ? `call_${place}` : given_id, name, `${at}.id`);
  return { type: 'tool_call', id, name, arguments: argumentsOf(args) };
}

/** A streamed thought comes back in pieces, its signature in the last of them. */
function withWholeThoughts(parts: readonly Part[]): Part[] {
  const whole: Part[] = [];
  let pieces: string[] = [];
  const flush = (signature?: string): void => {
    if (pieces.length > 0 || signature !== undefined)
      whole.push({ type: 'thinking', text: pieces.join(''), ...(signature !== undefined && { signature }) });
    pieces = [];
  };
  for (const part of parts) {
    if (part.type !== 'thinking') {
      flush();
      whole.push(part);
      continue;
    }
    pieces.push(part.text);
    if (part.signature !== undefined) flush(part.signature);
  }
  flush();
  return whole;
}

/** A file stands in the place of the part that has its link. */
export function replaceLink({ place }: BodyLink, file: FetchedFile): Replacement | undefined {
  if (place.at(-1) !== 'fileUri') return undefined;
  return {
    place: place.slice(0, -2),
    put: (part) => {
      if (!isObject(part)) return part;
      const { fileData, ...rest } = part;
      const name = isObject(fileData) ? fileData['displayName'] : undefined;
      return {
        ...rest,
        inlineData: {
          mimeType: file.mimeType,
          data: file.data,
          ...(typeof name === 'string' && { displayName: name }),
        },
      };
    },
  };
}
