import type { Dispatcher } from 'undici';

/** An upstream's answer, as soon as its head has come. */
export type UpstreamAnswer = { status: number; headers: Headers; body: AnswerBody };

type Headers = { readonly [name: string]: string | string[] | undefined };

/** Above this nothing more is read until somebody takes what is there. */
const waiting_bytes_max = 65_536;

/**
 * The bytes of an answer, once, in pieces as they come; what has come since the last piece is one piece. Whoever
 * stops reading before its end closes the connection.
 */
export class AnswerBody implements AsyncIterable<Buffer>, AsyncIterator<Buffer, undefined> {
  #controller: Dispatcher.DispatchController;
  #pieces: Buffer[] = [];
  #waiting_bytes = 0;
  #over: { error?: Error } | undefined;
  #reader: PromiseWithResolvers<IteratorResult<Buffer, undefined>> | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    const value = this.#take();
    if (value) return Promise.resolve({ value, done: false });
    if (this.#over) return this.#over.error ? Promise.reject(this.#over.error) : Promise.resolve(the_end);
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.destroy();
    return Promise.resolve(the_end);
  }

  /** Nobody wants the rest. */
  destroy(): void {
    if (!this.#over) this.#controller.abort(new Error('the rest of the answer is not wanted'));
  }

  /** Takes the next piece from whoever reads the connection. */
  push(piece: Buffer): void {
    if (this.#reader) return this.#answer({ value: piece, done: false });
    this.#pieces.push(piece);
    this.#waiting_bytes += piece.length;
    if (this.#waiting_bytes > waiting_bytes_max) this.#controller.pause();
  }

  /** Ends the body; whoever reads the connection calls it last. */
  finish(error?: Error): void {
    this.#over = error ? { error } : {};
    if (!this.#reader) return;
    if (!error) return this.#answer(the_end);
    this.#reader.reject(error);
    this.#reader = undefined;
  }

  #take(): Buffer | undefined {
    const pieces = this.#pieces;
    if (pieces.length === 0) return undefined;
    this.#pieces = [];
    this.#waiting_bytes = 0;
    if (this.#controller.paused) this.#controller.resume();
    return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
  }

  #answer(result: IteratorResult<Buffer, undefined>): void {
    this.#reader?.resolve(result);
    this.#reader = undefined;
  }
}

const the_end: IteratorResult<Buffer, undefined> = { value: undefined, done: true };

/**
 * Sends a request and resolves when the head of its answer has come; `signal` ends it at any time. The client's
 * own `request` makes a stream for every answer: that and reading it took 15 % of a chat call, and a third of
 * what relaying one frame of a stream costs (bench/results/chat.md).
 */
export function ask(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<UpstreamAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(reasonOf(signal));
    else dispatcher.dispatch(options, new Exchange(options, signal, resolve, reject));
  });
}

/** Events of one request, from the client and the signal. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: Dispatcher.DispatchOptions;
  readonly #signal: AbortSignal;
  readonly #resolve: (answer: UpstreamAnswer) => void;
  readonly #reject: (reason: Error) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #body: AnswerBody | undefined;

  constructor(
    options: Dispatcher.DispatchOptions,
    signal: AbortSignal,
    resolve: (answer: UpstreamAnswer) => void,
    reject: (reason: Error) => void,
  ) {
    this.#options = options;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    signal.addEventListener('abort', this.#cancel);
  }

  readonly #cancel = () => {
    const reason = reasonOf(this.#signal);
    if (this.#controller) this.#controller.abort(reason);
    else this.#options.body = null; // it waits for a connection, behind others for long: up to 32 MB each
    this.#reject(reason);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(reasonOf(this.#signal));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return; // an announcement: the answer follows
    this.#body = new AnswerBody(controller);
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    this.#body?.push(piece);
  }

  onResponseEnd(): void {
    this.#finish();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#finish(error);
    this.#reject(error);
  }

  #finish(error?: Error): void {
    this.#signal.removeEventListener('abort', this.#cancel);
    this.#body?.finish(error);
  }
}

function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
