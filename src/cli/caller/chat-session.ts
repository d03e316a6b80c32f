import { createInterface, type Interface } from 'node:readline';
import { CommandError } from '../result.ts';
import { footer, openStream, shownCost, textsOf, type ChatRequest, type Message } from './chat-call.ts';
import { explained, type Service } from './service.ts';
import { Interrupted, oneLine, printable } from './terminal.ts';

/** A talk with a model on a terminal: the history goes along with each question. */

type Talk = { model: string; system: readonly Message[]; max_tokens: number | undefined; quiet: boolean };

const help = `/model MODEL   another model, with the same history
/clear         forget the history
/help          these lines
/exit          end; so does Ctrl-D. Ctrl-C ends an answer.
`;

/** Talks until the person ends it. Rejects with CommandError 130 for Ctrl-C before a question. */
export async function talk(service: Service, { model: first, system, max_tokens, quiet }: Talk): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, historySize: 200 });
  const questions = new Questions(lines);
  let model = first;
  let history: readonly Message[] = [];
  process.stdout.write(`${oneLine(model, 100)}. /help lists the commands, /exit ends.\n`);
  try {
    for (;;) {
      const question = (await questions.next())?.trim();
      if (question === undefined || question === '/exit' || question === '/quit') return;
      if (question === '') continue;
      if (question.startsWith('/')) {
        const [word = '', name = ''] = question.split(/\s+/, 2);
        if (word === '/clear') history = [];
        else if (word === '/model' && name !== '') model = name;
        else process.stdout.write(word === '/model' ? `${oneLine(model, 100)}\n` : help);
        continue;
      }
      const messages = [...history, { role: 'user', content: question } as const];
      const answer = await answerOf(
        service,
        { model, messages: [...system, ...messages], max_tokens },
        questions,
        quiet,
      );
      // A question without an answer is asked again, or forgotten.
      if (answer !== undefined && answer !== '') history = [...messages, { role: 'assistant', content: answer }];
    }
  } finally {
    lines.close();
  }
}

/** Lines that somebody types, one after the other; those that come during an answer wait. */
class Questions {
  readonly #lines: Interface;
  readonly #waiting: string[] = [];
  #is_closed = false;
  #wake: (() => void) | undefined;
  #onInterrupt: (() => void) | undefined;

  constructor(lines: Interface) {
    this.#lines = lines;
    lines.setPrompt('> ');
    lines.on('line', (line) => {
      this.#waiting.push(line);
      this.#wake?.();
    });
    lines.on('close', () => {
      this.#is_closed = true;
      this.#wake?.();
    });
    lines.on('SIGINT', () => this.#onInterrupt?.());
  }

  /** Undefined at the end of the input. Rejects with CommandError 130 after Ctrl-C. */
  async next(): Promise<string | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#wake = resolve;
    this.#onInterrupt = () => reject(new CommandError('Interrupted.', 130));
    if (this.#waiting.length > 0 || this.#is_closed) resolve();
    else this.#lines.prompt();
    try {
      await promise;
      return this.#waiting.shift();
    } finally {
      this.#wake = this.#onInterrupt = undefined;
    }
  }

  /** Runs `work` with a signal that Ctrl-C aborts. */
  async during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const interrupted = new AbortController();
    this.#onInterrupt = () => interrupted.abort(new Interrupted());
    try {
      return await work(interrupted.signal);
    } finally {
      this.#onInterrupt = undefined;
    }
  }
}

/** Returns the answer, or what came of it before Ctrl-C; undefined if it failed: the talk goes on. */
async function answerOf(
  service: Service,
  request: ChatRequest,
  questions: Questions,
  quiet: boolean,
): Promise<string | undefined> {
  let text = '';
  const stream = openStream(service, request);
  try {
    await questions.during(async (signal) => {
      for await (const piece of textsOf(stream, service, signal)) {
        text += piece;
        process.stdout.write(printable(piece));
      }
    });
    process.stdout.write('\n');
    if (!quiet) process.stderr.write(`${footer(request.model, stream, await stream.cost())}\n`);
  } catch (error) {
    if (error instanceof Interrupted) {
      const cost = await stream.cost();
      process.stdout.write(`\nInterrupted.${cost ? ` What came costs ${shownCost(cost)}.` : ''}\n`);
      return text;
    }
    const shown = explained(error, service.url);
    process.stderr.write(`${shown instanceof Error ? shown.message : String(shown)}\n`);
    return undefined;
  }
  return text;
}
