import type { Upstream } from '../../http/http.ts';
import { hints } from '../gemini/hints.ts';
import type { Hints } from '../../http/refusal.ts';
import type { RunContext } from '../../provider.ts';

/**
 * `path`: of all interactions. `video_delivery`: the way of a video where the route does not say one. `key`: the headers
 * that links to results want.
 */
export type InteractionsUpstream = Upstream & {
  readonly path: string;
  readonly video_delivery: 'inline' | 'uri';
  readonly key: Record<string, string>;
};

/** Tells whether the submit is answered at once, and the run asked for after it. */
export function isBackground({ kind, options }: RunContext): boolean {
  const { background = kind === 'video' } = options;
  return background === true;
}

/**
 * Words about content that the API does not want, in a code, a reason or a sentence. Fields are called `safety_settings`,
 * and refused keys have the reason API_KEY_SERVICE_BLOCKED: neither is one.
 */
const moderation = new RegExp(
  [
    String.raw`\b(?:image_)?(?:safety|prohibited_content|blocklist|spii|recitation)\b`,
    String.raw`\bblocked\b[^.]*\b(?:safety|polic(?:y|ies))\b`,
    String.raw`\bviolat\w*\b[^.]*\b(?:safety|polic(?:y|ies)|guidelines)\b`,
    'responsible ai|sensitive words|prohibited (?:content|use)',
  ].join('|'),
  'i',
);

/** The API of interactions has its codes as words in small letters (`invalid_request`), Google's front in capitals. */
export const interaction_hints: Hints = {
  ...hints,
  moderation,
  callers: /^(?:3|invalid_argument|invalid_request)\b/i,
};
