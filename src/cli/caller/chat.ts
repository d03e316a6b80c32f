import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { Medley } from '../../../clients/typescript/src/index.ts';
import { CommandError, says, type CommandResult } from '../result.ts';
import { footer, openStream, shownCost, textsOf, type ChatRequest, type Message } from './chat-call.ts';
import { talk } from './chat-session.ts';
import { takesService, withService, type Service } from './service.ts';
import { Interrupted, interruptible, printable } from './terminal.ts';

type Options = {
  url?: string;
  model?: string;
  system?: string;
  maxTokens?: string;
  file: string[];
  quiet?: boolean;
  json?: boolean;
};

export function chatCommand(chat: Command): void {
  const collect = (path: string, before: string[]) => [...before, path];
  chat
    .option('-m, --model <model>', 'the model, if it does not come first; else the first chat model that there is')
    .option('-f, --file <file>', 'put a text file after the prompt, or - for stdin', collect, [])
    .option('--system <text>', 'what the model should keep in mind')
    .option('--max-tokens <number>', 'the most tokens of an answer')
    .option('-q, --quiet', 'no price');
  says(takesService(chat), (first, second) => {
    const options: Options = chat.opts();
    return withService(options.url, (service) => run(service, [first, second], options));
  });
}

async function run(service: Service, words: readonly (string | undefined)[], options: Options): Promise<CommandResult> {
  const max_tokens = readMaxTokens(options.maxTokens);
  const { model, prompt } = await readWords(service.client, words, options.model);
  const { json = false, quiet = json } = options;
  const system: Message[] = options.system === undefined ? [] : [{ role: 'system', content: options.system }];
  if (prompt === undefined && options.file.length === 0 && process.stdin.isTTY && !json) {
    await talk(service, { model, system, max_tokens, quiet });
    return { json: {}, text: '' };
  }
  const content = await contentOf(prompt, options.file);
  const messages = [...system, { role: 'user', content } as const];
  return interruptible((signal) => answerOnce(service, { model, messages, max_tokens }, { json, quiet, signal }));
}

function readMaxTokens(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,7}$/.test(text)) return Number(text);
  throw new CommandError('--max-tokens must be a whole number from 1.', 2);
}

/** Returns the model and the prompt. The first of two words is the model; one word alone is the model if there is one of that name, else the prompt. */
async function readWords(
  client: Medley,
  [first, second]: readonly (string | undefined)[],
  option: string | undefined,
): Promise<{ model: string; prompt: string | undefined }> {
  if (option !== undefined) {
    if (second !== undefined) throw new CommandError('The model is given twice: by --model and before the prompt.', 2);
    return { model: option, prompt: first };
  }
  if (first !== undefined && second !== undefined) return { model: first, prompt: second };
  const models = await client.models.list({ modality: 'chat', limit: 1000 }).take(1000);
  const is_model = models.some(({ id, aliases }) => id === first || aliases.includes(first ?? ''));
  if (first !== undefined && is_model) return { model: first, prompt: undefined };
  const [usual] = models;
  if (!usual) throw new CommandError('This service has no chat model.');
  return { model: usual.id, prompt: first };
}

const content_bytes_max = 20_000_000;

/** The prompt, and files after it; without either, stdin. */
async function contentOf(prompt: string | undefined, files: readonly string[]): Promise<string> {
  const paths = prompt === undefined && files.length === 0 ? ['-'] : prompt === '-' ? ['-', ...files] : files;
  const texts = prompt === undefined || prompt === '-' ? [] : [prompt];
  for (const path of paths) texts.push(path === '-' ? await readStdin() : await readText(path));
  const content = texts.join('\n\n').trim();
  if (content === '') throw new CommandError('The prompt is empty.', 2);
  return content;
}

async function readText(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new CommandError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`, 2);
  });
  if (bytes.length > content_bytes_max) throw new CommandError(`${path} is larger than 20 MB.`, 2);
  return bytes.toString();
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    size_bytes += bytes.length;
    if (size_bytes > content_bytes_max) throw new CommandError('stdin is larger than 20 MB.', 2);
  }
  return Buffer.concat(chunks).toString();
}

async function answerOnce(
  service: Service,
  request: ChatRequest,
  { json, quiet, signal }: { json: boolean; quiet: boolean; signal: AbortSignal },
): Promise<CommandResult> {
  const stream = openStream(service, request);
  let text = '';
  try {
    for await (const piece of textsOf(stream, service, signal)) {
      text += piece;
      if (!json) process.stdout.write(process.stdout.isTTY ? printable(piece) : piece);
    }
    if (!json && !text.endsWith('\n')) process.stdout.write('\n');
    const cost = json || !quiet ? await stream.cost() : undefined;
    if (!quiet) process.stderr.write(`${footer(request.model, stream, cost)}\n`);
    const { finish_reason, usage, request_id } = stream;
    return { json: { model: request.model, text, finish_reason, usage, request_id, cost: cost ?? null }, text: '' };
  } catch (error) {
    if (!(error instanceof Interrupted) || stream.request_id === undefined) throw error;
    const cost = await stream.cost();
    const price = cost ? `What came costs ${shownCost(cost)}.` : 'What came is charged.';
    throw new CommandError(`Interrupted. ${price}`, 130, { type: 'interrupted', cost: cost ?? null });
  }
}
