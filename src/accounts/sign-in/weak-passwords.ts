import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/**
 * Passwords that are long enough and easy to guess all the same: those of lists that everybody has, and those that are
 * made of what everybody knows about their person.
 */

/** 14,565 of ten characters or more; its first lines say from where, and under which licences. */
const list_file = new URL('./common-passwords.txt.gz', import.meta.url);

let list: ReadonlySet<string> | undefined;

/** In lower case; read for the first password that is chosen. Its header ends with an empty line. */
function commonPasswords(): ReadonlySet<string> {
  if (list) return list;
  const text = gunzipSync(readFileSync(list_file)).toString();
  list = new Set(text.slice(text.indexOf('\n\n')).trim().split('\n'));
  return list;
}

/** The person of the password, as far as known. */
export type Owner = { email?: string | undefined; name?: string | undefined };

/** Says in a sentence why nobody should have this password; undefined if there is nothing against it. */
export function weaknessOf(password: string, owner: Owner): string | undefined {
  const text = password.normalize('NFKC').toLowerCase();
  if (isCommon(text)) return 'This password is common, so it is guessed first. Choose another one.';
  if (isMonotonous(text)) return 'This password repeats a few characters. Choose another one.';
  if (isAboutOwner(text, owner)) {
    return 'This password is your name or your e-mail address, so it is guessed first. Choose another one.';
  }
  return undefined;
}

/** Also with a sign before or after it. */
function isCommon(text: string): boolean {
  const all = commonPasswords();
  return all.has(text) || all.has(text.replaceAll(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''));
}

/** `aaaaaaaaaa`, `abcabcabcabc`: up to four characters again and again. */
function isMonotonous(text: string): boolean {
  return /^(.{1,4}?)\1+$/su.test(text);
}

const service_name = 'medley';
/** So many letters beside the known words make it another password. */
const own_letters_min = 4;

/** Nothing but the address, its parts, the name or that of the service, with digits and signs around them. */
function isAboutOwner(text: string, { email = '', name = '' }: Owner): boolean {
  const lower = [email, name].map((each) => each.normalize('NFKC').toLowerCase());
  const parts = lower.flatMap((each) => [each, each.replaceAll(/\s+/g, ''), ...each.split(/[^\p{L}\p{N}]+/u)]);
  const words = [...parts, service_name].filter((word) => word.length >= 3).toSorted((a, b) => b.length - a.length);
  const rest = words.reduce((left, word) => left.replaceAll(word, ' '), text);
  return rest !== text && rest.replaceAll(/[^\p{L}]/gu, '').length < own_letters_min;
}
