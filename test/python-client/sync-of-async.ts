/** Each name or word of the async client, and what the other client has in its place. */
const replacements: readonly (readonly [RegExp, string])[] = [
  [/\basync (?=def|for|with)/g, ''],
  [/\bawait /g, ''],
  [/\bAwaitable\[(\w+(?:\[[^[\]]*(?:\[[^[\]]*\])?[^[\]]*\])?)\]/g, '$1'],
  [/, Awaitable(?=, )/g, ''],
  [/\bAsyncGenerator\[([^[\]]+), None\]/g, 'Generator[$1, None, None]'],
  [/\bAsyncGenerator\b/g, 'Generator'],
  [/\bAsync(?=[A-Z])/g, ''],
  [/\baiter_bytes\b/g, 'iter_bytes'],
  [/\baclose\b/g, 'close'],
  [/__(?:a)(iter|next|enter|exit)__/g, '__$1__'],
];

const head =
  '# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.\n';

/** Returns a file of `clients/python/src/medley_client/_sync`, from the same file of `_async`. */
export function syncOf(text: string): string {
  const result = replacements.reduce((before, [from, to]) => before.replaceAll(from, to), text);
  return (
    head +
    result.replaceAll(/(?<=^from collections\.abc import ).+$/gm, (names) => names.split(', ').toSorted().join(', '))
  );
}
