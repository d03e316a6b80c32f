import OpenAI6 from 'openai-6';
import { zodResponseFormat as format6 } from 'openai-6/helpers/zod';
import OpenAI7 from 'openai-7';
import { zodResponseFormat as format7 } from 'openai-7/helpers/zod';
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

type Message = {
  content: string | null;
  refusal?: string | null;
  reasoning_content?: string;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
};
type Completion = { choices: { message: Message; finish_reason: string }[] };

/** The calls that both versions have in common, as far as the tests need them. */
type Client = {
  chat: {
    completions: {
      create(body: object, options: object): PromiseLike<unknown>;
      stream(body: object, options: object): Stream;
      parse(body: object, options: object): PromiseLike<unknown>;
    };
  };
};
type Stream = AsyncIterable<unknown> & { finalChatCompletion(): Promise<unknown> };
type Chunk = { choices: { delta: { reasoning_content?: string } }[] };

export function openaiCallers({ url, key }: Place): Caller[] {
  const settings = { baseURL: `${url}/v1`, apiKey: key };
  return [
    callerOf('openai 6', new OpenAI6(settings), format6(answer_schema, 'answer')),
    callerOf('openai 7', new OpenAI7(settings), format7(answer_schema, 'answer')),
  ];
}

function callerOf(name: string, client: Client, response_format: object): Caller {
  return {
    name,
    style: 'completions',
    ask: (task) => ask(client, task, [{ role: 'user', content: contentOf(task) }]),
    structured: async (model) => {
      const messages = [{ role: 'user', content: question }];
      const answer = await client.chat.completions.parse({ model, messages, response_format }, { maxRetries: 0 });
      return (answer as { choices: { message: { parsed: unknown } }[] }).choices[0]?.message.parsed;
    },
  };
}

function contentOf({ image }: Task): unknown {
  if (image === undefined) return question;
  const url = `data:image/png;base64,${image}`;
  return [
    { type: 'text', text: question },
    { type: 'image_url', image_url: { url } },
  ];
}

const tools = tool_names.map((name) => ({ type: 'function', function: { name, parameters: tool_schema } }));

async function ask(client: Client, task: Task, messages: object[]): Promise<Got> {
  const { model, signal, retries: maxRetries = 0 } = task;
  const body = { model, messages, max_completion_tokens: max_tokens, ...(task.tools === true && { tools }) };
  const options = { maxRetries, ...(signal && { signal }) };
  let thinking = '';
  let answer: unknown;
  if (task.stream) {
    const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }, options);
    for await (const chunk of stream) thinking += (chunk as Chunk).choices[0]?.delta.reasoning_content ?? '';
    answer = await stream.finalChatCompletion();
  } else answer = await client.chat.completions.create(body, options);
  const [choice] = (answer as Completion).choices;
  if (!choice) throw new Error('no choice');
  const { message } = choice;
  const calls = message.tool_calls ?? [];
  return {
    text: (message.content ?? '') + (message.refusal ?? ''),
    thinking: task.stream ? thinking : (message.reasoning_content ?? ''),
    calls: calls.map(({ function: called }) => ({ name: called.name, input: JSON.parse(called.arguments || '{}') })),
    finish: choice.finish_reason,
    answer: (results) => {
      const answers = calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: results[index] ?? '' }));
      return ask(client, task, [...messages, message, ...answers]);
    },
  };
}
