import type { JsonObject } from '../../catalog/model.ts';
import { shortId, ToolNames } from '../calls.ts';
import type { ChatRequest, Target, UpstreamBody } from '../codec.ts';
import { documentText } from '../completions/render-request.ts';
import type { Conversation, Part, ToolChoice, Turn } from '../conversation.ts';
import { mistake, notCarried } from '../fields.ts';
import type { Quirks } from '../quirks.ts';
import { encrypted_reasoning } from './reasoning.ts';
import { encryptedThoughtIn } from '../thought-signatures.ts';
import { isStrict, planJson, type JsonPlan } from '../structured.ts';
import { effortOfBudget } from '../thinking.ts';

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

/** Less than this the upstream refuses. */
export const output_min = 16;

const id_length_max = 64;

/** The body of a responses request. Throws ApiError 400 naming the caller's field that has no place there. */
export function writeResponses(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody {
  const { quirks } = target;
  if (request.n > 1) throw mistake('n', 'must be 1 for this model', 'unsupported_field');
  if (conversation.stop.some((each) => each !== ''))
    throw notCarried(request.style.caller.stop_field, 'A text to stop at');
  const names = new ToolNames();
  const plan = planJson(conversation, quirks, (format) => ({ format }));
  const { temperature, top_p, user } = conversation;
  const has_sampling = quirks.sampling !== false;
  const max_tokens = Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens);
  const body: JsonObject = {
    model: target.model,
    ...writeInput(conversation.turns, plan, names),
    max_output_tokens: Math.max(output_min, max_tokens),
    store: false,
    ...(quirks.reasoning_effort !== false && { include: [encrypted_reasoning] }),
    ...(has_sampling && temperature !== undefined && { temperature }),
    ...(has_sampling && top_p !== undefined && { top_p }),
    ...writeTools(conversation, plan, names),
    ...writeFormat(plan),
    ...writeReasoning(conversation, quirks),
    ...(user !== undefined && { user }),
    ...(request.stream && { stream: true }),
  };
  return { body, ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }), ...names.changed };
}

function writeInput(turns: readonly Turn[], plan: JsonPlan, names: ToolNames): JsonObject {
  const first = turns.findIndex(({ role }) => role !== 'system');
  const start = first === -1 ? turns.length : first;
  const texts = turns.slice(0, start).map(({ parts }) => joined(parts, '\n\n'));
  const instructions = [...texts, plan.instruction ?? ''].filter((text) => text !== '').join('\n\n');
  const input = turns.slice(start).flatMap((turn) => {
    if (turn.role === 'assistant') return turn.parts.flatMap((part) => writeMessage(part, names));
    return turn.role === 'user'
      ? writeUser(turn)
      : [{ type: 'message', role: 'developer', content: joined(turn.parts, '\n\n') }];
  });
  if (input.length > 0) return { ...(instructions !== '' && { instructions }), input };
  if (instructions === '') throw mistake('messages', 'must hold some text');
  return { input: [{ type: 'message', role: 'developer', content: instructions }] };
}

function joined(parts: readonly Part[], between: string): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(between);
}

/**
 * Writes a part of the assistant. Thoughts of this upstream go back encrypted as they came; it would refuse
 * those of others.
 */
function writeMessage(part: Part, names: ToolNames): JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'message', role: 'assistant', content: part.text }];
    case 'thinking': {
      const encrypted_content = encryptedThoughtIn(part.signature);
      if (encrypted_content === undefined) return [];
      const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }];
      return [{ type: 'reasoning', summary, encrypted_content }];
    }
    case 'tool_call': {
      const called = { name: names.forUpstream(part.name), arguments: part.arguments || '{}' };
      return [{ type: 'function_call', call_id: shortId(part.id, id_length_max), ...called }];
    }
    default:
      return [];
  }
}

function writeUser({ parts }: Turn): JsonObject[] {
  const results = parts.filter((part) => part.type === 'tool_result').map(writeResult);
  const content = parts.filter((part) => part.type !== 'tool_result').flatMap(writePart);
  return content.length === 0 ? results : [...results, { type: 'message', role: 'user', content }];
}

function writeResult({ id, parts, is_error }: PartOf<'tool_result'>): JsonObject {
  const call_id = shortId(id, id_length_max);
  const mark = is_error ? 'Error: ' : '';
  if (parts.every(({ type }) => type === 'text'))
    return { type: 'function_call_output', call_id, output: mark + joined(parts, '\n') };
  const output = [...(mark === '' ? [] : [{ type: 'input_text', text: mark }]), ...parts.flatMap(writePart)];
  return { type: 'function_call_output', call_id, output };
}

function writePart(part: Part): JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'input_text', text: part.text }];
    case 'image': {
      const { source, detail = 'auto' } = part;
      const image_url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`;
      return [{ type: 'input_image', image_url, detail }];
    }
    case 'document':
      return [writeDocument(part)];
    case 'audio':
      throw notCarried(part.at, 'Audio');
    default:
      return [];
  }
}

function writeDocument(part: PartOf<'document'>): JsonObject {
  const { source, title } = part;
  if (source.type === 'text') return { type: 'input_text', text: documentText(part, source.text) };
  if (source.type === 'url')
    return { type: 'input_file', file_url: source.url, ...(title !== undefined && { filename: title }) };
  const file_data = `data:${source.media_type};base64,${source.data}`;
  return { type: 'input_file', filename: title ?? 'document.pdf', file_data };
}

/** Without a word about it, tools are strict here. */
function writeTools(conversation: Conversation, plan: JsonPlan, names: ToolNames): JsonObject {
  const { tools, tool_choice, json_tool } = plan;
  if (tools.length === 0) return {};
  const is_single = conversation.parallel_tool_calls === false || json_tool !== undefined;
  return {
    tools: tools.map(({ name, description, schema, strict }) => ({
      type: 'function',
      name: names.forUpstream(name),
      ...(description !== undefined && { description }),
      parameters: Object.keys(schema).length === 0 ? { type: 'object', properties: {} } : schema,
      strict: strict === true && isStrict(schema),
    })),
    ...(tool_choice && { tool_choice: writeChoice(tool_choice, names) }),
    ...(is_single && { parallel_tool_calls: false }),
  };
}

function writeChoice(choice: ToolChoice, names: ToolNames): string | JsonObject {
  if (choice.mode === 'one') return { type: 'function', name: names.forUpstream(choice.name) };
  return choice.mode === 'any' ? 'required' : choice.mode;
}

function writeFormat({ native }: JsonPlan): JsonObject {
  if (!native) return {};
  const { format } = native;
  if (format.type === 'json') return { text: { format: { type: 'json_object' } } };
  const { name, description, schema } = format;
  const described = description === undefined ? {} : { description };
  return { text: { format: { type: 'json_schema', name, ...described, schema, strict: isStrict(schema) } } };
}

function writeReasoning({ thinking }: Conversation, quirks: Quirks): JsonObject {
  if (!thinking || quirks.reasoning_effort === false) return {};
  // Most models refuse the word that turns thinking off, and those that do not think need none.
  if (thinking.mode === 'off') return quirks.reasoning_effort === true ? { reasoning: { effort: 'none' } } : {};
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  if (effort === undefined) return {};
  return { reasoning: { effort: effort === 'max' ? 'xhigh' : effort } };
}
