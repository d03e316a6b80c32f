import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { framesOf, overflowOf, wholeAnswer, type Answer, type Style } from './answers.ts';
import { hello, image_base64, results, steps, tool_name, words_of_image, type Step } from './programme.ts';

/** One request of the service, and what became of its answer. */
export type ServedRequest = { style: Style; step: Step; answer: 'open' | 'complete' | 'left' | 'refused' };

export type Upstream = { url: string; requests: ServedRequest[]; stop(): Promise<void> };

/** A stream that is meant to be left ends by itself after this time, which is then a finding. */
const endless_ms = 12_000;
const pause_ms = 40;

/** Requests of a step, after which a loop of tools that goes in circles ends. */
const requests_max = 12;

/**
 * Starts one server that answers in all four styles. It keeps no state: which step a request belongs to is a word in
 * its text, and which part of a tool loop it is, the results in it.
 */
export async function startUpstream(): Promise<Upstream> {
  const requests: ServedRequest[] = [];
  const server = createServer((request, response) => {
    void answerRequest(request, response, requests).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  requests: ServedRequest[],
): Promise<void> {
  const body = await readText(request);
  const path = request.url ?? '';
  const style = styleOf(path);
  const step = steps.find((name) => body.includes(`Step: ${name}.`));
  if (!style || !step) return void response.writeHead(404).end('{"error":{"message":"no such step"}}');
  const one: ServedRequest = { style, step, answer: 'open' };
  requests.push(one);
  response.once('close', () => {
    if (one.answer === 'open') one.answer = response.writableFinished ? 'complete' : 'left';
  });
  if (step === 'overflow') {
    one.answer = 'refused';
    response.writeHead(400, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify(overflowOf(style)));
  }
  const times = requests.filter((each) => each.style === style && each.step === step).length;
  const answer = times > requests_max ? { text: 'This loop has no end.' } : answerOf(style, step, body);
  if (!wantsStream(path, body)) {
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify(wholeAnswer(style, answer)));
  }
  await streamAnswer(response, style, answer, step);
}

function styleOf(path: string): Style | undefined {
  if (path.includes('/chat/completions')) return 'completions';
  if (path.includes('/messages')) return 'messages';
  if (path.includes('/responses')) return 'responses';
  return path.includes('enerateContent') ? 'gemini' : undefined;
}

function wantsStream(path: string, body: string): boolean {
  return path.includes(':streamGenerateContent') || /"stream":\s*true/.test(body);
}

function answerOf(style: Style, step: Step, body: string): Answer {
  if (step === 'image') return { text: hasImage(style, body) ? words_of_image : 'There is no image.' };
  if (step !== 'tools') return { text: hello };
  const seen = results.filter((result) => body.includes(result));
  const next = results[seen.length];
  if (next === undefined) return { text: `Done: ${seen.join(', ')}.` };
  const name = new RegExp(`"name":\\s*"([^"]*${tool_name}[^"]*)"`).exec(body)?.[1];
  if (name === undefined) return searchForTool(body, seen.length);
  const namespace = style === 'responses' ? namespaceIn(body) : undefined;
  return { call: { id: `call_${seen.length}`, name, input: { number: seen.length }, namespace } };
}

/** Returns the namespace that has the tool; Codex puts the tools of a server of the Model Context Protocol in one. */
function namespaceIn(body: string): string | undefined {
  const { tools = [] } = JSON.parse(body) as { tools?: { type: string; name: string; tools?: { name: string }[] }[] };
  return tools.find((tool) => tool.type === 'namespace' && tool.tools?.some(({ name }) => name === tool_name))?.name;
}

/** Some agents send the names of tools alone, and a tool that finds them; it takes \`select:NAME\`. */
function searchForTool(body: string, number: number): Answer {
  const search = /"name":\s*"(tool_?search)"/i.exec(body)?.[1];
  const name = new RegExp(`mcp__[a-z]+__${tool_name}`).exec(body)?.[0];
  if (search === undefined || name === undefined) return { text: 'There is no such tool.' };
  const searching = { query: `select:${name}` };
  // Qwen Code's tools stay where they are when they are found: another tool of its own calls them by their name.
  if (/"name":\s*"tool_call"/.test(body) && body.includes(searching.query))
    return { call: { id: `call_${number}`, name: 'tool_call', input: { name, arguments: { number } } } };
  return { call: { id: 'call_search', name: search, input: searching } };
}

/** Google's API takes both alphabets of base64, and gets the caller's. */
function hasImage(style: Style, body: string): boolean {
  const image_for_urls = image_base64.replaceAll('+', '-').replaceAll('/', '_');
  return body.includes(image_base64) || (style === 'gemini' && body.includes(image_for_urls));
}

async function streamAnswer(response: ServerResponse, style: Style, answer: Answer, step: Step): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const frames = framesOf(style, answer);
  for (const frame of frames.begin) response.write(frame);
  if (step === 'leave') {
    const until_ms = performance.now() + endless_ms;
    while (!response.destroyed && performance.now() < until_ms) {
      response.write(frames.piece('and so on '));
      await sleep(pause_ms);
    }
  } else if ('text' in answer) {
    for (const word of answer.text.split(/(?<= )/)) response.write(frames.piece(word));
  }
  for (const frame of frames.end) response.write(frame);
  response.end();
}
