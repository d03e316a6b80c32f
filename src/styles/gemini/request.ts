import type { JsonObject } from '../../catalog/model.ts';
import { safeFunctionName, ToolNames } from '../calls.ts';
import type { ChatRequest, Target, UpstreamBody } from '../codec.ts';
import type { AnswerFormat, Conversation, Effort, Tool } from '../conversation.ts';
import { mistake } from '../fields.ts';
import { TurnsWriter } from './turns.ts';
import { geminiSchema } from './schema.ts';
import type { Quirks } from '../quirks.ts';
import { describedSchema, planJson, type JsonPlan } from '../structured.ts';
import { placeSystem } from '../turns.ts';
import { budget_tokens_min, budgetOf, effortOfBudget, fitBudget } from '../thinking.ts';

const stops_max = 5;
const candidates_max = 8;

/** The body of a `generateContent` request. Throws ApiError 400 naming the caller's field that has no place there. */
export function renderGemini(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody {
  checkCount(request);
  const { quirks } = target;
  const names = new ToolNames(safeFunctionName);
  const plan = planJson(conversation, quirks, nativeFormat);
  const { system, turns } = placeSystem(conversation.turns, {});
  const contents = new TurnsWriter(names, quirks);
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
    generationConfig: writeConfig(conversation, request, target, plan),
  };
  return {
    body,
    ...(plan.json_tool !== undefined && { json_tool: plan.json_tool }),
    ...names.changed,
    ...(contents.links.length > 0 && { links: contents.links }),
  };
}

function checkCount({ n, stream }: ChatRequest): void {
  if (n > 1 && stream) throw mistake('n', 'must be 1 for streams of this model', 'unsupported_field');
  if (n > candidates_max) throw mistake('n', `must be at most ${candidates_max} for this model`, 'unsupported_field');
}

function writeConfig(conversation: Conversation, request: ChatRequest, target: Target, plan: JsonPlan): JsonObject {
  const { quirks } = target;
  const max_tokens = Math.max(1, Math.min(request.max_tokens ?? target.max_tokens, target.max_tokens));
  const stop = conversation.stop.filter((each) => each !== '');
  if (stop.length > stops_max) {
    throw mistake(request.style.caller.stop_field, `must be at most ${stops_max} for this model`);
  }
  const thinkingConfig = planThinking(conversation, quirks, max_tokens);
  return {
    maxOutputTokens: max_tokens,
    ...(request.n > 1 && { candidateCount: request.n }),
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
    ...(has_parameters && { parametersJsonSchema: { ...geminiSchema(schema), type: 'object' } }),
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

function nativeFormat(format: AnswerFormat): JsonPlan['native'] {
  return format.type === 'json' ? { format } : { format, schema: geminiSchema(describedSchema(format)) };
}

/** The most that models which think by a budget take there. */
const budget_tokens_max = 24_576;

/**
 * Gemini's `thinkingConfig`; undefined where nothing is to be said. Thinking that is on is told of in the answer.
 * Models that are told a level cannot be stopped: they think as little as all of them can.
 */
function planThinking({ thinking }: Conversation, quirks: Quirks, max_tokens: number): JsonObject | undefined {
  const kind = quirks.thinking ?? 'adaptive';
  if (!thinking || kind === 'none') return undefined;
  if (thinking.mode === 'off') {
    if (kind === 'always') return undefined;
    return kind === 'budget' ? { thinkingBudget: 0 } : { thinkingLevel: 'LOW' };
  }
  const { budget_tokens } = thinking;
  const effort = thinking.effort ?? (budget_tokens === undefined ? undefined : effortOfBudget(budget_tokens));
  const shown = { includeThoughts: true };
  if (kind !== 'budget') return effort === undefined ? shown : { ...shown, thinkingLevel: level(effort) };
  if (effort === undefined) return shown;
  const budget_wanted = Math.max(budget_tokens_min, Math.min(budget_tokens ?? budgetOf(effort), budget_tokens_max));
  return { ...shown, thinkingBudget: fitBudget(budget_wanted, max_tokens) };
}

/** Not all models know `MINIMAL`. */
function level(effort: Effort): string {
  if (effort === 'medium') return 'MEDIUM';
  return effort === 'high' || effort === 'xhigh' || effort === 'max' ? 'HIGH' : 'LOW';
}
