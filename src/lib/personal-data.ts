/** Finds personal data and secrets in texts. Each look takes a time in proportion to the text, whatever it is. */

export const personal_data = ['email', 'phone', 'card', 'iban', 'secret'] as const;

export type PersonalData = (typeof personal_data)[number];

/** A part of a text: from its first character up to the one after its last. */
export type Range = { from: number; to: number };

/** Returns the parts of the text that have data of a kind. */
export const findPersonalData: { readonly [kind in PersonalData]: (text: string) => Range[] } = {
  email: findEmails,
  phone: (text) => rangesOf(text, phone),
  card: findCards,
  iban: findIbans,
  secret: findSecrets,
};

function rangesOf(text: string, expression: RegExp): Range[] {
  return Array.from(text.matchAll(expression), (match) => ({ from: match.index, to: match.index + match[0].length }));
}

const local_max = 64;
const host_max = 255;

/** Looks around each @, which is in no part of an address beside it: no character is looked at more than twice. */
function findEmails(text: string): Range[] {
  const ranges: Range[] = [];
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let from = at;
    while (from > 0 && at - from < local_max && isOf(text, from - 1, local)) from -= 1;
    let to = at + 1;
    while (to < text.length && to - at <= host_max && isOf(text, to, host)) to += 1;
    while (to > at && '.-'.includes(text.charAt(to - 1))) to -= 1; // the end of a sentence
    const dot = text.slice(at, to).indexOf('.');
    if (from < at && dot > 1) ranges.push({ from, to });
  }
  return ranges;
}

const letters_and_digits = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const alphanumeric = setOf(letters_and_digits);
const local = setOf(`${letters_and_digits}._%+'-`);
const host = setOf(`${letters_and_digits}.-`);

function setOf(characters: string): ReadonlySet<number> {
  return new Set(Array.from(characters, (character) => character.charCodeAt(0)));
}

/** Letters beyond ASCII are in each set: addresses may have them. */
function isOf(text: string, at: number, set: ReadonlySet<number>): boolean {
  const code = text.charCodeAt(at);
  return set.has(code) || code >= 0xc0;
}

/** International numbers, numbers with an area code in brackets, and groups of 3, 3 and 3 or 4 digits. */
const phone =
  /(?<![\w.])(?:(?:\+|00)\d[\d ().-]{6,18}\d|\(\d{2,4}\) ?\d{3}[ .-]?\d{3,4}|\d{3}[ .-]\d{3}[ .-]\d{3,4})(?!\w|\.\d)/g;

/** As cards have them: in groups of four, of 4, 6 and 5, or in one. */
const card = /(?<!\d)(?:[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ -])\d{6}\2\d{5}|[2-6]\d{12,18})(?!\d)/g;

/** Numbers of cards: those whose last digit is right (Luhn). */
function findCards(text: string): Range[] {
  return rangesOf(text, card).filter(({ from, to }) => isLuhn(text.slice(from, to).replaceAll(/[ -]/g, '')));
}

function isLuhn(digits: string): boolean {
  let sum = 0;
  for (let place = 0; place < digits.length; place += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - place) - 48;
    const counted = place % 2 === 1 ? digit * 2 : digit;
    sum += counted > 9 ? counted - 9 : counted;
  }
  return sum % 10 === 0;
}

const iban_length_min = 15;

/** Numbers of accounts in one, or in groups with spaces. What follows one may look like a part of it. */
function findIbans(text: string): Range[] {
  const ranges: Range[] = [];
  const iban = /(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}/g;
  for (let run = iban.exec(text); run; run = iban.exec(text)) {
    const { index: from } = run;
    const to = ibanEnd(text, from, run[0].length);
    if (to !== undefined) ranges.push({ from, to });
    iban.lastIndex = to ?? from + 4;
  }
  return ranges;
}

/** The end of the longest number that begins there and is right; undefined if none is. */
function ibanEnd(text: string, from: number, length_max: number): number | undefined {
  for (let to = from + length_max; to >= from + iban_length_min; to -= 1)
    if (isOf(text, to - 1, alphanumeric) && !isOf(text, to, alphanumeric) && isIban(text.slice(from, to))) return to;
  return undefined;
}

/** ISO 13616: with the first four characters at the end and letters as 10 to 35, the number is 1 modulo 97. */
function isIban(text: string): boolean {
  const number = text.replaceAll(' ', '').toUpperCase();
  let rest = 0;
  for (let place = 0; place < number.length; place += 1) {
    const code = number.charCodeAt((place + 4) % number.length);
    const value = code > 64 ? code - 55 : code - 48;
    rest = (value > 9 ? rest * 100 + value : rest * 10 + value) % 97;
  }
  return number.length >= iban_length_min && rest === 1;
}

const secrets = [
  // Keys of providers, of code hosts, of clouds, and our own.
  /(?<![A-Za-z0-9])(?:sk|pk|rk|mdl|ghp|gho|ghu|ghs|github_pat|glpat|xox[abeprs]|whsec|hf|npm|pypi|r8|gsk|xai|AIza|AKIA|ASIA)[-_A-Za-z0-9]{14,}/g,
  /\b(?:Bearer|Basic)\s{1,3}[A-Za-z0-9._~+/=-]{12,}/gi,
  /(?<![\w-])eyJ[\w-]{8,200}\.[\w-]{8,4000}\.[\w-]{0,4000}/g,
  /\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)["']?\s{0,3}[:=]\s{0,3}["']?[^\s"',;]{6,}/gi,
];

const key_begin = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/g;
const key_end = /-----END [A-Z ]{0,40}PRIVATE KEY-----/g;

function findSecrets(text: string): Range[] {
  return [...secrets.flatMap((expression) => rangesOf(text, expression)), ...findPrivateKeys(text)];
}

/** From the beginning of a key to its end; without one, the whole rest. */
function findPrivateKeys(text: string): Range[] {
  const ranges: Range[] = [];
  const ends = rangesOf(text, key_end);
  let next = 0;
  for (const { from } of rangesOf(text, key_begin)) {
    if ((ranges.at(-1)?.to ?? 0) > from) continue;
    while ((ends[next]?.from ?? text.length) < from) next += 1;
    ranges.push({ from, to: ends[next]?.to ?? text.length });
  }
  return ranges;
}
