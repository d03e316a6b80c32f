import {
  fromJsonSchema,
  type CallToolResult,
  type JsonSchemaType,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { kinds } from '../catalog/model.ts';
import { isRecord } from '../lib/is-record.ts';
import { parseMoney } from '../money/money.ts';
import type { Api, ApiReply } from './api.ts';

/** Clients wait a minute for a tool, mostly; what takes longer is looked at with get_task. */
const wait_s_max = 50;

const progress_every_ms = 2_000;

/** Images up to this size come with the answer, so that the model sees them; all files have a link. */
const content_bytes_max = 1_000_000;

const text = (description: string) => ({ type: 'string', minLength: 1, maxLength: 20_000, description }) as const;
type Properties = NonNullable<Extract<JsonSchemaType, { properties?: unknown }>['properties']>;

const object = (properties: Properties, required: readonly string[] = []) => ({
  type: 'object' as const,
  properties,
  required: [...required],
  additionalProperties: false,
});

const model_id = text('The id of a model, from list_models.');
const task_id = text('The id of a task.');
const input = { type: 'object', description: 'The input, as the input_schema of describe_model says.' } as const;
const max_cost = {
  type: 'string',
  pattern: String.raw`^\d{1,9}(\.\d{1,6})?$`,
  description: 'Refuse if more than this amount of the currency of the account would be held, such as "0.50".',
} as const;

const reads = { readOnlyHint: true, openWorldHint: false };
/** They spend money, and change nothing that is there. */
const spends = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true };

type Arguments = Record<string, unknown>;
type Tool = {
  title: string;
  description: string;
  input: ReturnType<typeof object>;
  annotations: object;
  run(api: Api, args: Arguments, context: ServerContext): Promise<CallToolResult>;
};

const tools: Readonly<Record<string, Tool>> = {
  list_models: {
    title: 'List models',
    description: 'Lists the models: id, kind, description and price. describe_model has the input of one.',
    input: object({
      kind: { enum: [...kinds], description: 'Only models of this kind.' },
      search: text('Only models with this in their id, name or description.'),
    }),
    annotations: reads,
    run: listModels,
  },
  describe_model: {
    title: 'Describe a model',
    description: 'Returns everything about one model: its input_schema, prices, limits and status.',
    input: object({ model: model_id }, ['model']),
    annotations: reads,
    run: async (api, { model }) => answered(await api.model(String(model))),
  },
  estimate: {
    title: 'Estimate the cost',
    description: 'Returns what generate would hold for this input. Costs nothing.',
    input: object({ model: model_id, input }, ['model', 'input']),
    annotations: reads,
    run: async (api, { model, input: of_model }) => answered(await api.estimate({ model, input: of_model })),
  },
  generate: {
    title: 'Generate images, video or audio',
    description:
      'Creates a generation task, which costs money, and waits for it. Returns links to the files; small images are in the answer. ' +
      'If the task is not finished in time, look at it with get_task: do not create it again. A failed task costs nothing.',
    input: object(
      {
        model: model_id,
        input,
        wait_seconds: { type: 'integer', minimum: 0, maximum: wait_s_max, default: wait_s_max },
        max_cost,
      },
      ['model', 'input'],
    ),
    annotations: spends,
    run: generate,
  },
  get_task: {
    title: 'Look at a task',
    description: 'Returns a task: its status, cost, and links to its files. Small images are in the answer.',
    input: object({ task_id }, ['task_id']),
    annotations: reads,
    run: async (api, args) => taskResult(api, await api.task(String(args['task_id']))),
  },
  list_tasks: {
    title: 'List tasks',
    description: 'Lists the tasks of the account, or of the project that the key is limited to, newest first.',
    input: object({
      limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
      status: { enum: ['queued', 'running', 'succeeded', 'failed'] },
      after: text('Only tasks older than the one with this id.'),
    }),
    annotations: reads,
    run: async (api, args) => answered(await api.tasks(textsOf(args))),
  },
  cancel_task: {
    title: 'Cancel a task',
    description: 'Cancels a task that has not started, or whose provider stops it unbilled. The hold is refunded.',
    input: object({ task_id }, ['task_id']),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    run: async (api, args) => answered(await api.cancel(String(args['task_id']))),
  },
  chat: {
    title: 'Ask a chat model',
    description: 'Sends messages to a chat model and returns its answer. It costs money by the token.',
    input: object(
      {
        model: model_id,
        messages: {
          type: 'array',
          minItems: 1,
          maxItems: 1_000,
          description: 'As in chat completions: role and content.',
          items: {
            type: 'object',
            properties: { role: { type: 'string' }, content: {} },
            required: ['role', 'content'],
          },
        },
        max_tokens: { type: 'integer', minimum: 1, description: 'The most that the answer may have.' },
      },
      ['model', 'messages'],
    ),
    annotations: spends,
    run: chat,
  },
};

const balanceTool = (balance: NonNullable<Api['balance']>): Tool => ({
  title: 'Read the balance',
  description: 'Returns the balance of the account, what is held, and what this key may still spend this month.',
  input: object({}),
  annotations: reads,
  run: async () => answered(await balance()),
});

/** Adds all tools that a key may use to a server. `api` makes the calls in the name of the key. */
export function addTools(server: McpServer, api: Api): void {
  const all = { ...tools, ...(api.balance && { get_balance: balanceTool(api.balance) }) };
  for (const [name, { title, description, input: schema, annotations, run }] of Object.entries(all)) {
    const config = { title, description, inputSchema: fromJsonSchema<Arguments>(schema), annotations };
    server.registerTool(name, config, (args, context) => run(api, args, context));
  }
}

async function listModels(api: Api, { kind, search }: Arguments): Promise<CallToolResult> {
  const reply = await api.models(typeof kind === 'string' ? { modality: kind } : {});
  if (reply.status >= 400) return failed(reply);
  const word = typeof search === 'string' ? search.toLowerCase() : '';
  const models = listIn(reply.json, 'data').filter(isRecord).map(shortModel);
  const fitting = models.filter((each) => word === '' || JSON.stringify(each).toLowerCase().includes(word));
  return { content: [{ type: 'text', text: JSON.stringify({ models: fitting }) }] };
}

function shortModel({ id, modality, display_name, description, pricing, status }: Record<string, unknown>) {
  return { id, kind: modality, name: display_name, description, pricing, status };
}

async function generate(api: Api, args: Arguments, context: ServerContext): Promise<CallToolResult> {
  const body = { model: args['model'], input: args['input'] };
  if (typeof args['max_cost'] === 'string') {
    const refusal = await tooDear(api, body, args['max_cost']);
    if (refusal) return refusal;
  }
  const wait_s = typeof args['wait_seconds'] === 'number' ? args['wait_seconds'] : wait_s_max;
  const { signal } = context.mcpReq;
  const stop = startProgress(context, wait_s);
  try {
    return await taskResult(api, await api.generate(body, wait_s, signal));
  } finally {
    stop();
  }
}

/** Returns the refusal of what would hold more than `max_cost`. The price cannot change between this and the task. */
async function tooDear(api: Api, body: object, max_cost_text: string): Promise<CallToolResult | undefined> {
  const reply = await api.estimate(body);
  if (reply.status >= 400) return failed(reply);
  const { estimated_cost } = reply.json;
  const held = isRecord(estimated_cost)
    ? parseMoney(String(estimated_cost['exact'] ?? estimated_cost['amount']))
    : undefined;
  const most = parseMoney(max_cost_text);
  if (held !== undefined && most !== undefined && held <= most) return undefined;
  return errorResult(
    `Nothing was created: ${JSON.stringify(estimated_cost)} would be held, more than max_cost ${max_cost_text}.`,
  );
}

/** Tells a client that wants to know how long the tool has waited. */
function startProgress({ mcpReq }: ServerContext, wait_s: number): () => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  const begun_ms = performance.now();
  const timer = setInterval(() => {
    const progress = Math.round((performance.now() - begun_ms) / 1000);
    const params = { progressToken, progress, total: wait_s, message: `The task has been running for ${progress} s` };
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined); // the client is gone
  }, progress_every_ms);
  return () => clearInterval(timer);
}

/** The task as text, a link for each file, and small images themselves. */
async function taskResult(api: Api, reply: ApiReply): Promise<CallToolResult> {
  if (reply.status >= 400) return failed(reply);
  const task = reply.json;
  const outputs = listIn(task, 'output').filter(isRecord);
  const links = outputs.map((output, index) => ({
    type: 'resource_link' as const,
    uri: String(output['url']),
    name: `${String(task['id'])}-${index + 1}`,
    mimeType: String(output['content_type']),
    ...(typeof output['size_bytes'] === 'number' && { size: output['size_bytes'] }),
  }));
  const small = outputs.some(({ size_bytes }) => typeof size_bytes === 'number' && size_bytes <= content_bytes_max);
  const files = small ? await api.files(task, content_bytes_max) : [];
  const images = files
    .filter(({ content_type }) => content_type.startsWith('image/'))
    .map(({ bytes, content_type }) => ({
      type: 'image' as const,
      data: bytes.toString('base64'),
      mimeType: content_type,
    }));
  return {
    content: [{ type: 'text', text: JSON.stringify(task) }, ...links, ...images],
    isError: task['status'] === 'failed',
  };
}

async function chat(api: Api, args: Arguments, { mcpReq }: ServerContext): Promise<CallToolResult> {
  const reply = await api.chat({ ...args, stream: false }, mcpReq.signal);
  if (reply.status >= 400) return failed(reply);
  const [choice] = listIn(reply.json, 'choices');
  const message = isRecord(choice) ? choice['message'] : undefined;
  const content = isRecord(message) ? message['content'] : undefined;
  return {
    content: [
      { type: 'text', text: typeof content === 'string' ? content : JSON.stringify(message ?? null) },
      { type: 'text', text: JSON.stringify({ model: reply.json['model'], usage: reply.json['usage'] }) },
    ],
  };
}

function answered(reply: ApiReply): CallToolResult {
  return reply.status >= 400 ? failed(reply) : { content: [{ type: 'text', text: JSON.stringify(reply.json) }] };
}

/** The error of the API, so that the model can do something about it. */
function failed({ status, json }: ApiReply): CallToolResult {
  return errorResult(JSON.stringify({ status, ...json }));
}

function errorResult(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}

function listIn(json: Record<string, unknown>, name: string): unknown[] {
  const list = json[name];
  return Array.isArray(list) ? list : [];
}

function textsOf(args: Arguments): Record<string, string> {
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value)]));
}
