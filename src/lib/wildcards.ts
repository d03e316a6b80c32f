/**
 * Patterns of text that users write: `#` is a digit, `?` a letter or a digit, `*` one or more characters that are no
 * spaces, a space any one space; every other character is itself, in upper or lower case, and so is each after a `\`.
 *
 * Matching takes the same time for each character, whatever pattern and text are: a pattern is a chain of at most 30
 * places, and a number of 32 bits has all places that a match may be at (Navarro and Raffinot's extended Shift-And).
 */
export type Wildcard = {
  readonly length: number;
  /** Places that take more than one character. */
  readonly loops: number;
  /** Places that take a character of the first 128, by its code. */
  readonly ascii: Uint32Array;
  /** Places that take one character beyond these. */
  readonly others: ReadonlyMap<number, number>;
  /** Places that take any character of a class. */
  readonly of_class: {
    readonly digit: number;
    readonly letter: number;
    readonly solid: number;
    readonly space: number;
  };
};

/** Returned for a text that is no pattern; the message ends a sentence that begins with where it stands. */
export class WildcardError extends Error {
  override name = 'WildcardError';
}

const places_max = 30;
/** With fewer, nearly everything would match. */
const plain_min = 3;

type Place =
  | { readonly type: 'digit' | 'letter' | 'solid' | 'space' }
  | { readonly type: 'plain'; readonly text: string };

/** Reads a pattern. Throws WildcardError. */
export function readWildcard(text: string): Wildcard {
  const places = placesOf(text);
  if (places.length > places_max) throw new WildcardError(`must have at most ${places_max} characters.`);
  if (places.filter(({ type }) => type !== 'solid' && type !== 'space').length < plain_min)
    throw new WildcardError(`must have at least ${plain_min} characters beside "*" and spaces.`);
  const of_class = { digit: 0, letter: 0, solid: 0, space: 0 };
  const others = new Map<number, number>();
  let loops = 0;
  for (const [index, place] of places.entries()) {
    const bit = 1 << index;
    if (place.type === 'solid') loops |= bit;
    if (place.type !== 'plain') of_class[place.type] |= bit;
    else for (const code of codesOf(place.text)) others.set(code, (others.get(code) ?? 0) | bit);
  }
  const pattern = { length: places.length, loops, of_class, others };
  const ascii = Uint32Array.from({ length: 128 }, (_, code) => placesTaking(pattern, code));
  return { ...pattern, ascii };
}

function placesOf(text: string): Place[] {
  const places: Place[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\') {
      at += 1;
      if (at === text.length) throw new WildcardError(`ends with a "\\", which must stand before a character.`);
      places.push({ type: 'plain', text: text.charAt(at) });
    } else if (character === '#') places.push({ type: 'digit' });
    else if (character === '?') places.push({ type: 'letter' });
    else if (character === ' ') places.push({ type: 'space' });
    else if (character !== '*') places.push({ type: 'plain', text: character });
    else if (places.at(-1)?.type !== 'solid') places.push({ type: 'solid' });
  }
  return places;
}

/** The codes of a character in both cases; of those whose other case is longer, its own alone. */
function codesOf(character: string): Set<number> {
  const cases = [character, character.toLowerCase(), character.toUpperCase()].filter(({ length }) => length === 1);
  return new Set(cases.map((each) => each.charCodeAt(0)));
}

const [digit, letter, space] = [1, 2, 4];

/** The classes of each code, once for the process: 64 kB. */
let classes: Uint8Array | undefined;

function classOf(code: number): number {
  classes ??= Uint8Array.from({ length: 65_536 }, (_, each) => {
    const character = String.fromCharCode(each);
    if (/\s/.test(character)) return space;
    const is_digit = each >= 48 && each <= 57;
    return (is_digit ? digit : 0) | (/[\p{L}\p{N}]/u.test(character) ? letter : 0);
  });
  return classes[code] ?? 0;
}

function placesTaking({ of_class, others }: Pick<Wildcard, 'of_class' | 'others'>, code: number): number {
  const kind = classOf(code);
  return (
    (others.get(code) ?? 0) |
    (kind & space ? of_class.space : of_class.solid) |
    (kind & digit ? of_class.digit : 0) |
    (kind & letter ? of_class.letter : 0)
  );
}

/**
 * Sets `marks` to `mark` at every character of the text that is in a match, where they are 0. One look forwards finds
 * where a match may be, one backwards which of these come to its end.
 */
export function markMatches(pattern: Wildcard, text: string, marks: Uint8Array, mark: number): void {
  const { ascii, loops, length } = pattern;
  const taking = (code: number) => (code < 128 ? (ascii[code] ?? 0) : placesTaking(pattern, code));
  const last = 1 << (length - 1);
  const reached = new Uint32Array(text.length);
  let places = 0;
  let has_match = false;
  for (let at = 0; at < text.length; at += 1) {
    places = ((places << 1) | 1 | (places & loops)) & taking(text.charCodeAt(at));
    reached[at] = places;
    if (places & last) has_match = true;
  }
  if (!has_match) return;
  places = 0;
  for (let at = text.length - 1; at >= 0; at -= 1) {
    places = ((places >>> 1) | last | (places & loops)) & taking(text.charCodeAt(at));
    if (((reached[at] ?? 0) & places) !== 0 && marks[at] === 0) marks[at] = mark;
  }
}
