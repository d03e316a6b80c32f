import { Failure, isRecord } from '../../api.ts';

/** One call of a chat model by the relay of the dashboard, read while it is being answered. */

export type ToolCall = { id: string; name: string; arguments: string };

export type Delta = { text: string; thinking: string; tools: { index: number; call: Partial<ToolCall> }[] };

export type Ending = { finish: string | undefined };

type Wanted = {
  path: string;
  body: object;
  signal: AbortSignal;
  onBegin: (request_id: string | undefined) => void;
  onDelta: (delta: Delta) => void;
};

/** Throws Failure for what the service or the model's provider tells, and what `signal` aborts with. */
export async function streamChat({ path, body, signal, onBegin, onDelta }: Wanted): Promise<Ending> {
  const response = await fetch(path, {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  const request_id = response.headers.get('x-request-id') ?? undefined;
  if (!response.ok || !response.body) throw failureOf(response.status, parsed(await response.text()), request_id);
  onBegin(request_id);
  let finish: string | undefined;
  for await (const event of eventsOf(response.body)) {
    if (!isRecord(event)) continue;
    if (event['error'] !== undefined) throw failureOf(502, event, request_id);
    const [choice] = Array.isArray(event['choices']) ? event['choices'] : [];
    if (!isRecord(choice)) continue;
    if (typeof choice['finish_reason'] === 'string') finish = choice['finish_reason'];
    if (isRecord(choice['delta'])) onDelta(readDelta(choice['delta']));
  }
  return { finish };
}

function failureOf(status: number, told: unknown, request_id: string | undefined): Failure {
  const error = isRecord(told) && isRecord(told['error']) ? told['error'] : {};
  const message = typeof error['message'] === 'string' ? error['message'] : `The service answered ${status}.`;
  return new Failure(status, { message, ...(request_id !== undefined && { request_id }) });
}

/** The JSON of every `data:` line, until `[DONE]`. */
async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const reader = stream.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const data = /^data: ?(.*)$/.exec(line.trimEnd())?.[1];
      if (data === '[DONE]') return;
      if (data !== undefined) yield parsed(data);
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readDelta(delta: Record<string, unknown>): Delta {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const tools = (Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : []).filter(isRecord);
  return {
    text: text(delta['content']),
    thinking: text(delta['reasoning_content']) || text(delta['reasoning']),
    tools: tools.map((tool) => {
      const told = isRecord(tool['function']) ? tool['function'] : {};
      const { index, id } = tool;
      return {
        index: typeof index === 'number' ? index : 0,
        call: {
          ...(typeof id === 'string' && { id }),
          ...(typeof told['name'] === 'string' && { name: told['name'] }),
          arguments: text(told['arguments']),
        },
      };
    }),
  };
}
