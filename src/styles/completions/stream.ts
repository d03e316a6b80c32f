import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import type { AnswerOptions } from '../codec.ts';
import type { ChatEvent, FinishReason, Part, Usage } from '../conversation.ts';
import { customInput } from '../custom-tools.ts';
import { isObject } from '../fields.ts';
import { writeExtraContent } from '../thought-signatures.ts';
import { cut, empty, errorEventOf, objectOf, start, type ChatEventReader, type ChatEventWriter } from '../stream.ts';
import { withCost } from '../usage.ts';
import { CitedText } from '../citations.ts';
import { readLogprobs } from './logprobs.ts';
import type { ReasoningShown } from './openrouter.ts';
import { plainChoice, textOf } from './plain-choice.ts';
import { annotationsOf } from './searches.ts';
import { answerId, readFinish, readThinking, thoughtMembers, writeFinish } from './response.ts';
import { usageIn, usage_format } from './usage.ts';

/** Characters of a call's arguments that wait for its id, which some servers send later than its name. */
const early_arguments_max = 256;

/** Only the first choice: the other style has no more. */
export class CompletionsReader implements ChatEventReader {
  readonly #request_id: string;
  #started = false;
  #finish: Json | undefined;
  #is_done = false;
  #has_content = false;
  #has_refusal = false;
  /** By the upstream's index, which some servers leave out, and some give to all calls alike. */
  readonly #calls = new Map<Json | undefined, Call>();
  readonly #calls_begun: Call[] = [];
  /** The number of these that the caller knows; the others have no id yet. */
  #calls_announced = 0;
  /** Since the last signature. */
  #thought = '';

  constructor(request_id: string) {
    this.#request_id = request_id;
  }

  read({ data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '') return raw.length > 0 ? [{ type: 'ping' }] : [];
    if (data.startsWith('[DONE]')) return this.#done();
    const chunk = objectOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return [errorEventOf(chunk['error'])];
    const events: ChatEvent[] = this.#started ? [] : [start(chunk['id'])];
    this.#started = true;
    const choice = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject).find(isFirst) : undefined;
    const tokens = readLogprobs(choice?.['logprobs']);
    if (tokens.length > 0) events.push({ type: 'logprobs', tokens });
    const choice_events = choice ? this.#readChoice(plainChoice(choice, 'delta')) : [];
    this.#has_content ||= choice_events.some(({ type }) => type !== 'ending');
    events.push(...choice_events);
    const usage = usage_format.read(usageIn(chunk));
    if (usage) events.push({ type: 'usage', usage });
    return events;
  }

  end(): ChatEvent[] {
    if (this.#is_done) return [];
    return this.#finish === undefined ? [cut] : this.#done(); // some servers leave [DONE] out
  }

  #done(): ChatEvent[] {
    if (this.#is_done) return [];
    this.#is_done = true;
    const waiting = this.#announce();
    if (!this.#has_content && waiting.length === 0 && this.#finish === undefined) return [empty];
    const reason = readFinish(this.#finish, {
      has_calls: this.#calls_begun.length > 0,
      has_refusal: this.#has_refusal,
    });
    return [...waiting, { type: 'finish', reason }, { type: 'end' }];
  }

  #readChoice(choice: JsonObject): ChatEvent[] {
    const events: ChatEvent[] = [];
    const delta = isObject(choice['delta']) ? choice['delta'] : {};
    for (const part of readThinking(delta)) {
      if (part.type === 'redacted_thinking') events.push(part);
      if (part.type === 'thinking') events.push(...this.#readThought(part));
    }
    const { content, refusal } = delta;
    const text = textOf(content);
    if (text !== '') events.push({ type: 'text', text });
    if (typeof refusal === 'string' && refusal !== '') {
      this.#has_refusal = true;
      events.push({ type: 'refusal', text: refusal });
    }
    const calls = Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : [];
    for (const call of calls) if (isObject(call)) events.push(...this.#readCall(call, call['function']));
    if (isObject(delta['function_call'])) events.push(...this.#readCall({ index: 0 }, delta['function_call']));
    if (choice['finish_reason'] !== undefined && choice['finish_reason'] !== null) {
      this.#finish = choice['finish_reason'];
      events.push(...this.#announce(), { type: 'ending' });
    }
    return events;
  }

  /** Some servers, and this one, say a thought in pieces and then whole, with its signature. */
  #readThought({ text, signature }: Part & { type: 'thinking' }): ChatEvent[] {
    const is_repeated = signature !== undefined && text === this.#thought;
    this.#thought = signature === undefined ? this.#thought + text : '';
    return [
      ...(is_repeated || text === '' ? [] : [{ type: 'thinking', text } as const]),
      ...(signature === undefined ? [] : [{ type: 'signature', signature } as const]),
    ];
  }

  #readCall(call: JsonObject, delta: Json | undefined): ChatEvent[] {
    const function_part = isObject(delta) ? delta : {};
    const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : undefined;
    let open_call = this.#calls.get(call['index']);
    if (
      typeof function_part['name'] === 'string' &&
      function_part['name'] !== '' &&
      (!open_call || isOther(call, id, open_call))
    ) {
      open_call = { index: this.#calls_begun.length, id, name: function_part['name'], early: '' };
      this.#calls.set(call['index'], open_call);
      this.#calls_begun.push(open_call);
    }
    if (!open_call) return [];
    const { arguments: raw = '' } = function_part;
    const json = isObject(raw) ? JSON.stringify(raw) : typeof raw === 'string' ? raw : '';
    if (open_call.index < this.#calls_announced) return piecesOf(open_call, json);
    open_call.id ??= id;
    open_call.early += json;
    const has_waited = open_call.id !== undefined || open_call.early.length > early_arguments_max;
    return has_waited ? this.#announce(open_call.index + 1) : [];
  }

  /** Announces the calls before `end`, in their order: one whose id has not come by now gets one. */
  #announce(end = this.#calls_begun.length): ChatEvent[] {
    const calls = this.#calls_begun.slice(this.#calls_announced, end);
    this.#calls_announced = end;
    return calls.flatMap((call): ChatEvent[] => {
      const { index, id = `call_${this.#request_id}_${index}`, name, early } = call;
      return [{ type: 'tool_call', index, id, name }, ...piecesOf(call, early)];
    });
  }
}

/** `early`: the arguments that came while the call had no id. */
type Call = { index: number; id: string | undefined; name: string; early: string };

function piecesOf({ index }: Call, json: string): ChatEvent[] {
  return json === '' ? [] : [{ type: 'tool_arguments', index, json }];
}

/** A name in a further piece begins another call if its id is another one, or nothing tells the calls apart. */
function isOther(call: JsonObject, id: string | undefined, open_call: Call): boolean {
  if (id === undefined) return call['index'] === undefined;
  return open_call.id !== undefined && id !== open_call.id;
}

function isFirst(choice: JsonObject): boolean {
  return choice['index'] === undefined || choice['index'] === 0;
}

/** `legacy_functions`: the caller asked by `functions`, which tools have replaced, and reads `function_call`. */
type CompletionsWriterOptions = Pick<AnswerOptions, 'model' | 'request_id' | 'created' | 'cost'> & {
  wants_usage: boolean;
  legacy_functions: boolean;
  custom_tools?: ReadonlySet<string>;
  reasoning?: ReasoningShown;
};

/** Renders a stream of chunks. */
export class CompletionsWriter implements ChatEventWriter {
  finish: string | undefined;
  readonly #options: CompletionsWriterOptions;
  readonly #id: string;
  #reason: FinishReason = 'stop';
  #has_calls = false;
  #thought = '';
  #details = 0;
  /** Arguments of functions that stand for custom tools: their text is known at the end. */
  readonly #inputs = new Map<number, string>();
  readonly #cited = new CitedText();

  constructor(options: CompletionsWriterOptions) {
    this.#options = options;
    this.#id = answerId(options.request_id);
  }

  write(event: ChatEvent, usage: () => Usage): string {
    switch (event.type) {
      case 'start':
        return this.#delta({ role: 'assistant', content: '' });
      case 'text':
        this.#cited.add(event.text);
        return this.#delta({ content: event.text });
      case 'refusal':
        return this.#delta({ refusal: event.text });
      case 'thinking':
        this.#thought += event.text;
        return this.#think(thoughtMembers(event.text, this.#options.reasoning));
      case 'signature':
        return this.#detail({ type: 'reasoning.text', text: this.#thought, signature: event.signature });
      case 'redacted_thinking':
        return this.#detail({ type: 'reasoning.encrypted', data: event.data });
      case 'text_signature':
        return this.#delta(writeExtraContent(event.thought_signature));
      case 'tool_call':
        return this.#call(event);
      case 'tool_arguments':
        return this.#arguments(event.index, event.json);
      case 'web_search':
        this.#cited.addResults(event.results);
        return '';
      case 'finish':
        this.#reason = event.reason;
        return '';
      case 'end':
        return this.#end(usage);
      case 'ping':
        return ': keep-alive\n\n';
      default:
        return '';
    }
  }

  #call({ index, id, name, thought_signature }: ChatEvent & { type: 'tool_call' }): string {
    this.#has_calls = true;
    if (this.#options.legacy_functions)
      return index === 0 ? this.#delta({ function_call: { name, arguments: '' } }) : '';
    const is_custom = this.#options.custom_tools?.has(name) === true;
    if (is_custom) this.#inputs.set(index, '');
    const called = is_custom
      ? { type: 'custom', custom: { name, input: '' } }
      : { type: 'function', function: { name, arguments: '' } };
    return this.#delta({ tool_calls: [{ index, id, ...called, ...writeExtraContent(thought_signature) }] });
  }

  #arguments(index: number, json: string): string {
    if (this.#options.legacy_functions) return index === 0 ? this.#delta({ function_call: { arguments: json } }) : '';
    const begun = this.#inputs.get(index);
    if (begun === undefined) return this.#delta({ tool_calls: [{ index, function: { arguments: json } }] });
    this.#inputs.set(index, begun + json);
    return '';
  }

  /** A block of thinking with its signature, for callers that give it back. */
  #detail(detail: JsonObject): string {
    this.#thought = '';
    const format = 'anthropic-claude-v1';
    return this.#think({ reasoning_details: [{ ...detail, format, index: this.#details++ }] });
  }

  #think(delta: JsonObject): string {
    return this.#options.reasoning === 'hidden' ? '' : this.#delta(delta);
  }

  #end(usage: () => Usage): string {
    this.finish = writeFinish(this.#reason, this.#has_calls, this.#options.legacy_functions);
    const inputs = [...this.#inputs].map(([index, json]) =>
      this.#delta({ tool_calls: [{ index, custom: { input: customInput(json) } }] }),
    );
    const annotations = annotationsOf(this.#cited.citations);
    const cited = annotations.length === 0 ? '' : this.#delta({ annotations });
    const last =
      inputs.join('') + cited + this.#chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: this.finish }]);
    if (!this.#options.wants_usage) return `${last}data: [DONE]\n\n`;
    return `${last}${this.#chunk([], this.#usage(usage()))}data: [DONE]\n\n`;
  }

  #usage(usage: Usage): JsonObject {
    return withCost(usage_format.write(usage), usage, this.#options.cost);
  }

  #delta(delta: JsonObject): string {
    return this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: null }]);
  }

  #chunk(choices: JsonObject[], usage: JsonObject | null = null): string {
    const { created, model, wants_usage } = this.#options;
    const head = { id: this.#id, object: 'chat.completion.chunk', created, model };
    return `data: ${JSON.stringify({ ...head, choices, ...(wants_usage && { usage }) })}\n\n`;
  }
}
