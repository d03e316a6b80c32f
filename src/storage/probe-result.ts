import type { Extension } from './media-types.ts';

/** The type and the measurements of a file, by its bytes alone. Sides in pixels, duration in seconds. */
export type Probe = {
  type: 'image' | 'video' | 'audio';
  content_type: string;
  extension: Extension;
  size_bytes: number;
  /** Images and videos, as they are shown. */
  width?: number;
  height?: number;
  /** Videos and audio, to the millisecond. */
  duration?: number;
};

/**
 * `timeout` and `crashed` are the work of hostile files; rarely, that of a machine that has no time
 * or memory left. The others are certain.
 */
export type ProbeFailure = 'empty' | 'unrecognized' | 'truncated' | 'damaged' | 'too_large' | 'timeout' | 'crashed';

/** `problem` is for operators: a sentence that may quote a library. */
export type ProbeResult = { ok: true; probe: Probe } | { ok: false; reason: ProbeFailure; problem: string };

/** The answer for a file that cannot be measured. */
export function failed(reason: ProbeFailure, problem: string): ProbeResult {
  return { ok: false, reason, problem: problem.replaceAll(/\s+/g, ' ').trim().slice(0, 300) };
}

/** Texts of the problems of a file, after its name. */
export const probe_messages: Readonly<Record<ProbeFailure, string>> = {
  empty: 'is empty.',
  unrecognized: 'is of no known image, audio or video format.',
  truncated: 'is cut off: it ends before its own structure does.',
  damaged: 'is damaged: it cannot be read.',
  too_large: 'declares a size that needs more memory than any valid file.',
  timeout: 'took too long to be measured.',
  crashed: 'could not be measured.',
};
