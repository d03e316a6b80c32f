import type { JsonObject } from '../catalog/model.ts';
import type { Style } from './conversation.ts';

/** What a chat request asks for, as far as routing and money need to know; `body` is the whole of it. */
export type Ask = {
  style: Style;
  body: JsonObject;
  model: string;
  stream: boolean;
  /** Completions streams: `stream_options.include_usage`. Messages streams always tell. */
  wants_usage: boolean;
  /** Undefined if the caller set none. */
  max_tokens: number | undefined;
  /** How many answers. */
  n: number;
};

/** What the input is made of, for its estimate: bytes of all text, and what is no text. */
export type InputSize = { ascii_bytes: number; other_bytes: number; images: number; documents: number };
