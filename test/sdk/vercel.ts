import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  generateText,
  jsonSchema,
  Output,
  streamText,
  tool,
  type LanguageModel,
  type ModelMessage,
  type ToolSet,
} from 'ai';
import {
  answer_schema,
  max_tokens,
  question,
  tool_names,
  tool_schema,
  type Caller,
  type Got,
  type Place,
  type Task,
} from './task.ts';

export function vercelCallers({ url, key }: Place): Caller[] {
  const settings = { baseURL: `${url}/v1`, apiKey: key };
  const openai = createOpenAI(settings);
  const anthropic = createAnthropic(settings);
  const compatible = createOpenAICompatible({
    ...settings,
    name: 'medley',
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return [
    callerOf('@ai-sdk/openai', 'completions', (id) => openai.chat(id)),
    callerOf('@ai-sdk/openai, responses', 'responses', (id) => openai.responses(id)),
    callerOf('@ai-sdk/openai-compatible', 'completions', (id) => compatible(id)),
    callerOf('@ai-sdk/anthropic', 'messages', (id) => anthropic(id)),
  ];
}

function callerOf(name: string, style: Caller['style'], modelOf: (id: string) => LanguageModel): Caller {
  return {
    name,
    style,
    ask: (task) => ask(modelOf(task.model), task, [{ role: 'user', content: contentOf(task) }]),
    structured: async (model) => {
      const output = Output.object({ schema: answer_schema });
      return (await generateText({ model: modelOf(model), prompt: question, output, maxRetries: 0 })).output;
    },
  };
}

function contentOf({
  image,
}: Task): string | ({ type: 'text'; text: string } | { type: 'file'; data: string; mediaType: string })[] {
  if (image === undefined) return question;
  return [
    { type: 'text', text: question },
    { type: 'file', data: image, mediaType: 'image/png' },
  ];
}

const tools: ToolSet = Object.fromEntries(
  tool_names.map((name) => [name, tool({ inputSchema: jsonSchema<Record<string, unknown>>(tool_schema) })]),
);

async function ask(model: LanguageModel, task: Task, messages: ModelMessage[]): Promise<Got> {
  const { signal, retries: maxRetries = 0 } = task;
  const options = {
    model,
    messages,
    maxRetries,
    maxOutputTokens: max_tokens,
    ...(task.tools === true && { tools }),
    ...(signal && { abortSignal: signal }),
    providerOptions: { openai: { store: false } }, // of the responses style: send items themselves, not their ids
  };
  const result = task.stream ? await streamed(options) : await generateText(options);
  const calls = result.toolCalls.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, input }));
  const { messages: own } = result.response;
  return {
    text: result.text,
    thinking: result.reasoningText ?? '',
    calls: calls.map(({ name, input }) => ({ name, input })),
    finish: result.finishReason,
    answer: (results) => {
      const content = calls.map(({ id, name }, index) => ({
        type: 'tool-result' as const,
        toolCallId: id,
        toolName: name,
        output: { type: 'text' as const, value: results[index] ?? '' },
      }));
      return ask(model, task, [...messages, ...own, { role: 'tool', content }]);
    },
  };
}

async function streamed(options: Parameters<typeof streamText>[0]) {
  let failure: unknown;
  const stream = streamText({ ...options, onError: ({ error }) => void (failure ??= error) });
  for await (const part of stream.stream) {
    if (part.type === 'error') failure ??= part.error;
    if (part.type === 'abort') failure ??= new Error('aborted');
    if (part.type === 'tool-error') failure ??= part.error;
  }
  if (failure !== undefined) throw failure;
  return {
    text: await stream.text,
    reasoningText: await stream.reasoningText,
    toolCalls: await stream.toolCalls,
    finishReason: await stream.finishReason,
    response: { messages: await stream.responseMessages },
  };
}
