import type { Hints } from '../../http/refusal.ts';

/** Errors of the Gemini API with status 400 that have nothing to do with the request. */
export const hints: Hints = {
  about_us: /API_KEY_|FAILED_PRECONDITION|BILLING_DISABLED|SERVICE_DISABLED|CONSUMER_|api key (?:expired|not found)/i,
};

/** And how it tells of images and videos that it does not want to make. */
export const media_hints: Hints = {
  ...hints,
  moderation: /responsible ai|usage guidelines|sensitive words|unsafe_generation|prohibited content/i,
  callers: /^(?:3|INVALID_ARGUMENT)\b/,
};
