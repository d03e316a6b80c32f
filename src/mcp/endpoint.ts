import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import { apiInside, type McpParts } from './inside.ts';

const body_limit_bytes = 20_000_000;

/** POST /mcp: the tools for agents by the Model Context Protocol, over streamable HTTP and without sessions. */
export const mcp_endpoint: Endpoint<McpParts> = {
  method: 'POST',
  path: '/mcp',
  body_limit_bytes,
  lenient_query: true,
  docs: {
    tag: 'Service',
    summary: 'Call tools by the Model Context Protocol',
    description:
      'Streamable HTTP without sessions, of the revisions 2025-03-26 to 2026-07-28. What a key may do, its tools may; one that is limited to a project has no tool that reads the balance.',
    accept: 'application/json, text/event-stream',
    body: {
      schema: { type: 'object', description: 'A message of JSON-RPC 2.0.', additionalProperties: true },
      examples: { tools: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
    },
    responses: {
      200: { description: 'The answer, as JSON or as a stream of events.' },
      202: { description: 'A notification was taken.' },
    },
  },
  handle: answer,
};

/** The library takes a quarter of a second to load, and most services have no agents. */
async function answer(app: McpParts, call: Call): Promise<Answer> {
  const [{ createMcpHandler }, { makeMcpServer }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('./server.ts'),
  ]);
  const onerror = (error: Error) => app.log.debug({ request_id: call.request_id, error: String(error) }, 'mcp');
  const handler = createMcpHandler(() => makeMcpServer(apiInside(app, call)), { onerror });
  const response = await handler.fetch(requestOf(call), { parsedBody: call.body });
  const headers = Object.fromEntries(response.headers);
  if (!response.body) return { status: response.status, headers };
  // The types of the web's stream and of Node's are two, and one thing.
  return { status: response.status, headers, body: Readable.fromWeb(response.body as ReadableStream) };
}

/** The request as the library takes it: without the key, which it has no use for. */
function requestOf({ headers, body_bytes, gone }: Call): Request {
  const protocol_headers = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && /^(?:accept|content-type|mcp-[\w-]+)$/.test(name) ? [[name, value]] : [],
  );
  return new Request('http://medley/mcp', {
    method: 'POST',
    headers: protocol_headers,
    body: new Uint8Array(body_bytes),
    signal: gone,
  });
}
