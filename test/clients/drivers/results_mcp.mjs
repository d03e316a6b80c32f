/** A server of the Model Context Protocol by stdio, for agents that have no other way to a tool: the tool of the programme. */
import { createInterface } from 'node:readline';

const tool = {
  name: process.argv[2],
  description: 'Returns the result of a number.',
  inputSchema: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
};
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'results', version: '1' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': ({ arguments: { number } }) => ({ content: [{ type: 'text', text: `result-of-${number}` }] }),
  ping: () => ({}),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer
    ? { result: answer(params) }
    : { error: { code: -32601, message: 'There is no such method.' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`);
});
