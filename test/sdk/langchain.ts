import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, ToolMessage, type AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
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

type Model = ChatOpenAI | ChatAnthropic;

export function langchainCallers({ url, key }: Place): Caller[] {
  const openai = (model: string, maxRetries: number) =>
    new ChatOpenAI({ model, apiKey: key, configuration: { baseURL: `${url}/v1` }, maxRetries, maxTokens: max_tokens });
  const responses = (model: string, maxRetries: number) => {
    const configuration = { baseURL: `${url}/v1` };
    return new ChatOpenAI({
      model,
      apiKey: key,
      configuration,
      maxRetries,
      maxTokens: max_tokens,
      useResponsesApi: true,
      zdrEnabled: true, // nothing is stored: items are sent themselves
    });
  };
  const anthropic = (model: string, maxRetries: number) =>
    new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: url, maxRetries, maxTokens: max_tokens });
  return [
    callerOf('@langchain/openai', 'completions', openai),
    callerOf('@langchain/openai, responses', 'responses', responses),
    callerOf('@langchain/anthropic', 'messages', anthropic),
  ];
}

function callerOf(name: string, style: Caller['style'], modelOf: (id: string, retries: number) => Model): Caller {
  return {
    name,
    style,
    ask: (task) => ask(modelOf(task.model, task.retries ?? 0), task, [new HumanMessage({ content: contentOf(task) })]),
    structured: (model) =>
      modelOf(model, 0).withStructuredOutput(answer_schema, { method: 'jsonSchema', name: 'answer' }).invoke(question),
  };
}

function contentOf({
  image,
}: Task): string | ({ type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } })[] {
  if (image === undefined) return question;
  const url = `data:image/png;base64,${image}`;
  return [
    { type: 'text', text: question },
    { type: 'image_url', image_url: { url } },
  ];
}

const tools = tool_names.map((name) => ({
  type: 'function' as const,
  function: { name, description: name, parameters: tool_schema },
}));

async function ask(model: Model, task: Task, messages: BaseMessage[]): Promise<Got> {
  const options = task.signal ? { signal: task.signal } : {};
  const bound = task.tools === true ? model.bindTools(tools) : model;
  const answer = task.stream
    ? await joined(await bound.stream(messages, options))
    : await bound.invoke(messages, options);
  const calls = answer.tool_calls ?? [];
  const { finish_reason, stop_reason, stopReason } = { ...answer.response_metadata, ...answer.additional_kwargs };
  return {
    text: answer.text,
    thinking: thinkingOf(answer),
    calls: calls.map(({ name, args }) => ({ name, input: args })),
    finish: String(finish_reason ?? stop_reason ?? stopReason),
    answer: (results) => {
      const answers = calls.map(
        ({ id = '' }, index) => new ToolMessage({ tool_call_id: id, content: results[index] ?? '' }),
      );
      return ask(model, task, [...messages, answer, ...answers]);
    },
  };
}

async function joined(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | undefined;
  for await (const chunk of stream) whole = whole ? whole.concat(chunk) : chunk;
  if (!whole) throw new Error('an empty stream');
  if ((whole.invalid_tool_calls ?? []).length > 0) throw new Error(JSON.stringify(whole.invalid_tool_calls));
  return whole;
}

function thinkingOf({ content, additional_kwargs }: AIMessageChunk): string {
  const { reasoning_content } = additional_kwargs;
  if (typeof reasoning_content === 'string') return reasoning_content;
  if (typeof content === 'string') return '';
  return content.map((block) => ('thinking' in block ? String(block['thinking']) : '')).join('');
}
