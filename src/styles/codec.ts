import type { Json, JsonObject } from '../catalog/model.ts';
import type { ApiError, ErrorFormat } from '../errors.ts';
import type { ChatAnswer, Conversation, Usage } from './conversation.ts';
import type { BodyLink, FetchedFile, Replacement } from './links.ts';
import type { Quirks } from './quirks.ts';
import type { SearchOptions } from './search-function.ts';
import type { SameStream, ChatEventReader, StreamState, ChatEventWriter } from './stream.ts';
import type { UsageFormat } from './usage.ts';

/**
 * A wire format of chat, called a style: everything that this service knows of it. `src/styles/index.ts` lists all of
 * them. A call is relayed byte by byte where its caller and its upstream have the same codec; otherwise it is parsed by
 * one of them into the neutral form of `conversation.ts` and rendered by the other.
 */
export type Codec = {
  /** As records of calls have it, and the folder of the codec. */
  readonly name: string;
  readonly upstream: UpstreamHalf;
  /** Absent: only upstreams speak it, and no caller is offered it. */
  readonly caller?: CallerHalf;
};

/** A codec that is offered to callers. */
export type CallerCodec = Codec & { readonly caller: CallerHalf };

/** A chat request, as far as routing and money have to know it; `body` is the whole of it. */
export type ChatRequest = {
  style: CallerCodec;
  body: JsonObject;
  model: string;
  stream: boolean;
  /** The answer's usage is reported in a stream: some styles ask whether it is wanted. */
  wants_usage: boolean;
  /** The answer's usage has its cost. */
  wants_cost?: boolean;
  /** Undefined if the caller set none. */
  max_tokens: number | undefined;
  /** Number of tokens for thinking; 0 if the caller set no budget. */
  thinking_budget: number;
  /** Number of answers. */
  n: number;
  /** Members of the answer: whether it is kept, and the response that it continues. */
  echo?: JsonObject;
};

/** The purpose of a request: a response, or only the count of its tokens. */
export type Purpose = 'answer' | 'count';

/** An upstream's model: `max_tokens` is the most that may be asked of it. */
export type Target = { style: Codec; model: string; max_tokens: number; quirks: Quirks };

export type UpstreamBody = {
  body: JsonObject;
  /** A tool that the upstream is made to call in place of a JSON schema: its arguments are the text. */
  json_tool?: string;
  /** Tool names that were changed for the upstream: the caller's names by the upstream's. */
  tool_names?: Map<string, string>;
  /** Files that the upstream does not fetch: whoever sends the body fills them in before. */
  links?: Link[];
};

/** A link of the caller's; `inline` is where in the body its type and its bytes in base64 are to stand. */
export type Link = { url: string; at: string; inline: { mimeType: string; data: string } };

/** Values of a response beside its content. */
export type AnswerOptions = {
  /** The public id, which stands in the caller's answer instead of the upstream's name. */
  model: string;
  /** Names the answer. */
  request_id: string;
  /** Seconds since 1970, for translated answers. */
  created: number;
  /** A tool the upstream was made to call in place of a JSON schema: its arguments are the text. */
  json_tool?: string;
  /** Tool names that were changed for the upstream: the caller's names by the upstream's. */
  tool_names?: ReadonlyMap<string, string>;
  /** Reported to the caller when the upstream counts nothing. */
  input_tokens_estimated: number;
  /** True if the request asks the upstream to keep cached input for an hour. */
  writes_for_an_hour?: boolean;
  /** The fields of the request that the answer repeats. */
  echo?: JsonObject;
  /** The cost of an answer with this usage, for callers that read it there. */
  cost?: (usage: Usage) => number;
};

/** An upstream's side of a style: requests are rendered, answers are parsed. */
export type UpstreamHalf = {
  /** Renders a conversation of a caller of another style. Throws ApiError 400 naming the field that has no place here. */
  renderRequest(conversation: Conversation, request: ChatRequest, target: Target): UpstreamBody;
  /** Parses a whole answer. Throws Error for what is none, and ApiError 400 for a prompt that was found unfit. */
  parseResponse(body: JsonObject, request_id: string): ChatAnswer[];
  /** Parses a stream, frame by frame. */
  openReader(request_id: string): ChatEventReader;
  /** The part of a rendered body whose tokens an upstream counts; absent: none counts for callers of other styles. */
  countedBody?(body: JsonObject): JsonObject;
  /**
   * For a style that upstreams speak beside their usual one: whether it is the one for this request. `is_usual`: without
   * a word in the route's options. Absent: the upstream is asked in it unless another style is chosen.
   */
  isChosen?(request: ChatRequest, quirks: Quirks, is_usual: boolean): boolean;
  /** The least output that an upstream can be asked for, if this route may be asked in this style; absent: one token. */
  outputMin?(quirks: Quirks): number;
  /** It reports the probabilities of tokens to callers of other styles. */
  readonly has_logprobs?: true;
  /** It has no place for links: files are fetched and stand in the body. */
  readonly has_no_links?: true;
  /** It reports the input that it keeps in its cache for an hour by itself. */
  readonly reports_hour_caches?: true;
};

/** Members of a body that go on to an upstream of the same style. */
export type Members = {
  /** As the current SDKs of the style define them (a test compares). */
  readonly sdk: ReadonlySet<string>;
  /** Beside them, of servers of the style, which cost nothing but tokens: sampling, and how much to think. */
  readonly vendor: ReadonlySet<string>;
  /** Refused in other styles; here an answer without them is one all the same. */
  readonly left_out?: ReadonlySet<string>;
  /** Read here, and meant for no upstream. */
  readonly own?: ReadonlySet<string>;
};

/** Optional features of a style that a caller asks for by name, in a header. */
export type Betas = {
  readonly header: string;
  /** Those that change how a model answers, at the price of its tokens. */
  readonly allowed: ReadonlySet<string>;
  /** Goes on where the model has prices for prompts of that length. */
  readonly long_context: RegExp;
};

/** The place of a body that asks for a search of the web. */
export type SearchHalf = {
  /** Returns undefined if the request asks for none. Throws ApiError 400 naming the field. */
  read(body: JsonObject): SearchOptions | undefined;
  /** The body with a function in place of the search, and the name of that. */
  withFunction(body: JsonObject): { body: JsonObject; name: string };
};

/** The place of a body that asks for images, which a model of another kind makes. */
export type ImageToolHalf = {
  /** Parameters of the images; undefined if the request asks for none. */
  read(body: JsonObject): { images_max: number | undefined; parameters: JsonObject } | undefined;
  /** The body with a function in place of the tool, and the name of that. */
  withFunction(body: JsonObject): { body: JsonObject; name: string };
};

/** The place of a body that says how often a model may use tools that the provider runs. */
export type ToolBound = {
  /** The bound of these tools; undefined if the caller set none. Throws ApiError 400 naming the field. */
  read(body: JsonObject, tools: readonly JsonObject[]): number | undefined;
  /** The body with the bound; `isHosted`: of a tool that the provider runs. */
  write(body: JsonObject, calls_max: number, isHosted: (tool: JsonObject) => boolean): JsonObject;
};

/** The endpoint of a style, for the list of endpoints and the reference. */
export type ChatEndpoint = {
  readonly path: string;
  /** Paths below `path` say the model and the method, and `src/api/` has an endpoint of its own for them. */
  readonly names_model_in_path?: true;
  readonly summary: string;
  readonly description?: string;
  /** JSON Schema. */
  readonly body: object;
  readonly examples?: Record<string, unknown>;
  /** Description of a 200. */
  readonly response: string;
  /** Counts the tokens of a request; absent: the style has no such call. */
  readonly count?: {
    readonly path: string;
    readonly summary: string;
    readonly response: string;
    render(input_tokens: number): object;
  };
};

/** A caller's side of a style: requests are parsed, answers are rendered. All that a style needs to be offered. */
export type CallerHalf = {
  readonly endpoint: ChatEndpoint;
  readonly errors: ErrorFormat;
  readonly members: Members;
  /** Headers of the caller's that go on to an upstream of the same style, in lower case. */
  readonly headers?: readonly string[];
  readonly betas?: Betas;
  /** The member of a body that has the turns; absent: it has none. */
  readonly turns_field?: string;
  /** Tells whether a tool can be given to models of other styles, as a function; absent: the style has no others. */
  isFunction?(tool: JsonObject): boolean;
  /** The bound of how often a provider's own tools are used; absent: the style has none, so nobody could pay for them. */
  readonly tool_bound?: ToolBound;
  /** Searches of the web, which the service can run for every model; absent: the style has none. */
  readonly search?: SearchHalf;
  /** Images that the service can make for every model; absent: the style has none. */
  readonly images?: ImageToolHalf;
  /** Tells whether a tool of the style's own costs nothing but tokens; absent: by its `type`. */
  isCovered?(tool: JsonObject): boolean;
  /** The name of a tool that is no function, where it is not in its `type`. */
  typeOfTool?(tool: JsonObject): string | undefined;
  /** Members of a body that have more tools, which no model of another style is given. */
  readonly tool_fields?: readonly string[];
  /** The member that has the texts to stop at, for messages about it. */
  readonly stop_field: string;
  /** Bytes of the input beside the texts of a body: what a translation adds to it, and tokens that stand there as numbers. */
  addedBytes?: (body: JsonObject) => number;
  readonly usage: UsageFormat;
  /** Members of an answer that have our values; absent: `id`, `model` and `usage`. */
  readonly answer_members?: { readonly id: string; readonly model: string; readonly usage: string };
  /** Reads what routing and money need, in place. Throws ApiError 400 naming the field. */
  readRequest(body: JsonObject, purpose: Purpose): Omit<ChatRequest, 'style' | 'body'>;
  /** Parses all of a request, for an upstream of another style. Throws ApiError 400 naming the field. */
  parseRequest(body: JsonObject): Conversation;
  /** Renders a whole answer; several only if the request asked for several. */
  renderResponse(
    answers: readonly ChatAnswer[],
    usage: Usage,
    request: ChatRequest,
    options: AnswerOptions,
  ): JsonObject;
  /** Renders a stream. Reads what it needs of the request now: its body is released with the first content. */
  openWriter(request: ChatRequest, options: AnswerOptions): ChatEventWriter;
  /** Returns the finish reason, in the words of the style. */
  finishOf(body: JsonObject): unknown;
  /**
   * The id of an answer, which is ours whatever the upstream's is: some upstreams number theirs anew, and clients merge
   * two answers with one id into one turn. The upstream's own is in the record of the call.
   */
  answerId(request_id: string): string;
  /** The event that a silent stream has between two others. */
  readonly heartbeat: Buffer;
  /** The last event of a stream that went wrong after it had begun. */
  errorEvent(error: StreamError): Buffer;
  /** Codes that clients of the style look for in a stream, never in the status: such a stream begins, and ends with them. */
  readonly streamed_codes?: readonly string[];
  /** The file in place of a link, where the style does not have it as a data URL in the place of the link. */
  replaceLink?(link: BodyLink, file: FetchedFile): Replacement | undefined;
  readonly passthrough: Passthrough;
  /** The state of a style whose answers are kept and continued by their ids; absent: it has no such thing. */
  readonly state?: StateHalf;
};

/** The part of a style that names what was kept. */
export type StateHalf = {
  /** Reads what is to be kept, and what the request continues. Throws ApiError 400 naming the field. */
  read(body: JsonObject): RequestState;
  readonly compaction: Compaction;
  readonly background: Background;
};

/** The part of a style about answers that are made while nobody is connected. */
export type Background = {
  /** The answer as it is at first. */
  queued(parts: { body: JsonObject; echo: JsonObject; model: string; request_id: string; created: number }): JsonObject;
  inStatus(response: JsonObject, status: string): JsonObject;
  failed(response: JsonObject, error: ApiError): JsonObject;
  /** Reads the events of a stream into the output that they bring. */
  openOutput(): OutputReader;
  /** An answer that broke off, with what had come of it, and what that is charged as. */
  broken(response: JsonObject, output: JsonObject[], usage: Usage | undefined): JsonObject;
  /** A complete answer, with what only the first one says. */
  completed(answer: JsonObject, queued: JsonObject): JsonObject;
  statusOf(answer: JsonObject): 'completed' | 'incomplete';
  /** The text of an event with its number. */
  event(type: string, fields: JsonObject, sequence_number: number): string;
  /** The type of an upstream's event that goes on; undefined for those that we write ourselves. */
  upstreamEvent(event: JsonObject): string | undefined;
  /** The type of the last event of a stream. */
  lastEventType(status: string): string;
};

/** Adds up what the events of a stream have brought. */
export type OutputReader = {
  read(event: JsonObject): void;
  output(): JsonObject[];
};

/** The part of a style that makes a long conversation short. */
export type Compaction = {
  readonly endpoint: Pick<ChatEndpoint, 'path' | 'summary' | 'response'> & { readonly description: string };
  /** The members of a caller's body that say what is compacted. */
  requestBody(body: JsonObject): JsonObject;
  /** The body for an upstream of the style that compacts by itself. */
  nativeBody(request: ChatRequest, target: Target): JsonObject;
  /** The body of a call by which any model writes a summary. Throws ApiError 400 naming what only an upstream can read. */
  summaryBody(body: JsonObject): JsonObject;
  /** The items of the user, which stay as they are. */
  userMessages(body: JsonObject): JsonObject[];
  /** The text of a whole answer of the style; empty if the model wrote none. */
  textOf(answer: JsonObject): string;
  /** The answer: items, and one with a content that nobody else reads. */
  render(parts: CompactionParts): JsonObject;
  /** The content of such an item, ours or an upstream's; undefined for other items. */
  contentIn(item: JsonObject): string | undefined;
  /** The item by which a model reads a summary. */
  renderSummary(text: string): JsonObject;
};

export type CompactionParts = {
  request_id: string;
  created: number;
  messages: JsonObject[];
  content: string;
  usage: Json;
};

export type RequestState = {
  store: boolean;
  background: boolean;
  previous_response_id: string | undefined;
  conversation_id: string | undefined;
  /** The input of this call alone, in items; some may name others by their ids. */
  input: readonly JsonObject[];
  /** Ids of items that stand for what was kept, by their places in `input`. */
  references: ReadonlyMap<number, string>;
};

export type StreamError = {
  type: string;
  message: string;
  code?: string;
  param?: string;
  request_id: string;
  /** The public id of the model. */
  model: string;
  /** Begin of the call, in seconds since 1970. */
  created: number;
};

/** Caller and upstream have this style: everything goes on as it came but for a few edits. */
export type Passthrough = {
  /** A shallow copy of the caller's body with the fields changed that must be. */
  body(request: ChatRequest, target: Target): JsonObject;
  /** The body whose tokens an upstream counts; absent: it is not asked. */
  countedBody?(request: ChatRequest, target: Target): JsonObject;
  /** The answer as the request wants it; absent, and undefined: as it came. */
  changeAnswer?(body: JsonObject, request: ChatRequest): JsonObject | undefined;
  openStream(options: AnswerOptions & { wants_usage: boolean; request: ChatRequest }, state: StreamState): SameStream;
};

/** The model went wrong, which comes of what it was asked: neither its upstream nor a route is to blame. */
export class Unfinished extends Error {
  override name = 'Unfinished';
}

/** The same in a stream. */
export const unfinished_type = 'unfinished';
