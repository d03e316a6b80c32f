/** The names in templates of signatures, such as `$timestamp`; `$$` is a dollar sign. */

export const signed_words = [
  'method',
  'host',
  'path',
  'query',
  'target',
  'timestamp',
  'nonce',
  'key_id',
  'body',
  'body_sha256',
  'body_sha256_base64',
  'body_md5',
  'body_md5_base64',
  'content_type',
] as const;

/** Names in what is sent beside the request: all but the body itself. */
export const sent_words = [...signed_words.filter((word) => word !== 'body'), 'signature'];

const word_form = /\$(\$|[A-Za-z0-9_]*)/g;

/** The names in a template that are none of `allowed`. */
export function unknownSignedWords(template: string, allowed: readonly string[]): string[] {
  const names = [...template.matchAll(word_form)].map(([, name = '']) => name);
  return names.filter((name) => name !== '$' && !allowed.includes(name)).map((name) => `$${name}`);
}

/** Fills in a template whose names are known. */
export function fillWords(
  template: string,
  words: Readonly<Record<string, string>>,
  encode: (value: string, name: string) => string = (value) => value,
): string {
  return template.replaceAll(word_form, (_, name: string) =>
    name === '$' ? '$' : encode(Object.hasOwn(words, name) ? (words[name] ?? '') : '', name),
  );
}
