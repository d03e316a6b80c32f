import type { JsonObject } from '../catalog/model.ts';
import type { Ask } from './ask.ts';
import { shortId } from './calls.ts';
import { writeCall } from './completions-answer.ts';
import type { Conversation, Part, ToolChoice, Turn } from './conversation.ts';
import { mistake, notCarried } from './fields.ts';
import { isStrict } from './native-schema.ts';
import type { Quirks, Target, UpstreamBody } from './quirks.ts';
import { planJson, type JsonPlan } from './structured.ts';
import { isTelemetry } from './system-turns.ts';
import { effortOfBudget } from './thinking.ts';
import { ToolNames } from './tool-names.ts';

const stops_max = 4;

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

/** The body of a chat-completions request. Throws ApiError 400 naming the caller's field that has no place there. */
export function writeCompletions(conversation: Conversation, ask: Ask, target: Target): UpstreamBody {
  const { quirks } = target;
  const names = new ToolNames();
  const plan = planJson(conversation, target);
  const stop = conversation.stop.filter((each) => each !== '');
  if (stop.length > stops_max) throw mistake('stop_sequences', `must be at most ${stops_max} for this model`);
  const { temperature, top_p, user } = conversation;
  const has_sampling = quirks.sampling !== false;
  const body: JsonObject = {
    model: target.model,
    messages: writeTurns(conversation.turns, plan, names, quirks),
    [quirks.max_tokens_field ?? 'max_tokens']: limitOf(ask, target),
    ...(stop.length > 0 && { stop }),
    ...(has_sampling && temperature !== undefined && { temperature }),
    ...(has_sampling && top_p !== undefined && { top_p }),
    ...writeTools(conversation, plan, names),
    ...writeFormat(plan),
    ...writeEffort(conversation, quirks),
    ...(user !== undefined && { user }),
    ...(ask.stream && { stream: true }),
    ...(ask.stream && quirks.stream_options !== false && { stream_options: { include_usage: true } }),
  };
  return { body, ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }), ...names.changed };
}

/** Messages style allows 0, for warming a cache; here 1 is the least. */
function limitOf(ask: Ask, target: Target): number {
  return Math.max(1, Math.min(ask.max_tokens ?? target.max_tokens, target.max_tokens));
}

function writeTurns(turns: readonly Turn[], plan: JsonPlan, names: ToolNames, quirks: Quirks): JsonObject[] {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const start = first === -1 ? turns.length : first;
  const leading = turns.slice(0, start).flatMap(({ parts }) => parts);
  const texts = leading.map((part, index) => {
    const text = part.type === 'text' ? part.text : '';
    return index === 0 && isTelemetry(text) ? '' : text;
  });
  const system = [...texts, plan.instruction ?? ''].filter((text) => text !== '').join('\n\n');
  const messages = turns.slice(start).flatMap((turn) => {
    if (turn.role === 'assistant') return writeAssistant(turn, names, quirks);
    return turn.role === 'user' ? writeUser(turn, quirks) : [{ role: 'system', content: joined(turn.parts, '\n\n') }];
  });
  if (messages.length === 0) throw mistake('messages', 'must hold some text');
  return system === '' ? messages : [{ role: 'system', content: system }, ...messages];
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
      writeCall({ ...call, id: shortId(call.id, quirks.tool_id_length_max), name: names.forUpstream(call.name) }),
    );
  }
  return [message];
}

/** Results of tools first, one message each; the pictures in them follow with what the user says. */
function writeUser({ parts }: Turn, quirks: Quirks): JsonObject[] {
  const results = parts.filter((part) => part.type === 'tool_result');
  const messages = results.map((result) => writeResult(result, quirks));
  const said = [
    ...results.flatMap((result) => mediaOf(result, quirks)),
    ...parts.filter((part) => part.type !== 'tool_result'),
  ];
  const content = said.flatMap((part) => writePart(part, quirks));
  if (content.length === 0) return messages;
  const [only] = content;
  const is_text = content.length === 1 && only?.['type'] === 'text';
  return [...messages, { role: 'user', content: is_text ? (only['text'] ?? '') : content }];
}

function writeResult(result: PartOf<'tool_result'>, quirks: Quirks): JsonObject {
  const texts = result.parts.map((part) => {
    if (part.type === 'text') return part.text;
    if (part.type === 'document' && part.source.type === 'text') return documentText(part, part.source.text);
    return `(see the ${part.type} in the next user message)`;
  });
  const content = `${result.is_error ? 'Error: ' : ''}${texts.join('\n')}`;
  return { role: 'tool', tool_call_id: shortId(result.id, quirks.tool_id_length_max), content };
}

/** Messages with the role of a tool hold text alone. */
function mediaOf(result: PartOf<'tool_result'>, quirks: Quirks): Part[] {
  const media = result.parts.filter((part) => part.type !== 'text' && !isTextDocument(part));
  if (media.length === 0) return [];
  const id = shortId(result.id, quirks.tool_id_length_max);
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
function writeTools(conversation: Conversation, plan: JsonPlan, names: ToolNames): JsonObject {
  const { tools, tool_choice, json_tool } = plan;
  if (tools.length === 0) return {};
  const is_single = conversation.parallel_tool_calls === false || json_tool !== undefined;
  return {
    tools: tools.map(({ name, description, schema, strict }) => ({
      type: 'function',
      function: {
        name: names.forUpstream(name),
        ...(description !== undefined && { description }),
        parameters: schema,
        ...(strict === true && isStrict(schema) && { strict }),
      },
    })),
    ...(tool_choice && { tool_choice: writeChoice(tool_choice, names) }),
    ...(is_single && { parallel_tool_calls: false }),
  };
}

function writeChoice(choice: ToolChoice, names: ToolNames): string | JsonObject {
  if (choice.mode === 'one') return { type: 'function', function: { name: names.forUpstream(choice.name) } };
  return choice.mode === 'any' ? 'required' : choice.mode;
}

/** `strict` only for a schema that keeps its rules already: to make it keep them would change what is asked for. */
function writeFormat({ native }: JsonPlan): JsonObject {
  if (!native) return {};
  const { format } = native;
  if (format.type === 'json') return { response_format: { type: 'json_object' } };
  const { name, description, schema } = format;
  const json_schema = { name, ...(description !== undefined && { description }), schema, strict: isStrict(schema) };
  return { response_format: { type: 'json_schema', json_schema } };
}

function writeEffort({ thinking }: Conversation, quirks: Quirks): JsonObject {
  if (!thinking || quirks.reasoning_effort === false) return {};
  // Most models refuse the word that turns thinking off, and those that do not think need none.
  if (thinking.mode === 'off') return quirks.reasoning_effort === true ? { reasoning_effort: 'none' } : {};
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  if (effort === undefined) return {};
  return { reasoning_effort: effort === 'max' ? 'xhigh' : effort };
}
