import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { ChatRequest, Passthrough, Target } from '../codec.ts';
import { isObject, memberOf } from '../fields.ts';
import { memberEdits } from '../model-name.ts';
import { changed, chargedIn, fail, note, type SameStream, type StreamState } from '../stream.ts';
import { budgetOf, readEffort } from '../thinking.ts';
import { no_thought_signature } from '../thought-signatures.ts';
import { answerId } from './caller-response.ts';
import { unsealed } from './caller-signatures.ts';
import { frame as frameOf } from './errors.ts';
import { GeminiReader } from './stream.ts';
import { usage_format } from './usage.ts';

/** The caller's body for an upstream of the same style, whose path says the model and whether it is a stream. */
export function sameGeminiBody({ body, max_tokens }: ChatRequest, { max_tokens: most, quirks }: Target): JsonObject {
  const { model: _, stream: __, ...rest } = body;
  const config: JsonObject = isObject(body['generationConfig']) ? { ...body['generationConfig'] } : {};
  config['maxOutputTokens'] = Math.max(1, Math.min(max_tokens ?? most, most));
  if (quirks.sampling === false) for (const name of sampling) delete config[name];
  adaptThinking(config, quirks.thinking);
  const sent: JsonObject = {
    ...rest,
    contents: signed(withoutForeign(body['contents']), quirks),
    generationConfig: config,
  };
  const { tools } = sent;
  // A choice among tools that are all left out is a mistake there.
  if (Array.isArray(tools) ? tools.length === 0 : memberOf(sent, 'tools') === undefined) delete sent['toolConfig'];
  return sent;
}

const sampling = ['temperature', 'topP', 'topK'];

/** The body for counting the tokens of a request at an upstream of this style. */
export function countedBody({ body }: ChatRequest): JsonObject {
  const { model: _, stream: __, generationConfig: ___, ...counted } = body;
  return { ...counted, contents: withoutForeign(body['contents']) };
}

function adaptThinking(config: JsonObject, kind: Target['quirks']['thinking']): void {
  const { thinkingConfig: thinking } = config;
  if (!isObject(thinking) || kind === undefined) return;
  const { thinkingLevel, ...rest } = thinking;
  if (kind === 'none' || (kind === 'always' && thinking['thinkingBudget'] === 0)) delete config['thinkingConfig'];
  else if (kind === 'budget' && typeof thinkingLevel === 'string') {
    const effort = readEffort(thinkingLevel.toLowerCase());
    config['thinkingConfig'] = { ...rest, ...(effort && { thinkingBudget: budgetOf(effort) }) };
  }
}

/** Thoughts that an upstream of another style signed say nothing to this one; all others stay the objects that they were. */
function withoutForeign(contents: Json | undefined): Json {
  if (!Array.isArray(contents)) return null;
  if (!contents.some((content) => partsOf(content).some(isForeign))) return contents;
  return contents.filter(isObject).flatMap((content): JsonObject[] => {
    const parts = partsOf(content).filter((part) => !isForeign(part));
    return parts.length === 0 ? [] : [{ ...content, parts }];
  });
}

/** Calls that another model made have no signature, and models that think by levels refuse the first of a turn without. */
function signed(contents: Json, { thinking }: Target['quirks']): Json {
  if (!Array.isArray(contents) || thinking === 'budget' || thinking === 'none') return contents;
  return contents.map((content) => {
    const parts = partsOf(content);
    const calls = parts.filter((part) => isObject(part) && memberOf(part, 'functionCall') !== undefined);
    const [first] = calls;
    const has_signature = calls.some((part) => isObject(part) && memberOf(part, 'thoughtSignature') !== undefined);
    if (!isObject(content) || !isObject(first) || has_signature) return content;
    const own = { ...first, thoughtSignature: no_thought_signature };
    return { ...content, parts: parts.map((part) => (part === first ? own : part)) };
  });
}

function partsOf(content: Json): Json[] {
  return isObject(content) && Array.isArray(content['parts']) ? content['parts'] : [];
}

function isForeign(part: Json): boolean {
  return isObject(part) && unsealed(part['thoughtSignature']) !== undefined;
}

type PassthroughOptions = Parameters<Passthrough['openStream']>[0];

/** Chunks go on as they came but for the model's name and the answer's id; a reader of the style says what they mean. */
export function sameGemini(options: PassthroughOptions, state: StreamState): SameStream {
  const reader = new GeminiReader(options.request_id);
  const own = { responseId: answerId(options.request_id), modelVersion: options.model };
  let reported: Json = null;
  return {
    take: (frame: SseFrame) => {
      for (const event of reader.read(frame)) note(state, event);
      if (state.failure) return undefined;
      if (frame.data === undefined || frame.data.trim() === '') return undefined;
      reported = reader.usage ?? reported;
      return changed(frame, (bytes) => memberEdits(bytes, own));
    },
    end: () => {
      for (const event of reader.end()) note(state, event);
      if (state.failure) return undefined;
      if (!state.is_complete) return void fail(state, 'The stream was cut off.', 'cut');
      state.finish = reader.finish;
      const charged = chargedIn(state, options);
      if (usage_format.reports(reported, charged)) return undefined;
      return frameOf({ usageMetadata: usage_format.correct(reported, charged), ...own });
    },
  };
}
