import type { Hints } from '../refusal.ts';

/** How the Gemini API tells of content that it does not want, and of a key that it does not know, with status 400. */
export const media_hints: Hints = {
  moderation: /responsible ai|usage guidelines|sensitive words|unsafe_generation|prohibited content/i,
  about_us: /API_KEY_|FAILED_PRECONDITION|BILLING_DISABLED|SERVICE_DISABLED|CONSUMER_|api key (?:expired|not found)/i,
  callers: /^(?:3|INVALID_ARGUMENT)\b/,
};
