/** Words of a text as the sandbox compares them: in small letters, without signs. */
export function wordsOf(text: string): string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

/** Returns each three letters of a word, with a mark at both ends. */
export function partsOf(word: string): string[] {
  const marked = [...`^${word}$`];
  const parts: string[] = [];
  for (let at = 0; at + 3 <= marked.length; at++) parts.push(marked.slice(at, at + 3).join(''));
  return parts;
}
