import type { JsonObject } from '../catalog/model.ts';
import type { CallerStyle, UpstreamStyle, Usage } from './conversation.ts';

/** Carries one upstream's stream to one caller, in the caller's style. One per attempt at a route. */
export type Relay = {
  /**
   * Takes bytes of the upstream as they came, cut anywhere. Answers what is to be sent to the caller now:
   * nothing before the first content, then all that was held back and more. Never throws: bytes that are
   * no stream of this style show in `failure`.
   */
  push(chunk: Buffer): Buffer | undefined;
  /**
   * The upstream's connection has ended. Answers the last bytes of a complete stream; of a cut one
   * nothing, and `failure` says so.
   */
  end(): Buffer | undefined;
  /** The model has begun to answer: from here on whatever comes is a sign of life, before that pings are none. */
  readonly has_begun: boolean;
  /** Content has come: text, thinking, a refusal or a tool call, however little. */
  readonly has_content: boolean;
  /** The upstream said why its answer ends: its usage may follow. */
  readonly is_ending: boolean;
  /** The model thinks, by what has come. */
  readonly reasons: boolean;
  /** The upstream said that it is complete. */
  readonly is_complete: boolean;
  /** The upstream's error event, or what is wrong with the stream. Nothing is sent after it. */
  readonly failure: { type: string; message: string } | undefined;
  /** What the upstream told of its usage so far; undefined if it never did. */
  readonly usage: Partial<Usage> | undefined;
  /** What was relayed, for counting where the upstream counts nothing: bytes of text, thinking and arguments. */
  readonly delivered: { ascii_bytes: number; other_bytes: number };
  /** Why it ended, in the words of the caller's style; for the record of the call. */
  readonly finish: string | undefined;
  /** What the upstream calls its answer; for the record of the call. */
  readonly upstream_id: string | undefined;
};

export type RelayOptions = {
  caller: CallerStyle;
  upstream: UpstreamStyle;
  /** The public id, which stands in the caller's stream wherever the upstream's name does. */
  model: string;
  /** The caller asked for usage in a completions stream: without it, usage is taken out. */
  wants_usage: boolean;
  /** Names the answer. */
  request_id: string;
  /** Told in `message_start` when the upstream tells its input tokens only at the end. */
  input_tokens_estimated: number;
  /** Of the request that the upstream was sent: input that it writes to its cache is to stay there for an hour. */
  writes_for_an_hour?: boolean;
  /** Seconds since 1970, for the `created` of translated chunks. */
  created: number;
  /** A line of the stream longer than this is a failure. */
  line_bytes_max: number;
  /** A tool the upstream was made to call in place of a JSON schema: its arguments are the text. */
  json_tool?: string;
  /** Tool names that were shortened for the upstream: what the caller knows them by. */
  tool_names?: ReadonlyMap<string, string>;
  /** The caller asked by `functions`, which tools have replaced: it reads `function_call`. */
  legacy_functions?: boolean;
  /** Responses style: what a translated response says of its request. */
  echo?: JsonObject;
};
