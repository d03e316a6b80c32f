/** Returns a JSON text with line breaks; another text as it is. */
export function formattedJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
