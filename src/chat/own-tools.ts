import type { Logger } from 'pino';
import type { JsonObject } from '../catalog/model.ts';
import type { Guard } from '../net/guard.ts';
import { inputOf } from '../styles/calls.ts';
import type { CallerHalf } from '../styles/codec.ts';
import type { ChatEvent, MadeImage, Part, WebSearch } from '../styles/conversation.ts';
import { resultsText } from '../styles/search-function.ts';
import { searchWeb } from '../web-search/search.ts';
import type { ChatCaller } from './attempt.ts';
import { makeImage, type ImageParts } from './own-images.ts';
import type { PricedChatRequest } from './priced-request.ts';

/** Tools that the service runs itself during a call: functions for the model, and calls that are answered here. */

export type CallPart = Extract<Part, { type: 'tool_call' }>;

/** The parts of the app that running tools takes. */
export type OwnToolParts = ImageParts & { readonly guard: Guard; readonly log: Logger };

/** The result of a call: for the caller, and as the model reads it. */
export type OwnResult = {
  shown: Extract<Part, { type: 'web_search' | 'made_image' }>;
  text: string;
  is_error: boolean;
};

/** A call that is to be answered; `begun`: for the caller, before that. */
export type OwnCall = { begun: ChatEvent; run(): Promise<OwnResult> };

/** Whoever waits: nobody after the signal, and so long at most. */
export type OwnWait = { signal: AbortSignal; left_ms: number };

/** Replaces the tools of a request by functions. Returns their names, too. */
export function withFunctions(
  { search, images }: CallerHalf,
  { request, search: own_search, images: own_images }: PricedChatRequest,
): { body: JsonObject; search_name: string | undefined; image_name: string | undefined } {
  let { body } = request;
  const searching = own_search && search?.withFunction(body);
  if (searching) ({ body } = searching);
  const drawing = own_images && images?.withFunction(body);
  if (drawing) ({ body } = drawing);
  return { body, search_name: searching?.name, image_name: drawing?.name };
}

/** The tools of one attempt, with the numbers of their calls. */
export class OwnTools {
  readonly #parts: OwnToolParts;
  readonly #priced: PricedChatRequest;
  readonly #caller: ChatCaller;
  readonly #search_name: string | undefined;
  readonly #image_name: string | undefined;
  #calls = 0;
  #searches = 0;
  #images = 0;
  #searches_answered = 0;

  constructor(
    parts: OwnToolParts,
    priced: PricedChatRequest,
    caller: ChatCaller,
    { search_name, image_name }: Omit<ReturnType<typeof withFunctions>, 'body'>,
  ) {
    this.#parts = parts;
    this.#priced = priced;
    this.#caller = caller;
    this.#search_name = search_name;
    this.#image_name = image_name;
  }

  /** Searches that are paid for. */
  get searches_answered(): number {
    return this.#searches_answered;
  }

  /** An image costs what its task costs, whatever becomes of the call: it is not made again by another route. */
  get has_begun_image(): boolean {
    return this.#images > 0;
  }

  /** Tells whether the service answers calls of this function. */
  has(name: string): boolean {
    return name === this.#search_name || name === this.#image_name;
  }

  /** Takes a call of one of the functions. */
  take({ name, arguments: text }: CallPart, wait: OwnWait): OwnCall {
    const values = inputOf(text);
    const id = `${this.#priced.request_id}_${this.#calls++}`;
    if (name === this.#image_name) return this.#takeImage(id, wordsIn(values, 'prompt'), wait);
    return this.#takeSearch(id, wordsIn(values, 'query'), wait);
  }

  #takeSearch(id: string, query: string, wait: OwnWait): OwnCall {
    const number = this.#searches++;
    return {
      begun: { type: 'web_search_begun', id, query },
      run: async () => {
        const searched = await this.#search(number, { id, query }, wait);
        const is_error = searched.failure !== undefined;
        return { shown: { type: 'web_search', ...searched }, text: resultsText(searched), is_error };
      },
    };
  }

  async #search(number: number, call: Pick<WebSearch, 'id' | 'query'>, wait: OwnWait): Promise<WebSearch> {
    const { search } = this.#priced;
    if (!search || number >= search.searches_max) return { ...call, results: [], failure: 'max_uses_exceeded' };
    const timeout_ms = Math.max(1, Math.min(search.settings.timeout_ms, wait.left_ms));
    const { allowed_domains, blocked_domains } = search.options;
    const query = { text: call.query, allowed_domains, blocked_domains };
    const { guard, log } = this.#parts;
    const searched = await searchWeb(guard, { ...search.settings, timeout_ms }, query, wait.signal);
    if ('results' in searched) {
      this.#searches_answered += 1;
      return { ...call, results: searched.results };
    }
    const { failure, reason } = searched;
    log.info({ request_id: this.#priced.request_id, failure, reason }, 'a search gave nothing');
    return { ...call, results: [], failure };
  }

  #takeImage(id: string, prompt: string, wait: OwnWait): OwnCall {
    const number = this.#images++;
    return {
      begun: { type: 'image_begun', id, prompt },
      run: async () => {
        const { reason, ...image } = await this.#makeImage(number, prompt, wait);
        const shown: MadeImage = { id, prompt, ...image };
        const text = reason ?? 'The image was made, and the user sees it.';
        return { shown: { type: 'made_image', ...shown }, text, is_error: reason !== undefined };
      },
    };
  }

  async #makeImage(
    number: number,
    prompt: string,
    { signal, left_ms }: OwnWait,
  ): Promise<Partial<MadeImage> & { reason?: string }> {
    const { images, caller, request_id } = this.#priced;
    if (!images || number >= images.images_max)
      return { reason: 'There are no more images for this answer. Answer with what you have.' };
    const timeout_ms = Math.max(1, Math.min(images.settings.timeout_ms, left_ms));
    const { memory } = this.#caller;
    return makeImage(this.#parts, { caller, request_id, images, prompt, memory, timeout_ms, signal });
  }
}

function wordsIn(values: JsonObject, name: string): string {
  const value = values[name];
  return typeof value === 'string' ? value.trim() : '';
}
