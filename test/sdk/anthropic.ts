import Anthropic0 from 'anthropic-0';
import { zodOutputFormat as format0 } from 'anthropic-0/helpers/zod';
import Anthropic1 from 'anthropic-1';
import { zodOutputFormat as format1 } from 'anthropic-1/helpers/zod';
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

type Block =
  | { type: 'text'; text: string }
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'tool_use'; id: string; name: string; input: unknown };
type Message = { content: Block[]; stop_reason: string; usage: { input_tokens: number; output_tokens: number } };

/** The calls that both versions have in common, as far as the tests need them. */
type Client = {
  messages: {
    create(body: object, options: object): PromiseLike<unknown>;
    stream(body: object, options: object): { finalMessage(): Promise<unknown> };
    parse(body: object, options: object): PromiseLike<unknown>;
  };
};

export function anthropicCallers({ url, key }: Place): Caller[] {
  const settings = { baseURL: url, apiKey: key, authToken: null };
  return [
    callerOf('@anthropic-ai/sdk 0', new Anthropic0(settings), format0(answer_schema)),
    callerOf('@anthropic-ai/sdk 1', new Anthropic1(settings), format1(answer_schema)),
  ];
}

function callerOf(name: string, client: Client, format: object): Caller {
  return {
    name,
    style: 'messages',
    ask: (task) => ask(client, task, [{ role: 'user', content: contentOf(task) }]),
    structured: async (model) => {
      const messages = [{ role: 'user', content: question }];
      const body = { model, max_tokens, messages, output_config: { format } };
      const answer = await client.messages.parse(body, { maxRetries: 0 });
      return (answer as { parsed_output: unknown }).parsed_output;
    },
  };
}

function contentOf({ image }: Task): unknown {
  if (image === undefined) return question;
  const source = { type: 'base64', media_type: 'image/png', data: image };
  return [
    { type: 'text', text: question },
    { type: 'image', source },
  ];
}

const tools = tool_names.map((name) => ({ name, input_schema: tool_schema }));

async function ask(client: Client, task: Task, messages: object[]): Promise<Got> {
  const { model, signal, retries: maxRetries = 0 } = task;
  const body = { model, max_tokens, messages, ...(task.tools === true && { tools }) };
  const options = { maxRetries, ...(signal && { signal }) };
  const answer = task.stream
    ? await client.messages.stream(body, options).finalMessage()
    : await client.messages.create(body, options);
  const { content, stop_reason, usage } = answer as Message;
  if (usage.output_tokens < 1) throw new Error('no usage');
  const calls = content.filter((block) => block.type === 'tool_use');
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    thinking: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: calls.map(({ name, input }) => ({ name, input })),
    finish: stop_reason,
    answer: (results) => {
      const answers = calls.map(({ id }, index) => ({ type: 'tool_result', tool_use_id: id, content: results[index] }));
      return ask(client, task, [...messages, { role: 'assistant', content }, { role: 'user', content: answers }]);
    },
  };
}
