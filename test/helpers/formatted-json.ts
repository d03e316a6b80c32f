const line_length_max = 120;

/** JSON as the repository's formatter writes it: lists of plain values on one line where they fit. */
export function formattedJson(value: unknown): string {
  return `${format(JSON.parse(JSON.stringify(value)), '', 0)}\n`;
}

/** `before` is what stands on the line already: indentation and key. */
function format(value: unknown, indent: string, before: number): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const plain = value.every((item) => typeof item !== 'object' || item === null);
    const line = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`;
    if (plain && before + line.length + 1 <= line_length_max) return line;
    return `[\n${value.map((item) => inner + format(item, inner, inner.length)).join(',\n')}\n${indent}]`;
  }
  const members = Object.entries(value).map(([key, member]) => {
    const start = `${inner}${JSON.stringify(key)}: `;
    return start + format(member, inner, start.length);
  });
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n${indent}}`;
}
