import type { Codec } from './codec.ts';
import { completions } from './completions/codec.ts';
import { converse } from './converse/codec.ts';
import { gemini } from './gemini/codec.ts';
import { messages } from './messages/codec.ts';
import { responses } from './responses/codec.ts';
import { texts } from './texts/codec.ts';

/** Every style of this service: a folder each. */
export const styles: readonly Codec[] = [completions, messages, responses, texts, gemini, converse];
