import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Package from '../../clients/ai-sdk/src/index.ts';
import { setStage, type Stage } from '../chat/setup.ts';
import { framesOf, wholeAnswer, type Answer, type Style } from '../clients/answers.ts';
import { installProvider } from '../helpers/built-client.ts';
import type { UpstreamRequest, Script } from '../helpers/chat-upstream.ts';

export type Sdk = typeof Package;

/** Builds the package as it is published, and loads it. */
export async function loadProvider(): Promise<{ sdk: Sdk; node_modules: string; remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'medley-ai-sdk-'));
  const node_modules = join(folder, 'node_modules');
  mkdirSync(node_modules);
  const installed = installProvider(node_modules);
  const sdk: Sdk = await import(pathToFileURL(join(installed, 'dist/index.js')).href);
  return { sdk, node_modules, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A model with an upstream of each style: its id, and what the upstream calls it. */
export const chat_models: readonly (readonly [id: string, style: Style, upstream: string])[] = [
  ['acme/oai', 'completions', 'gpt-x'],
  ['acme/ant', 'messages', 'claude-x'],
  ['acme/gem', 'gemini', 'gemini-x'],
  ['acme/native', 'responses', 'native-x'],
];

const more = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: always } }]
  - id: acme/plain
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: plain-x, options: { responses: always, reasoning_effort: false } }]
  - id: acme/deep
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: deep-x, options: { reasoning_field: reasoning_content } }]
net: { allow: ["127.0.0.0/8"] }
`;

/** `tools`: what stands at the end of the file. */
export function setChatStage(tools = ''): Promise<Stage> {
  return setStage({ more: `${more}${tools}` });
}

/** Answers in a style, whole or as the stream that was asked for. */
export function answered(style: Style, answer: Answer, { path, body }: UpstreamRequest): Script {
  if (body['stream'] !== true && !path.includes(':streamGenerateContent')) return { json: wholeAnswer(style, answer) };
  const frames = framesOf(style, answer);
  const pieces = 'text' in answer ? answer.text.split(/(?<= )/).map((word) => frames.piece(word)) : [];
  return { stream: [...frames.begin, ...pieces, ...frames.end] };
}

/** Serves one file on loopback, as somebody else's web site would. */
export async function startSite(
  bytes: Uint8Array,
  content_type: string,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': content_type }).end(bytes),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/file`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
