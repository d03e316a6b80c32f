import type { JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import { callId, ToolNames } from '../calls.ts';
import type { ChatRequest, Target, UpstreamBody } from '../codec.ts';
import { writeCall } from './response.ts';
import type { Conversation, Part, ToolChoice, Turn } from '../conversation.ts';
import { mistake, notCarried } from '../fields.ts';
import type { Quirks } from '../quirks.ts';
import { isStrict, planJson, type JsonPlan } from '../structured.ts';
import { effortOfThinking } from './settings.ts';

const stops_max = 4;

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

/** The body of a chat-completions request. Throws ApiError 400 naming the caller's field that has no place there. */
export function writeCompletions(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody {
  const { quirks } = target;
  const names = new ToolNames();
  const plan = planJson(conversation, quirks, (format) => ({ format }));
  const stop = conversation.stop.filter((each) => each !== '');
  if (stop.length > stops_max)
    throw mistake(request.style.caller.stop_field, `must be at most ${stops_max} for this model`);
  const { temperature, top_p, user } = conversation;
  const has_sampling = quirks.sampling !== false;
  const body: JsonObject = {
    model: target.model,
    messages: writeTurns(conversation.turns, plan, names, quirks),
    [quirks.max_tokens_field ?? 'max_tokens']: limitOf(request, target),
  };
  if (request.n > 1) body['n'] = request.n;
  if (stop.length > 0) body['stop'] = stop;
  if (has_sampling && temperature !== undefined) body['temperature'] = temperature;
  if (has_sampling && top_p !== undefined) body['top_p'] = top_p;
  writeTools(body, conversation, plan, names);
  if (plan.native) body['response_format'] = writeFormat(plan.native);
  const effort = effortOfThinking(conversation.thinking, quirks);
  if (effort !== undefined) body['reasoning_effort'] = effort;
  if (user !== undefined) body['user'] = user;
  if (conversation.logprobs !== undefined) body['logprobs'] = true;
  if (conversation.logprobs) body['top_logprobs'] = conversation.logprobs;
  if (request.stream) body['stream'] = true;
  if (request.stream && quirks.stream_options !== false) body['stream_options'] = { include_usage: true };
  return { body, ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }), ...names.changed };
}

/** Messages style allows 0, for warming a cache; here 1 is the least. */
function limitOf(request: ChatRequest, target: Target): number {
  return Math.max(1, Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens));
}

function writeTurns(turns: readonly Turn[], plan: JsonPlan, names: ToolNames, quirks: Quirks): JsonObject[] {
  const texts: string[] = [];
  const messages: JsonObject[] = [];
  let is_leading = true;
  for (const turn of turns) {
    is_leading &&= turn.role === 'system';
    if (is_leading) for (const part of turn.parts) texts.push(part.type === 'text' ? part.text : '');
    else if (turn.role === 'system') messages.push({ role: 'system', content: joined(turn.parts, '\n\n') });
    else if (turn.role === 'user') append(messages, writeUser(turn, quirks));
    else append(messages, writeAssistant(turn, names, quirks));
  }
  if (messages.length === 0) throw mistake('messages', 'must hold some text');
  const system = [...texts, plan.instruction ?? ''].filter((text) => text !== '').join('\n\n');
  if (system !== '') messages.unshift({ role: 'system', content: system });
  return messages;
}

function joined(parts: readonly Part[], between: string): string {
  return parts.flatMap((part) => (part.type === 'text' || part.type === 'refusal' ? [part.text] : [])).join(between);
}

function writeAssistant({ parts }: Turn, names: ToolNames, quirks: Quirks): JsonObject[] {
  const text = joined(parts, '');
  const calls = parts.filter((part) => part.type === 'tool_call');
  if (text === '' && calls.length === 0) return [];
  const thought = parts.map((part) => (part.type === 'thinking' ? part.text : '')).join('');
  const message: JsonObject = { role: 'assistant', content: text === '' ? null : text };
  const field = quirks.reasoning_field ?? 'none';
  if (field !== 'none' && thought !== '') message[field] = thought;
  if (calls.length > 0) {
    message['tool_calls'] = calls.map((call) =>
      writeCall({ ...call, id: callId(call.id, quirks), name: names.forUpstream(call.name) }),
    );
  }
  return [message];
}

/** Results of tools first, one message each; the images in them follow with what the user says. */
function writeUser({ parts }: Turn, quirks: Quirks): JsonObject[] {
  const messages: JsonObject[] = [];
  const remaining: Part[] = [];
  for (const part of parts) {
    if (part.type !== 'tool_result') continue;
    messages.push(writeResult(part, quirks));
    append(remaining, mediaOf(part, quirks));
  }
  const content: JsonObject[] = [];
  for (const part of remaining) append(content, writePart(part, quirks));
  for (const part of parts) if (part.type !== 'tool_result') append(content, writePart(part, quirks));
  if (content.length === 0) return messages;
  const [only] = content;
  const is_text = content.length === 1 && only?.['type'] === 'text';
  messages.push({ role: 'user', content: is_text ? (only['text'] ?? '') : content });
  return messages;
}

function writeResult(result: PartOf<'tool_result'>, quirks: Quirks): JsonObject {
  const texts = result.parts.map((part) => {
    if (part.type === 'text') return part.text;
    if (part.type === 'document' && part.source.type === 'text') return documentText(part, part.source.text);
    return `(see the ${part.type} in the next user message)`;
  });
  const content = `${result.is_error ? 'Error: ' : ''}${texts.join('\n')}`;
  return { role: 'tool', tool_call_id: callId(result.id, quirks), content };
}

/** Messages with the role of a tool hold text alone. */
function mediaOf(result: PartOf<'tool_result'>, quirks: Quirks): Part[] {
  const media = result.parts.filter((part) => part.type !== 'text' && !isTextDocument(part));
  if (media.length === 0) return [];
  const id = callId(result.id, quirks);
  return [{ type: 'text', text: `From the result of the tool call ${id}:` }, ...media];
}

function isTextDocument(part: Part): boolean {
  return part.type === 'document' && part.source.type === 'text';
}

function writePart(part: Part, quirks: Quirks): JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    case 'image':
      return [{ type: 'image_url', image_url: writeImage(part) }];
    case 'document':
      return [writeDocument(part, quirks)];
    case 'audio':
      return [{ type: 'input_audio', input_audio: { data: part.data, format: part.format } }];
    default:
      return [];
  }
}

function writeImage({ source, detail }: PartOf<'image'>): JsonObject {
  const url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`;
  return { url, ...(detail !== undefined && { detail }) };
}

function writeDocument(part: PartOf<'document'>, quirks: Quirks): JsonObject {
  const { source, title } = part;
  if (source.type === 'text') return { type: 'text', text: documentText(part, source.text) };
  if (source.type === 'url') throw notCarried(part.at, 'A document by its URL');
  if (quirks.document_parts === false) throw notCarried(part.at, 'A document');
  const file_data = `data:${source.media_type};base64,${source.data}`;
  return { type: 'file', file: { filename: title ?? 'document.pdf', file_data } };
}

/** The text of a document below its title. */
export function documentText({ title }: PartOf<'document'>, text: string): string {
  return title === undefined || title === '' ? text : `${title}\n\n${text}`;
}

/** Only what the style knows: leftovers of the other style are errors at strict servers. An empty list is one too. */
function writeTools(body: JsonObject, conversation: Conversation, plan: JsonPlan, names: ToolNames): void {
  const { tools, tool_choice, json_tool } = plan;
  if (tools.length === 0) return;
  const is_single = conversation.parallel_tool_calls === false || json_tool !== undefined;
  body['tools'] = tools.map(({ name, description, schema, strict }) => ({
    type: 'function',
    function: {
      name: names.forUpstream(name),
      ...(description !== undefined && { description }),
      parameters: schema,
      ...(strict === true && isStrict(schema) && { strict }),
    },
  }));
  if (tool_choice) body['tool_choice'] = writeChoice(tool_choice, names);
  if (is_single) body['parallel_tool_calls'] = false;
}

function writeChoice(choice: ToolChoice, names: ToolNames): string | JsonObject {
  if (choice.mode === 'one') return { type: 'function', function: { name: names.forUpstream(choice.name) } };
  return choice.mode === 'any' ? 'required' : choice.mode;
}

/** `strict` only for a schema that keeps its rules already: to make it keep them would change what is asked for. */
function writeFormat({ format }: NonNullable<JsonPlan['native']>): JsonObject {
  if (format.type === 'json') return { type: 'json_object' };
  const { name, description, schema } = format;
  const json_schema = { name, ...(description !== undefined && { description }), schema, strict: isStrict(schema) };
  return { type: 'json_schema', json_schema };
}
