import type { JsonObject } from '../../catalog/model.ts';
import type { Ask } from '../ask.ts';
import { safeFunctionName } from '../calls.ts';
import type { Conversation, Tool } from '../conversation.ts';
import { mistake } from '../fields.ts';
import { ContentsWriter } from './turns.ts';
import { contentsSchema } from './schema.ts';
import type { Quirks, Target, UpstreamBody } from '../quirks.ts';
import { planJson, type JsonPlan } from '../structured.ts';
import { placeSystem } from '../system-turns.ts';
import { planContentsThinking } from '../thinking-plan.ts';
import { ToolNames } from '../tool-names.ts';

const stops_max = 5;
const candidates_max = 8;

/** The body of a `generateContent` request. Throws ApiError 400 naming the caller's field that has no place there. */
export function writeContents(conversation: Conversation, ask: Ask, target: Target): UpstreamBody {
  checkCount(ask);
  const { quirks } = target;
  const names = new ToolNames(safeFunctionName);
  const plan = planJson(conversation, target);
  const { system, turns } = placeSystem(conversation.turns, {});
  const contents = new ContentsWriter(names, quirks);
  const written = contents.write(turns);
  const is_single = conversation.parallel_tool_calls === false && plan.tools.length > 0;
  const instructions = [
    ...system.map(({ text }) => text),
    ...(plan.instruction === undefined ? [] : [plan.instruction]),
    ...(is_single ? ['Call at most one tool at a time.'] : []),
  ];
  const body: JsonObject = {
    contents: written,
    ...(instructions.length > 0 && { systemInstruction: { parts: instructions.map((text) => ({ text })) } }),
    ...writeTools(plan, names),
    generationConfig: writeConfig(conversation, ask, target, plan),
  };
  return {
    body,
    ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }),
    ...names.changed,
    ...(contents.links.length > 0 && { links: contents.links }),
  };
}

function checkCount({ n, stream }: Ask): void {
  if (n > 1 && stream) throw mistake('n', 'must be 1 for streams of this model', 'unsupported_field');
  if (n > candidates_max) throw mistake('n', `must be at most ${candidates_max} for this model`, 'unsupported_field');
}

function writeConfig(conversation: Conversation, ask: Ask, target: Target, plan: JsonPlan): JsonObject {
  const { quirks } = target;
  const max_tokens = Math.max(1, Math.min(ask.max_tokens ?? target.max_tokens, target.max_tokens));
  const stop = conversation.stop.filter((each) => each !== '');
  if (stop.length > stops_max) {
    throw mistake(ask.style === 'messages' ? 'stop_sequences' : 'stop', `must be at most ${stops_max} for this model`);
  }
  const thinkingConfig = planContentsThinking(conversation, quirks, max_tokens);
  return {
    maxOutputTokens: max_tokens,
    ...(ask.n > 1 && { candidateCount: ask.n }),
    ...(stop.length > 0 && { stopSequences: stop }),
    ...writeSampling(conversation, quirks),
    ...(plan.native && { responseMimeType: 'application/json' }),
    ...(plan.native?.schema && { responseJsonSchema: plan.native.schema }),
    ...(thinkingConfig && { thinkingConfig }),
  };
}

/** Seeds are 32 bits there. */
const seeds = 2_147_483_648;

function writeSampling({ temperature, top_p, top_k, seed }: Conversation, quirks: Quirks): JsonObject {
  if (quirks.sampling === false) return {};
  return {
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { topP: top_p }),
    ...(top_k !== undefined && { topK: Math.round(top_k) }),
    ...(seed !== undefined && Number.isSafeInteger(seed) && { seed: seed % seeds }),
  };
}

function writeTools({ tools, tool_choice }: JsonPlan, names: ToolNames): JsonObject {
  if (tools.length === 0) return {};
  const functionDeclarations = tools.map((tool) => writeTool(tool, names));
  const choice = writeChoice(tools, tool_choice, names);
  return { tools: [{ functionDeclarations }], ...(choice && { toolConfig: { functionCallingConfig: choice } }) };
}

function writeTool({ name, description, schema }: Tool, names: ToolNames): JsonObject {
  const has_parameters = Object.keys(schema).length > 0;
  return {
    name: names.forUpstream(name),
    ...(description !== undefined && description !== '' && { description }),
    ...(has_parameters && { parametersJsonSchema: { ...contentsSchema(schema), type: 'object' } }),
  };
}

/** `VALIDATED` is `AUTO` with arguments that keep to their schemas. */
function writeChoice(
  tools: readonly Tool[],
  choice: JsonPlan['tool_choice'],
  names: ToolNames,
): JsonObject | undefined {
  switch (choice?.mode) {
    case 'none':
      return { mode: 'NONE' };
    case 'any':
      return { mode: 'ANY' };
    case 'one':
      return { mode: 'ANY', allowedFunctionNames: [names.forUpstream(choice.name)] };
    default:
      if (tools.some(({ strict }) => strict === true)) return { mode: 'VALIDATED' };
      return choice && { mode: 'AUTO' };
  }
}
