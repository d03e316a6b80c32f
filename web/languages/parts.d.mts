export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'value'; index: number }
  | { kind: 'form'; index: number; forms: string[] }
  | { kind: 'element'; index: number; inner: Part[] | undefined };

export function partsOf(text: string): Part[];
