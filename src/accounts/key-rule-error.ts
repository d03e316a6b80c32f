/** A mistake in a rule of a key; the message ends a sentence that begins with the field's name. */
export class KeyRuleError extends Error {
  override name = 'KeyRuleError';
}
